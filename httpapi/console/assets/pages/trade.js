import { html, useEffect, useEvery, useLayoutEffect, useReducer, useRef, useSettled, useState, useStore } from '../dom.js';
import { all, may, post, session } from '../api.js';
import { clock, commonDigits, cut, decimal, whole, words, zone } from '../format.js';
import { Card, Empty, Failure, Field, Loading, Side, Status, Table } from '../parts.js';
import { reasons, useAccounts, useSecurities } from '../data.js';
import { WhyButton } from '../details.js';
import { sequenceOf, useFeed, useFrame } from '../live.js';
import { Book, readBook } from '../book.js';
import { Fills } from '../fills.js';
import { useQuery } from '../route.js';
import { Orders } from '../working.js';

export const lead = 'Alt+B buys, Alt+S sells, Enter places; a price of the book goes into the ticket by a click.';

const DEPTH = 12, KEPT_TRADES = 60;
const PART = 1000, MOST = 10_000; // fills that are looked at at a time, and in all
const ticker = /^[A-Z0-9.-]{1,16}$/;

/** A client order id that no other ticket gives. */
const nextId = () => `web-${Date.now().toString(36)}-${Math.floor(Math.random() * 46656).toString(36).padStart(3, '0')}`;

/** What is said when the answer to a ticket with a client order id is lost. */
const UNKNOWN = 'Unknown whether it was placed: send it again as it is, it is placed at most once';

function Ticket({ account, security, price, setPrice, change, onOrder }) {
  const accounts = useAccounts(), securities = useSecurities();
  const [side, setSide] = useState('Buy');
  const [quantity, setQuantity] = useState('');
  const [type, setType] = useState('LIMIT');
  const [tif, setTif] = useState('GTC');
  const [clientId, setClientId] = useState(nextId);
  const [answer, setAnswer] = useState(null);
  const [busy, setBusy] = useState(false);
  const [accepted, setAccepted] = useState(0);
  const form = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => { // the next order begins with its quantity
    const at = document.activeElement;
    if (accepted && (at === document.body || form.current.contains(at))) form.current.elements.quantity.focus();
  }, [accepted]);
  useEffect(() => {
    const key = (e) => {
      if (!e.altKey || e.ctrlKey || e.metaKey) return;
      if (e.code === 'KeyB') setSide('Buy');
      else if (e.code === 'KeyS') setSide('Sell');
      else return;
      e.preventDefault();
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  const place = async (e) => {
    e.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      const order = await post('order-matcher/orders', {
        clientOrderId: clientId || undefined, accountId: Number(account), security, side,
        quantity: Number(quantity), type, timeInForce: tif,
        limitPrice: type === 'LIMIT' ? price : undefined,
      }, { unknown: clientId && UNKNOWN });
      setAnswer({ order });
      onOrder(order);
      setClientId(nextId());
      setQuantity((now) => (now === quantity ? '' : now)); // another Enter is not another order
      setAccepted((n) => n + 1);
    } catch (error) {
      setAnswer({ error });
      const { code, body } = /** @type {any} */ (error);
      if (body?.orderId) onOrder({ ...body, status: 'REJECTED', asOf: body.sequence });
      if (code === 'RISK_REFUSED' || code === 'TERMS_DIFFER') setClientId(nextId());
    }
    setBusy(false);
  };
  return html`<form ref=${form} class="ticket" onSubmit=${place} aria-label="Order ticket">
      <${Field} label="Account" value=${account} onInput=${(v) => change({ account: v.trim() })}
        list=${accounts} inputmode="numeric" pattern="[0-9]+" required autofocus />
      <${Field} label="Security" value=${security} onInput=${(v) => change({ security: v.trim().toUpperCase() })}
        list=${securities} required />
      <${Field} label="Side" value=${side} onInput=${setSide} options=${[['Buy', 'Buy'], ['Sell', 'Sell']]} />
      <${Field} key=${accepted} name="quantity" label="Quantity" value=${quantity} onInput=${setQuantity} inputmode="numeric" pattern="[0-9]+" required />
      <${Field} label="Price" value=${type === 'LIMIT' ? price : ''} onInput=${setPrice} inputmode="decimal"
        pattern="[0-9]*[.]?[0-9]*" required=${type === 'LIMIT'} disabled=${type !== 'LIMIT'} />
      <${Field} label="Type" value=${type} onInput=${setType} options=${[['LIMIT', 'Limit'], ['MARKET', 'Market']]} />
      <${Field} label="Time in force" value=${tif} onInput=${setTif}
        wide options=${[['GTC', 'Until cancelled'], ['IOC', 'Now or cancel (IOC)'], ['FOK', 'All or none (FOK)'], ['POST_ONLY', 'Post only']]} />
      <${Field} label="Client order id" value=${clientId} onInput=${setClientId} maxlength="64" wide />
      <button class="primary" type="submit" disabled=${busy}>${busy ? 'Sending…' : 'Place order'}</button>
    </form>
    <div role="status" aria-live="polite">${answer && html`<${Answer} ...${answer} />`}</div>`;
}

/** What the services said to a ticket. */
function Answer({ order, error }) {
  if (order) {
    return html`<div class="answer good"><b>${order.orderId}</b> ${words(order.status)}${order.fills?.length
      ? html`: ${order.fills.map((f) => `${f.tradeId} ${whole(f.quantity)} at ${f.price}`).join(', ')}` : ''}
      <div class="note">sequence ${whole(order.sequence)} · durability ${order.durability || '–'} · ${order.clientOrderId || 'no client order id'}</div>
      <div class="row"><${WhyButton} order=${order.orderId} /></div></div>`;
  }
  const body = error.body || {};
  const why = body.reason ? `${body.reason}: ${reasons[body.reason] || body.detail || ''}` : error.message;
  return html`<div class="answer bad">${body.orderId && html`<b>${body.orderId} </b>`}${
      error.unknown ? error.message : `${body.decision ? words(body.decision) : 'Not placed'} – ${why}`}
    <div class="note">${body.sequence ? `sequence ${whole(body.sequence)} · ` : ''}${error.code || (error.unknown ? 'no answer' : '')}</div>
    ${(body.orderId || body.sequence) && html`<div class="row"><${WhyButton} order=${body.orderId} sequence=${body.sequence} /></div>`}</div>`;
}

function Depth({ share }) {
  return html`<svg class="depth" aria-hidden="true" preserveAspectRatio="none" viewBox="0 0 100 10">
    <rect x=${100 - share * 100} width=${share * 100} height="10" /></svg>`;
}

function Ladder({ book, orders, take }) {
  const { bids, asks } = book;
  const digits = commonDigits([...bids, ...asks].map((l) => l.price));
  const most = Math.max(1, ...bids.map((l) => l.quantity), ...asks.map((l) => l.quantity));
  const own = new Map();
  for (const o of orders) own.set(`${o.side}${o.limitPrice}`, (own.get(`${o.side}${o.limitPrice}`) || 0) + o.remainingQuantity);
  const row = (l, side) => html`<tr key=${side + l.price}>
    <td><span class="cell own">${own.has(side + l.price) ? `own ${whole(own.get(side + l.price))}` : ''}</span></td>
    <td class="num"><span class="cell">${whole(l.orders)}</span></td>
    <td class="num"><span class="cell"><${Depth} share=${l.quantity / most} />${whole(l.quantity)}</span></td>
    <td class="num"><button type="button" title="Take this price" onClick=${() => take(l.price)}>${decimal(l.price, digits)}</button></td></tr>`;
  const spread = bids[0] && asks[0] ? `spread ${decimal(asks[0].price - bids[0].price, digits)}` : 'no spread';
  if (!bids.length && !asks.length) return html`<${Empty}>The book is empty. The first order rests here.<//>`;
  return html`<div class="scroll fit" tabindex="0" role="region" aria-label="Book"><table class="ladder" aria-label="Book">
    <thead><tr><th scope="col">Own</th><th scope="col" class="num">Orders</th><th scope="col" class="num">Quantity</th><th scope="col" class="num">Price</th></tr></thead>
    <tbody class="asks">${[...asks].reverse().map((l) => row(l, 'Sell'))}</tbody>
    <tbody><tr class="spread"><td colspan="4">${spread}</td></tr></tbody>
    <tbody class="bids">${bids.map((l) => row(l, 'Buy'))}</tbody></table></div>`;
}

function Replace({ order, onDone, onClose }) {
  const [quantity, setQuantity] = useState(String(order.quantity));
  const [price, setPrice] = useState(String(order.limitPrice));
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const apply = async (e) => {
    e.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      onDone(await post(`order-matcher/orders/${order.orderId}/replace`, { quantity: Number(quantity), limitPrice: price }));
      onClose();
    } catch (failure) {
      const p = /** @type {any} */ (failure);
      setError(p.reason ? `${p.reason}: ${reasons[p.reason] || ''}` : p.message);
      setBusy(false);
    }
  };
  const box = (label, v, set, focus = false) => html`<input aria-label=${label}
    value=${v} inputmode="decimal" autofocus=${focus} onInput=${(e) => set(e.target.value)} />`;
  const ref = useRef(null);
  useEffect(() => { ref.current?.querySelector('input')?.select(); }, []);
  return html`<form ref=${ref} class="row" onSubmit=${apply} onKeyDown=${(e) => { if (e.key === 'Escape') onClose(); }}>
    ${box('Quantity', quantity, setQuantity, true)}${box('Price', price, setPrice)}
    <button class="small primary" type="submit" disabled=${busy}>Apply</button>
    <button class="small" type="button" onClick=${onClose}>Close</button>
    ${error && html`<span class="sell" role="alert">${error}</span>`}</form>`;
}

const SECOND_CLICK_MS = 400;

function Working({ orders, onOrder }) {
  const [editing, setEditing] = useState('');
  const [error, setError] = useState(null);
  const left = useRef(''); // the order that was replaced: its button gets the focus back
  useEffect(() => {
    if (!editing && left.current) document.getElementById(`replace-${left.current}`)?.focus();
    left.current = editing;
  }, [editing]);
  const cancels = useRef({ under: new Set(), until: 0 }).current;
  const cancel = async (o) => {
    // The row of a cancelled order goes, and the next one comes under the pointer: a second click is not for it.
    if (cancels.under.has(o.orderId) || performance.now() < cancels.until) return;
    cancels.under.add(o.orderId);
    cancels.until = performance.now() + SECOND_CLICK_MS; // the stream may be faster than the answer
    setError(null);
    try {
      onOrder(await post(`order-matcher/orders/${o.orderId}/cancel`, undefined));
      cancels.until = performance.now() + SECOND_CLICK_MS;
    } catch (failure) { setError(failure); }
    cancels.under.delete(o.orderId);
  };
  const digits = commonDigits((orders || []).map((o) => o.limitPrice));
  return html`<${Failure} error=${error} what="Cancel" />
    <${Table} label="Working orders" rows=${orders} fit keyOf=${(o) => o.orderId}
    empty="No working orders of this account." columns=${[
      { label: 'Order', key: 'orderId' },
      { label: 'Security', key: 'security' },
      { label: 'Side', show: (o) => html`<${Side} of=${o.side} />` },
      { label: 'Left', num: true, show: (o) => whole(o.remainingQuantity) },
      { label: 'Quantity', num: true, show: (o) => whole(o.quantity) },
      { label: 'Price', num: true, show: (o) => decimal(o.limitPrice, digits) },
      { label: 'Status', show: (o) => html`<${Status} of=${o.status} />` },
      { label: 'Client order id', key: 'clientOrderId', wrap: true },
      { label: `Since (${zone})`, show: (o) => clock(o.createdAt) },
      { label: '', show: (o) => (editing === o.orderId
        ? html`<${Replace} order=${o} onDone=${onOrder} onClose=${() => setEditing('')} />`
        : html`<span class="row"><button class="small" onClick=${() => cancel(o)}>Cancel</button>
            <button class="small" id=${`replace-${o.orderId}`} onClick=${() => setEditing(o.orderId)}>Replace</button>
            <${WhyButton} order=${o.orderId} /></span>`) },
    ]} />`;
}

export default function Trade() {
  const [read, change] = useQuery();
  const s = useStore(session);
  const account = read('account', s?.accounts?.[0] ? String(s.accounts[0]) : '');
  const typed = read('security'), security = useSettled(typed), known = useSecurities();
  const [price, setPrice] = useState('');
  const [, draw] = useReducer((n) => n + 1, 0);
  const frame = useFrame(() => draw(0));
  const state = useRef({ book: new Book(), asked: new Book(), trades: /** @type {any[]} */ ([]), orders: new Orders(), key: '', account: '', listed: false, refusal: /** @type {any} */ (null), missing: false, recent: false, reach: /** @type {string|null} */ (null), since: 0, fills: new Fills(), part: '', archived: false }).current;
  const valid = known.length ? known.some(([t]) => t === security) : ticker.test(security);
  if (state.key !== security) {
    state.key = security;
    anew(state);
  }
  if (state.account !== account) {
    state.account = account;
    without(state);
  }
  const onOrder = (o) => {
    state.orders.answer(o, o.asOf);
    frame();
    poll();
  };
  const chosen = /^\d+$/.test(account);
  const owned = chosen && !state.refusal; // the book needs no account
  const topics = [valid && `book:${security},trades`, owned && 'orders'].filter(Boolean).join();
  const live = useFeed(topics, { accountId: owned ? account : '' }, (e) => {
    const d = e.data;
    switch (e.event) {
      case 'snapshot': if (d.security === security) state.book.reset(d); break;
      case 'book': if (d.security === security) state.book.apply(d); break;
      case 'trade': // with an account it is the own side of a fill: the order says the same
        if (d.security === security && d.aggressorSide !== undefined) {
          state.trades = together(state.trades, [{ ...d, id: d.tradeId, side: d.aggressorSide }]);
        }
        break;
      case 'order': state.orders.feed(d, sequenceOf(e.id)); break;
      case 'begin': // what was asked for before may lack what came between
        state.since = sequenceOf(e.id);
        state.recent = false;
        poll();
        break;
      case 'anew':
        anew(state);
        without(state);
        state.archived = true;
        poll();
        break;
      default: return;
    }
    frame();
  });
  // Without a live stream, and for what came before it, the page asks.
  const poll = useEvery(live === 'live' ? 15_000 : 700, async (signal) => {
    const { orders, since } = state;
    try {
      if (valid && live !== 'live') {
        const asked = await readBook(security, DEPTH * 2);
        if (signal.aborted) return;
        state.missing = !asked;
        if (asked) state.asked.reset(asked);
      }
      if (owned) {
        const list = await all('order-matcher/orders', { status: 'open', accountId: account }, 2000, { after: since }).catch((failure) => {
          if (![400, 403, 404].includes(failure.status)) throw failure;
          return { failure };
        });
        if (signal.aborted || orders !== state.orders) return;
        if ('failure' in list) state.refusal = list.failure;
        else {
          orders.list(Number(account), list.items, list.asOf, !list.more);
          state.part = cut(list);
          state.listed = true;
        }
      }
      if (valid && (live !== 'live' || !state.recent)) {
        const before = await recent(state, security, since);
        if (signal.aborted) return;
        state.trades = together(state.trades, before.rows);
        state.reach = before.reach;
        state.recent = since === state.since;
      }
    } catch { /* api.js has noted it */ }
    frame();
  }, [security, account, live, valid]);
  const mine = state.orders.working(Number(account));
  // The stream's book goes on behind its last event; until it is there, the one asked for is newer.
  const book = state.asked.sequence > state.book.sequence ? state.asked : state.book, shown = book.best(DEPTH);
  const digits = commonDigits(state.trades.map((t) => t.price));
  return html`<div role="status">${state.archived && html`<p class="note">What happened while this page was away is in an archive
      that is not here: it began anew from the present.</p>`}</div><div class="trade">
    <${Card} title="Ticket"><${Ticket} account=${account} security=${typed} price=${price} setPrice=${setPrice}
      change=${change} onOrder=${onOrder} /><//>
    <${Card} title=${valid ? `Book of ${security}` : 'Book'} aside=${valid && (live === 'live' ? 'live' : live === 'absent' ? 'asked for every second' : live)}>
      ${!valid ? html`<${Empty}>${security ? 'No such security.' : 'Choose a security.'}<//>`
        : !book.whole ? (state.missing ? html`<${Empty}>No such security.<//>` : html`<${Loading} what="the book" />`)
        : html`<${Ladder} book=${shown} orders=${mine.filter((o) => o.security === security)} take=${(p) => setPrice(String(p))} />`}
    <//>
    <${Card} title="Last trades" aside=${valid && state.trades.length > 0 && state.trades.length < KEPT_TRADES && state.reach}>
      ${!valid ? html`<${Empty}>Choose a security.<//>`
        : html`<${Table} label="Last trades" rows=${state.trades.length || state.reach !== null ? state.trades : null}
          empty=${state.reach ? `No trade ${state.reach}.` : 'No trade yet.'}
          keyOf=${(t) => t.id} columns=${[
            { label: 'Trade', show: (t) => t.id },
            { label: 'Quantity', num: true, show: (t) => whole(t.quantity) },
            { label: 'Price', num: true, show: (t) => decimal(t.price, digits) },
            { label: 'Side', show: (t) => html`<${Side} of=${t.side} />` },
            { label: `Time (${zone})`, show: (t) => clock(t.execTimeMillis) }]} />`}
    <//></div>
    <${Card} title=${account ? `Working orders of account ${account}` : 'Working orders'} aside=${chosen && state.part}>
      ${state.refusal ? html`<${Failure} error=${state.refusal} what="the orders of this account" />` : chosen ? html`<${Working} orders=${state.listed || mine.length ? mine : null} onOrder=${onOrder} />` : html`<${Empty}>Choose an account.<//>`}<//>`;
}

/**
 * Trades of two sources, which may both have one: each once, newest first. The stream goes on behind
 * its last event, and the blotter may have shown what it still brings.
 */
function together(known, more) {
  const each = new Map([...known, ...more].map((t) => [t.tradeSeq, t]));
  return [...each.values()].sort((a, b) => b.tradeSeq - a.tradeSeq).slice(0, KEPT_TRADES);
}

/** What a page that begins knows of a security: nothing. */
function anew(state) {
  state.book = new Book();
  state.asked = new Book();
  state.trades = [];
  state.missing = false; // the engine has no such security
  state.recent = false;
  state.reach = null; // nothing was looked at
  state.archived = false;
}

/** What a page that begins knows of an account's orders: nothing. */
function without(state) {
  state.orders = new Orders();
  state.listed = false;
  state.refusal = null; // why the server does not give them
  state.part = '';
}

/** The last trades of a security from the blotter, one row a match; reach says among what, unless among all fills. */
async function recent({ fills, archived }, security, after) {
  if (!may('admin')) return { rows: [], reach: `since the ${archived ? 'page began anew' : 'security was chosen'}` };
  await fills.refresh(after);
  for (let from = fills.head + 1; ;) {
    from = Math.max(fills.first, from - PART);
    if (fills.head) await fills.load(from, fills.head);
    const rows = matches(fills, security, from);
    const looked = fills.head - from + 1;
    if (rows.length < KEPT_TRADES && from > fills.first && looked < MOST) continue;
    return { rows: rows.slice(-KEPT_TRADES), reach: from > 1 ? `among the newest ${whole(looked)} fills` : '' };
  }
}

/** The fills of a security from a trade sequence on, one of each match. */
function matches(fills, security, from) {
  const rows = [];
  const begun = from > fills.first ? fills.at(from)?.sequence : 0; // a command that begins before
  let command = 0, first = false;
  for (let seq = from; seq <= fills.head; seq++) {
    const fill = fills.at(seq); // of the two fills of a match, the aggressor's comes first
    if (!fill || fill.sequence === begun) continue;
    first = fill.sequence !== command || !first;
    command = fill.sequence;
    if (first && fill.security === security) rows.push(fill);
  }
  return rows;
}
