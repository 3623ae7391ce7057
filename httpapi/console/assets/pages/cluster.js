import { html, useAsked, useStore } from '../dom.js';
import { get, may } from '../api.js';
import { whole, words } from '../format.js';
import { Card, Empty, Facts, Failure, Loading, Table, Tag } from '../parts.js';
import { health, notReady } from '../health.js';
import { metrics, total } from '../history.js';

export const lead = 'The members, which one leads, how far each has come, and whether they agree.';

export default function Cluster() {
  const h = useStore(health), m = useStore(metrics);
  const admin = may('admin');
  const { answer: state, error } = useAsked(1500, async () => (admin ? get('cluster') : null), [admin]);
  const { answer: ready } = useAsked(1500, async () => (admin ? get('admin/readyz').catch(notReady) : null), [admin]);
  if (!admin) return html`<${Empty}>The members need an admin token.<//>`;
  if (error && error.status && !state) return html`<${Failure} error=${error} what="The members" />`;
  if (!state || !h) return html`<${Loading} what="the members" />`;
  const diverged = total(m, 'svc_evidence_divergence_total');
  const digests = diverged === null ? 'not compared in this build' : diverged === 0
    ? html`<${Tag} kind="good">equal<//> at every compared sequence` : html`<${Tag} kind="bad">different<//> ${whole(diverged)} times: see readiness`;
  const own = html`<${Card} title="This member"><${Facts} of=${[['Role', words(h.role)], h.member && ['Member', h.member], h.leader && ['Leader', h.leader],
    h.term !== undefined && ['Term', whole(h.term)], ['Durability', h.durability], ['Applied', whole(h.applied)], ['Durable', whole(h.durable)], ['Projected', whole(h.projected)], ['Digests', digests]]} /><//>`;
  if (!state.clustered) {
    return html`${own}<${Card} title="Members"><${Empty}>This is a single node. Three members keep going when one stops: see the operator's page on clusters.<//><//>`;
  }
  const head = Math.max(...state.members.map((s) => s.last || 0));
  const farthest = Math.max(...state.members.map((s) => s.sequence || 0));
  const servers = state.members.find((s) => s.member && s.member === s.leader)?.servers || state.members.find((s) => s.servers?.length)?.servers || [];
  return html`<${Card} title="Members"><${Table} label="Members" rows=${state.members} fit keyOf=${(s) => s.id} columns=${[
      { label: 'Member', show: (s) => html`${s.id}${s.id === h.member ? ' (this one)' : ''}` },
      { label: 'Role', show: (s) => (s.error ? html`<${Tag} kind="bad">${s.error}<//>` : html`<${Tag} kind=${s.role === 'Leader' ? 'good' : s.role === 'Follower' ? '' : 'warn'}>${String(s.role).toLowerCase()}<//>`) },
      { label: 'Leader', show: (s) => s.leader || '–' },
      { label: 'Term', num: true, show: (s) => (s.error ? '–' : whole(s.term)) },
      { label: 'Last entry', num: true, show: (s) => (s.error ? '–' : whole(s.last)) },
      { label: 'Applied', num: true, show: (s) => (s.error ? '–' : whole(s.applied)) },
      { label: 'Entries behind', num: true, show: (s) => (s.error ? '–' : whole(head - s.applied)) },
      { label: 'Sequence', num: true, show: (s) => (s.error ? '–' : whole(s.sequence)) },
      { label: 'Commands behind', num: true, show: (s) => (s.error ? '–' : whole(farthest - s.sequence)) }]} /><//>
    ${own}
    <${Card} title="Configuration"><${Table} label="Configuration" rows=${servers} fit keyOf=${(s) => s.id} columns=${[
      { label: 'Member', key: 'member' }, { label: 'Address', key: 'address' }, { label: 'Vote', show: (s) => (s.voter ? 'yes' : 'no') }, { label: 'Server', show: (s) => html`<code>${s.id}</code>` }]} /><//>
    ${ready && html`<${Card} title="Readiness"><${Table} label="Parts" rows=${ready.parts} fit keyOf=${(p) => p.name} columns=${[{ label: 'Part', key: 'name' },
      { label: 'State', show: (p) => html`<${Tag} kind=${p.ready ? 'good' : 'bad'}>${p.ready ? 'ready' : 'not ready'}<//>` }, { label: 'Detail', key: 'detail' }]} /><//>`}`;
}
