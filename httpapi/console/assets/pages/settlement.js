import { html, useAsked, useRef, useState, useStore } from '../dom.js';
import { all, get, may, post, session } from '../api.js';
import { commonDigits, cut, dateIn, decimal, whole } from '../format.js';
import { Ask, Card, Failure, Loading, Side, Status, Table, Tag, When } from '../parts.js';
import { Details } from '../details.js';
import { useQuery } from '../route.js';

export const lead = 'What settles when, and why on that date.';

const BEFORE = 30, AFTER = 60; // days of the calendar, around today

/** A date some days later. @param {string} date @param {number} days */
const later = (date, days) => new Date(Date.parse(`${date}T12:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
const weekday = (date) => new Date(`${date}T12:00:00Z`).toLocaleDateString('en-GB', { weekday: 'short', timeZone: 'UTC' });

/** Why a trade settles on its date, in a sentence. @param {any} t @param {any} about */
function because(t, about) {
  const executed = dateIn(new Date(t.timestamp), about.timezone);
  const days = Number(about.tPlus);
  return `Executed on ${executed} in ${about.timezone}; ${days} business day${days === 1 ? '' : 's'} of ${about.calendar} later is ${t.settlementDate}.`;
}

export default function Settlement() {
  const [read, change] = useQuery();
  const about = useStore(session)?.about || { timezone: 'UTC', calendar: '', tPlus: '1' };
  const [ask, setAsk] = useState(null);
  const rest = useRef(0); // the calendar is not read again before
  const today = dateIn(new Date(), about.timezone);
  const date = read('date'), status = read('status', 'Processing');
  const order = status === 'Settled' ? 'newest' : ''; // what is due begins with what settles next
  const { answer: days, error, again: count } = useAsked(5000, async (known) => {
    const began = Date.now();
    if (known && began < rest.current) return known;
    rest.current = 0; // a trade that is forced meanwhile has it counted again
    const { items } = await get('trade-processor/settlement/calendar', { query: { from: later(today, -BEFORE), to: later(today, AFTER) } });
    // Counting many rows takes time: the page asks for a tenth of it.
    rest.current = rest.current || Date.now() + 10 * (Date.now() - began);
    return items.some((d) => d.settlementDate === today) ? items
      : [...items, { settlementDate: today, due: 0, settled: 0, forced: 0 }].sort((a, b) => (a.settlementDate < b.settlementDate ? -1 : 1));
  }, [today]);
  const { own: rows, error: unread, again: list } = useAsked(5000,
    () => all('trade-processor/trades', { order, status, settlementDate: date }, 1000), [date, order, status]);
  const failed = error || unread;
  const digits = commonDigits((rows?.items || []).map((t) => t.price));
  const next = days?.find((d) => d.due && d.settlementDate >= today);
  const sample = rows?.items.find((t) => t.settlementDate === next?.settlementDate);
  return html`<${Failure} error=${failed && failed.status ? failed : null} what="Settlement" />
    ${!days && !error && html`<${Loading} what="the calendar" />`}
    ${days && html`<div class="grid cols2">
      <${Card} title="Calendar" aside=${`${about.calendar}, T+${about.tPlus}, ${about.timezone}`}>
        <${Table} label="Calendar" rows=${days} keyOf=${(d) => d.settlementDate} onOpen=${(d) => change({ date: d.settlementDate === date ? '' : d.settlementDate })}
          rowClass=${(d) => (d.settlementDate < today && !d.due ? 'done' : '')} columns=${[
            { label: 'Date', show: (d) => html`${weekday(d.settlementDate)} ${d.settlementDate} ${d.settlementDate === today ? html`<${Tag} kind="open">today<//>` : ''}` },
            { label: 'Due', num: true, show: (d) => whole(d.due) },
            { label: 'Settled', num: true, show: (d) => whole(d.settled) },
            { label: 'Forced', num: true, show: (d) => whole(d.forced) },
            { label: 'Failed', num: true, show: (d) => { const n = d.settlementDate < today ? d.due : 0; return n ? html`<span class="sell">${whole(n)}</span>` : '0'; } }]} />
        <p class="note">Forced: settled by hand. Failed: their date has passed and they are not settled.</p><//>
      <${Card} title="What settles next">${next
        ? html`<p><b>${whole(next.due)}</b> trades on <b>${next.settlementDate}</b>.</p>${sample && html`<p class="note">For example ${sample.id}: ${because(sample, about)}</p>`}`
        : html`<p class="note">Nothing is due in the next days.</p>`}<//></div>
    <${Card} title=${date ? `Trades of ${date}` : 'Trades'} aside=${html`${cut(rows, order || 'first')} ${date && html`<button class="small" onClick=${() => change({ date: '' })}>All dates</button>`}`}>
      <div class="filters"><div class="field"><label for="settle-status">Status</label><select id="settle-status" value=${status} onChange=${(e) => change({ status: e.target.value })}>
        <option value="Processing" selected=${status === 'Processing'}>Due</option><option value="Settled" selected=${status === 'Settled'}>Settled</option></select></div></div>
      <${Table} label="Trades" rows=${rows?.items} keyOf=${(t) => t.id} empty="No trade here." onOpen=${(t) => change({ open: t.id }, true)} columns=${[
        { label: 'Trade', key: 'id' }, { label: 'Account', num: true, key: 'accountId' }, { label: 'Security', key: 'security' },
        { label: 'Side', show: (t) => html`<${Side} of=${t.side} />` },
        { label: 'Quantity', num: true, show: (t) => whole(t.quantity) },
        { label: 'Price', num: true, show: (t) => decimal(t.price, digits) },
        { label: 'Executed', show: (t) => html`<${When} at=${t.timestamp} />` },
        { label: 'Settles', show: (t) => html`<span title=${because(t, about)}>${t.settlementDate}</span>` },
        { label: 'Status', show: (t) => html`<${Status} of=${t.status} />` },
        { label: '', show: (t) => (t.status === 'Settled' || !may('admin') ? '' : html`<button class="small" onClick=${() => setAsk(t)}>Force</button>`) }]} /><//>`}
    ${read('open') && html`<${Details} id=${read('open')} onClose=${() => change({ open: '' })} />`}
    ${ask && html`<${Ask} title=${`Force the settlement of ${ask.id}?`} reason onClose=${() => setAsk(null)} act=${async (reason) => {
      await post(`trade-processor/trades/${ask.id}/settlement/force`, undefined, { reason });
      rest.current = 1; // long ago
      count();
      list();
    }}><p>It settles now. ${because(ask, about)}</p><//>`}`;
}
