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
    /** @type {Map<number, {fills: Fill[], whole: Promise<Fill[]>}>} those asked for too */
    this.pages = new Map();
    this.head = 0; // the newest trade sequence, as refresh has found it
    this.first = 1; // the oldest that the blotter has
    this.longest = 1; // page of the server so far
  }

  get count() { return Math.max(0, this.head - this.first + 1); }

  /**
   * The fills behind `since` up to the head, at most `limit`: the server's page may be smaller. Behind the head, one page.
   * @param {number} since @param {number} limit @param {number} [after] the sequence that the answer must have
   */
  async ask(since, limit, after) {
    /** @type {Fill[]} */
    const fills = [], head = this.head;
    for (;;) {
      const page = await get('order-matcher/recon/trades/blotter', { query: { sinceSeq: since, limit: limit - fills.length }, after });
      this.first = Math.max(this.first, page.evicted + 1);
      fills.push(...page.items);
      this.longest = Math.max(this.longest, page.items.length);
      since = page.nextSinceSeq;
      if (!page.items.length || fills.length >= limit || since >= head) return fills;
    }
  }

  /**
   * Finds the newest fill; later calls go on from the one before.
   * @param {number} [after] the sequence that must be in it @returns {Promise<boolean>} is there a newer one?
   */
  async refresh(after) {
    const before = this.head;
    if (this.head > 0) {
      for (;;) {
        const items = await this.ask(this.head, 1000, after);
        if (!items.length) break;
        this.keep(items);
        if (items.length < this.longest) break; // the last page
        if (this.head > before + 4000) { await this.seek(this.head); break; }
      }
      return this.head > before;
    }
    const [oldest] = await this.ask(0, 1, after);
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
    this.head = Math.max(this.head, low);
  }

  /** Keeps fills behind the head. @param {Fill[]} items */
  keep(items) {
    for (const fill of items) {
      const n = Math.floor((fill.tradeSeq - 1) / PAGE);
      const page = this.pages.get(n); // perhaps on its way: its answer may be from before this fill
      if (page) page.fills[(fill.tradeSeq - 1) % PAGE] = fill;
      this.head = Math.max(this.head, fill.tradeSeq);
    }
  }

  /** The fill with this trade sequence if it is here. @param {number} seq */
  at(seq) { return this.pages.get(Math.floor((seq - 1) / PAGE))?.fills[(seq - 1) % PAGE]; }

  /** Has every fill of a range here. @param {number} from @param {number} to both included */
  async load(from, to) {
    const asks = [];
    for (let n = Math.floor((from - 1) / PAGE); n <= Math.floor((to - 1) / PAGE); n++) asks.push(this.page(n));
    await Promise.all(asks);
  }

  /** @param {number} n @returns {Promise<Fill[]>} by position in the page; holes where none is */
  page(n) {
    let page = this.pages.get(n);
    if (page) this.pages.delete(n); // the newest used is the last
    else {
      const fills = /** @type {Fill[]} */ ([]);
      const made = page = { fills, whole: this.ask(n * PAGE, PAGE).then((items) => {
        for (const fill of items) if (Math.floor((fill.tradeSeq - 1) / PAGE) === n) fills[(fill.tradeSeq - 1) % PAGE] = fill;
        return fills;
      }) };
      page.whole.catch(() => { if (this.pages.get(n) === made) this.pages.delete(n); }); // the next one asks again
    }
    this.pages.set(n, page);
    if (this.pages.size > KEPT_PAGES) this.pages.delete(this.pages.keys().next().value);
    return page.whole;
  }

  /**
   * Fills by their places behind a newest one, newest first; null where one is not here.
   * @param {number} head @param {number} from @param {number} to not included
   */
  behind(head, from, to) {
    const list = [];
    for (let seq = head - from; seq > head - to && seq >= this.first; seq--) list.push(this.at(seq) || null);
    return list;
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
  /**
   * @param {Fills} fills @param {(f: Fill) => boolean} wants
   * @param {() => Promise<{from: number, to: number, grows: boolean}>} range the trade sequences to look at, and whether
   * later ones belong to them; it is asked again when it fails
   * @param {() => void} tell
   */
  constructor(fills, wants, range, tell) {
    this.fills = fills;
    this.wants = wants;
    this.range = range;
    this.from = 1;
    this.next = 1; // the newest that is not looked at yet
    this.newest = 0;
    this.begun = this.grows = false; // the range is known
    this.tell = tell;
    /** @type {Fill[]} */
    this.found = []; // newest first
    this.stopped = false;
    this.run().catch((error) => { if (!this.stopped) throw error; });
  }

  get done() { return this.begun && this.next < this.from; }

  stop() { this.stopped = true; }

  /**
   * What ask answers, also when the server has been away meanwhile.
   * @template T
   * @param {() => Promise<T>} ask @returns {Promise<T>}
   */
  async patiently(ask) {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (this.stopped) throw error;
        await new Promise((again) => setTimeout(again, 1000));
      }
    }
  }

  async run() {
    let told = 0;
    const { from, to, grows } = await this.patiently(this.range);
    this.from = from;
    this.grows = grows;
    this.next = this.newest = to;
    this.begun = true;
    while (!this.stopped && !this.done) {
      const n = Math.floor((this.next - 1) / PAGE);
      const ahead = [n, n - 1, n - 2, n - 3].filter((p) => p >= 0 && (p + 1) * PAGE >= this.from);
      const pages = await this.patiently(() => Promise.all(ahead.map((p) => this.fills.page(p))));
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
    if (!this.stopped) this.tell();
  }

  /** Adds the fills that came since. One that cannot be read now is read by the next call. */
  async grow() {
    let grew = false;
    while (this.grows && !this.stopped && this.newest < this.fills.head) {
      const n = Math.floor(this.newest / PAGE);
      const page = await this.fills.page(n);
      if (this.stopped) return;
      const to = Math.min(this.fills.head, (n + 1) * PAGE);
      for (let seq = this.newest + 1; seq <= to; seq++) {
        const fill = page[(seq - 1) % PAGE];
        if (fill && this.wants(fill)) this.found.unshift(fill);
      }
      this.newest = to;
      grew = true;
    }
    if (grew) this.tell();
  }
}
