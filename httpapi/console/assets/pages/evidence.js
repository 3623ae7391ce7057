import { html, useAsked, useEffect, useRef, useState, useStore } from '../dom.js';
import { may, Problem, send } from '../api.js';
import { duration, whole } from '../format.js';
import { Card, Empty, Facts, Failure, Field, Loading, Table } from '../parts.js';
import { metrics, total } from '../history.js';
import { droppedFiles, folderOf, isReport, prepare, verify } from '../verify.js';

export const lead = 'The signed heads of history, and a check of any proof, report or export in this browser: no server is asked.';

/** The parts of a signed note. @param {string} text */
function parseNote(text) {
  const [body, signatures] = text.split('\n\n');
  const lines = body.split('\n');
  const named = (name) => lines.find((l) => l.startsWith(`${name} `))?.split(' ') || [];
  return {
    origin: lines[0], size: Number(lines[1]), root: lines[2], head: named('head'), snapshot: named('snapshot'),
    signers: (signatures || '').split('\n').filter((l) => l.startsWith('— ')).map((l) => ({ name: l.split(' ')[1], key: l.split(' ')[2]?.slice(0, 6) })),
  };
}

function Log() {
  const m = useStore(metrics);
  const { answer: note, error } = useAsked(2000, async () => parseNote(
    await (await send('GET', 'order-matcher/log/checkpoint', { accept: 'text/plain' })).text()), []);
  if (error && !note) return html`<${Failure} error=${error instanceof Problem && error.status === 0 ? null : error} what="The transparency log" />`;
  if (!note) return html`<${Loading} what="the newest checkpoint" />`;
  const figure = (name) => total(m, name);
  return html`<${Facts} of=${[['Origin', note.origin], ['Leaves in the tree', whole(note.size)], ['Root', html`<code>${note.root}</code>`], ['Head', note.head[1] && whole(Number(note.head[1]))],
      ['Newest snapshot', note.snapshot[1] ? html`${whole(Number(note.snapshot[1]))} <code>${note.snapshot[2]?.slice(0, 16)}…</code>` : '–'],
      figure('svc_evidence_lag_seconds') !== null && ['Behind', duration(figure('svc_evidence_lag_seconds'))],
      figure('svc_evidence_cosigned_sequence') > 0 && ['Cosigned up to', whole(figure('svc_evidence_cosigned_sequence'))]]} />
    <h3>Signatures</h3><${Table} label="Signatures" rows=${note.signers} fit keyOf=${(s) => s.name + s.key} empty="Not signed." columns=${[
      { label: 'Name', key: 'name' }, { label: 'Kind', show: (s) => (s.name === note.origin ? 'the log' : 'a witness') }, { label: 'Key hash', show: (s) => html`<code>${s.key}</code>` }]} />`;
}

export default function Evidence() {
  const [key, setKey] = useState(sessionStorage.getItem('posttrade-evidence-key') || '');
  const [witnesses, setWitnesses] = useState('');
  const [files, setFiles] = useState(/** @type {{path: string, file: File}[]} */ ([]));
  const [folder, setFolder] = useState(/** @type {{path: string, file: File}[]} */ ([]));
  const [result, setResult] = useState(null);
  const [far, setFar] = useState(/** @type {{name: string, done: number, of: number}|null} */ (null));
  const [here, setHere] = useState('the verifier is being loaded');
  const [wide, setWide] = useState(false);
  const [over, setOver] = useState(false);
  const stop = useRef(() => {});
  const input = useRef(null);
  useEffect(() => { prepare().then(() => setHere('works without a network'), (e) => setHere(e.message)); }, []); // before the network goes
  useEffect(() => { if (key) sessionStorage.setItem('posttrade-evidence-key', key); }, [key]);
  useEffect(() => {
    if (!files.length && !folder.length) { setResult(null); return undefined; }
    if (!key.trim()) { setResult({ waits: 'Enter the key of the log: it comes from outside, not from this server.' }); return undefined; }
    const ended = new AbortController();
    setResult({ waits: 'Verifying…' });
    const timer = setTimeout(async () => {
      const list = [];
      const judge = async (name, job) => {
        const told = (far) => { if (!ended.signal.aborted) setFar({ name, ...far }); };
        try { list.push({ name, ...await verify({ ...job, keys: key, witnesses }, told, ended.signal) }); }
        catch (error) { list.push({ name, exit: 1, text: /** @type {Error} */ (error).message }); }
      };
      const bundle = folder.length ? folderOf(folder) : null;
      if (bundle) await judge(bundle.name, bundle);
      for (const { file } of files) {
        if (!await isReport(file).catch(() => false)) await judge(file.name, { file });
        else if (bundle) await judge(file.name, { ...bundle, report: file });
        else list.push({ name: file.name, exit: 1, text: 'A report is proven against an export: choose the folder of the export too.' });
      }
      if (ended.signal.aborted) return;
      setFar(null);
      setResult({ list });
    }, 150);
    stop.current = () => { ended.abort(); setFar(null); setResult({ waits: 'Stopped. Choose a file to begin again.' }); };
    return () => { ended.abort(); setFar(null); clearTimeout(timer); };
  }, [files, folder, key, witnesses]);
  const take = (list) => { // a folder has paths, a file has none
    const inside = list.filter((f) => f.path.includes('/')), alone = list.filter((f) => !f.path.includes('/'));
    if (inside.length) { setWide(true); setFolder(inside); }
    if (alone.length) setFiles(alone);
  };
  const chosen = (e) => [...e.target.files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  return html`<div class="grid cols2">
    <${Card} title="Verify a file" aside=${here}><form onSubmit=${(e) => e.preventDefault()}
        class=${`drop${over ? ' over' : ''}`} onDragOver=${(e) => { e.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)}
        onDrop=${async (e) => { e.preventDefault(); setOver(false); take(await droppedFiles(e.dataTransfer)); }}>
      <div class="field"><label for="proof-file">Proof or report file</label><input id="proof-file" ref=${input} type="file" multiple onChange=${(e) => setFiles(chosen(e))} />
        <span class="hint">Choose it, or drop it here. It stays in this browser, which takes up to 512 MiB a file; posttrade evidence verify takes any.</span></div>
      ${!wide ? html`<p><button type="button" class="small" onClick=${() => setWide(true)}>Verify an export…</button></p>`
      : html`<div class="field"><label for="export-folder">Export folder</label><input id="export-folder" type="file" webkitdirectory onChange=${(e) => setFolder(chosen(e))} />
        <span class="hint">A folder of posttrade evidence export. A report is proven against it.</span></div>`}
      <${Field} label="Key" value=${key} onInput=${setKey} hint="The verifier key of the log, as in log.pub." />
      <${Field} label="Witness keys (optional)" value=${witnesses} onInput=${setWitnesses} />
    </form>
    ${far && html`<div class="far"><progress aria-label=${`${far.name}: commands replayed`} max=${far.of} value=${far.done}></progress>
      <span>${far.name}: ${whole(far.done)} of ${whole(far.of)} commands</span><button class="small" onClick=${() => stop.current()}>Stop</button></div>`}
    <div role="status" aria-live="polite">${result?.waits && html`<p class="note">${result.waits}</p>`}
      ${result?.list?.map((r) => html`<div class=${`answer ${r.exit === 0 ? 'good' : 'bad'}`}><b>${r.name}: ${r.exit === 0 ? 'proven' : r.exit === 3 ? 'not proven' : 'not proven: it cannot be read'}</b>
        <pre class="hex">${r.text}</pre></div>`)}</div><//>
    <${Card} title="The log"><${Log} /><//></div>
    ${!may('admin') && html`<${Empty}>Proofs of your accounts' trades are in the details of a fill on the page Blotter.<//>`}`;
}
