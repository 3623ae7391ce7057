/**
 * Requests to the services. They go to this origin only; the session's cookie goes with them.
 *
 * A page never guesses whether the server is there: every answer and every failure is noted in
 * `link`, and the banner of the shell shows it.
 */
import { Store } from './dom.js';

/**
 * @typedef {{signedIn: boolean, oneClick: boolean, subject: string, admin: boolean,
 *   accounts: number[], expiresAt: string, csrf: string, prover: boolean, about: Record<string, string>,
 *   ended?: boolean}} Session ended: by the server, and not by Sign out
 */

/** Who is signed in; null while this is not known yet. @type {Store<Session|null>} */
export const session = new Store(null);

/** Whether the server answers, and when it last did. */
export const link = new Store({ live: true, seenAt: Date.now(), because: '' });

/** An answer that is no success. */
export class Problem extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body) {
    const text = body?.detail || body?.title || (status ? `status ${status}` : 'no answer');
    super(text.replace('the header X-Reason', 'Reason')); // as the pages name the field
    this.status = status;
    this.body = body || {};
    /** @type {string} */
    this.code = this.body.code || '';
    /** @type {string} */
    this.reason = this.body.reason || '';
  }

  /** True: the endpoint is not in this build. */
  get absent() { return this.status === 404 && this.code === 'NOT_FOUND'; }

  /** True: it was carried out once or not at all. */
  get unknown() { return this.status === 0 || (this.status >= 500 && this.body.sequenced !== false); }
}

const UNKNOWN = 'Unknown whether it was done: look at what holds now before you do it again';

/** @param {string} because */
export function lost(because) {
  const { live, seenAt } = link.value;
  if (live) link.set({ live: false, seenAt, because });
}

export function found() {
  const now = Date.now();
  if (!link.value.live || now - link.value.seenAt > 500) {
    if (link.value.live) link.value.seenAt = now; // nothing to draw
    else link.set({ live: true, seenAt: now, because: '' });
  }
}

/**
 * @typedef {{query?: Record<string, any>, body?: any, reason?: string, signal?: AbortSignal,
 *   after?: number, accept?: string, headers?: Record<string, string>, unknown?: string, wait?: number}} Ask body: a text is
 *   JSON already; wait: how long the answer may take to begin, in ms
 */

// Longer than any service takes for a read, for a write, and for one that goes through the whole history.
const READ_MS = 40_000, WRITE_MS = 60_000;
export const LASTING_MS = 31 * 60_000;

/**
 * Sends a request and returns the answer.
 * @param {string} method @param {string} path such as order-matcher/orders @param {Ask} ask
 * @returns {Promise<Response>}
 */
export async function send(method, path, ask = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: ask.accept || 'application/json', 'X-Console-Status': 'header', ...ask.headers };
  if (method !== 'GET') headers['X-CSRF-Token'] = session.value?.csrf || '';
  if (ask.reason) headers['X-Reason'] = bytesAsText(ask.reason);
  if (ask.after) headers['X-Min-Sequence'] = String(ask.after);
  if (ask.body !== undefined) headers['Content-Type'] = 'application/json';
  const late = new AbortController(); // a connection that is silent need not end
  const timer = setTimeout(() => late.abort(), ask.wait || (method === 'GET' ? READ_MS : WRITE_MS));
  let answer;
  try {
    answer = await fetch(`/api/${path}${queryOf(ask.query)}`, {
      method, headers, signal: AbortSignal.any([late.signal, ...(ask.signal ? [ask.signal] : [])]),
      credentials: 'same-origin', redirect: 'error',
      body: ask.body === undefined || typeof ask.body === 'string' ? ask.body : JSON.stringify(ask.body),
    });
  } catch (error) {
    if (ask.signal?.aborted) throw error;
    lost('the server does not answer');
    throw new Problem(0, { detail: 'the server does not answer' });
  } finally {
    clearTimeout(timer);
  }
  const status = statusOf(answer);
  if (status < 400) {
    found();
    return answer;
  }
  const body = await documentOf(answer).catch(() => null);
  const problem = new Problem(status, body);
  if (status === 503 && problem.code === 'STOPPING') lost('the server is stopping');
  else if (status === 502) lost('the service does not answer');
  else found();
  // Another tab may have signed out, or in: the proof of this one is then of a session that has ended.
  if ((status === 401 || problem.code === 'FOREIGN_ORIGIN') && session.value?.signedIn) refreshSession();
  throw problem;
}

/**
 * The status of an answer: the console's listener puts those of errors into a header, so that the
 * browser does not write a refusal of the risk gate to its console as a fault of the page.
 * @param {Response} answer
 */
export const statusOf = (answer) => Number(answer.headers.get('X-Console-Status')) || answer.status;

/**
 * JSON as a value. A number that no Number holds is the text of its digits: it shows in full, and arithmetic rounds it.
 * @param {string} text
 */
export const exact = (text) => JSON.parse(!/[\d.]{16}/.test(text) ? text
  : text.replace(/"(?:[^"\\]|\\.)*"|-?[\d.]+(?:[eE][-+]?\d+)?/g,
    (part) => (/^-?[\d.]{16,}$/.test(part) && !held(part) ? `"${part}"` : part)));

/** A Number holds these digits: not only a neighbour that has the same shortest text. @param {string} digits */
const held = (digits) => (digits.includes('.') ? String(Number(digits)) === digits : Number.isSafeInteger(Number(digits)));

/** The document of an answer. @param {Response} answer @returns {Promise<any>} */
const documentOf = async (answer) => exact(await answer.text());

/** The documents of an answer in lines. @param {string} path @param {Ask} ask @returns {Promise<any[]>} */
export async function lines(path, ask) {
  const text = await (await send('GET', path, { ...ask, accept: 'application/x-ndjson' })).text();
  return text.split('\n').filter(Boolean).map(exact);
}

/** A header holds bytes: text beyond ASCII goes as its UTF-8. @param {string} text */
function bytesAsText(text) {
  return String.fromCharCode(...new TextEncoder().encode(text.replace(/\s+/g, ' ').trim()));
}

/** @param {Record<string, any>|undefined} query */
export function queryOf(query) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {})) {
    if (value !== undefined && value !== null && value !== '') q.set(name, String(value));
  }
  const text = q.toString().replaceAll('+', '%20'); // the services read + as a plus
  return text ? `?${text}` : '';
}

/** @param {string} path @param {Ask} [ask] @returns {Promise<any>} */
export async function get(path, ask) { return documentOf(await send('GET', path, ask)); }

/**
 * A write: the answer's document, with the durability mode that it has. Where the outcome is
 * unknown, the problem's message says so, in the words of ask.unknown if there are any.
 * @param {string} path @param {any} body @param {Ask} [ask] @returns {Promise<any>}
 */
export async function post(path, body, ask = {}) {
  try {
    const answer = await send('POST', path, { ...ask, body });
    const document = await documentOf(answer).catch(() => { throw new Problem(0, { detail: 'the answer is cut off' }); });
    document.asOf = asOf(answer);
    document.durability = answer.headers.get('X-Durability') || '';
    return document;
  } catch (error) {
    if (error instanceof Problem && error.unknown) error.message = ask.unknown || `${UNKNOWN} (${error.message})`;
    throw error;
  }
}

/** The sequence up to which an answer has everything, at least. @param {Response} answer */
export const asOf = (answer) => Number(answer.headers.get('X-As-Of-Sequence')) || 0;

/**
 * Every item of a paged list, at most `most`, and the sequence up to which the list has everything.
 * @param {string} path @param {Record<string, any>} query @param {number} most
 * @param {Ask} [ask] @returns {Promise<{items: any[], more: boolean, cursor?: string, asOf: number}>}
 */
export async function all(path, query, most = 2000, ask = {}) {
  /** @type {any[]} */
  const items = [];
  let cursor, known = Infinity;
  do {
    const answer = await send('GET', path, {
      ...ask, query: { limit: Math.min(1000, most - items.length), ...query, cursor },
    });
    const page = await documentOf(answer);
    items.push(...page.items);
    cursor = page.nextCursor;
    known = Math.min(known, asOf(answer));
  } while (cursor && items.length < most);
  return { items, more: !!cursor, cursor, asOf: known };
}

let acts = 0, asking = false; // of the session

/** Asks who is signed in. What was asked before a sign-in or a sign-out says nothing of what holds after it. */
export async function refreshSession() {
  if (asking) return;
  asking = true;
  const before = acts;
  try {
    const now = await get('session');
    if (before !== acts) return;
    take({ ...now, ended: !now.signedIn && !!(session.value?.signedIn || session.value?.ended) });
  } catch (error) {
    if (before === acts && !session.value && error instanceof Problem && error.status) {
      session.set(/** @type {any} */ ({ signedIn: false, oneClick: false }));
    }
  } finally {
    asking = false;
  }
}

/** What a session may see. @param {Session} s */
const identity = (s) => JSON.stringify([s.subject, s.admin, s.accounts]);

// While the page was hidden, another tab may have signed in anew: the cookie is the same for both.
document.addEventListener('visibilitychange', () => { if (!document.hidden && session.value?.signedIn) refreshSession(); });

let readFor = ''; // the identity that what this page has read is of; empty: it has read nothing

/** A session that may see other things begins with a page that has read nothing. @param {Session} now */
function take(now) {
  if (now.signedIn && readFor && readFor !== identity(now)) {
    location.reload();
    return;
  }
  if (now.signedIn) readFor = identity(now);
  session.set(now);
}

/** @param {any} now */
function acted(now) {
  acts++;
  take(now);
}

/** @param {string} token empty: the one click */
export async function signIn(token) {
  acted(await (await send('POST', 'session', { body: token ? { token } : {} })).json());
}

export async function signOut() { acted(await (await send('DELETE', 'session')).json()); }

/** May the session do this? @param {'admin'} what */
export function may(what) { return what === 'admin' && !!session.value?.admin; }
