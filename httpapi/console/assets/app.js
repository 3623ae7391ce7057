/** The shell: which page an address names, who is signed in, whether the server is there. */
import { Component, html, render, useEffect, useLayoutEffect, useRef, useState, useStore } from './dom.js';
import { get, link, refreshSession, session, signIn, signOut } from './api.js';
import { age, whole } from './format.js';
import { Field } from './parts.js';
import { at, go, Link, place } from './route.js';
import { health } from './health.js';
import { metrics } from './history.js';

/** The pages, in the order of the navigation: address, name, module. */
const pages = /** @type {[string, string, () => Promise<any>][]} */ ([
  ['overview', 'Overview', () => import('./pages/overview.js')],
  ['trade', 'Trade', () => import('./pages/trade.js')],
  ['blotter', 'Blotter', () => import('./pages/blotter.js')],
  ['positions', 'Positions', () => import('./pages/positions.js')],
  ['reconciliation', 'Reconciliation', () => import('./pages/reconciliation.js')],
  ['settlement', 'Settlement', () => import('./pages/settlement.js')],
  ['tca', 'TCA', () => import('./pages/tca.js')],
  ['contracts', 'Contracts', () => import('./pages/contracts.js')],
  ['controls', 'Controls', () => import('./pages/controls.js')],
  ['time', 'Time', () => import('./pages/time.js')],
  ['evidence', 'Evidence', () => import('./pages/evidence.js')],
  ['cluster', 'Cluster', () => import('./pages/cluster.js')],
  ['latency', 'Latency', () => import('./pages/latency.js')],
]);

function SignIn() {
  const s = useStore(session);
  const [token, setToken] = useState('');
  const [error, setError] = useState('');
  const oneClick = !!s?.oneClick;
  const submit = async (e) => {
    e.preventDefault();
    setError('');
    try {
      await signIn(token.trim());
    } catch (failure) {
      setError(/** @type {Error} */ (failure).message);
    }
  };
  return html`<main class="card signin"><h1>Sign in</h1>
    ${s?.ended && html`<p class="failure" role="alert">The session has ended: its token has expired or was revoked.</p>`}
    <p class="note">${oneClick
      ? 'This installation runs in the dev profile: one click makes an admin token for this browser.'
      : 'Paste an access token. It stays in a cookie that no script can read, until it expires.'}</p>
    <form onSubmit=${submit}>
      ${!oneClick && html`<${Field} label="Token" value=${token} onInput=${setToken} required autofocus />`}
      <button class="primary" type="submit" autofocus=${oneClick}>Sign in</button>
      ${oneClick && html`<details><summary>Use a token instead</summary>
        <${Field} label="Token" value=${token} onInput=${setToken} /></details>`}
      ${error && html`<p class="failure" role="alert">${error}</p>`}
    </form></main>`;
}

/** Says that the server is not there, and how old the figures are. */
function Banner() {
  const { live, seenAt, because } = useStore(link);
  const [, again] = useState(0);
  useEffect(() => {
    if (live) return undefined;
    const timer = setInterval(() => again((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, [live]);
  if (live) return null;
  return html`<div class="banner" role="alert">Disconnected: ${because}. The figures are
    ${' '}${age(Date.now() - seenAt)} old; the page goes on by itself.</div>`;
}

function Top() {
  const s = useStore(session), h = useStore(health), m = useStore(metrics);
  return html`<div class="top" role="banner"><span class="brand">posttrade</span>
    <div class="state">
      ${h && html`<span>${h.role === 'SINGLE' ? 'single node' : String(h.role).toLowerCase()}</span>
      <span>durability <b>${h.durability}</b></span>
      <span>sequence <b>${whole(h.durable)}</b></span>
      ${h.role !== 'SINGLE' && !h.leader && html`<span class="sell">no leader: the figures may be old</span>`}`}
      ${m.svc_kill_switch === 1 && html`<span class="sell">kill switch on</span>`}
    </div>
    <div class="who"><span>${s?.subject}${s?.admin ? ' (admin)' : ''}</span>
      <button class="small" onClick=${() => signOut().catch(refreshSession)}>Sign out</button></div></div>`;
}

/** Keeps a page that cannot be drawn from taking the shell with it. */
class Guard extends Component {
  /** @type {{error: any}} */
  state = { error: null };

  componentDidCatch(error) {
    console.error(error);
    this.setState({ error });
  }

  componentDidUpdate(before) {
    if (before.page !== this.props.page && this.state.error) this.setState({ error: null });
  }

  render() {
    return this.state.error
      ? html`<p class="failure" role="alert">This page cannot be drawn: ${String(this.state.error.message)}</p>`
      : this.props.children;
  }
}

function Page({ name, title, load }) {
  const [module, setModule] = useState(null);
  const [error, setError] = useState(null);
  const heading = useRef(null);
  useLayoutEffect(() => { // at once: a key that comes next goes on from here
    document.title = `${title} · posttrade`;
    if (place.value.moved) heading.current?.focus();
  }, [name]);
  useEffect(() => {
    let gone = false;
    setModule(null);
    setError(null);
    load().then((m) => { if (!gone) setModule(m); }, (e) => { if (!gone) setError(e); });
    return () => { gone = true; };
  }, [name]);
  return html`<main id="main"><header><h1 ref=${heading} tabindex="-1">${title}</h1>
      ${module?.lead && html`<p>${module.lead}</p>`}</header>
    ${error && html`<p class="failure" role="alert">The page was not loaded: ${error.message}</p>`}
    ${!module && !error && html`<p class="empty" role="status">Loading ${title}…</p>`}
    ${module && html`<${Guard} page=${name}><${module.default} /><//>`}</main>`;
}

function Shell() {
  const s = useStore(session), here = useStore(place);
  useEffect(() => { refreshSession(); }, []);
  useEffect(() => {
    if (s) return undefined;
    const timer = setInterval(refreshSession, 1000);
    return () => clearInterval(timer);
  }, [!s]);
  if (!s) return html`<main class="card signin"><h1>posttrade</h1><${Banner} /><p role="status">Connecting…</p></main>`;
  if (!s.signedIn) return html`<${Banner} /><${SignIn} />`;
  const known = pages.find(([name]) => name === here.page) || pages[0];
  return html`<div class="shell"><a class="skip" href="#main">To the content</a>
    <${Top} /><${Banner} />
    <nav aria-label="Pages"><ul>${pages.map(([name, title]) => html`<li>
      <${Link} to=${`/${name}`} current=${name === known[0]}>${title}<//></li>`)}</ul></nav>
    <${Page} key=${known[0]} name=${known[0]} title=${known[1]} load=${known[2]} /></div>`;
}

// An Enter that is held does what one Enter does.
addEventListener('keydown', (e) => { if (e.key === 'Enter' && e.repeat) e.preventDefault(); }, true);

render(html`<${Shell} />`, /** @type {any} */ (document.getElementById('app')));
