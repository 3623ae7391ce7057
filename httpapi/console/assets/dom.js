/** The view library under one name, and the few hooks that every page uses. */
import {
  Component, createContext, h, html, render, useCallback, useContext, useEffect, useLayoutEffect,
  useMemo, useReducer, useRef, useState,
} from './vendor/htm-preact-3.1.1.js';

export {
  Component, createContext, h, html, render, useCallback, useContext, useEffect, useLayoutEffect,
  useMemo, useReducer, useRef, useState,
};

/**
 * A value that several components show.
 * @template T
 */
export class Store {
  /** @param {T} value */
  constructor(value) {
    this.value = value;
    /** @type {Set<() => void>} */
    this.readers = new Set();
  }

  /** @param {T} value */
  set(value) {
    if (value === this.value) return;
    this.value = value;
    for (const tell of [...this.readers]) tell();
  }

  /** @param {Partial<T>} part */
  merge(part) { this.set({ ...this.value, ...part }); }
}

/**
 * The value of a store; the component is drawn again when it changes.
 * @template T
 * @param {Store<T>} store
 * @returns {T}
 */
export function useStore(store) {
  const [, again] = useReducer((n) => n + 1, 0);
  useLayoutEffect(() => {
    const tell = () => again(0);
    store.readers.add(tell);
    return () => { store.readers.delete(tell); };
  }, [store]);
  return store.value;
}

/**
 * Calls work now and after every pause, never twice at a time. go calls it at once; a call that is under way may have
 * looked before what has changed, so that it is made once more.
 * @param {() => any} work @param {() => number} pause in ms
 */
export function repeat(work, pause) {
  let stopped = false, busy = false, missed = false, timer = 0;
  const go = async () => {
    clearTimeout(timer);
    if (stopped) return;
    if (busy) { missed = true; return; }
    busy = true;
    try { await work(); } catch { /* shown by the caller */ }
    busy = false;
    if (stopped) return;
    timer = setTimeout(go, missed ? 0 : pause());
    missed = false;
  };
  go();
  return { go, stop: () => { stopped = true; clearTimeout(timer); } };
}

/**
 * Calls work now and every ms while the page is visible; again() calls it at once. Its signal is aborted when the
 * component has gone or deps have changed: what comes then belongs to nothing that is shown.
 * @param {number} ms @param {(signal: AbortSignal) => any} work @param {any[]} deps
 */
export function useEvery(ms, work, deps) {
  const latest = useRef(work);
  latest.current = work;
  const run = useRef(/** @type {() => void} */ (() => {}));
  useEffect(() => {
    const ended = new AbortController();
    const loop = repeat(() => (document.hidden ? undefined : latest.current(ended.signal)), () => ms);
    run.current = loop.go;
    const seen = () => { if (!document.hidden) loop.go(); };
    document.addEventListener('visibilitychange', seen);
    return () => {
      ended.abort();
      loop.stop();
      document.removeEventListener('visibilitychange', seen);
    };
  }, deps);
  return useCallback(() => run.current(), []);
}

/**
 * What ask answers, now and every ms while the page is visible. answer is the newest one, own the same unless it was to
 * another question (deps have changed since), error what failed last. An answer to a question that is no longer asked is
 * dropped, whenever it comes. ask gets own: where the answer cannot change, it returns that.
 * @param {number} ms @param {(own: any, signal: AbortSignal) => Promise<any>} ask @param {any[]} deps
 * @returns {{answer: any, own: any, error: any, again: () => void}}
 */
export function useAsked(ms, ask, deps) {
  const key = JSON.stringify(deps);
  const [got, set] = useState(/** @type {any} */ ({ of: '', answer: null, failed: '', error: null }));
  const own = got.of === key ? got.answer : null;
  const again = useEvery(ms, async (signal) => {
    try {
      const answer = await ask(own, signal);
      if (!signal.aborted && (answer !== own || got.error)) set({ of: key, answer, failed: '', error: null });
    } catch (error) {
      if (!signal.aborted) set((/** @type {any} */ last) => ({ ...last, failed: key, error }));
    }
  }, [key]);
  return { answer: got.answer, own, error: got.failed === key ? got.error : null, again };
}

let ids = 0;
/** An id for a label and its field. */
export function useId() {
  const ref = useRef('');
  if (!ref.current) ref.current = `f${++ids}`;
  return ref.current;
}

/**
 * A value that has stopped changing: what is typed is asked for when the typing pauses.
 * @template T
 * @param {T} value @returns {T}
 */
export function useSettled(value, ms = 250) {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), ms);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
