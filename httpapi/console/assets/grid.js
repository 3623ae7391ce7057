/** A table of any length: only the rows in sight are in the document. */
import './vendor/regular-table-0.9.2.js';
import { html, useEffect, useRef } from './dom.js';

/**
 * Of a row, key is what names it: rows that come above it move it, and it stays the chosen one.
 * @typedef {{label: string, num?: boolean, show: (row: any) => string, className?: (row: any) => string}} Column
 * @param {{label: string, columns: Column[], count: () => number,
 *   rows: (from: number, to: number) => Promise<any[]>, onOpen: (row: any) => void, version: any,
 *   keyOf: (row: any) => any}} props
 */
export function Grid({ label, columns, count, rows, onOpen, version, keyOf }) {
  const ref = useRef(null);
  const now = useRef(/** @type {any} */ ({}));
  Object.assign(now.current, { columns, count, rows, onOpen });
  const state = useRef({ selected: 0, key: /** @type {any} */ (undefined), shown: /** @type {any[]} */ ([]), from: 0 }).current;
  const choose = (at) => {
    state.selected = at;
    const row = state.shown[at - state.from];
    state.key = row ? keyOf(row) : undefined;
  };
  useEffect(() => {
    const table = ref.current;
    table.setDataListener(async (x0, y0, x1, y1) => {
      const { columns: cols, count: total, rows: read } = now.current;
      const part = cols.slice(x0, x1);
      state.shown = await read(y0, Math.min(y1, total()));
      state.from = y0;
      const moved = state.key === undefined ? -1 : state.shown.findIndex((row) => row && keyOf(row) === state.key);
      if (moved >= 0) state.selected = y0 + moved;
      return {
        num_rows: total(), num_columns: cols.length,
        column_headers: part.map((c) => [c.label]),
        data: part.map((c) => state.shown.map((row) => (row ? c.show(row) : '…'))),
      };
    });
    table.addStyleListener(() => {
      const cols = now.current.columns;
      const inner = table.querySelector('table');
      inner.setAttribute('role', 'grid');
      inner.setAttribute('aria-label', now.current.label || label);
      inner.setAttribute('aria-rowcount', String(now.current.count() + 1));
      for (const th of inner.querySelectorAll('thead th')) {
        const meta = table.getMeta(th);
        if (meta) th.className = cols[meta.x]?.num ? 'num' : '';
      }
      for (const td of inner.querySelectorAll('tbody td')) {
        const meta = table.getMeta(td);
        if (!meta) continue;
        const row = state.shown[meta.y - state.from], col = cols[meta.x];
        td.className = `${col?.num ? 'num ' : ''}${row && col?.className ? col.className(row) : ''}`;
        if (meta.x === 0) {
          const tr = td.parentElement;
          tr.tabIndex = -1; // Enter opens a row that was given the focus
          tr.setAttribute('aria-rowindex', String(meta.y + 2));
          tr.classList.toggle('selected', meta.y === state.selected);
          tr.setAttribute('aria-selected', String(meta.y === state.selected));
          if (meta.y === state.selected && table.contains(document.activeElement?.closest('tbody tr'))) tr.focus({ preventScroll: true });
        }
      }
    });
    table.draw();
    return () => table.clear?.();
  }, []);
  useEffect(() => { ref.current.draw({ invalid_columns: false }); }, [version]);

  const move = async (to) => {
    choose(Math.max(0, Math.min(count() - 1, to)));
    const table = ref.current;
    const rowsInSight = Math.max(1, state.shown.length - 2);
    if (state.selected < state.from || state.selected >= state.from + rowsInSight) {
      const top = state.selected < state.from ? state.selected : state.selected - rowsInSight + 1;
      await table.scrollToCell(0, Math.max(0, top), columns.length, count());
    }
    await table.draw();
    choose(state.selected);
  };
  const focus = (e) => { // the row that has it is the chosen one, whichever element shows it later
    const row = e.target.closest?.('tbody tr');
    const at = row && Number(row.getAttribute('aria-rowindex')) - 2;
    if (row && at !== state.selected) choose(at);
  };
  const press = (e) => {
    if (e.target.closest?.('tbody tr')) ref.current.focus({ preventScroll: true });
    const page = Math.max(1, state.shown.length - 3);
    const to = /** @type {Record<string, number>} */ ({
      ArrowDown: state.selected + 1, ArrowUp: state.selected - 1, PageDown: state.selected + page,
      PageUp: state.selected - page, Home: 0, End: count() - 1,
    })[e.key];
    if (to !== undefined) {
      e.preventDefault();
      move(to);
    } else if (e.key === 'Enter') {
      e.preventDefault();
      openAt(state.selected);
    }
  };
  const openAt = async (i) => {
    const row = state.shown[i - state.from] || (await rows(i, i + 1))[0];
    if (row) onOpen(row);
  };
  const click = (e) => {
    const td = e.target.closest?.('td');
    const meta = td && ref.current.getMeta(td);
    if (meta) {
      choose(meta.y);
      ref.current.draw();
      openAt(meta.y);
    }
  };
  return html`<div class="gridbox"><regular-table ref=${ref} tabindex="0" aria-label=${label} role="region" onKeyDown=${press} onClick=${click} onfocusin=${focus}></regular-table></div>`;
}
