/** The verifier of proofs, reports and exports: the same code as `posttrade evidence verify`, as WebAssembly. It works on a
 * thread of its own, so that a large export does not stop the page. Thread and module are loaded when the page Evidence
 * opens; from then on they work without a network. */

import { session } from './api.js';

/** @typedef {{exit: number, text: string}} Verdict */
/** @typedef {{done: number, of: number}} Progress */

/** @type {Promise<WebAssembly.Module>|undefined} */
let module;

/** The thread, and one that waits: a job that is under way ends only with its thread, perhaps without a network.
 * @type {Promise<Worker>|undefined} */
let thread, spare;

/** The job under way. @type {Promise<any>} */
let working = Promise.resolve();

async function load() {
  const answer = await fetch('/assets/verify/verify.wasm');
  if (!answer.ok) throw new Error('the verifier is not in this build');
  return WebAssembly.compileStreaming(answer);
}

/** @param {WebAssembly.Module} module @returns {Promise<Worker>} */
const hire = (module) => new Promise((done, failed) => {
  const worker = new Worker('/assets/verify/worker.js');
  worker.onerror = (e) => { e.preventDefault(); failed(new Error('the thread of the verifier was not loaded')); };
  worker.onmessage = () => { worker.postMessage({ module }); done(worker); };
});

/** Has the verifier here, so that it works when the network has gone. */
export async function prepare() {
  if (!session.value?.prover) throw new Error('The verifier is not in this build.');
  const loaded = await (module ||= load().catch((error) => { module = undefined; throw error; }));
  thread ||= hire(loaded).catch((error) => { thread = undefined; throw error; });
  spare ||= hire(loaded).catch(() => { spare = undefined; });
  await spare;
  return thread;
}

/** The thread has been ended: the one that waits takes its place. */
function replace() {
  thread = spare;
  spare = undefined;
  prepare().catch(() => {}); // without a network none waits
}

/**
 * Verifies a file with proofs, or an export, and a report against it.
 * @param {{keys: string, witnesses: string, file?: File, name?: string, files?: [string, File][], report?: File}} job
 * @param {(far: Progress) => void} told @param {AbortSignal} stopped ends a job that takes long
 * @returns {Promise<Verdict>}
 */
export function verify(job, told, stopped) {
  const mine = working.then(async () => {
    if (stopped.aborted) return { exit: 1, text: 'Stopped.' };
    const worker = await prepare();
    let long = false;
    return new Promise((done) => {
      const end = (text) => { worker.terminate(); replace(); done({ exit: 1, text }); };
      const stop = () => { if (long) end('Stopped.'); };
      stopped.addEventListener('abort', stop);
      worker.onerror = (e) => { e.preventDefault(); end(`The verifier has ended: ${e.message}.`); };
      worker.onmessage = ({ data }) => {
        if (data.text !== undefined) { stopped.removeEventListener('abort', stop); done(data); return; }
        long = true;
        if (stopped.aborted) stop(); else told(data);
      };
      worker.postMessage(job);
    });
  });
  working = mine.catch(() => {});
  return mine;
}

/** A report is one object with its range, or a record a line. A proof may begin as such a record does, and has a note.
 * @param {File} file */
export async function isReport(file) {
  const text = await file.slice(0, 1 << 16).text();
  return /^\{"(fromSeq|kind)":/.test(text) && !/"checkpoint"\s*:/.test(text.split('\n', 1)[0]);
}

/**
 * The files of a folder by their paths in it, which is where bundle.json lies.
 * @param {{path: string, file: File}[]} list @returns {{name: string, files: [string, File][]}}
 */
export function folderOf(list) {
  const manifest = list.map((f) => f.path).filter((p) => /(^|\/)bundle\.json$/.test(p)).sort((a, b) => a.length - b.length)[0];
  const root = manifest ? manifest.slice(0, -'bundle.json'.length) : '';
  return {
    name: root.slice(0, -1) || list[0]?.path.split('/')[0] || 'the folder',
    files: list.filter((f) => f.path.startsWith(root)).map((f) => [f.path.slice(root.length), f.file]),
  };
}

/**
 * The files of what was dropped, those of folders too. The entries must be taken before anything is
 * waited for.
 * @param {DataTransfer} dropped @returns {Promise<{path: string, file: File}[]>}
 */
export async function droppedFiles(dropped) {
  const entries = [...dropped.items].map((i) => i.webkitGetAsEntry()).filter(Boolean);
  /** @type {{path: string, file: File}[]} */
  const list = [];
  /** @param {any} entry @param {string} path */
  const walk = async (entry, path) => {
    if (entry.isFile) {
      list.push({ path: path + entry.name, file: await new Promise((done, failed) => entry.file(done, failed)) });
      return;
    }
    const reader = entry.createReader();
    for (;;) { // a reader gives some entries at a time
      const some = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (!some.length) return;
      for (const one of some) await walk(one, `${path}${entry.name}/`);
    }
  };
  for (const entry of entries) await walk(entry, '');
  return list;
}
