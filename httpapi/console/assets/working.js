/**
 * Orders of several sources: the live stream, lists that are asked for, answers to what was done. None comes in order with
 * the others, so each carries the sequence up to which it is true, and what is newer stays.
 */

/** @typedef {{orderId: string, accountId: number, status: string, [field: string]: any}} Order */

/** @param {Order} o */
export const open = (o) => o.status === 'NEW' || o.status === 'PARTIALLY_FILLED';

export class Orders {
  constructor() {
    /** @type {Map<string, {order: Order, at: number, fed: boolean}>} fed: by the stream, which says every state */
    this.known = new Map();
  }

  /** A state of an order that the stream brings. @param {Order} order @param {number} at */
  feed(order, at) {
    const known = this.known.get(order.orderId);
    if (!known || at > known.at || (at === known.at && known.fed)) this.set(order, at, true);
  }

  /** A state of an order that has everything up to a sequence. @param {Order} order @param {number} at */
  answer(order, at) {
    const known = this.known.get(order.orderId);
    if (!known || at >= known.at) this.set(order, at, false);
  }

  /** @param {Order} order @param {number} at @param {boolean} fed */
  set(order, at, fed) {
    this.known.set(order.orderId, { order: { ...this.known.get(order.orderId)?.order, ...order }, at, fed });
  }

  /**
   * Open orders of an account as of a sequence: when they are all of them, no other is open then. Those that have ended
   * before it are forgotten.
   * @param {number} account @param {Order[]} items @param {number} at @param {boolean} complete
   */
  list(account, items, at, complete) {
    const here = new Set(items.map((o) => o.orderId));
    for (const [id, { order, at: since }] of this.known) {
      if (order.accountId !== account || since > at) continue;
      if (open(order) ? complete && !here.has(id) : true) this.known.delete(id);
    }
    for (const order of items) this.answer(order, at);
  }

  /** The open orders of an account, the newest first. @param {number} account */
  working(account) {
    return [...this.known.values()].map((k) => k.order).filter((o) => open(o) && o.accountId === account)
      .sort((a, b) => b.sequence - a.sequence);
  }
}
