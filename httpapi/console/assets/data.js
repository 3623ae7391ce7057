/** What several pages choose from: accounts, securities. */
import { repeat, Store, useEffect, useStore } from './dom.js';
import { get, session } from './api.js';

/** @type {Store<{id: number, displayName: string, enabled?: boolean}[]>} */
export const accounts = new Store(/** @type {any[]} */ ([]));
/** @type {Store<{ticker: string, companyName: string}[]>} */
export const securities = new Store(/** @type {any[]} */ ([]));

const KEPT_MS = 5000, AGAIN_MS = 60_000, FAILED_MS = 1000;
let readAt = 0;

const loop = repeat(async () => {
  if (!session.value?.signedIn || document.hidden || Date.now() - readAt < KEPT_MS) return;
  const [a, s] = await Promise.allSettled([get('account-service/account/'), get('reference-data/stocks')]);
  if (a.status === 'fulfilled') accounts.set(a.value);
  if (s.status === 'fulfilled') securities.set(s.value);
  if (a.status === 'fulfilled' && s.status === 'fulfilled') readAt = Date.now();
}, () => (readAt ? AGAIN_MS : FAILED_MS));

/** Has the lists read: each page that opens sees what was added meanwhile. */
const useLists = () => useEffect(loop.go, []);

/** The accounts that the session may act for, as [id, name] for a list of choices. */
export function useAccounts() {
  const list = useStore(accounts), s = useStore(session);
  useLists();
  const mine = s?.admin || !s?.accounts?.length ? null : new Set(s.accounts);
  return list.filter((a) => !mine || mine.has(a.id)).map((a) => [String(a.id), a.displayName]);
}

/** The securities as [ticker, name]. */
export function useSecurities() {
  const list = useStore(securities);
  useLists();
  return list.map((s) => [s.ticker, s.companyName]);
}

/** The name of an account. @param {any} id */
export const accountName = (id) => accounts.value.find((a) => a.id === Number(id))?.displayName || '';

/** What to say of a refusal by the risk gate. @type {Record<string, string>} */
export const reasons = {
  INVALID: 'the terms cannot be traded (tick, crossing POST_ONLY, or quantity)',
  NOT_ENTITLED: 'the token is not entitled to this account',
  UNKNOWN_ACCOUNT: 'the account is not known', ACCOUNT_DISABLED: 'the account is disabled',
  UNKNOWN_SECURITY: 'the security is not known',
  SECURITY_DISABLED: 'the security is disabled or halted', RESTRICTED: 'the security is restricted',
  KILL_SWITCH: 'the kill switch is on', PRICE_MISSING: 'there is no market price yet',
  PRICE_STALE: 'the market price is too old', PRICE_COLLAR: 'the price is outside of the collar',
  ORDER_SIZE: 'the quantity is above the limit of an order',
  ORDER_NOTIONAL: 'the notional is above the limit of an order',
  CREDIT_LIMIT: 'the account would use more than its credit',
  POSITION_LIMIT: 'the position would be above its limit',
  CONCENTRATION_LIMIT: 'the value in one security would be above its limit',
  DUPLICATE: 'the client order id was used before', CONTROL_STATE_STALE: 'the gate is not ready',
  CAPACITY: 'the engine has no room', SELF_TRADE_PREVENTED: 'the account would trade with itself',
};
