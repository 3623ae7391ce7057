import { html, useAsked, useSettled, useState, useStore } from '../dom.js';
import { get, may, post, session } from '../api.js';
import { counted, dateIn, decimal, digitsOf, whole, words } from '../format.js';
import { Ask, Card, Dialog, Empty, Facts, Failure, Field, Table } from '../parts.js';
import { accountName, useAccounts } from '../data.js';
import { WhyButton } from '../details.js';
import { Files } from '../files.js';
import { useQuery } from '../route.js';

export const lead = 'Swaps and swaptions with their terms; the cuts of a session with their files.';

/** Contracts never change and are listed by id: known ones are not asked for again, but those of the last page. */
async function allContracts(known, accountId, signal) {
  let { before, cursor } = known || { before: [], cursor: undefined };
  for (;;) {
    const { items, nextCursor } = await get('order-matcher/contracts', { query: { limit: 1000, accountId, cursor }, signal });
    if (!nextCursor) return { before, cursor, rows: [...before, ...items].reverse() };
    before = [...before, ...items];
    cursor = nextCursor;
  }
}

export default function Contracts() {
  const [read, change] = useQuery();
  const [ask, setAsk] = useState(false);
  const about = useStore(session)?.about;
  const [date, setDate] = useState('');
  const make = () => {
    setDate(dateIn(new Date(), about?.timezone)); // of the session that is on now
    setAsk(true);
  };
  const [said, setSaid] = useState('');
  const list = useAccounts();
  const account = useSettled(read('account')), opened = read('open'), admin = may('admin');
  const { own, error } = useAsked(2000,
    (known, signal) => allContracts(known, /^\d+$/.test(account) ? account : '', signal), [account]);
  const rows = own?.rows;
  const open = rows?.find((c) => c.contractId === opened);
  const rate = (c) => decimal(c.fixedRate * 100, Math.max(2, digitsOf(c.fixedRate) - 2));
  return html`<div class="filters" role="search" aria-label="Filter">
      <${Field} label="Account" value=${read('account')} onInput=${(v) => change({ account: v.trim() })} list=${list} inputmode="numeric" />
      <span class="end" role="status">${rows ? counted(rows.length, 'contract') : ''}</span></div>
    <${Failure} error=${error && error.status ? error : null} what="The contracts" />
    ${(rows || !error) && html`<${Card} title="Contracts"><${Table} label="Contracts" rows=${rows} keyOf=${(c) => c.contractId} empty="No contract is booked yet."
      onOpen=${(c) => change({ open: c.contractId }, true)} columns=${[
        { label: 'Contract', key: 'contractId' }, { label: 'Product', show: (c) => words(c.productType) },
        { label: 'Account', num: true, key: 'accountId' }, { label: 'Pays or receives', key: 'payReceive' },
        { label: 'Notional', num: true, show: (c) => whole(c.notional) }, { label: 'Fixed rate, %', num: true, show: rate },
        { label: 'Effective', key: 'effectiveDate' }, { label: 'Maturity', key: 'maturityDate' }, { label: 'Expiry', key: 'expiryDate' },
        { label: 'Conventions', key: 'conventions', wrap: true }, { label: 'Sequence', num: true, show: (c) => whole(c.sequence) }]} /><//>`}
    ${admin ? html`<${Card} title="Cuts" aside=${html`<button class="small" onClick=${make}>Make a cut…</button>`}>
      ${said && html`<p class="answer good" role="status">${said}</p>`}
      <${Files} folder="extracts" label="Cuts and their files" empty="No cut was made yet." wants=${(name) => name.includes('seq-') || name.includes('/')} /><//>`
    : html`<${Empty}>The cuts need an admin token.<//>`}
    ${open && html`<${Dialog} title=${open.contractId} onClose=${() => change({ open: '' })} side>
      <${Facts} of=${[['Product', words(open.productType)], ['Client order id', open.clientOrderId], ['Account', `${open.accountId} ${accountName(open.accountId)}`],
        ['Pays or receives', open.payReceive], ['Notional', whole(open.notional)], ['Fixed rate', `${rate(open)} %`], ['Effective', open.effectiveDate], ['Maturity', open.maturityDate],
        ['Expiry', open.expiryDate], ['Exercise', open.exerciseStyle], ['Conventions', open.conventions], ['Sequence', whole(open.sequence)]]} />
      <footer><${WhyButton} contract=${open.contractId} small=${false} /></footer><//>`}
    ${ask && html`<${Ask} title="Make a cut of positions and contracts?" reason onClose=${() => setAsk(false)} act=${async (reason) => {
      const done = await post('order-matcher/risk/extract', { sessionDate: date }, { reason });
      setSaid(`The cut is taken at sequence ${whole(done.sequence)}; its files follow.`);
    }}><${Field} label="Session date" type="date" value=${date} onInput=${setDate} required /><//>`}`;
}
