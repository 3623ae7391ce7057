import { html, useAsked, useSettled, useStore } from '../dom.js';
import { all, get, may } from '../api.js';
import { Credit, Used } from '../credit.js';
import { commonDigits, counted, cut, decimal, whole } from '../format.js';
import { Card, Failure, Field, Table } from '../parts.js';
import { accountName, accounts, useAccounts, useSecurities } from '../data.js';
import { useQuery } from '../route.js';

export const lead = 'What each account holds, and how much of its limits that uses.';

export default function Positions() {
  const [read, change] = useQuery();
  useStore(accounts);
  const list = useAccounts(), securities = useSecurities();
  const account = useSettled(read('account')), security = read('security');
  const scope = { accountId: /^\d+$/.test(account) ? account : '' };
  const { own: rows, error } = useAsked(1500, () => all('order-matcher/positions', scope, 5000), [scope]);
  const { own: credit, error: creditError } = useAsked(3000, () => all('order-matcher/credit', scope, 5000), [scope]);
  const { answer: control } = useAsked(5000, async () => (may('admin') ? get('order-matcher/risk/control/snapshot') : null), []);
  const limits = control?.limits;
  const own = (id) => control?.accounts.find((a) => a.id === id)?.limits || {};
  const limit = (p, name) => own(p.accountId)[name] ?? limits?.[name];
  const shown = rows?.items.filter((p) => !security || p.security === security);
  const digits = commonDigits((shown || []).map((p) => p.averageCost));
  return html`<div class="filters" role="search" aria-label="Filter">
      <${Field} label="Account" value=${read('account')} onInput=${(v) => change({ account: v.trim() })} list=${list} inputmode="numeric" />
      <${Field} label="Security" value=${security} onInput=${(v) => change({ security: v.trim().toUpperCase() })} list=${securities} />
      <span class="end" role="status">${shown ? counted(shown.length, 'position') : ''}</span></div>
    <${Failure} error=${error} what="The positions" />
    ${(shown || !error) && html`<${Card} title="Positions" aside=${cut(rows)}><${Table} label="Positions" rows=${shown} keyOf=${(p) => `${p.accountId}/${p.security}`}
      empty="No position yet." columns=${[
        { label: 'Account', num: true, key: 'accountId' },
        { label: 'Name', show: (p) => accountName(p.accountId) || '–' },
        { label: 'Security', key: 'security' },
        { label: 'Quantity', num: true, show: (p) => html`<span class=${p.quantity < 0 ? 'sell' : ''}>${whole(p.quantity)}</span>` },
        { label: 'Average cost', num: true, show: (p) => decimal(p.averageCost, digits) },
        { label: 'Cost value', num: true, show: (p) => decimal(p.quantity * p.averageCost, 2) },
        ...(limits ? [
          { label: 'Position limit', show: (p) => html`<${Used} value=${p.quantity} limit=${limit(p, 'maxPositionQuantity')} />` },
          { label: 'Concentration limit', show: (p) => html`<${Used} value=${p.quantity * p.averageCost} limit=${limit(p, 'maxConcentrationNotional')} />` },
        ] : [])]} />
      ${limits && html`<p class="note">The position as it is, at its average cost. POSITION_LIMIT and CONCENTRATION_LIMIT count the open orders of the side too, at the price that an order is judged at.</p>`}<//>`}
    <${Failure} error=${creditError && creditError.status ? creditError : null} what="The credit" />
    ${(credit || !creditError) && html`<${Card} title="Credit used" aside=${cut(credit)}><${Credit} rows=${credit?.items} empty="No account uses credit." />
      <p class="note">The larger of purchases less sales and sales less purchases, each with what the open orders of its side could still trade: what CREDIT_LIMIT compares.</p><//>`}
    ${may('admin') && control && !limits && html`<p class="note">The limits of this engine are those it was created with; this build does not show them here.</p>`}`;
}
