/** The rows of a token's own accounts, newest first, read as far as the list is scrolled. The server says which may be seen. */
import { all, get } from './api.js';

const PAGE = 1000, PATH = 'trade-processor/trades', KEPT_MS = 60_000;

export class OwnFills {
  /** @param {any} query what the server selects by @param {(t: any) => boolean} wants what else @param {() => void} tell */
  constructor(query, wants, tell) {
    this.query = { order: 'newest', limit: PAGE, ...query };
    this.wants = wants;
    this.tell = tell;
    this.rows = this.found = /** @type {any[]} */ ([]);
    this.next = ''; // the cursor of what is older; '': nothing is
    this.ready = this.reading = this.stopped = false;
    this.readAt = Date.now();
  }

  /** @param {string} [cursor] @returns {Promise<{items: any[], nextCursor: string}>} */
  page(cursor) { return get(PATH, { query: { ...this.query, cursor } }); }

  /** @param {any[]} rows @param {string|undefined} next */
  keep(rows, next) {
    this.rows = rows;
    this.next = next || '';
    this.found = rows.filter(this.wants);
    this.ready = true;
    this.tell();
  }

  /** Reads what is new, and once a minute all that is here: a status changes. */
  async refresh() {
    const now = Date.now(), whole = now - this.readAt > KEPT_MS;
    const { items, cursor } = await all(PATH, this.query, whole ? Math.max(PAGE, this.rows.length) : PAGE);
    if (whole) this.readAt = now;
    const last = items[items.length - 1], known = this.rows.findIndex((t) => t.id === last?.id);
    if (known < 0) this.keep(items, cursor); // all is new
    else this.keep([...items, ...this.rows.slice(known + 1)], this.next);
  }

  /** Reads on until so many rows are found, or all are read. @param {number} count */
  async reach(count) {
    if (this.reading) return;
    this.reading = true;
    try {
      while (!this.stopped && this.next && this.found.length < count) {
        const { next } = this, { items, nextCursor } = await this.page(next);
        if (next === this.next) this.keep([...this.rows, ...items], nextCursor);
      }
    } finally { this.reading = false; }
  }
}
