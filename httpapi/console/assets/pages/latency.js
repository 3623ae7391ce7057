import { html, useMemo, useStore } from '../dom.js';
import { may } from '../api.js';
import { duration, percent, whole } from '../format.js';
import { Card, Empty, Loading, Table } from '../parts.js';
import { means, metrics, rates, samples, total } from '../history.js';
import { Plot } from '../plot.js';
import { Files } from '../files.js';

export const lead = 'Where the time goes: by stage, by rate, and when it was slow.';

/** The histograms of a metric: label to its buckets and counts. @param {Record<string, number>} m @param {string} name */
function histograms(m, name) {
  /** @type {Map<string, {bounds: number[], counts: number[], sum: number, count: number}>} */
  const out = new Map();
  const of = (label) => {
    if (!out.has(label)) out.set(label, { bounds: [], counts: [], sum: 0, count: 0 });
    return /** @type {any} */ (out.get(label));
  };
  const label = (key) => /(?:stage|service|op)="([^"]*)"/.exec(key)?.[1] || '';
  for (const key in m) {
    if (!key.startsWith(name)) continue;
    const rest = key.slice(name.length);
    if (rest.startsWith('_sum')) of(label(key)).sum = m[key];
    else if (rest.startsWith('_count')) of(label(key)).count = m[key];
    else if (rest.startsWith('_bucket')) {
      const le = /le="([^"]*)"/.exec(key)?.[1];
      of(label(key)).bounds.push(le === '+Inf' ? Infinity : Number(le));
      of(label(key)).counts.push(m[key]);
    }
  }
  return out;
}

/** The bound below which a share of the counts is. @param {any} hist @param {number} share */
function quantile(hist, share) {
  const i = !bounded(hist) ? -1 : hist.counts.findIndex((n) => n >= hist.count * share);
  return hist.count && i >= 0 ? hist.bounds[i] : null;
}
const bounded = (hist) => hist.bounds.length > 1; // else it has no buckets that tell anything
const atMost = (s) => (s === null ? '–' : s === Infinity ? 'more' : `≤ ${duration(s)}`);

function Bars({ hist }) {
  if (!bounded(hist) || !hist.count) return '–';
  const own = hist.counts.map((n, i) => n - (i ? hist.counts[i - 1] : 0)), most = Math.max(...own);
  return html`<svg class="histogram" width=${own.length * 11} height="26" role="img" aria-label=${own.map((n, i) => `${atMost(hist.bounds[i])}: ${n}`).join(', ')}>
    ${own.map((n, i) => html`<rect x=${i * 11} width="9" y=${25 - (n ? Math.max(2, 24 * n / most) : 1)} height=${n ? Math.max(2, 24 * n / most) : 1}><title>${atMost(hist.bounds[i])}: ${whole(n)}</title></rect>`)}</svg>`;
}

export default function Latency() {
  const m = useStore(metrics), list = useStore(samples);
  const rows = useMemo(() => [['svc_stage_latency_seconds', ''], ['svc_journal_commit_seconds', 'journal commit'], ['svc_cluster_commit_seconds', 'cluster commit']]
    .flatMap(([name, of]) => [...histograms(m, name)].map(([label, hist]) => ({ name: of || label || name, hist }))).filter((r) => r.hist.count || r.hist.bounds.length), [m]);
  const data = useMemo(() => [list.map((s) => s.at / 1000), rates(list, (x) => total(x, 'svc_orders_total')),
    means(list, 'svc_journal_commit_seconds').map((s) => (s === null ? null : s * 1e6)), means(list, 'svc_stage_latency_seconds', 'stage="http"').map((s) => (s === null ? null : s * 1e6))], [list]);
  if (!may('admin')) return html`<${Empty}>The latencies need an admin token.<//>`;
  if (!Object.keys(m).length) return html`<${Loading} what="the histograms" />`;
  return html`<${Card} title="By stage"><${Table} label="By stage" rows=${rows} fit keyOf=${(r) => r.name} columns=${[
      { label: 'Stage', key: 'name' }, { label: 'Count', num: true, show: (r) => whole(r.hist.count) },
      { label: 'Mean', num: true, show: (r) => (r.hist.count ? duration(r.hist.sum / r.hist.count) : '–') },
      ...[0.5, 0.99, 0.999].map((q) => ({ label: q === 0.5 ? 'p50' : `p${percent(q).replace(/ ?%/, '') === '100' ? '99.9' : '99'}`, num: true, show: (r) => atMost(quantile(r.hist, q)) })),
      { label: 'Distribution', show: (r) => html`<${Bars} hist=${r.hist} />` }]} /><//>
    <${Card} title="Rate against latency" aside="the last ten minutes">
      ${list.length < 3 ? html`<${Empty}>The plot begins in a few seconds.<//>` : html`<${Plot} label="Orders a second and mean latencies over the last ten minutes" data=${data}
        options=${{ scales: { rate: {}, us: {} }, axes: [{}, { scale: 'rate', label: 'orders/s', size: 60 }, { scale: 'us', side: 1, label: 'µs', size: 60, grid: { show: false } }] }}
        series=${[{}, { label: 'Orders/s', scale: 'rate', stroke: '--accent', width: 1.5 }, { label: 'Durable, µs', scale: 'us', stroke: '--warn', width: 1.5, spanGaps: true }, { label: 'Answer, µs', scale: 'us', stroke: '--good', width: 1.5, spanGaps: true }]} />`}<//>
    <div class="grid cols2"><${Card} title="Flight recordings"><${Files} folder="flight" label="Flight recordings" empty="None: no stage was slower than flight.budget-ms, or it is 0." /><//>
      <${Card} title="Performance results"><${Files} folder="perf" label="Performance results" empty="None here: they are in perf/results of the source tree." /><//></div>`;
}
