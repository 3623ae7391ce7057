/** A book as the live stream builds it: a snapshot, then each change of a level. */
import { get, Problem } from './api.js';

/** @typedef {{price: number, quantity: number, orders: number}} Level */

export class Book {
  constructor() {
    /** @type {Map<number, Level>} */
    this.bids = new Map();
    /** @type {Map<number, Level>} */
    this.asks = new Map();
    this.sequence = 0;
    this.whole = false; // a snapshot has come
  }

  /** @param {any} document of GET /book, or of an event snapshot */
  reset(document) {
    this.bids = new Map(document.bids.map((l) => [l.price, l]));
    this.asks = new Map(document.asks.map((l) => [l.price, l]));
    this.sequence = document.sequence;
    this.whole = true;
  }

  /** @param {any} change side, price, quantity, orders: the level's new total */
  apply(change) {
    const side = /^(b|bid|buy)/i.test(change.side) ? this.bids : this.asks;
    if (change.quantity === 0) side.delete(change.price);
    else side.set(change.price, { price: change.price, quantity: change.quantity, orders: change.orders });
    this.sequence = change.sequence;
  }

  /** The best levels of both sides, best first. @param {number} depth */
  best(depth) {
    return {
      bids: [...this.bids.values()].sort((a, b) => b.price - a.price).slice(0, depth),
      asks: [...this.asks.values()].sort((a, b) => a.price - b.price).slice(0, depth),
    };
  }
}

/** The book as the service has it; null: the engine has no such security. @param {string} security @param {number} depth */
export async function readBook(security, depth) {
  try {
    return await get(`order-matcher/book/${security}`, { query: { depth } });
  } catch (failure) {
    if (failure instanceof Problem && failure.code === 'SECURITY_NOT_FOUND') return null;
    throw failure;
  }
}
