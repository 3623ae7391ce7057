import { html, useAsked, useEffect, useEvery, useMemo, useReducer, useRef, useState } from '../dom.js';
import { all, may } from '../api.js';
import { commonDigits, counted, day, decimal, instant, whole, zone } from '../format.js';
import { Empty, Failure, Field, Loading, Table } from '../parts.js';
import { useAccounts, useSecurities } from '../data.js';
import { Details, save } from '../details.js';
import { Fills, Selection } from '../fills.js';
import { Grid } from '../grid.js';
import { useQuery } from '../route.js';

export const lead = 'Every executed fill, newest first. Enter opens one.';

const columns = /** @type {any} */ ((digits) => [
  { label: 'Trade', show: (f) => f.id },
  { label: `Time (${zone})`, show: (f) => time(f.execTimeMillis) },
  { label: 'Account', num: true, show: (f) => String(f.accountId) },
  { label: 'Security', show: (f) => f.security },
  { label: 'Side', show: (f) => f.side, className: (f) => (f.side === 'Buy' ? 'buy' : 'sell') },
  { label: 'Quantity', num: true, show: (f) => whole(f.quantity) },
  { label: 'Price', num: true, show: (f) => decimal(f.price, digits()) },
  { label: 'Order', show: (f) => f.orderId },
  { label: 'Sequence', num: true, show: (f) => whole(f.sequence) },
]);

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
const header = 'id,tradeSeq,executedAt,accountId,security,side,quantity,price,orderId,sequence\n';
const line = (f) => `${[f.id, f.tradeSeq, new Date(f.execTimeMillis ?? f.timestamp).toISOString(),
  f.accountId, f.security, f.side, f.quantity, f.price, f.orderId, f.sequence].map(csv).join(',')}\n`;

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

/** The blotter of an administrator: any row of a million is one request away. */
function Whole() {
  const [read, change] = useQuery();
  const fills = useMemo(() => new Fills(), []);
  const [version, again] = useReducer((n) => n + 1, 0);
  const [error, setError] = useState(null);
  const [ready, setReady] = useState(false);
  const selection = useRef(/** @type {Selection|null} */ (null));
  const [exporting, setExporting] = useState('');
  const [notExported, setNotExported] = useState('');
  const digits = useRef(2);
  const wanted = { account: read('account'), security: read('security'), side: read('side'), id: read('id'), from: read('from'), to: read('to') };
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
    const wants = (f) => (!wanted.account || String(f.accountId) === wanted.account)
      && (!wanted.security || f.security === wanted.security) && (!wanted.side || f.side === wanted.side)
      && (!wanted.id || (id ? f.tradeSeq === one : f.orderId === wanted.id || f.id === wanted.id));
    const made = selection.current = new Selection(fills, wants, async () => {
      const { head } = fills;
      let from = one || fills.first, to = one ? Math.min(one, head) : head;
      if (wanted.from) from = Math.max(from, await fills.since(new Date(wanted.from).getTime()));
      if (wanted.to) to = Math.min(to, await fills.since(new Date(wanted.to).getTime() + 1000) - 1);
      return { from: Math.max(1, from), to, grows: !wanted.to && !(one && one <= head) };
    }, () => again(0));
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

  const exportAll = async () => { // what is here now: what comes meanwhile would move the rows between two blocks
    const found = filtered ? [...selection.current?.found ?? []] : null;
    const { head } = fills, total = found ? found.length : fills.count;
    const blocks = [header];
    setNotExported('');
    try {
      for (let from = 0; from < total; from += 20_000) {
        const to = Math.min(total, from + 20_000);
        if (!found) await fills.load(head - to + 1, head - from);
        const part = found ? found.slice(from, to) : fills.behind(head, from, to);
        blocks.push(part.map((f) => (f ? line(f) : '')).join(''));
        setExporting(`${whole(to)} of ${whole(total)} rows`);
        await new Promise((next) => setTimeout(next, 0));
      }
      save('blotter.csv', 'text/csv', ...blocks);
    } catch (failure) {
      setNotExported(`The file was not made: ${/** @type {Error} */ (failure).message}.`);
    }
    setExporting('');
  };

  const opened = read('open');
  const entry = opened.startsWith('trd-') ? fills.at(Number(opened.slice(4))) : undefined;
  const scan = selection.current;
  return html`<${Filters} read=${read} change=${change}>
      <span role="status">${!ready ? '' : filtered
        ? `${whole(count())} of ${whole(fills.count)} fills${scan?.begun && !scan.done ? `, looking (${Math.round(100 * (1 - (scan.next - scan.from) / Math.max(1, scan.newest - scan.from)))} %)` : ''}`
        : counted(fills.count, 'fill')}${exporting && `, exporting ${exporting}`}</span>
      <button onClick=${exportAll} disabled=${!ready || !!exporting || (filtered && !scan?.done)} title="All rows as a file">CSV</button><//>
    <${Failure} error=${error && error.status !== 0 ? error : null} what="The blotter" />
    ${notExported && html`<p class="failure" role="alert">${notExported}</p>`}
    ${!ready && !error && html`<${Loading} what="the blotter" />`}
    ${ready && count() === 0 && html`<${Empty}>${filtered ? (scan?.done ? 'No fill fits the filter.' : 'Looking…') : 'No fill yet. The first trade shows here by itself.'}<//>`}
    ${ready && count() > 0 && html`<${Grid} label="Blotter" columns=${columns(() => digits.current)} count=${count} rows=${rows} keyOf=${(f) => f.tradeSeq}
      version=${`${version}/${key}`} onOpen=${(f) => change({ open: f.id }, true)} />`}
    ${opened && html`<${Details} id=${opened} entry=${entry} onClose=${() => change({ open: '' })} />`}`;
}

/** The trades of a token's own accounts, from the projection. */
function Own() {
  const [read, change] = useQuery();
  const query = { accountId: read('account'), security: read('security') };
  const { answer: list, error } = useAsked(3000, () => all('trade-processor/trades', query, 5000), [query]);
  const side = read('side'), id = read('id');
  const rows = list?.items.filter((t) => (!side || t.side === side) && (!id || t.id === id || t.orderId === id)
    && (!read('from') || new Date(t.timestamp) >= new Date(read('from'))) && (!read('to') || new Date(t.timestamp) <= new Date(read('to')))).reverse();
  const digits = commonDigits((rows || []).map((t) => t.price));
  return html`<${Filters} read=${read} change=${change}>
      <span role="status">${rows ? `${counted(rows.length, 'fill')}${list.more ? ' of the first 5,000' : ''}` : ''}</span>
      <button title="All rows as a file" disabled=${!rows} onClick=${() => save('blotter.csv', 'text/csv', header, ...rows.map(line))}>CSV</button><//>
    <${Failure} error=${error} what="The trades" />
    ${(rows || !error) && html`<${Table} label="Blotter" rows=${rows} keyOf=${(t) => t.id} empty="No fill of your accounts."
      onOpen=${(t) => change({ open: t.id }, true)} columns=${[
        { label: 'Trade', key: 'id' }, { label: `Time (${zone})`, show: (t) => instant(t.timestamp) },
        { label: 'Account', num: true, key: 'accountId' }, { label: 'Security', key: 'security' }, { label: 'Side', key: 'side' },
        { label: 'Quantity', num: true, show: (t) => whole(t.quantity) },
        { label: 'Price', num: true, show: (t) => decimal(t.price, digits) },
        { label: 'Order', key: 'orderId' }, { label: 'Status', key: 'status' }, { label: 'Settles', key: 'settlementDate' }]} />`}
    ${read('open') && html`<${Details} id=${read('open')} onClose=${() => change({ open: '' })} />`}`;
}

export default function Blotter() { return may('admin') ? html`<${Whole} />` : html`<${Own} />`; }
