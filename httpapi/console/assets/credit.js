/** The credit that accounts use, now and as of a sequence. */
import { html } from './dom.js';
import { decimal, percent, whole } from './format.js';
import { Table } from './parts.js';
import { accountName } from './data.js';

/** How much of a limit is used: a bar and the share. @param {{value: number, limit: number|undefined, short?: boolean}} of */
export function Used({ value, limit, short }) {
  if (!limit) return '–';
  const part = Math.min(1, Math.abs(value) / limit);
  return html`<span class=${`bar ${part > 0.95 ? 'bad' : part > 0.8 ? 'warn' : ''}`}><svg width="60" height="8" aria-hidden="true">
    <rect width=${part * 60} height="8" /></svg></span> ${percent(Math.abs(value) / limit)}${short ? '' : html`<span class="of"> of ${whole(limit)}</span>`}`;
}

/**
 * A row for each account that uses credit, the largest share first.
 * @param {{rows: {accountId: number, creditUsed: number, creditLimit: number}[]|null, empty: string, short?: boolean}} of
 */
export function Credit({ rows, empty, short }) {
  const used = rows?.filter((r) => r.creditUsed)
    .sort((a, b) => b.creditUsed / b.creditLimit - a.creditUsed / a.creditLimit || a.accountId - b.accountId);
  return html`<${Table} label="Credit" rows=${used} fit keyOf=${(r) => r.accountId} empty=${empty} columns=${[
    { label: 'Account', num: true, key: 'accountId' },
    { label: 'Name', show: (r) => accountName(r.accountId) || '–' },
    { label: 'Credit used', num: true, show: (r) => decimal(r.creditUsed, 2) },
    { label: 'Credit limit', show: (r) => html`<${Used} value=${r.creditUsed} limit=${r.creditLimit} short=${short} />` }]} />`;
}
