import { html, useAsked, useEffect, useMemo, useState, useStore } from '../dom.js';
import { get, lines, may, post, Problem } from '../api.js';
import { instant, whole, zone } from '../format.js';
import { Ask, Card, Empty, Failure, Field, Loading, Switch, Table, Tag } from '../parts.js';
import { accountName, accounts, securities, useAccounts, useSecurities } from '../data.js';
import { useQuery } from '../route.js';

export const lead = 'Every act asks for a reason, is sequenced, and is on record.';

/** The limits that may be changed, with their unit. @type {[string, string][]} */
const limitNames = [['maxOrderQuantity', 'Order, quantity'], ['maxOrderNotional', 'Order, notional'],
  ['maxPositionQuantity', 'Position, quantity'], ['maxConcentrationNotional', 'Concentration, notional'],
  ['creditLimit', 'Credit'], ['priceMaxAgeMs', 'Age of a price, ms'],
  ['priceCollarBps', 'Price collar, bp']];

const PAGE = 500, KEPT = 2000;

/** The controls in force. */
const controls = () => get('order-matcher/risk/control/snapshot');

/**
 * The body of an act under the next version, which a client may count in nanoseconds: no Number holds that.
 * @param {{policyVersion: number|string}} now @param {string} rest its other members
 */
const next = (now, rest) => `{"policyVersion":${BigInt(now.policyVersion) + 1n},${rest}}`;

/** The acts on record, read forwards from where the last call came to; newest first. */
class Acts {
  constructor() {
    this.next = 1;
    /** @type {any[]} */
    this.list = [];
  }

  async read() {
    for (;;) {
      const page = await lines('order-matcher/audit', { query: { fromSeq: this.next, limit: PAGE } });
      if (!page.length) return this.list;
      this.next = page[page.length - 1].sequence + 1;
      this.list = [...page.reverse(), ...this.list].slice(0, KEPT);
      if (page.length < PAGE) return this.list;
    }
  }
}

/** A value of an audit record as text. @param {any} v */
const plain = (v) => (v === null || v === undefined || v === '' ? '–' : typeof v === 'object' ? JSON.stringify(v) : String(v));

function Audit({ version }) {
  const acts = useMemo(() => new Acts(), []);
  const { answer: rows, error, again } = useAsked(3000, () => acts.read(), []);
  useEffect(() => again(), [version]);
  if (error && !rows) return html`<${Failure} error=${error} what="The record of operators' acts" />`;
  return html`<${Table} label="Audit" rows=${rows} keyOf=${(r) => `${r.sequence}/${r.kind}/${r.object}`} empty="No act is on record yet."
    columns=${[{ label: 'Sequence', num: true, show: (r) => whole(r.sequence) },
      { label: `Time (${zone})`, show: (r) => instant(r.time) },
      { label: 'Kind', key: 'kind' }, { label: 'Subject', show: (r) => plain(r.subject) },
      { label: 'Address', show: (r) => plain(r.address) },
      { label: 'Object', wrap: true, show: (r) => plain(r.object) }, { label: 'Old', wrap: true, show: (r) => plain(r.old) },
      { label: 'New', wrap: true, show: (r) => plain(r.new) }, { label: 'Reason', wrap: true, show: (r) => plain(r.reason) }]} />`;
}

function Limits({ control, act }) {
  const [account, setAccount] = useState('');
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const list = useAccounts();
  if (!control.limits) return html`<${Empty}>Limits that change while it runs are not available in this build.<//>`;
  const own = control.accounts.find((a) => String(a.id) === account)?.limits || {};
  const now = (name) => own[name] ?? control.limits[name];
  const change = (e) => {
    e.preventDefault();
    const limits = Object.fromEntries(Object.entries(values).filter(([, v]) => v !== '').map(([k, v]) => [k, BigInt(v)]));
    if (!Object.keys(limits).length) return;
    act({
      title: account ? `Change the limits of account ${account}?` : 'Change the limits of all accounts?',
      text: limitNames.filter(([n]) => n in limits).map(([n, label]) => `${label}: ${whole(now(n))} → ${whole(limits[n])}`).join('; '),
      path: account ? `risk/control/accounts/${account}/limits` : 'risk/control/limits',
      body: (c) => next(c, `"limits":{${Object.entries(limits).map(([k, v]) => `"${k}":${v}`).join()}}`), done: () => setValues({}),
    });
  };
  return html`<form onSubmit=${change}><div class="filters">
      <${Field} label="Of account" placeholder="all" value=${account} onInput=${(v) => setAccount(v.trim())} list=${list} inputmode="numeric" /></div>
    <${Table} label="Limits" rows=${limitNames} fit keyOf=${(n) => n[0]} columns=${[
      { label: 'Limit', show: (n) => n[1] },
      { label: 'Now', num: true, show: (n) => whole(now(n[0])) },
      { label: 'New', show: (n) => html`<input aria-label=${`New: ${n[1]}`} inputmode="numeric" pattern="[0-9]*" value=${values[n[0]] || ''}
        onInput=${(e) => setValues({ ...values, [n[0]]: e.target.value })} />` }]} />
    <p class="more"><button type="submit">Change limits</button></p></form>`;
}

export default function Controls() {
  const [read, change] = useQuery();
  const [ask, setAsk] = useState(null);
  const [version, setVersion] = useState(0);
  const names = useStore(accounts), companies = useStore(securities);
  useAccounts();
  useSecurities();
  const admin = may('admin');
  const { answer: control, error, again } = useAsked(2000,
    async () => (admin ? controls() : null), [admin]);
  if (!admin) return html`<${Empty}>The controls need an admin token.<//>`;
  if (!control) return error ? html`<${Failure} error=${error} what="The controls" />` : html`<${Loading} what="the controls" />`;
  const act = (what) => setAsk(what);
  const run = async (reason) => {
    for (let tries = 0; ; tries++) {
      try {
        // What holds now, not when the question was asked: another operator's act meanwhile stays.
        await post(`order-matcher/${ask.path}`, ask.body(await controls()), { reason });
        break;
      } catch (failure) { // another operator was first: once more, with the version after theirs
        if (!(failure instanceof Problem) || failure.code !== 'STALE_VERSION' || tries > 2) throw failure;
      }
    }
    ask.done?.();
    again();
    setVersion(version + 1);
  };
  const security = read('security'), account = read('account');
  const company = new Map(companies.map((s) => [s.ticker, s.companyName]));
  const some = control.securities.filter((s) => (security
    ? s.ticker.includes(security) : s.halted || s.restricted || !s.enabled));
  const list = control.accounts.filter((a) => !account || String(a.id).includes(account));
  void names;
  const flip = (s, name, on, off) => html`<${Switch}
    label=${`${on} ${s.ticker}`} on=${s[name]} bad=${name !== 'enabled'} onChange=${(v) => act({
      title: `${v ? on : off} ${s.ticker}?`, text: name === 'restricted' && v ? 'Its resting orders are cancelled.' : '',
      ...(name === 'restricted'
        ? { path: 'risk/control/restriction', body: () => ({ security: s.ticker, restricted: v }) }
        : { path: 'risk/control/security', body: (c) => {
          const { enabled, halted } = c.securities.find((one) => one.ticker === s.ticker) || s;
          return { security: s.ticker, enabled, halted, [name]: v };
        } }),
    })} />`;
  return html`<${Failure} error=${error && error.status ? error : null} what="The controls" />
    <div class="grid cols2 low">
      <${Card} title="Everything" aside=${html`policy version ${whole(control.policyVersion)}`}>
        <p><span aria-hidden="true">Kill switch</span> <${Switch} label="Kill switch" on=${control.killSwitch} bad onChange=${(v) => act({
          title: v ? 'Refuse every order?' : 'Admit orders again?', text: v ? 'The kill switch refuses every new order, of every account. Resting orders stay.' : '',
          path: 'risk/control/policy', body: (c) => next(c, `"killSwitch":${v}`) })} /></p>
        <p class="note">${control.killSwitch ? 'Every new order is refused.' : 'Orders are admitted.'} The gate is ${control.ready ? 'ready' : 'not ready'}.</p>
        <${Table} label="Sources" rows=${control.sources} fit keyOf=${(s) => s.source} columns=${[
          { label: 'Source', key: 'source' }, { label: 'State', show: (s) => html`<${Tag} kind=${s.state === 'ready' ? 'good' : 'bad'}>${s.state}<//>` },
          { label: 'Version', num: true, show: (s) => whole(s.watermark) }, { label: 'Last reason', show: (s) => s.lastReason || '–' }]} />
      <//>
      <${Card} title="Limits"><${Limits} control=${control} act=${act} /><//>
      <${Card} title="Securities" aside=${`${whole(control.securities.length)} known`}>
        <div class="filters"><${Field} label="Security" placeholder="not tradable" value=${security} onInput=${(v) => change({ security: v.trim().toUpperCase() })}
          list=${companies.map((s) => [s.ticker, s.companyName])} /></div>
        <${Table} label="Securities" rows=${some} most=${50} keyOf=${(s) => s.ticker} empty=${security ? 'No such security.' : 'Every security is tradable.'} columns=${[
          { label: 'Security', key: 'ticker' }, { label: 'Name', show: (s) => company.get(s.ticker) || '–' },
          { label: 'Enabled', show: (s) => flip(s, 'enabled', 'Enable', 'Disable') },
          { label: 'Halted', show: (s) => flip(s, 'halted', 'Halt', 'Resume') },
          { label: 'Restricted', show: (s) => flip(s, 'restricted', 'Restrict', 'Lift the restriction of') }]} />
      <//>
      <${Card} title="Accounts" aside=${`${whole(control.accounts.length)} known`}>
        <div class="filters"><${Field} label="Account" value=${account} onInput=${(v) => change({ account: v.trim() })} inputmode="numeric" /></div>
        <${Table} label="Accounts" rows=${list} most=${50} keyOf=${(a) => a.id} empty="No such account." columns=${[
          { label: 'Account', num: true, key: 'id' }, { label: 'Name', show: (a) => accountName(a.id) || '–' },
          { label: 'Enabled', show: (a) => html`<${Switch} label=${`Enable account ${a.id}`} on=${a.enabled} onChange=${(v) => act({
            title: `${v ? 'Enable' : 'Disable'} account ${a.id}?`, text: '', path: 'risk/control/account', body: () => ({ accountId: a.id, enabled: v }) })} />` }]} />
      <//>
    </div>
    <${Card} title="Acts on record"><${Audit} version=${version} /><//>
    ${ask && html`<${Ask} title=${ask.title} reason need act=${run} onClose=${() => setAsk(null)}>${ask.text && html`<p>${ask.text}</p>`}<//>`}`;
}
