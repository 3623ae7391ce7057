/** The state of the order-matcher, asked for every two seconds: the pulse of every page. */
import { repeat, Store } from './dom.js';
import { get, session } from './api.js';

/** GET /health. @type {Store<any>} */
export const health = new Store(null);

const PULSE_MS = 2000, LOST_MS = 500, SILENT_MS = 5000;
let failed = false;

const loop = repeat(async () => {
  if (!session.value?.signedIn || (document.hidden && !failed)) return;
  try {
    const now = await get('order-matcher/health', { wait: SILENT_MS });
    if (now.durable < health.value?.durable) { // another history: no figure here is of it
      location.reload();
      return;
    }
    health.set({ ...health.value, ...now });
    failed = false;
  } catch {
    failed = true; // api.js has noted it
  }
}, () => (failed ? LOST_MS : PULSE_MS));
session.readers.add(loop.go); // at once when a session begins

/** GET /readyz that is 503 says why. @param {any} failure */
export function notReady(failure) {
  if (failure.body?.parts) return failure.body;
  throw failure;
}
