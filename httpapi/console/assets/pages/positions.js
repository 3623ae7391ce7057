import { html, useEvery, useSettled, useState, useStore } from '../dom.js';
import { all, get, may } from '../api.js';
import { commonDigits, decimal, percent, whole } from '../format.js';
import { Failure, Field, Table } from '../parts.js';
import { accountName, accounts, useAccounts, useSecurities } from '../data.js';
import { useQuery } from '../route.js';

export const lead = 'What each account holds, and how much of its limits that uses.';

/** How much of a limit is used: a bar and the share. */
function Used({ value, limit }) {
  if (!limit || value === null || value === undefined) return '–';
  const part = Math.min(1, Math.abs(value) / limit);
  return html`<span class=${`bar ${part > 0.95 ? 'bad' : part > 0.8 ? 'warn' : ''}`}><svg width="90" height="8" aria-hidden="true">
    <rect width=${part * 90} height="8" /></svg></span> ${percent(Math.abs(value) / limit)}`;
}

export default function Positions() {
  const [read, change] = useQuery();
  const [rows, setRows] = useState(null);
  const [control, setControl] = useState(null);
  const [error, setError] = useState(null);
  useStore(accounts);
  const list = useAccounts(), securities = useSecurities();
  const account = useSettled(read('account')), security = read('security');
  useEvery(1500, async () => {
    try {
      const { items } = await all('order-matcher/positions', { accountId: /^\d+$/.test(account) ? account : '' }, 5000);
      setRows(items);
      setError(null);
    } catch (failure) { setError(failure); }
  }, [account]);
  useEvery(5000, async () => {
    if (may('admin')) setControl(await get('order-matcher/risk/control/snapshot'));
  }, []);
  const limits = control?.limits;
  const own = (id) => control?.accounts.find((a) => a.id === id)?.limits || {};
  const limit = (p, name) => own(p.accountId)[name] ?? limits?.[name];
  const shown = rows?.filter((p) => !security || p.security === security);
  const digits = commonDigits((shown || []).map((p) => p.averageCost));
  return html`<div class="filters" role="search" aria-label="Filter">
      <${Field} label="Account" value=${read('account')} onInput=${(v) => change({ account: v.trim() })} list=${list} inputmode="numeric" />
      <${Field} label="Security" value=${security} onInput=${(v) => change({ security: v.trim().toUpperCase() })} list=${securities} />
      <span class="end" role="status">${shown ? `${whole(shown.length)} positions` : ''}</span></div>
    <${Failure} error=${error} what="The positions" />
    ${(shown || !error) && html`<${Table} label="Positions" rows=${shown} keyOf=${(p) => `${p.accountId}/${p.security}`}
      empty="No position yet." columns=${[
        { label: 'Account', num: true, key: 'accountId' },
        { label: 'Name', show: (p) => accountName(p.accountId) || '–' },
        { label: 'Security', key: 'security' },
        { label: 'Quantity', num: true, show: (p) => html`<span class=${p.quantity < 0 ? 'sell' : ''}>${whole(p.quantity)}</span>` },
        { label: 'Average cost', num: true, show: (p) => decimal(p.averageCost, digits) },
        { label: 'Cost value', num: true, show: (p) => decimal(p.quantity * p.averageCost, 2) },
        ...(limits ? [
          { label: 'Position limit', num: true, show: (p) => whole(limit(p, 'maxPositionQuantity')) },
          { label: 'Used', show: (p) => html`<${Used} value=${p.quantity} limit=${limit(p, 'maxPositionQuantity')} />` },
          { label: 'Concentration limit', num: true, show: (p) => whole(limit(p, 'maxConcentrationNotional')) },
          { label: 'Used', show: (p) => html`<${Used} value=${p.quantity * p.averageCost} limit=${limit(p, 'maxConcentrationNotional')} />` },
        ] : [])]} />`}
    ${may('admin') && control && !limits && html`<p class="note">The limits of this engine are those it was created with; this build does not show them here.</p>`}`;
}
