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

/** Calls work now and every ms while the page is visible; again() calls it at once. */
export function useEvery(ms, work,
  deps) {
  const latest = useRef(work);
  latest.current = work;
  const run = useRef(/** @type {() => void} */ (() => {}));
  useEffect(() => {
    let stopped = false, busy = false, missed = false, timer = 0;
    const go = async () => {
      clearTimeout(timer);
      if (stopped) return;
      if (busy) { missed = true; return; }
      busy = true;
      try { if (!document.hidden) await latest.current(); } catch { /* shown by the caller */ }
      busy = false;
      if (stopped) return;
      timer = setTimeout(go, missed ? 0 : ms);
      missed = false;
    };
    run.current = go;
    const seen = () => { if (!document.hidden) go(); };
    document.addEventListener('visibilitychange', seen);
    go();
    return () => {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, deps);
  return useCallback(() => run.current(), []);
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
