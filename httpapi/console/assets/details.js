/** One order and everything that followed it, in a dialog at the side. Its address is ?open=. */
import { html, useAsked, useState } from './dom.js';
import { get, link, may, queryOf } from './api.js';
import { commonDigits, decimal, instant, whole, words } from './format.js';
import { Dialog, Facts, Failure, Loading, Side, Status, Table } from './parts.js';
import { reasons } from './data.js';

/** Why an order is what it is: GET /orders/{id}/why, or of a sequence. */
export function Why({ order, contract, sequence, onClose }) {
  const name = order || contract || `sequence ${sequence}`;
  const { own: why, error } = useAsked(2000, async (known) => {
    const path = order ? `orders/${order}/why` : contract ? `contracts/${contract}/why` : 'why';
    return known || get(`order-matcher/${path}`, { query: order || contract ? {} : { inputSeq: sequence } });
  }, [order, contract, sequence]);
  return html`<${Dialog} title=${`Why: ${name}`} onClose=${onClose}>
    ${!why && !error && html`<${Loading} what="the reason" />`}
    <${Failure} error=${error} what="The reason" />
    ${why && html`<p class="answer">${why.text}</p>
      <${Facts} of=${[['Decision', words(why.decision)], why.reason && ['Reason', why.reason],
        why.rule && ['Rule', why.rule], shown('Observed', why.observed), shown('Limit', why.limit),
        ['Sequence', whole(why.inputSeq)],
        why.queueAhead && ['Queue ahead on arrival', `${whole(why.queueAhead.orders)} orders, ${whole(why.queueAhead.quantity)}`],
        why.queueAheadNow && ['Queue ahead now', `${whole(why.queueAheadNow.orders)} orders, ${whole(why.queueAheadNow.quantity)}`]]} />
      ${why.because?.length > 0 && html`<h3>Because of</h3><${Table} label="Because" rows=${why.because} fit
        keyOf=${(b) => `${b.inputSeq}/${b.what}`} columns=${[
          { label: 'What', show: (b) => b.what },
          { label: 'Value', num: true, show: (b) => plain(b.value) },
          { label: 'Sequence', num: true, show: (b) => whole(b.inputSeq) },
          { label: 'Time', show: (b) => instant(b.time) }]} />`}
      ${why.against?.length > 0 && html`<h3>Traded against</h3><${Table} label="Against" rows=${why.against} fit
        keyOf=${(a) => a.tradeId} columns=${[
          { label: 'Trade', key: 'tradeId' }, { label: 'Order', key: 'orderId' },
          { label: 'Price', num: true, show: (a) => decimal(a.price, commonDigits([a.price])) },
          { label: 'Quantity', num: true, show: (a) => whole(a.quantity) }]} />
        ${why.fills > why.against.length && html`<p>and ${whole(why.fills - why.against.length)} fills more</p>`}`}`}
  <//>`;
}

/** @param {any} value */
function plain(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value !== 'object') return String(value);
  if ('value' in value) return `${value.value}${value.unit ? ` ${value.unit}` : ''}`;
  return Object.entries(value).map(([k, v]) => `${k} ${plain(v)}`).join(', ');
}
const shown = (name, value) =>
  (value === null || value === undefined ? null : [name, plain(value)]);

/** A button that opens Why of an order. */
export function WhyButton({ order, contract, sequence, small = true }) {
  const [open, setOpen] = useState(false);
  return html`<button class=${small ? 'small' : ''} type="button" onClick=${() => setOpen(true)}>Why</button>
    ${open && html`<${Why} order=${order} contract=${contract} sequence=${sequence} onClose=${() => setOpen(false)} />`}`;
}

/** A refusal is an answer too; without a server what was there stays. */
const orNull = (p) => p.catch((error) => {
  if (!link.value.live) throw error;
  return { error };
});

/** Why there is no row of a trade. @param {string} id @param {any} error */
const noRow = (id, error) => (error.code === 'NOT_YET' ? 'The projection has not got to this fill yet.'
  : error.status === 404 ? `There is no trade ${id}: the projection has all that is durable, and no row of it.` : error.message);

/** A fill and its order; or an order alone. id is trd-N or ord-N. */
export function Details({ id, entry, onClose }) {
  const [busy, setBusy] = useState('');
  const { own: all } = useAsked(2000, async () => {
    const row = `trade-processor/trades/${id}`;
    let trade = id.startsWith('trd-') ? await orNull(get(row)) : null;
    if (trade?.error?.status === 404) { // with all that is durable in it, the projection knows whether there is one
      trade = await orNull(get('order-matcher/health').then((now) => get(row, { after: now.durable })));
    }
    const orderId = entry?.orderId || trade?.orderId || (id.startsWith('ord-') ? id : '');
    const [order, tca] = await Promise.all([
      orderId ? orNull(get(`order-matcher/orders/${orderId}`)) : null,
      trade ? orNull(get(`trade-processor/tca/report/${id}`)) : null]);
    return { trade, order, orderId, tca };
  }, [id, entry?.orderId]);
  const proof = async () => {
    setBusy('');
    try {
      const query = id.startsWith('trd-') ? { tradeId: id } : { orderId: id };
      const document_ = await get('order-matcher/evidence/proof', { query });
      save(`${id}.proof.json`, 'application/json', JSON.stringify(document_, null, 1));
    } catch (error) {
      setBusy(/** @type {any} */ (error).absent ? 'Proofs are not available in this build.'
        : /** @type {Error} */ (error).message);
    }
  };
  const { trade, order, orderId, tca } = all || {};
  const price = trade?.price ?? entry?.price, digits = commonDigits([price]);
  return html`<${Dialog} title=${id} onClose=${onClose} side>
    ${!all && html`<${Loading} what=${id} />`}
    ${(entry || (trade && !trade.error)) && html`<h3>Fill</h3><${Facts} of=${[
      ['Trade', id], ['Account', (entry || trade).accountId], ['Security', (entry || trade).security],
      ['Side', html`<${Side} of=${(entry || trade).side} />`], ['Quantity', whole((entry || trade).quantity)],
      ['Price', decimal(price, digits)], ['Executed', instant(entry?.execTimeMillis || trade?.timestamp)],
      entry?.sequence && ['Sequence', whole(entry.sequence)]]} />`}
    ${trade && html`<h3>Settlement</h3>${trade.error
      ? html`<p class="empty">${noRow(id, trade.error)}</p>`
      : html`<${Facts} of=${[['Status', html`<${Status} of=${trade.status} />`], ['Settlement date', trade.settlementDate],
          ['Updated', instant(trade.updatedAt)]]} />`}`}
    ${order && html`<h3>Order ${orderId}</h3>${order.error
      ? html`<p class="empty">${order.error.status === 404 ? 'The engine keeps the newest finished orders only; this one is in the journal.' : order.error.message}</p>`
      : html`<${Facts} of=${[['Order', order.orderId], ['Client order id', order.clientOrderId], ['Status', html`<${Status} of=${order.status} />`],
          order.riskReason && ['Reason', `${order.riskReason}: ${reasons[order.riskReason] || ''}`],
          ['Type', `${order.type} ${order.timeInForce}`], ['Quantity', whole(order.quantity)], ['Left', whole(order.remainingQuantity)],
          ['Limit price', order.limitPrice === null ? '–' : decimal(order.limitPrice, commonDigits([order.limitPrice]))],
          ['Sequence', whole(order.sequence)], ['Created', instant(order.createdAt)]]} />`}`}
    ${tca && !tca.error && html`<h3>Transaction costs</h3><${Facts} of=${[
      ['Arrival price', decimal(tca.arrivalPrice, commonDigits([tca.arrivalPrice]))],
      ['Slippage to arrival', tca.arrivalSlippageBps === null ? '–' : `${decimal(tca.arrivalSlippageBps)} bp`],
      ['TWAP', decimal(tca.twap, 6)], ['Slippage to TWAP', tca.slippageBps === null ? '–' : `${decimal(tca.slippageBps)} bp`]]} />`}
    ${all && html`<footer>
      ${orderId && html`<${WhyButton} order=${orderId} small=${false} />`}
      <button onClick=${proof}>Proof file</button>
      ${trade && !trade.error && trade.status !== 'Settled' && may('admin') && html`<a class="button" href=${`/settlement${queryOf({ open: id })}`}>Settle</a>`}
    </footer>`}
    ${busy && html`<p class="failure" role="status">${busy}</p>`}
  <//>`;
}

/** Gives the reader a file. @param {string} name @param {string} type @param {...BlobPart} parts */
export function save(name, type, ...parts) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
