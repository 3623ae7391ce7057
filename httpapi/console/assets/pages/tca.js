import { html, useAsked, useMemo, useSettled } from '../dom.js';
import { all, get, may } from '../api.js';
import { commonDigits, cut, decimal, instant, whole } from '../format.js';
import { Card, Empty, Facts, Failure, Field, Loading, Side, Table, When } from '../parts.js';
import { Plot } from '../plot.js';
import { useAccounts, useSecurities } from '../data.js';
import { useQuery } from '../route.js';

export const lead = 'What trades cost against the market: positive basis points are worse.';

const bps = (n) => (n === null || n === undefined ? '–' : html`<span class=${n > 0 ? 'sell' : n < 0 ? 'buy' : ''}>${decimal(n, 2)}</span>`);

/** The market around a trade: the prices of trades, the benchmarks, the trade itself. */
function Around({ report }) {
  const at = Date.parse(report.twapWindowEnd), from = Date.parse(report.twapWindowStart);
  const { own: prices, error } = useAsked(2000, async (known) => {
    if (known) return known;
    const id = Number(report.tradeId.slice(4));
    const since = Math.max(0, id - 800);
    const { items } = may('admin') ? await get('order-matcher/recon/trades/blotter', { query: { sinceSeq: since, limit: 1000 } })
      : await all('trade-processor/trades', { order: 'newest', security: report.security,
        from: new Date(from - 60_000).toISOString(), to: new Date(at + 60_001).toISOString() }, 1000);
    return items.map((f) => ({ ...f, at: f.execTimeMillis ?? Date.parse(f.timestamp) }))
      .filter((f) => f.security === report.security && f.at >= from - 60_000 && f.at <= at + 60_000);
  }, [report.tradeId]);
  const data = useMemo(() => {
    if (!prices) return null;
    const points = new Map(prices.map((f) => [f.at, f.price]));
    for (const t of [from, at, Date.parse(report.arrivalAt)]) if (!points.has(t)) points.set(t, null);
    const xs = [...points.keys()].sort((a, b) => a - b);
    return [xs.map((x) => x / 1000), xs.map((x) => points.get(x)), xs.map((x) => (x >= from && x <= at ? report.twap : null)),
      xs.map((x) => (x >= Date.parse(report.arrivalAt) && x <= at ? report.arrivalPrice : null)), xs.map((x) => (x === at ? report.executionPrice : null))];
  }, [prices]);
  if (error) return html`<${Failure} error=${error} what="The prices around the trade" />`;
  if (!data) return html`<${Loading} what="the prices around the trade" />`;
  const digits = commonDigits([report.executionPrice, report.arrivalPrice]);
  return html`<${Plot} label=${`Market price of ${report.security} around ${report.tradeId}: executed at ${report.executionPrice}, arrival ${report.arrivalPrice}, TWAP ${report.twap}`}
    data=${data} options=${{ axes: [{}, { values: (_, v) => v.map((n) => decimal(n, digits)), size: 70 }] }} series=${[{}, { label: 'Trades', stroke: '--muted', width: 1, spanGaps: true, points: { size: 4 } },
      { label: 'TWAP', stroke: '--accent', width: 1.5, dash: [6, 4], spanGaps: true }, { label: 'Arrival', stroke: '--warn', width: 1.5, spanGaps: true, points: { size: 5 } },
      { label: 'This trade', stroke: '--bad', width: 0, points: { size: 10 } }]} />`;
}

function Report({ trade }) {
  const { own: report, error } = useAsked(2000, async (known) => known || get(`trade-processor/tca/report/${trade}`), [trade]);
  if (error) return html`<${Failure} error=${error} what=${trade} />`;
  if (!report) return html`<${Loading} what=${trade} />`;
  const digits = commonDigits([report.executionPrice, report.arrivalPrice]);
  return html`<${Facts} of=${[['Account', report.accountId], ['Side', html`<${Side} of=${report.side} />`], ['Quantity', whole(report.quantity)],
      ['Execution price', decimal(report.executionPrice, digits)], ['Arrival price', decimal(report.arrivalPrice, digits)], ['Arrived', instant(report.arrivalAt)],
      ['TWAP', decimal(report.twap, 6)], ['TWAP samples', whole(report.twapSampleCount)],
      ['Slippage to TWAP, bp', bps(report.slippageBps)], ['Slippage to arrival, bp', bps(report.arrivalSlippageBps)]]} />
    <${Around} report=${report} />`;
}

export default function Tca() {
  const [read, change] = useQuery();
  const list = useAccounts(), securities = useSecurities();
  const account = useSettled(read('account')), security = useSettled(read('security')), trade = read('trade');
  const accountId = /^\d+$/.test(account) ? account : '';
  const { own: summary, error } = useAsked(5000, () => get('trade-processor/tca/summary', { query: { accountId } }), [accountId]);
  const { own: trades, error: unread } = useAsked(5000,
    () => all('trade-processor/trades', { order: 'newest', accountId, security }, 1000), [accountId, security]);
  const digits = commonDigits((trades?.items || []).map((t) => t.price));
  const rows = summary?.bySecurity.filter((r) => !security || r.security === security);
  return html`<div class="filters" role="search" aria-label="Filter">
      <${Field} label="Account" value=${read('account')} onInput=${(v) => change({ account: v.trim() })} list=${list} inputmode="numeric" />
      <${Field} label="Security" value=${read('security')} onInput=${(v) => change({ security: v.trim().toUpperCase() })} list=${securities} /></div>
    <${Failure} error=${error || unread} what="Transaction costs" />
    ${trade && html`<${Card} title=${trade} aside=${html`<button class="small" onClick=${() => change({ trade: '' })}>Close</button>`}><${Report} trade=${trade} /><//>`}
    <div class="grid cols2">
      <${Card} title=${accountId ? `Summary of account ${accountId}` : 'Summary'} aside=${summary && `${whole(summary.trades)} trades, ${whole(summary.withBenchmark)} with a benchmark`}>
        ${summary && html`<${Facts} of=${[['Mean slippage to TWAP, bp', bps(summary.averageSlippageBps)], ['Mean slippage to arrival, bp', bps(summary.averageArrivalSlippageBps)]]} />`}
        ${(rows || !error) && html`<${Table} label="Summary" rows=${rows} keyOf=${(r) => r.security} empty="No trade yet." columns=${[
          { label: 'Security', key: 'security' }, { label: 'Trades', num: true, show: (r) => whole(r.trades) },
          { label: 'To TWAP, bp', num: true, show: (r) => bps(r.averageSlippageBps) },
          { label: 'To arrival, bp', num: true, show: (r) => bps(r.averageArrivalSlippageBps) }]} />`}<//>
      <${Card} title="Trades" aside=${cut(trades, 'newest')}>${(trades || !unread) && html`<${Table} label="Trades" rows=${trades?.items} keyOf=${(t) => t.id} empty="No trade yet."
        onOpen=${(t) => { change({ trade: t.id }); scrollTo(0, 0); }} columns=${[{ label: 'Trade', key: 'id' }, { label: 'Account', num: true, key: 'accountId' }, { label: 'Security', key: 'security' },
          { label: 'Side', show: (t) => html`<${Side} of=${t.side} />` }, { label: 'Quantity', num: true, show: (t) => whole(t.quantity) },
          { label: 'Price', num: true, show: (t) => decimal(t.price, digits) }, { label: 'Executed', show: (t) => html`<${When} at=${t.timestamp} />` }]} />`}<//></div>
    ${trades && !trades.items.length && html`<${Empty}>Costs are shown for trades. Prices before the trade make the benchmarks.<//>`}`;
}
