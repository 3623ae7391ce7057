/** The state of the order-matcher, asked for every two seconds: the pulse of every page. */
import { Store } from './dom.js';
import { get, session } from './api.js';

/** GET /health, and the kill switch where the token may see it. @type {Store<any>} */
export const health = new Store(null);

const PULSE_MS = 2000, LOST_MS = 500;
let failed = false, timer = 0;

async function pulse() {
  clearTimeout(timer);
  if (session.value?.signedIn && (!document.hidden || failed)) {
    try {
      const now = await get('order-matcher/health');
      if (now.durable < health.value?.durable) { // another history: no figure here is of it
        location.reload();
        return;
      }
      health.set({ ...health.value, ...now });
      failed = false;
    } catch {
      failed = true; // api.js has noted it
    }
  }
  timer = setTimeout(pulse, failed ? LOST_MS : PULSE_MS);
}
session.readers.add(pulse); // at once when a session begins
pulse();
