/** Addresses: a page is a path, its state the query, so that an address can be sent to a colleague. */
import { html, Store, useStore } from './dom.js';

function read(moved = false) {
  return {
    page: location.pathname.slice(1), query: new URLSearchParams(location.search),
    moved, // by a link of the navigation, not by loading
  };
}

/** Where the browser is. */
export const place = new Store(read());
addEventListener('popstate', () => place.set(read(true)));

/** @param {string} path with its query */
export function go(path) {
  history.pushState(null, '', path);
  place.set(read(true));
  scrollTo(0, 0);
}

/** The address of a page with a state. @param {string} page @param {Record<string, any>} query */
export function at(page, query) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) q.set(name, String(value));
  return `/${page}${q.size ? `?${q}` : ''}`;
}

/** A link to a page; the browser's own ways to open it elsewhere work. */
export function Link({ to, current = false, children, ...rest }) {
  return html`<a href=${to} aria-current=${current ? 'page' : undefined} ...${rest} onClick=${(e) => {
    if (e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(to);
  }}>${children}</a>`;
}

/**
 * The query of this address, and how to change some of it: the address follows, without a new entry
 * in the browser's history unless push.
 * @returns {[(name: string, absent?: string) => string,
 *   (change: Record<string, any>, push?: boolean) => void]}
 */
export function useQuery() {
  const here = useStore(place);
  const read1 = (name, absent = '') => here.query.get(name) ?? absent;
  const change = (some, push = false) => {
    const q = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(some)) {
      if (value === undefined || value === null || value === '') q.delete(name);
      else q.set(name, String(value));
    }
    const path = location.pathname + (q.size ? `?${q}` : '');
    if (push) history.pushState(null, '', path);
    else history.replaceState(null, '', path);
    place.set(read(false));
  };
  return [read1, change];
}
