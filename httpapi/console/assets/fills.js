/**
 * The blotter as an array of fills by trade sequence: fills have no gaps, so any row of a million is
 * one request away. Pages are kept, the oldest used first out.
 */
import { get } from './api.js';

const PAGE = 500, KEPT_PAGES = 600;

/** @typedef {{id: string, tradeSeq: number, accountId: number, security: string, side: string,
 *   quantity: number, price: number, execTimeMillis: number, orderId: string, sequence: number}} Fill */

export class Fills {
  constructor() {
    /** @type {Map<number, Fill[]>} */
    this.pages = new Map();
    /** @type {Map<number, Promise<Fill[]>>} */
    this.asked = new Map();
    this.head = 0; // the newest trade sequence
    this.first = 1; // the oldest that the blotter has
  }

  get count() { return Math.max(0, this.head - this.first + 1); }

  /** @param {number} since @param {number} limit */
  async ask(since, limit) {
    const page = await get('order-matcher/recon/trades/blotter', { query: { sinceSeq: since, limit } });
    this.first = page.evicted + 1;
    return /** @type {Fill[]} */ (page.items);
  }

  /** Finds the newest fill; later calls go on from the one before. @returns {Promise<boolean>} is there a newer one? */
  async refresh() {
    const before = this.head;
    if (this.head > 0) {
      for (;;) {
        const items = await this.ask(this.head, 1000);
        if (!items.length) break;
        this.keep(items);
        if (items.length < 1000) break;
        if (this.head > before + 4000) { await this.seek(this.head); break; }
      }
      return this.head > before;
    }
    const [oldest] = await this.ask(0, 1);
    if (oldest) await this.seek(oldest.tradeSeq);
    return this.head > before;
  }

  /** Finds the head by halving, from a sequence that exists. @param {number} low */
  async seek(low) {
    let step = 1024, high = low;
    for (;;) { // high: no fill behind it
      high = low + step;
      const [next] = await this.ask(high - 1, 1);
      if (!next) break;
      low = next.tradeSeq;
      step *= 4;
    }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      const [next] = await this.ask(middle - 1, 1);
      if (next) low = Math.max(low, next.tradeSeq);
      else high = middle;
    }
    this.head = low;
  }

  /** Keeps fills behind the head. @param {Fill[]} items */
  keep(items) {
    for (const fill of items) {
      const n = Math.floor((fill.tradeSeq - 1) / PAGE);
      const page = this.pages.get(n);
      if (page) page[(fill.tradeSeq - 1) % PAGE] = fill;
      this.head = Math.max(this.head, fill.tradeSeq);
    }
  }

  /** The fill with this trade sequence if it is here. @param {number} seq */
  at(seq) { return this.pages.get(Math.floor((seq - 1) / PAGE))?.[(seq - 1) % PAGE]; }

  /** Has every fill of a range here. @param {number} from @param {number} to both included */
  async load(from, to) {
    const asks = [];
    for (let n = Math.floor((from - 1) / PAGE); n <= Math.floor((to - 1) / PAGE); n++) asks.push(this.page(n));
    await Promise.all(asks);
  }

  /** @param {number} n @returns {Promise<Fill[]>} by position in the page; holes where none is */
  page(n) {
    const here = this.pages.get(n);
    if (here) {
      this.pages.delete(n); // the newest used is the last
      this.pages.set(n, here);
      return Promise.resolve(here);
    }
    let asked = this.asked.get(n);
    if (!asked) {
      asked = this.ask(n * PAGE, PAGE).then((items) => {
        const page = /** @type {Fill[]} */ ([]);
        for (const fill of items) {
          if (Math.floor((fill.tradeSeq - 1) / PAGE) === n) page[(fill.tradeSeq - 1) % PAGE] = fill;
          this.head = Math.max(this.head, fill.tradeSeq);
        }
        this.pages.set(n, page);
        if (this.pages.size > KEPT_PAGES) this.pages.delete(this.pages.keys().next().value);
        return page;
      }).finally(() => this.asked.delete(n));
      this.asked.set(n, asked);
    }
    return asked;
  }

  /** The first trade sequence at or behind a time. @param {number} millis */
  async since(millis) {
    let low = this.first, high = this.head + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [fill] = await this.ask(middle - 1, 1);
      if (fill && fill.execTimeMillis < millis) low = Math.max(middle + 1, fill.tradeSeq + 1);
      else high = middle;
    }
    return low;
  }
}

/**
 * What a filter selects, newest first, found page by page so that nothing waits for the whole
 * history.
 */
export class Selection {
  /** @param {Fills} fills @param {(f: Fill) => boolean} wants @param {number} from @param {number} to @param {() => void} tell */
  constructor(fills, wants, from, to, tell) {
    this.fills = fills;
    this.wants = wants;
    this.from = from;
    this.next = to; // the newest that is not looked at yet
    this.newest = to;
    this.tell = tell;
    /** @type {Fill[]} */
    this.found = []; // newest first
    this.stopped = false;
    this.run();
  }

  get done() { return this.next < this.from; }

  stop() { this.stopped = true; }

  async run() {
    let told = 0;
    while (!this.stopped && !this.done) {
      const n = Math.floor((this.next - 1) / PAGE);
      const ahead = [n, n - 1, n - 2, n - 3].filter((p) => p >= 0 && (p + 1) * PAGE >= this.from);
      let pages;
      try {
        pages = await Promise.all(ahead.map((p) => this.fills.page(p)));
      } catch {
        await new Promise((again) => setTimeout(again, 1000));
        continue;
      }
      if (this.stopped) return;
      for (const page of pages) {
        for (let i = page.length - 1; i >= 0; i--) {
          const fill = page[i];
          if (fill && fill.tradeSeq <= this.next && fill.tradeSeq >= this.from && this.wants(fill)) this.found.push(fill);
        }
      }
      this.next = Math.min(...ahead) * PAGE;
      if (Date.now() - told > 200) {
        told = Date.now();
        this.tell();
        await new Promise((again) => setTimeout(again, 0));
      }
    }
    this.tell();
  }

  /** Adds the fills that came since. */
  async grow() {
    if (this.stopped || this.fills.head <= this.newest) return;
    const from = this.newest + 1, to = this.fills.head;
    this.newest = to;
    await this.fills.load(from, to);
    for (let seq = from; seq <= to; seq++) {
      const fill = this.fills.at(seq);
      if (fill && this.wants(fill)) this.found.unshift(fill);
    }
    this.tell();
  }
}
