/**
 * The metrics of the last ten minutes: those that the server has kept, and from now on a sample
 * every two seconds while the page is seen.
 */
import { repeat, Store } from './dom.js';
import { get, may, send, session } from './api.js';

const EVERY_MS = 2000, KEPT_MS = 600_000;

/**
 * One sample: the time and what is kept, by name and labels, as in svc_ring_depth{ring="input"}.
 * @typedef {{at: number, metrics: Record<string, number>}} Sample
 * @type {Store<Sample[]>}
 */
export const samples = new Store([]);

/** The last whole answer, buckets included. @type {Store<Record<string, number>>} */
export const metrics = new Store({});

let read = false; // what the server has kept, once at least

async function readKept() {
  const { items } = await get('history');
  const last = items.at(-1)?.at ?? -Infinity;
  const first = items[0]?.at ?? Infinity;
  samples.set([...samples.value.filter((s) => s.at < first), ...items, ...samples.value.filter((s) => s.at > last && s.at >= first)]);
  read = true;
}

/** Reads the Prometheus text format. @param {string} text */
export function parse(text) {
  /** @type {Record<string, number>} */
  const out = {};
  for (const line of text.split('\n')) {
    if (!line.startsWith('svc_')) continue;
    const cut = line.lastIndexOf(' ');
    out[line.slice(0, cut)] = Number(line.slice(cut + 1));
  }
  return out;
}

/**
 * What the pages show over time: a metric with all its series, or one series, of a histogram with all its buckets.
 * history.go has the same list.
 */
const kept = new Set([
  'svc_orders_total',
  'svc_journal_commit_seconds_sum', 'svc_journal_commit_seconds_count',
  'svc_journal_commit_seconds_bucket',
  'svc_stage_latency_seconds_sum{stage="http"}', 'svc_stage_latency_seconds_count{stage="http"}',
  'svc_stage_latency_seconds_bucket{stage="http"}',
  'svc_ring_depth', 'svc_ring_slots',
  'svc_projection_lag_records', 'svc_recon_lag_records', 'svc_recon_open_breaks',
  'svc_replica_lag_records', 'svc_outbox_unpublished_rows',
  'svc_tca_lag_records', 'svc_evidence_lag_seconds',
]);

const loop = repeat(async () => {
  if (!session.value?.signedIn || !may('admin') || document.hidden) return;
  const all = parse(await (await send('GET', 'admin/metrics', { accept: 'text/plain' })).text());
  metrics.set(all);
  /** @type {Record<string, number>} */
  const some = {};
  for (const name in all) if (kept.has(name.replace(/,le="[^"]*"/, '')) || kept.has(name.split('{')[0])) some[name] = all[name];
  // The server has kept what a page that was hidden has missed.
  if (!read || Date.now() - (samples.value.at(-1)?.at ?? 0) > 5 * EVERY_MS) await readKept();
  const since = Date.now() - KEPT_MS;
  samples.set([...samples.value.filter((s) => s.at > since), { at: Date.now(), metrics: some }]);
}, () => EVERY_MS);
session.readers.add(loop.go);

/** The sum of every series of a metric. @param {Record<string, number>} m @param {string} name */
export function total(m, name, label = '') {
  let sum = null;
  for (const key in m) {
    if ((key === name || key.startsWith(`${name}{`)) && key.includes(label)) sum = (sum || 0) + m[key];
  }
  return sum;
}

/** The largest series of a metric. @param {Record<string, number>} m @param {string} name */
export function largest(m, name, label = '') {
  let most = null;
  for (const key in m) {
    if ((key === name || key.startsWith(`${name}{`)) && key.includes(label)) most = Math.max(most ?? -Infinity, m[key]);
  }
  return most;
}

/** What a counter rose by a second, at each sample. */
export function rates(list, of) {
  return list.map((s, i) => {
    if (!i) return null;
    const before = of(list[i - 1].metrics), now = of(s.metrics);
    const seconds = (s.at - list[i - 1].at) / 1000;
    if (before === null || now === null || now < before || seconds > 30) return null;
    return (now - before) / seconds;
  });
}

/** The mean of what came between two samples, of a histogram's sum and count. */
export function means(list, name, label = '') {
  return list.map((s, i) => {
    if (!i) return null;
    const a = list[i - 1].metrics, b = s.metrics;
    const n = (total(b, `${name}_count`, label) ?? 0) - (total(a, `${name}_count`, label) ?? 0);
    const sum = (total(b, `${name}_sum`, label) ?? 0) - (total(a, `${name}_sum`, label) ?? 0);
    return n > 0 && sum >= 0 ? sum / n : null;
  });
}

const WINDOW_MS = 300_000; // of the alerts about latencies

/** The bounds of a histogram and how many are not above each, ascending. @returns {[number, number][]} */
function buckets(m, name, label) {
  /** @type {[number, number][]} */
  const found = [];
  for (const key in m) {
    if (!key.startsWith(`${name}_bucket{`) || !key.includes(label)) continue;
    const le = /\ble="([^"]*)"/.exec(key)[1];
    found.push([le === '+Inf' ? Infinity : Number(le), m[key]]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}

/**
 * The 99th percentile of what came in the five minutes before each sample, as far as the samples go back: that of the
 * alerts, histogram_quantile of Prometheus.
 */
export function p99s(list, name, label = '') {
  const each = list.map((s) => buckets(s.metrics, name, label)), count = (i) => each[i].at(-1)?.[1] ?? 0;
  let from = 0;
  return each.map((now, i) => {
    if (i && count(i) < count(i - 1)) from = i; // another process counts from 0
    while (list[from].at < list[i].at - WINDOW_MS) from++;
    const rank = 0.99 * (count(i) - count(from));
    if (!(rank > 0)) return null;
    const risen = now.map(([le, n], b) => [le, n - (each[from][b]?.[1] ?? 0)]);
    const at = risen.findIndex(([, n]) => n >= rank), [le, n] = risen[at], [below, before] = risen[at - 1] ?? [0, 0];
    return le === Infinity ? below : below + (le - below) * (rank - before) / (n - before);
  });
}
