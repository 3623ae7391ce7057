import { html, useEffect, useEvery, useMemo, useReducer, useRef, useSettled, useState } from '../dom.js';
import { may } from '../api.js';
import { commonDigits, counted, day, decimal, whole, zone } from '../format.js';
import { Empty, Failure, Field, Loading } from '../parts.js';
import { useAccounts, useSecurities } from '../data.js';
import { Details, save } from '../details.js';
import { Fills, Selection } from '../fills.js';
import { Grid } from '../grid.js';
import { OwnFills } from '../ownfills.js';
import { useQuery } from '../route.js';

export const lead = 'Every executed fill, newest first. Enter opens one.';

const shared = /** @type {any} */ ((digits) => [
  { label: 'Trade', show: (f) => f.id },
  { label: `Time (${zone})`, show: (f) => time(f.execTimeMillis ?? f.timestamp) },
  { label: 'Account', num: true, show: (f) => String(f.accountId) },
  { label: 'Security', show: (f) => f.security },
  { label: 'Side', show: (f) => f.side, className: (f) => (f.side === 'Buy' ? 'buy' : 'sell') },
  { label: 'Quantity', num: true, show: (f) => whole(f.quantity) },
  { label: 'Price', num: true, show: (f) => decimal(f.price, digits()) },
  { label: 'Order', show: (f) => f.orderId ?? '–' },
]);
const columns = (digits) => [...shared(digits), { label: 'Sequence', num: true, show: (f) => whole(f.sequence) }];
const ownColumns = (digits) => [...shared(digits), { label: 'Status', show: (t) => t.status },
  { label: 'Settles', show: (t) => t.settlementDate ?? '–' }];

const two = (n) => (n < 10 ? `0${n}` : String(n));
function time(at) {
  const d = new Date(at);
  return `${day(d)} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, '0')}`;
}

/** A field of a CSV file. Text that a spreadsheet would run as a formula is quoted as text. */
const csv = (v) => {
  const text = typeof v === 'string' && /^[=+\-@\t\r]/.test(v) ? `'${v}` : String(v ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const common = ['id', 'tradeSeq', 'executedAt', 'accountId', 'security', 'side', 'quantity', 'price', 'orderId'];
const fields = [...common, 'sequence'], ownFields = [...common, 'status', 'settlementDate'];
const headerOf = (names) => `${names.join(',')}\n`;
const line = (names, f) => {
  const executedAt = new Date(f.execTimeMillis ?? f.timestamp).toISOString();
  return `${names.map((name) => csv(name === 'executedAt' ? executedAt : f[name])).join(',')}\n`;
};

const wantedOf = (read) => ({ account: read('account'), security: read('security'), side: read('side'), id: read('id'), from: read('from'), to: read('to') });

const AHEAD = 200; // rows that are read before they are in sight
/** A moment of the address for the server. @param {string} text @param {number} plus ms */
const bound = (text, plus) => {
  const at = Date.parse(text);
  return at ? new Date(at + plus).toISOString() : text;
};

function Filters({ read, change, children }) {
  const accounts = useAccounts(), securities = useSecurities();
  const box = (name) => (v) => change({ [name]: v.trim() });
  return html`<div class="filters" role="search" aria-label="Filter">
    <${Field} label="Account" value=${read('account')} onInput=${box('account')} list=${accounts} inputmode="numeric" />
    <${Field} label="Security" value=${read('security')} onInput=${(v) => change({ security: v.trim().toUpperCase() })} list=${securities} />
    <${Field} label="Side" value=${read('side')} onInput=${box('side')} options=${[['', 'Both'], ['Buy', 'Buy'], ['Sell', 'Sell']]} />
    <${Field} label="Id (trade or order)" value=${read('id')} onInput=${box('id')} />
    <${Field} label=${`From (${zone})`} type="datetime-local" step="1" value=${read('from')} onInput=${box('from')} />
    <${Field} label=${`To (${zone})`} type="datetime-local" step="1" value=${read('to')} onInput=${box('to')} />
    <div class="end">${children}</div></div>`;
}

/** What both blotters show. parts yields the pieces of the file, each with how far it is. */
function Screen({ read, change, ready, error, parts, waits = false, status, empty, entry = undefined, count, ...grid }) {
  const [exporting, setExporting] = useState('');
  const [notExported, setNotExported] = useState('');
  const exportAll = async () => {
    const blocks = [];
    setNotExported('');
    try {
      for await (const [text, far] of parts()) {
        blocks.push(text);
        setExporting(far);
        await new Promise((next) => setTimeout(next, 0));
      }
      save('blotter.csv', 'text/csv', ...blocks);
    } catch (failure) {
      setNotExported(`The file was not made: ${/** @type {Error} */ (failure).message}.`);
    }
    setExporting('');
  };
  const opened = read('open');
  return html`<${Filters} read=${read} change=${change}>
      <span role="status">${ready && status}${exporting && `, exporting ${exporting}`}</span>
      <button onClick=${exportAll} disabled=${!ready || !!exporting || waits} title="All rows as a file">CSV</button><//>
    <${Failure} error=${error && error.status !== 0 ? error : null} what="The blotter" />
    ${notExported && html`<p class="failure" role="alert">${notExported}</p>`}
    ${!ready && !error && html`<${Loading} what="the blotter" />`}
    ${ready && (count() === 0 ? html`<${Empty}>${empty}<//>` : html`<${Grid} label="Blotter" ...${grid} count=${count} keyOf=${(f) => f.id}
      onOpen=${(f) => change({ open: f.id }, true)} />`)}
    ${opened && html`<${Details} id=${opened} entry=${entry} onClose=${() => change({ open: '' })} />`}`;
}

/** The blotter of an administrator: any row of a million is one request away. */
function Whole() {
  const [read, change] = useQuery();
  const fills = useMemo(() => new Fills(), []);
  const [version, again] = useReducer((n) => n + 1, 0);
  const [error, setError] = useState(null);
  const [ready, setReady] = useState(false);
  const selection = useRef(/** @type {Selection|null} */ (null));
  const digits = useRef(2);
  const wanted = wantedOf(read);
  const key = JSON.stringify(wanted), filtered = Object.values(wanted).some(Boolean);

  useEvery(700, async () => {
    try {
      const grew = await fills.refresh();
      setError(null);
      if (!ready) setReady(true);
      if (grew) again(0);
      await selection.current?.grow(); // also when it was made after the newest fill had come
    } catch (failure) { setError(failure); }
  }, []);

  useEffect(() => {
    if (!ready || !filtered) return undefined;
    const id = /^(?:trd-)?(\d+)$/.exec(wanted.id), one = id && Number(id[1]);
    const after = wanted.from ? new Date(wanted.from).getTime() : -Infinity;
    const before = wanted.to ? new Date(wanted.to).getTime() + 1000 : Infinity;
    const wants = (f) => f.execTimeMillis >= after && f.execTimeMillis < before && (!wanted.account || String(f.accountId) === wanted.account)
      && (!wanted.security || f.security === wanted.security) && (!wanted.side || f.side === wanted.side)
      && (!wanted.id || (id ? f.tradeSeq === one : f.orderId === wanted.id || f.id === wanted.id));
    const made = selection.current = new Selection(fills, wants, async () => {
      const { head } = fills;
      let from = one || fills.first, to = one ? Math.min(one, head) : head;
      let later = false; // than the range: no fill to come belongs to it
      if (wanted.from) from = Math.max(from, await fills.since(after));
      if (wanted.to) {
        const end = await fills.since(before);
        later = end <= head;
        to = Math.min(to, end - 1);
      }
      return { from: Math.max(1, from), to, grows: !later && !(one && one <= head) };
    }, () => again(0));
    again(0); // nothing of the one before shows
    return () => {
      made.stop();
      selection.current = null;
    };
  }, [key, ready]);

  const count = () => (filtered ? selection.current?.found.length ?? 0 : fills.count);
  const rows = async (from, to) => {
    let page;
    if (filtered) page = selection.current?.found.slice(from, to) ?? [];
    else {
      const { head } = fills;
      if (head > from) await fills.load(Math.max(fills.first, head - to + 1), head - from).catch(() => {});
      page = fills.behind(head, from, to);
    }
    digits.current = Math.max(digits.current, commonDigits(page.map((f) => f?.price)));
    return page;
  };

  const parts = async function* () { // what is here now: what comes meanwhile would move the rows between two blocks
    const found = filtered ? [...selection.current?.found ?? []] : null;
    const { head } = fills, total = found ? found.length : fills.count;
    yield [headerOf(fields), ''];
    for (let from = 0; from < total; from += 20_000) {
      const to = Math.min(total, from + 20_000);
      if (!found) await fills.load(head - to + 1, head - from);
      const part = found ? found.slice(from, to) : fills.behind(head, from, to);
      yield [part.map((f) => (f ? line(fields, f) : '')).join(''), `${whole(to)} of ${whole(total)} rows`];
    }
  };

  const opened = read('open');
  const entry = opened.startsWith('trd-') ? fills.at(Number(opened.slice(4))) : undefined;
  const scan = selection.current;
  return html`<${Screen} read=${read} change=${change} ready=${ready} error=${error} parts=${parts} waits=${filtered && !scan?.done}
    status=${filtered
      ? `${whole(count())} of ${whole(fills.count)} fills${scan?.begun && !scan.done ? `, looking (${Math.round(100 * (1 - (scan.next - scan.from) / Math.max(1, scan.newest - scan.from)))} %)` : ''}`
      : counted(fills.count, 'fill')}
    empty=${filtered ? (scan?.done ? 'No fill fits the filter.' : 'Looking…') : 'No fill yet. The first trade shows here by itself.'}
    columns=${columns(() => digits.current)} count=${count} rows=${rows} version=${`${version}/${key}`} entry=${entry} />`;
}

/** The fills of a token's own accounts, from the projection. */
function Own() {
  const [read, change] = useQuery();
  const [, again] = useReducer((n) => n + 1, 0);
  const [error, setError] = useState(null);
  const digits = useRef(2), sight = useRef(0); // the end of what is in sight
  const key = useSettled(JSON.stringify(wantedOf(read)));
  const fills = useMemo(() => {
    const { account, security, side, id, from, to } = JSON.parse(key), trade = /^\d+$/.test(id) ? `trd-${id}` : id;
    sight.current = 0;
    return new OwnFills({ accountId: account, security, from: bound(from, 0), to: bound(to, 1000) },
      (t) => (!side || t.side === side) && (!id || t.id === trade || t.orderId === id), () => again(0));
  }, [key]);
  useEffect(() => () => { fills.stopped = true; }, [fills]);
  useEvery(2000, async (signal) => {
    try {
      await fills.refresh();
      await fills.reach(sight.current + AHEAD);
      if (!signal.aborted) setError(null);
    } catch (failure) { if (!signal.aborted) setError(failure); }
  }, [key]);

  const rows = async (from, to) => {
    fills.reach((sight.current = to) + AHEAD).catch(() => {}); // the next look says so
    const page = fills.found.slice(from, to);
    digits.current = Math.max(digits.current, commonDigits(page.map((t) => t.price)));
    return page;
  };
  const parts = async function* () { // what comes meanwhile is before the first page
    yield [headerOf(ownFields), ''];
    for (let cursor = '', count = 0, more = true; more; more = !!cursor) {
      const { items, nextCursor } = await fills.page(cursor), part = items.filter(fills.wants);
      cursor = nextCursor;
      yield [part.map((t) => line(ownFields, t)).join(''), counted(count += part.length, 'row')];
    }
  };
  const { found, next, ready } = fills;
  return html`<${Screen} read=${read} change=${change} ready=${ready} error=${error} parts=${parts}
    status=${`${counted(found.length, 'fill')}${!next ? '' : found.length < sight.current + AHEAD ? ', looking' : ', older ones further down'}`}
    empty=${next ? 'Looking…' : 'No fill of your accounts.'}
    columns=${ownColumns(() => digits.current)} count=${() => fills.found.length} rows=${rows} version=${found} />`;
}

export default function Blotter() { return may('admin') ? html`<${Whole} />` : html`<${Own} />`; }
