import { html, useAsked, useState } from '../dom.js';
import { all, get, LASTING_MS, may, post } from '../api.js';
import { age, cut, instant, whole, words } from '../format.js';
import { Ask, Card, Dialog, Empty, Failure, Field, Loading, Table, Tag } from '../parts.js';
import { useQuery } from '../route.js';

export const lead = 'What the journal says, against what the database has.';

/** The classes whose rows the journal can make again; a row of another one is for an operator to judge. */
const repairable = ['MISSING_IN_PROJECTION', 'FIELD_MISMATCH'];
const classes = [...repairable, 'ORPHAN_IN_PROJECTION', 'EXTERNAL'];

/** The bytes of a base64 text as lines of sixteen in hex. @param {string} base64 */
export function hex(base64) {
  const bytes = Uint8Array.from(atob(base64), (ch) => ch.charCodeAt(0));
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    lines.push(`${at.toString(16).padStart(4, '0')}  ${[...bytes.slice(at, at + 16)].map((b) => b.toString(16).padStart(2, '0')).join(' ')}`);
  }
  return lines.join('\n');
}

/** One side of a break; the fields that differ are marked. */
function Record({ title, of, differs, empty }) {
  return html`<section aria-label=${title}><h3>${title}</h3>${!of ? html`<${Empty}>${empty}<//>` : html`<table aria-label=${title}><tbody>
    ${Object.entries(of).map(([name, value]) => html`<tr><td>${name}</td><td>${differs.includes(name)
      ? html`<mark>${String(value ?? 'none')}</mark>` : String(value ?? '–')}</td></tr>`)}</tbody></table>`}</section>`;
}

/** The bytes of a fill in the journal, with what proves them. */
function Bytes({ trade }) {
  const { own: proof, error } = useAsked(2000, async (known) => known // a new trade is not in the log at once
    || get('order-matcher/evidence/proof', { query: { tradeId: trade } }), [trade]);
  return html`<h3>Journal bytes</h3>
    ${error && (error.status === 404 && !error.absent ? html`<${Empty}>The journal has no such trade.<//>`
      : html`<${Failure} error=${error} what="The journal's bytes" />`)}
    ${!proof && !error && html`<${Loading} what="the journal's bytes" />`}
    ${proof && html`<pre class="hex" tabindex="0" aria-label="Journal bytes">${hex(proof.record)}</pre>
      <p class="note">The record of the fill at sequence ${whole(proof.inputSeq)}, as the journal has it.</p>`}`;
}

function Break({ of, onClose, onRepair, onForce }) {
  const status = of.projection?.status;
  return html`<${Dialog} title=${`${of.tradeId}: ${words(of.class)}`} onClose=${onClose} side>
    <div class="pair">
      <${Record} title="Journal" of=${of.journal} differs=${of.fields} empty="The journal has no such trade." />
      <${Record} title="Projection" of=${of.projection} differs=${of.fields} empty="The database has no such row." />
    </div>
    <${Bytes} trade=${of.tradeId} />
    <p class="note">First seen ${instant(of.firstSeenAt)}, last ${instant(of.lastSeenAt)}.</p>
    <footer>${of.projection && status !== 'Settled' && html`<button onClick=${onForce}>Force settle</button>`}
      ${repairable.includes(of.class) && html`<button class="primary" onClick=${onRepair}>Repair</button>`}</footer><//>`;
}

export default function Reconciliation() {
  const [read, change] = useQuery();
  const [ask, setAsk] = useState(null);
  const [said, setSaid] = useState('');
  const kind = read('class'), opened = read('open'), admin = may('admin');
  const { answer: status, error, again: count } = useAsked(2000, () => get('trade-processor/recon/status'), []);
  const { own: breaks, error: unread, again: list } = useAsked(2000,
    async () => (admin ? all('trade-processor/recon/breaks', { class: kind }, 2000) : null), [kind, admin]);
  const { answer: sweep } = useAsked(2000, async (known) => (admin && status?.lastOrphanSweepAt && status.lastOrphanSweepAt !== known?.at
    ? { at: status.lastOrphanSweepAt, ...await get('trade-processor/recon/orphan-sweep/last') } : known), [admin]);
  const again = () => { count(); list(); };
  const open = breaks?.items.find((b) => b.tradeId === opened);
  const ages = (list) => {
    const now = Date.now(), by = [0, 0, 0, 0];
    for (const b of list) {
      const t = now - Date.parse(b.firstSeenAt);
      by[t < 60_000 ? 0 : t < 3_600_000 ? 1 : t < 86_400_000 ? 2 : 3]++;
    }
    return by;
  };
  const tally = (name, value, bad = false) => html`<div class=${`tile${bad && value ? ' bad' : ''}`}>
    <div class="name">${name}</div><div class="value">${value === null ? '–' : whole(value)}</div></div>`;
  const repair = (b) => setAsk({
    title: `Repair ${b.tradeId}?`, text: 'The row is made again from the journal. The record of this act keeps what it was.',
    act: async (reason) => {
      const done = await post('trade-processor/recon/repair', { from: b.tradeId, to: b.tradeId, dryRun: false }, { reason, wait: LASTING_MS });
      setSaid(done.repaired ? `${b.tradeId} repaired. The next sweep closes the break.`
        : done.pending ? `Nothing was done: the projection has not come to ${b.tradeId} yet.`
          : `Nothing was done: the row of ${b.tradeId} is as the journal says.`);
      change({ open: '' });
      await post('trade-processor/recon/orphan-sweep', undefined, { reason, wait: LASTING_MS }).catch(() => {});
      again();
    },
  });
  const failed = error || unread;
  return html`<${Failure} error=${failed && failed.status ? failed : null} what="Reconciliation" />
    ${!status && !error && html`<${Loading} what="reconciliation" />`}
    ${status && html`<div class="tiles">
      ${tally('Matched', status.matched)}${tally('Missing in projection', status.missingInProjection, true)}
      ${tally('Field mismatch', status.fieldMismatch, true)}${tally('Orphans', status.orphans, true)}
      ${status.external !== undefined && tally('External', status.external)}${tally('Not compared yet', status.lag)}</div>
      <p class="note">Last sweep ${instant(status.lastSweepAt)}; last orphan sweep ${instant(status.lastOrphanSweepAt)}${sweep
        ? `: ${whole(sweep.localTradeCount)} rows against ${whole(sweep.fullHistoryTradeCount)} fills, ${whole(sweep.orphanCount)} orphans` : ''}.</p>`}
    ${said && html`<p class="answer good" role="status">${said}</p>`}
    ${admin ? html`<${Card} title="Breaks" aside=${breaks && (breaks.items.length ? `${cut(breaks)} by age: under a minute ${ages(breaks.items)[0]}, an hour ${ages(breaks.items)[1]}, a day ${ages(breaks.items)[2]}, older ${ages(breaks.items)[3]}` : '')}>
      <div class="filters"><${Field} label="Class" value=${kind} onInput=${(v) => change({ class: v })}
          options=${[['', 'All'], ...classes.map((c) => [c, words(c)])]} />
        <div class="end"><button onClick=${() => setAsk({ title: 'Sweep the whole history?', text: 'Every row is compared with the journal. It may take a while on a long history.',
          act: async (reason) => {
            const done = await post('trade-processor/recon/orphan-sweep', undefined, { reason, wait: LASTING_MS });
            setSaid(`Swept: ${whole(done.localTradeCount)} rows against ${whole(done.fullHistoryTradeCount)} fills, ${whole(done.orphanCount)} orphans.`);
            again();
          } })}>Sweep</button></div></div>
      <${Table} label="Breaks" rows=${breaks?.items} keyOf=${(b) => b.tradeId} empty="No break. Every row is what the journal says."
        onOpen=${(b) => change({ open: b.tradeId }, true)} columns=${[
          { label: 'Trade', key: 'tradeId' },
          { label: 'Class', show: (b) => html`<${Tag} kind=${b.class === 'EXTERNAL' ? '' : 'bad'}>${words(b.class)}<//>` },
          { label: 'Fields', show: (b) => b.fields.join(', ') || '–' },
          { label: 'Account', num: true, show: (b) => (b.journal || b.projection)?.accountId ?? '–' },
          { label: 'Security', show: (b) => (b.journal || b.projection)?.security ?? '–' },
          { label: 'Age', num: true, show: (b) => age(Date.now() - Date.parse(b.firstSeenAt)) },
          { label: '', show: (b) => repairable.includes(b.class)
            && html`<button class="small" onClick=${() => repair(b)} aria-label=${`Repair ${b.tradeId}`}>Repair…</button>` }]} /><//>`
    : html`<${Empty}>The breaks need an admin token.<//>`}
    ${open && html`<${Break} of=${open} onClose=${() => change({ open: '' })} onRepair=${() => repair(open)} onForce=${() => setAsk({
      title: `Force the settlement of ${open.tradeId}?`, text: 'The trade is settled now, before its date.',
      act: async (reason) => {
        const t = await post(`trade-processor/trades/${open.tradeId}/settlement/force`, undefined, { reason });
        setSaid(`${t.id} ${words(t.status)}.`);
      } })} />`}
    ${ask && html`<${Ask} title=${ask.title} reason act=${ask.act} onClose=${() => setAsk(null)}><p>${ask.text}</p><//>`}`;
}
