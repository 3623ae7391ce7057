/**
 * The live stream: GET /feed of the order-matcher, read as server-sent events.
 *
 * EventSource cannot send a position after an error that ended it, so the stream is read with fetch:
 * it goes on behind the last event it had, whatever ended it. A page that is hidden for a while gives
 * its connection back, and goes on from the same place when it is seen again.
 */
import { Store, useEffect, useRef, useStore } from './dom.js';
import { asOf, exact, link, lost, Problem, queryOf, refreshSession, statusOf } from './api.js';

/**
 * @typedef {{id: string, event: string, data: any}} Happening
 * @typedef {'connecting'|'catching up'|'live'|'lost'|'absent'|'refused'} State catching up: what happened before it
 * was connected is still to come; absent: the server has no such stream
 */

const HIDDEN_MS = 20_000; // a hidden page gives its connection back after this
const QUIET_MS = 15_000; // a mark comes every 5 s: silence of this length is a broken connection
const ARCHIVED = 'ARCHIVE_NEEDED';
const RETRY_MS = [100, 250, 500, 1000, 2000];

let absent = false; // this build has no feed

/** One subscription. It lives until stop. */
export class Feed {
  /**
   * @param {string} topics @param {Record<string, any>} query
   * @param {(e: Happening) => void} tell gets every event once, in order; begin says where the stream begins, and anew
   * that it does so again: nothing brings what came since its last event
   */
  constructor(topics, query, tell) {
    this.topics = topics;
    this.query = query;
    this.tell = tell;
    this.last = ''; // the id of the last event
    this.head = 0; // the sequence that a connection has to come to
    this.failures = 0;
    this.stopped = false;
    /** @type {Store<State>} */
    this.state = new Store(/** @type {State} */ ('connecting'));
    this.wake = () => this.visibility();
    document.addEventListener('visibilitychange', this.wake);
    this.run();
  }

  stop() {
    this.stopped = true;
    document.removeEventListener('visibilitychange', this.wake);
    clearTimeout(this.hiding);
    this.abort?.abort();
    this.resume?.();
  }

  visibility() {
    clearTimeout(this.hiding);
    if (!document.hidden) this.resume?.();
    else this.hiding = setTimeout(() => this.abort?.abort(), HIDDEN_MS);
  }

  async run() {
    while (!this.stopped) {
      const goOn = await this.once();
      if (!goOn || this.stopped) return;
      const pause = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)] * (0.75 + Math.random() / 2);
      await new Promise((done) => {
        this.resume = () => done(undefined);
        if (!document.hidden) setTimeout(done, pause);
      });
      this.resume = undefined;
      this.failures++;
    }
  }

  /** Reads one connection to its end. False: it will not work again. */
  async once() {
    this.abort = new AbortController();
    /** @type {Record<string, string>} */
    const headers = { Accept: 'text/event-stream', 'X-Console-Status': 'header' };
    if (this.last) headers['Last-Event-ID'] = this.last;
    this.silence = setTimeout(() => this.abort?.abort(), QUIET_MS);
    try {
      const answer = await fetch(
        `/api/order-matcher/feed${queryOf({ topics: this.topics, ...this.query })}`,
        { headers, signal: this.abort.signal, credentials: 'same-origin', redirect: 'error' });
      if (statusOf(answer) >= 400 || !answer.body) return this.refused(answer);
      this.head = asOf(answer);
      if (this.last) this.reach(sequenceOf(this.last));
      await this.read(answer.body.getReader());
      return this.state.value !== 'refused';
    } catch {
      if (!this.stopped && !document.hidden) lost('the live stream ended');
      return true;
    } finally {
      clearTimeout(this.silence);
      if (this.state.value === 'live' || this.state.value === 'catching up') this.state.set('lost');
    }
  }

  /** The stream has everything up to a sequence. @param {number} sequence */
  reach(sequence) { if (this.state.value !== 'live') this.state.set(sequence >= this.head ? 'live' : 'catching up'); }

  /** What follows the last event is in an archive: the stream begins at the present. False: it did so already. */
  anew() {
    this.state.set(this.last ? 'lost' : 'refused');
    if (!this.last) return false;
    this.tell({ id: this.last, event: 'anew', data: {} });
    this.last = '';
    return true;
  }

  /** An answer that is no stream. False: it will not be another one. @param {Response} answer */
  async refused(answer) {
    const problem = new Problem(statusOf(answer), await answer.json().catch(() => null));
    if (problem.code === ARCHIVED) return this.anew();
    switch (problem.status) {
      case 404: // else the engine has no such security, and may learn it
        if (problem.absent) absent = true;
        this.state.set('absent');
        return !absent;
      case 401:
        refreshSession();
        this.state.set('refused');
        return false;
      case 400:
      case 403:
        this.state.set('refused');
        return false;
    }
    this.state.set('lost');
    if (problem.code !== 'BUSY') lost('the live stream does not answer');
    return true;
  }

  /** @param {ReadableStreamDefaultReader<Uint8Array>} reader */
  async read(reader) {
    const text = new TextDecoder();
    let rest = '', id = '', event = '', data = '';
    const quiet = () => {
      clearTimeout(this.silence);
      this.silence = setTimeout(() => this.abort?.abort(), QUIET_MS);
    };
    try {
      for (quiet(); ; quiet()) {
        const { done, value } = await reader.read();
        if (done) return;
        rest += text.decode(value, { stream: true });
        let from = 0;
        for (let end = rest.indexOf('\n', from); end >= 0; end = rest.indexOf('\n', from)) {
          const line = rest.charCodeAt(end - 1) === 13 ? rest.slice(from, end - 1) : rest.slice(from, end);
          from = end + 1;
          if (this.stopped) return;
          if (line === '') {
            if (id) this.at(id); // a stream without snapshots begins with its position, and no data
            if (data) this.deliver({ id, event: event || 'message', data });
            event = data = '';
          } else if (line.startsWith('data:')) {
            data += (data ? '\n' : '') + line.slice(line[5] === ' ' ? 6 : 5);
          } else if (line.startsWith('event:')) {
            event = line.slice(line[6] === ' ' ? 7 : 6);
          } else if (line.startsWith('id:')) {
            id = line.slice(line[3] === ' ' ? 4 : 3);
          }
        }
        rest = rest.slice(from);
      }
    } finally {
      clearTimeout(this.silence);
    }
  }

  /**
   * The stream has come to a position. That of a stream that begins is told: what was asked for before it may lack
   * what happened in between.
   * @param {string} id
   */
  at(id) {
    const begins = !this.last;
    this.last = id;
    if (begins) {
      this.state.set('live');
      this.tell({ id, event: 'begin', data: {} });
    } else this.reach(sequenceOf(id));
  }

  /** @param {{id: string, event: string, data: string}} raw */
  deliver(raw) {
    const known = { id: raw.id, event: raw.event, data: exact(raw.data) };
    if (!link.value.live && !document.hidden) link.value.because = 'catching up';
    if (raw.event === 'gone') {
      if (known.data.reason === 'TOKEN_EXPIRED') refreshSession();
      if (known.data.reason === ARCHIVED) this.anew();
      return;
    }
    this.failures = 0; // a connection that only says why it ends is one
    if (raw.event === 'mark') this.reach(known.data.sequence);
    this.tell(known);
  }
}

/**
 * A subscription of a component: tell gets every event; the state says whether it is live.
 * @param {string} topics empty: none
 * @param {Record<string, any>} query @param {(e: Happening) => void} tell @returns {State}
 */
export function useFeed(topics, query, tell) {
  const latest = useRef(tell);
  latest.current = tell;
  const state = useRef(/** @type {Store<State>} */ (new Store('connecting')));
  const key = topics + queryOf(query);
  useEffect(() => {
    if (!topics || absent) {
      state.current.set('absent');
      return undefined;
    }
    const feed = new Feed(topics, query, (e) => latest.current(e));
    const pass = () => state.current.set(feed.state.value);
    feed.state.readers.add(pass);
    pass();
    return () => {
      feed.state.readers.delete(pass); // its end is not the next one's
      feed.stop();
    };
  }, [key]);
  return useStore(state.current);
}

/** The sequence of an event's id. @param {string} id */
export const sequenceOf = (id) => Number.parseInt(id, 10) || 0;

/** Draws at most once a frame, however many events came. @param {() => void} draw */
export function useFrame(draw) {
  const waiting = useRef(0);
  const latest = useRef(draw);
  latest.current = draw;
  useEffect(() => () => cancelAnimationFrame(waiting.current), []);
  return () => {
    if (waiting.current) return;
    waiting.current = requestAnimationFrame(() => {
      waiting.current = 0;
      latest.current();
    });
  };
}
