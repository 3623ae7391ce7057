import { html, useAsked, useEffect, useRef, useSettled, useState, useStore } from '../dom.js';
import { all, get, lines, may, Problem } from '../api.js';
import { commonDigits, cut, decimal, whole } from '../format.js';
import { Card, Empty, Failure, Field, Loading, Side, Status, Table, Tag, When } from '../parts.js';
import { Credit } from '../credit.js';
import { useAccounts, useSecurities } from '../data.js';
import { WhyButton } from '../details.js';
import { health } from '../health.js';
import { useQuery } from '../route.js';

export const lead = 'Everything as it was after any sequence. The arrow keys move the slider; Step goes to the next command.';

const WINDOW = 250; // sequences around the slider whose marks are shown

/** What happened at a sequence, for the marks: the heaviest kind wins. */
const weight = /** @type {Record<string, number>} */ ({ accept: 1, cancel: 2, fill: 3, 'partial-fill': 3, reject: 4, control: 5 });
const legend = [['fill', 'fills'], ['reject', 'refusals'], ['control', 'controls'], ['cancel', 'cancels']];

/** The audit records of a range of sequences. @param {number} from @param {number} to @param {AbortSignal} signal */
const records = (from, to, signal) => lines('order-matcher/regulatory/report', { query: { fromSeq: from, toSeq: to }, signal });

/** Are these marks those around a sequence? Near the head, which moves, some that are a little old are. */
const around = (marks, sequence, head) => marks && marks.from <= sequence && sequence <= marks.to && (Date.now() - marks.at < 2000
  || (marks.from <= Math.max(1, sequence - 20) && marks.to >= Math.min(head, sequence + 20)));

/** Marks under the slider: a strip of the sequences around it. */
function Marks({ marks, from, to, at, go }) {
  const span = Math.max(1, to - from);
  return html`<svg class="marks" viewBox="0 0 1000 26" preserveAspectRatio="none" aria-hidden="true" onClick=${(e) => {
      const box = e.currentTarget.getBoundingClientRect();
      go(Math.round(from + (e.clientX - box.left) / box.width * span));
    }}>
    ${[...marks].map(([seq, kind]) => html`<rect class=${kind} x=${(seq - from) / span * 996} width="3" y=${kind === 'accept' ? 16 : 4} height=${kind === 'accept' ? 6 : 18} />`)}
    <rect class="now" x=${(at - from) / span * 996} width="2" y="0" height="26" /></svg>`;
}

export default function Time() {
  const [read, change] = useQuery();
  const h = useStore(health);
  const head = h?.durable || 0;
  const accounts = useAccounts(), securities = useSecurities();
  const security = useSettled(read('security')), account = useSettled(read('account'));
  const [drag, setDrag] = useState(0); // where the slider is before the address says so
  const within = (n) => Math.max(1, Math.min(head, Math.round(n)));
  const at = read('at'), known = !at || (/^[1-9]\d*$/.test(at) && Number(at) <= head);
  const sequence = drag || (at && known ? Number(at) : head);
  const admin = may('admin');

  // Dragging asks for where it pauses, and the newest question ends those before it.
  const paused = useSettled(sequence, 60), there = admin && head > 0, ready = there && paused === sequence;
  const { answer, own, error } = useAsked(1000, async (known, signal) => {
    if (known || !ready) return known;
    const base = `order-matcher/as-of/${paused}`;
    const scope = /^\d+$/.test(account) ? { accountId: account } : {};
    const [book, positions, orders, credit] = await Promise.all([
      security ? get(`${base}/book/${security}`, { query: { depth: 12 }, signal }).catch((e) => { if (e.status === 404 && e.code === 'SECURITY_NOT_FOUND') return null; throw e; }) : null,
      all(`${base}/positions`, scope, 1000, { signal }), all(`${base}/orders`, { status: 'open', ...scope }, 1000, { signal }), all(`${base}/credit`, scope, 1000, { signal })]);
    return { when: `as of ${whole(paused)}${scope.accountId ? `, account ${account}` : ''}`, security, book, positions: positions.items.filter((p) => !security || p.security === security),
      credit: credit.items, orders: orders.items.filter((o) => !security || o.security === security),
      cuts: [cut(positions), cut(credit) && `credit of ${cut(credit)}`, cut(orders)] };
  }, [paused, security, account, ready]);

  // While another moment is read, what is shown says of which one it is; where that fails, it goes.
  const view = own || (error ? null : answer);

  const { answer: seen, error: unseen } = useAsked(250, async (known, signal) => { // the marks around it
    if (!there || around(known, sequence, head)) return known;
    const from = Math.max(1, head <= 2 * WINDOW ? 1 : sequence - WINDOW), to = Math.min(head, from + 2 * WINDOW);
    const list = await records(from, to, signal);
    const map = new Map();
    for (const r of list) {
      if (r.kind in weight && weight[r.kind] >= (weight[map.get(r.sequence)] || 0)) map.set(r.sequence, r.kind === 'partial-fill' ? 'fill' : r.kind);
    }
    const acts = await lines('order-matcher/audit', { query: { fromSeq: from, limit: 500 }, signal }).catch(() => []);
    for (const act of acts) if (act.sequence <= to) map.set(act.sequence, 'control');
    return { map, from, to, list, at: Date.now() };
  }, [there]);
  const marks = seen || { map: new Map(), from: 1, to: 0, list: [] };

  const saved = useRef(0);
  useEffect(() => () => clearTimeout(saved.current), []); // the address of another page stays
  const go = (to) => {
    const next = within(to);
    setDrag(next);
    clearTimeout(saved.current);
    saved.current = setTimeout(() => { change({ at: next }); setDrag(0); }, 300);
  };
  if (!admin) return html`<${Empty}>The past needs an admin token.<//>`;
  if (!h) return html`<${Loading} what="the head" />`;
  if (!head) return html`<${Empty}>Nothing was sequenced yet.<//>`;
  const nearest = (step) => {
    for (let s = sequence + step; s >= marks.from && s <= marks.to; s += step) if ((marks.map.get(s) || 'accept') !== 'accept') return s;
    return 0;
  };
  const here = marks.list.filter((r) => r.sequence === sequence && (r.kind !== 'trade-booked' || !r.tradeId));
  const digits = commonDigits([...(view?.book?.bids || []), ...(view?.book?.asks || []), ...(view?.orders || [])].map((x) => x.price ?? x.limitPrice));
  return html`<div class="card">
      <div class="slider"><label for="sequence">Sequence</label>
        <input id="sequence" type="range" aria-label="Sequence" min="1" max=${head} step="1" value=${sequence} aria-valuetext=${`${sequence} of ${head}`} onInput=${(e) => go(Number(e.target.value))} />
        <output>${whole(sequence)}<span class="note"> of ${whole(head)}</span></output></div>
      <${Marks} marks=${marks.map} from=${marks.from} to=${marks.to} at=${sequence} go=${go} />
      <p class="note ends" aria-hidden="true"><span>${seen ? whole(seen.from) : '–'}</span><span>${seen ? whole(seen.to) : '–'}</span></p>
      <div class="steps"><button onClick=${() => go(sequence - 1)} disabled=${sequence <= 1}>Step back</button><button onClick=${() => go(sequence + 1)} disabled=${sequence >= head}>Step forward</button>
        <button onClick=${() => go(nearest(-1))} disabled=${!nearest(-1)}>Previous event</button><button onClick=${() => go(nearest(1))} disabled=${!nearest(1)}>Next event</button>
        <button onClick=${() => go(head)} disabled=${sequence === head}>Head</button>
        <span class="legend" aria-hidden="true">${legend.map(([k, name]) => html`<span><svg width="8" height="12"><rect class=${k} width="4" height="12" /></svg>${name}</span>`)}</span></div>
      <div class="filters"><${Field} label="Security" value=${read('security')} onInput=${(v) => change({ security: v.trim().toUpperCase() })} list=${securities} />
        <${Field} label="Account" value=${read('account')} onInput=${(v) => change({ account: v.trim() })} list=${accounts} inputmode="numeric" />
        <span class="end" role="status">${own && ready ? own.when : error?.status ? '' : 'loading this moment…'}</span></div>
    </div>
    ${!known && !drag && html`<p class="failure" role="alert">There is no sequence “${at}”: the history has 1 to ${whole(head)}. Shown is the head.</p>`}
    <${Failure} error=${error instanceof Problem && error.status ? error : null} what="The past" />
    <${Card} title=${`At sequence ${whole(sequence)}`}>${here.length ? html`<${Table} label="At this sequence" rows=${here} fit keyOf=${(r) => `${r.kind}/${r.orderId}/${r.tradeId}`} columns=${[
        { label: 'Kind', show: (r) => html`<${Tag} kind=${r.kind === 'reject' ? 'bad' : r.kind.includes('fill') ? 'good' : ''}>${r.kind}<//>` },
        { label: 'Order', key: 'orderId' }, { label: 'Trade', key: 'tradeId' }, { label: 'Account', num: true, key: 'accountId' }, { label: 'Security', key: 'security' },
        { label: 'Side', show: (r) => (r.side ? html`<${Side} of=${r.side} />` : '–') }, { label: 'Quantity', num: true, show: (r) => whole(r.quantity) },
        { label: 'Price', num: true, show: (r) => (r.price === null ? '–' : decimal(r.price, commonDigits([r.price]))) }, { label: 'Time', show: (r) => html`<${When} at=${r.timestampMillis} />` },
        { label: 'Reason', show: (r) => r.riskReason || '–' }, { label: '', show: (r) => (r.orderId?.startsWith('ord-') ? html`<${WhyButton} order=${r.orderId} />` : html`<${WhyButton} sequence=${r.sequence} />`) }]} />`
      : html`<div class="note">${marks.map.get(sequence) === 'control' ? 'An operator’s act: see Controls.' : sequence >= marks.from && sequence <= marks.to ? 'No order or trade at this sequence: a price, a control or a change of a source.' : unseen?.status ? html`<${Failure} error=${unseen} what="The record" />` : 'Reading…'} <${WhyButton} sequence=${sequence} /></div>`}<//>
    ${view && html`<div class="grid cols2">
      <${Card} title=${view.security ? `Book of ${view.security} ${view.when}` : 'Book'}>${!view.security ? html`<${Empty}>Choose a security.<//>` : !view.book ? html`<${Empty}>The security was not known then.<//>`
        : !view.book.bids.length && !view.book.asks.length ? html`<${Empty}>The book was empty.<//>` : html`<${Table} label="Book" fit rows=${[...[...view.book.asks].reverse().map((l) => ({ ...l, side: 'Sell' })), ...view.book.bids.map((l) => ({ ...l, side: 'Buy' }))]}
          keyOf=${(l) => l.side + l.price} columns=${[{ label: 'Side', show: (l) => html`<${Side} of=${l.side} />` }, { label: 'Price', num: true, show: (l) => decimal(l.price, digits) },
            { label: 'Quantity', num: true, show: (l) => whole(l.quantity) }, { label: 'Orders', num: true, show: (l) => whole(l.orders) }]} />`}<//>
      <${Card} title=${`Positions ${view.when}`} aside=${view.cuts.slice(0, 2).filter(Boolean).join(', ')}><${Table} label="Positions" rows=${view.positions} keyOf=${(p) => `${p.accountId}/${p.security}`} empty="No position then." columns=${[
        { label: 'Account', num: true, key: 'accountId' }, { label: 'Security', key: 'security' }, { label: 'Quantity', num: true, show: (p) => whole(p.quantity) },
        { label: 'Average cost', num: true, show: (p) => decimal(p.averageCost, commonDigits(view.positions.map((q) => q.averageCost))) }]} />
        <h3>Credit used</h3><${Credit} rows=${view.credit} empty="No account used credit then." short /><//></div>
      <${Card} title=${`Working orders ${view.when}`} aside=${view.cuts[2]}><${Table} label="Working orders" rows=${view.orders} keyOf=${(o) => o.orderId} empty="No order was working then." columns=${[
        { label: 'Order', key: 'orderId' }, { label: 'Account', num: true, key: 'accountId' }, { label: 'Security', key: 'security' }, { label: 'Side', show: (o) => html`<${Side} of=${o.side} />` },
        { label: 'Left', num: true, show: (o) => whole(o.remainingQuantity) }, { label: 'Price', num: true, show: (o) => decimal(o.limitPrice, digits) },
        { label: 'Status', show: (o) => html`<${Status} of=${o.status} />` }, { label: 'Sequence', num: true, show: (o) => whole(o.sequence) }, { label: '', show: (o) => html`<${WhyButton} order=${o.orderId} />` }]} /><//>`}`;
}
