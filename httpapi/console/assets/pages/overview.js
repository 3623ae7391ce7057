import { html, useAsked, useStore } from '../dom.js';
import { get, may, session } from '../api.js';
import { bounds } from '../bounds.js';
import { age, dateIn, duration, whole } from '../format.js';
import { Card, Failure, Loading, Spark, Table, Tag } from '../parts.js';
import { health, notReady } from '../health.js';
import { largest, p99s, rates, samples, total } from '../history.js';

export const lead = 'What runs, how fast, and what lags; each line is the last ten minutes.';

/** @param {string} name @param {string} [label] */
const sum = (name, label) => (m) => total(m, name, label);
const most = (name) => (m) => largest(m, name);
const last = (list) => {
  for (let i = list.length - 1; i >= Math.max(0, list.length - 5); i--) if (list[i] !== null) return list[i];
  return null;
};
const gauge = (list, of) => list.map((s) => of(s.metrics));
const rate = (n) => (n === null ? '–' : n < 10 ? n.toFixed(1) : whole(Math.round(n)));
const records = (n) => (n === null ? '–' : whole(n));

/** The tiles: name, the values over time, how the last one is written, its unit, what its bound is a part of. */
const tiles = /** @type {[string, (l: any[]) => any[], (n: any) => string, string, ((l: any[]) => any[])?][]} */ ([
  ['Orders', (l) => rates(l, sum('svc_orders_total')), rate, '/s'],
  ['Refused', (l) => rates(l, sum('svc_orders_total', 'rejected')), rate, '/s'],
  ['Durable latency', (l) => p99s(l, 'svc_journal_commit_seconds'), duration, 'p99 of 5 min'],
  ['Answer latency', (l) => p99s(l, 'svc_stage_latency_seconds', 'stage="http"'), duration, 'p99 of 5 min'],
  ['Input ring', (l) => gauge(l, sum('svc_ring_depth', '"input"')), records, 'waiting', (l) => gauge(l, sum('svc_ring_slots', '"input"'))],
  ['Output ring', (l) => gauge(l, sum('svc_ring_depth', '"output"')), records, 'waiting', (l) => gauge(l, sum('svc_ring_slots', '"output"'))],
  ['Projection', (l) => gauge(l, sum('svc_projection_lag_records')), records, 'behind'],
  ['Reconciliation', (l) => gauge(l, sum('svc_recon_lag_records')), records, 'behind'],
  ['Open breaks', (l) => gauge(l, sum('svc_recon_open_breaks')), records, ''],
  ['Control feeds', (l) => gauge(l, most('svc_replica_lag_records')), records, 'behind'],
  ['Outbox', (l) => gauge(l, sum('svc_outbox_unpublished_rows')), records, 'to publish'],
  ['TCA', (l) => gauge(l, sum('svc_tca_lag_records')), records, 'behind'],
  ['Evidence', (l) => gauge(l, sum('svc_evidence_lag_seconds')), duration, 'behind'],
]);

/** What the page itself has seen of figures that are no metric, in the last ten minutes. */
const seen = { members: /** @type {{at: number, n: number}[]} */ ([]), late: /** @type {{at: number, n: number}[]} */ ([]) };
const KEPT_MS = 600_000;
const see = (list, n) => {
  const at = Date.now();
  while (list.length && list[0].at < at - KEPT_MS) list.shift();
  list.push({ at, n });
};

function Tile({ name, values, value, unit, bad }) {
  return html`<div class=${`tile${bad ? ' bad' : ''}`}><div class="name">${name}${bad ? ' – alert' : ''}</div>
    <div class="value">${value} <small>${value === '–' ? '' : unit}</small></div><${Spark} values=${values} /></div>`;
}

export default function Overview() {
  const list = useStore(samples), h = useStore(health);
  const admin = may('admin');
  const { answer: ready, error } = useAsked(2000, async () => (admin ? get('admin/readyz').catch(notReady) : null), [admin]);
  const { answer: members } = useAsked(2000, async () => {
    if (!admin) return null;
    const { clustered, members: list } = await get('cluster');
    const answer = clustered ? list.filter((s) => !s.error).length : 1;
    see(seen.members, answer);
    return { all: clustered ? list.length : 1, answer };
  }, [admin]);
  const { answer: late } = useAsked(30_000, async () => { // due before today, and not settled
    if (!admin) return null;
    const dateOf = (ms) => dateIn(ms, session.value?.about.timezone);
    const today = dateOf(Date.now()), from = dateOf(Date.now() - 399 * 86_400_000);
    const { items } = await get('trade-processor/settlement/calendar', { query: { from, to: today } });
    const n = items.filter((d) => d.settlementDate < today).reduce((sum, d) => sum + d.due, 0);
    see(seen.late, n);
    return n;
  }, [admin]);
  if (!admin) {
    return html`<${Card} title="State"><p>The order-matcher is <b>${h?.status || '…'}</b>, durable up to
      sequence ${whole(h?.durable)}. The figures of the installation need an admin token.</p><//>`;
  }
  return html`<div class="tiles">${tiles.map(([name, of, show, unit, most]) => {
      const values = of(list), now = last(values), bound = bounds[name] * (most ? last(most(list)) || Infinity : 1);
      return now === null && name === 'Evidence' ? null
        : html`<${Tile} key=${name} name=${name} values=${values} value=${show(now)} unit=${unit} bad=${now !== null && now > bound} />`;
    })}
      <${Tile} name="Settlement" values=${seen.late.map((s) => s.n)} value=${records(late)} unit="overdue" />
      <${Tile} name="Members" values=${seen.members.map((s) => s.n)} value=${members ? `${members.answer} of ${members.all}` : '–'}
        unit=${members?.all === 1 ? 'single node' : 'answer'} bad=${members && members.answer < members.all} /></div>
    <p class="note">${list.length < 2 ? 'The lines begin with the next figures.'
      : `The lines show the last ${age(Date.now() - list[0].at)}.`}</p>
    <${Card} title="Readiness" aside=${ready && html`<${Tag} kind=${ready.ready ? 'good' : 'bad'}>${ready.ready ? 'ready' : 'not ready'}<//>`}>
      <${Failure} error=${error} what="Readiness" />
      ${!ready && !error && html`<${Loading} what="readiness" />`}
      ${ready && html`<${Table} label="Parts" rows=${ready.parts} fit keyOf=${(p) => p.name} columns=${[
        { label: 'Part', key: 'name' },
        { label: 'State', show: (p) => html`<${Tag} kind=${p.ready ? 'good' : 'bad'}>${p.ready ? 'ready' : 'not ready'}<//>` },
        { label: 'Detail', wrap: true, show: (p) => p.detail || '–' }]} />`}
    <//>`;
}
