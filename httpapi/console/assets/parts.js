/** What the pages are made of: fields, tables, dialogs, states. */
import { html, useId, useLayoutEffect, useRef, useState } from './dom.js';
import { Problem } from './api.js';
import { instant, words } from './format.js';

/** A labelled field. children is its input. */
export function Field({ label, name, value, onInput, type = 'text', list, options, hint, wide, ...rest }) {
  const id = useId();
  const change = (e) => onInput(e.target.value);
  return html`<div class=${`field${wide ? ' all' : ''}`}>
    <label for=${id}>${label}</label>
    ${options
      ? html`<select id=${id} name=${name} value=${value} onChange=${change} ...${rest}>
          ${options.map(([v, text]) => html`<option value=${v} selected=${v === value}>${text}</option>`)}
        </select>`
      : html`<input id=${id} name=${name} type=${type} value=${value} onInput=${change}
          list=${list ? `${id}-list` : undefined} autocomplete="off" spellcheck=${false} ...${rest} />`}
    ${list && html`<datalist id=${`${id}-list`}>
      ${list.map(([v, text]) => html`<option value=${v}>${text}</option>`)}</datalist>`}
    ${hint && html`<span class="hint">${hint}</span>`}
  </div>`;
}

/** A word with the colour of its meaning; the word alone says it too. */
export function Tag({ kind = '', children }) { return html`<span class=${`tag ${kind}`}>${children}</span>`; }

/** A moment in a table: where there is no room, its time goes below its date. */
export function When({ at }) {
  const [date, ...rest] = instant(at).split(' ');
  return html`<span class="when"><span>${date}</span> <span>${rest.join(' ')}</span></span>`;
}

const kinds = {
  FILLED: 'good', SETTLED: 'good', NEW: 'open', PARTIALLY_FILLED: 'open', PROCESSING: 'open',
  REJECTED: 'bad', FAILED: 'bad', CANCELED: 'quiet',
};
/** The status of an order or a trade. */
export const Status = ({ of }) => html`<${Tag} kind=${kinds[String(of).toUpperCase()] || ''}>${words(of)}<//>`;

/** Buy or Sell. */
export const Side = ({ of }) => html`<span class=${of === 'Buy' ? 'buy' : 'sell'}>${of}</span>`;

/** What is shown where nothing is. */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** What is shown until the first answer. */
export const Loading = ({ what }) => html`<p class="empty" role="status">Reading ${what}…</p>`;

/** What a request that failed says. */
export function Failure({ error, what }) {
  if (!error) return null;
  if (error instanceof Problem && error.absent) {
    return html`<p class="empty">${what} is not available in this build.</p>`;
  }
  if (error instanceof Problem && error.status === 403) {
    return html`<p class="empty">This token may not see ${what.replace(/^The /, 'the ')}.</p>`;
  }
  return html`<p class="failure" role="alert">${what}: ${error.message}${
    error.code ? html` <code>${error.code}</code>` : ''}</p>`;
}

/**
 * A table of some hundred rows. Columns: {key, label, num, wrap, show(row)}. With onOpen, Enter
 * or a click on a row opens it, and the arrow keys go from row to row.
 */
export function Table({ label, columns, rows, keyOf, onOpen, empty, most = 300, rowClass, fit }) {
  const [limit, setLimit] = useState(most);
  const focused = useRef(/** @type {{key: any, row: HTMLElement}|null} */ (null));
  const body = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => { // a row that has come anew has the focus that it had
    const had = focused.current;
    if (!had || had.row.isConnected || document.activeElement !== document.body) return;
    const again = [...body.current?.children || []].find((r) => /** @type {HTMLElement} */ (r).dataset.key === had.key);
    if (again instanceof HTMLElement) again.focus({ preventScroll: true });
  });
  if (!rows) return html`<${Loading} what=${label.toLowerCase()} />`;
  const shown = rows.slice(0, limit);
  const press = (e, row) => {
    if (e.target !== e.currentTarget) return;
    if (e.key === 'Enter' || e.key === ' ') {
      e.preventDefault();
      onOpen(row);
    } else if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      const next = e.key === 'ArrowDown' ? e.currentTarget.nextElementSibling
        : e.currentTarget.previousElementSibling;
      if (next) { e.preventDefault(); next.focus(); }
    }
  };
  return html`<div class=${`scroll${fit ? ' fit' : ''}`} tabindex="0" role="region" aria-label=${label}>
    <table aria-label=${label}>
      <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.num ? 'num' : ''}>${c.label}</th>`)}</tr></thead>
      <tbody ref=${body}>
        ${shown.map((row) => html`<tr key=${keyOf(row)} data-key=${keyOf(row)} class=${`${onOpen ? 'opens' : ''} ${rowClass ? rowClass(row) : ''}`}
            tabindex=${onOpen ? 0 : undefined} onClick=${onOpen && ((e) => {
              if (!e.target.closest('button,a,input,select')) onOpen(row);
            })} onKeyDown=${onOpen && ((e) => press(e, row))}
            onFocus=${onOpen && ((e) => { focused.current = { key: e.currentTarget.dataset.key, row: e.currentTarget }; })}
            onBlur=${onOpen && ((e) => { if (e.relatedTarget) focused.current = null; })}>
          ${columns.map((c) => html`<td class=${c.num ? 'num' : c.wrap ? 'wrap' : ''}>${c.show ? c.show(row) : row[c.key] ?? '–'}</td>`)}
        </tr>`)}
      </tbody>
    </table>
    ${!rows.length && html`<${Empty}>${empty || 'Nothing here.'}<//>`}
    ${rows.length > limit && html`<p class="more"><button onClick=${() => setLimit(limit * 4)}>Show more of ${rows.length}</button></p>`}
  </div>`;
}

/** Names and values. */
export function Facts({ of }) {
  return html`<dl class="facts">${of.filter(Boolean).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value ?? '–'}</dd></div>`)}</dl>`;
}

/** A dialog; Escape closes it. */
export function Dialog({ title, onClose, side, children }) {
  const ref = useRef(null);
  const id = useId();
  useLayoutEffect(() => { // at once: the next key is for the dialog
    const back = document.activeElement, dialog = ref.current;
    dialog.showModal();
    return () => {
      dialog.close(); // while it is open, nothing behind it takes the focus
      if (back instanceof HTMLElement && back.isConnected) back.focus();
    };
  }, []);
  return html`<dialog ref=${ref} aria-labelledby=${id} class=${side ? 'side' : ''}
      onCancel=${(e) => { e.preventDefault(); onClose(); }}>
    <header><h2 id=${id} tabindex="-1" autofocus=${!!side}>${title}</h2>
      <button class="plain" aria-label="Close" onClick=${onClose}>✕</button></header>
    ${children}
  </dialog>`;
}

/**
 * A question with Confirm. With reason a text box asks why; act gets it and returns when it is done. Until then the
 * question stays: what becomes of the act is shown here.
 */
export function Ask({ title, children, reason, need, act, onClose }) {
  const [why, setWhy] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const go = async (e) => {
    e.preventDefault();
    if (busy) return;
    if (reason && need && !why.trim()) {
      setError(new Error('Reason: say why'));
      return;
    }
    setBusy(true);
    setError(null);
    try {
      await act(why.trim());
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${() => { if (!busy) onClose(); }}>
    <form onSubmit=${go}>
      ${children}
      ${reason && html`<${Field} label="Reason" value=${why} onInput=${setWhy} maxlength="200"
        required=${!!need} autofocus />`}
      ${error && html`<p class="failure" role="alert">${error.message}</p>`}
      <footer><button type="button" disabled=${busy} onClick=${onClose}>Keep as it is</button>
        <button class="primary" type="submit" disabled=${busy}>${busy ? 'Working…' : 'Confirm'}</button></footer>
    </form>
  <//>`;
}

/** A switch. */
export function Switch({ label, on, onChange, disabled, bad }) {
  return html`<button role="switch" class=${`switch ${bad ? 'bad' : ''}`} aria-checked=${on ? 'true' : 'false'}
    aria-label=${label} disabled=${disabled} onClick=${() => onChange(!on)}><span></span>${on ? 'on' : 'off'}</button>`;
}

/** A line of the last values; the figure beside it says the same in words. */
export function Spark({ values, width = 150, height = 34 }) {
  const known = values.filter((v) => v !== null);
  if (known.length < 2) return html`<svg class="spark" width=${width} height=${height} aria-hidden="true"></svg>`;
  const low = Math.min(0, ...known), high = Math.max(...known), span = high - low || 1;
  const step = width / (values.length - 1);
  let path = '', down = false;
  values.forEach((v, i) => {
    if (v === null) { down = false; return; }
    path += `${down ? 'L' : 'M'}${(i * step).toFixed(1)} ${(height - 2 - ((v - low) / span) * (height - 4)).toFixed(1)}`;
    down = true;
  });
  return html`<svg class="spark" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} aria-hidden="true">
    <path d=${path} /></svg>`;
}

/** A part of a page with a heading. */
export function Card({ title, aside, children, wide }) {
  const id = useId();
  return html`<section class=${`card${wide ? ' wide' : ''}`} aria-labelledby=${id}>
    <header><h2 id=${id}>${title}</h2>${aside && html`<div class="aside">${aside}</div>`}</header>${children}</section>`;
}
