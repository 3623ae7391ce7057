/** The verifier of proofs, reports and exports: the same code as `posttrade evidence verify`, as WebAssembly. It is loaded
 * when the first file is verified; from then on it works without a network. */

import { session } from './api.js';

/** @typedef {{exit: number, text: string}} Verdict */
/** @type {Promise<any>|undefined} */
let loaded;

/** @type {WebAssembly.Module} */
let module;

/** Starts the verifier. One that has run out of memory ends; the next file starts another. */
async function begin() {
  const go = new /** @type {any} */ (window).Go();
  go.run(await WebAssembly.instantiate(module, go.importObject)).then(() => { loaded = undefined; });
  return window;
}

async function load() {
  if (module) return begin(); // without a network

  const script = document.createElement('script');
  script.src = '/assets/verify/wasm_exec.js';
  await new Promise((done, failed) => {
    script.onload = done;
    script.onerror = () => failed(new Error('the verifier was not loaded'));
    document.head.append(script);
  });
  const answer = await fetch('/assets/verify/verify.wasm');
  if (!answer.ok) throw new Error('the verifier is not in this build');
  module = await WebAssembly.compileStreaming(answer);
  return begin();
}

/** Has the verifier here, so that it works when the network has gone. */
export function prepare() {
  if (!session.value?.prover) return Promise.reject(new Error('The verifier is not in this build.'));
  loaded ||= load().catch((error) => { loaded = undefined; throw error; });
  return loaded;
}

/** @param {Uint8Array} file @param {string} keys @param {string} witnesses @returns {Promise<Verdict>} */
export async function verify(file, keys, witnesses) { return (await prepare()).posttradeVerify(file, keys, witnesses); }

/**
 * Verifies an export, and a report against it.
 * @param {{name: string, files: [string, Uint8Array][]}} folder @param {string} keys @param {string} witnesses
 * @param {{name: string, data: Uint8Array}} [report] @returns {Promise<Verdict>}
 */
export async function verifyExport(folder, keys, witnesses, report) {
  return (await prepare()).posttradeVerifyExport(folder.name, folder.files, keys, witnesses, report?.data, report?.name);
}

/** A report is one object with its range, or a record a line. @param {Uint8Array} data */
export const isReport = (data) => /^\{"(fromSeq|kind)":/.test(new TextDecoder().decode(data.subarray(0, 12)));

/**
 * The files of a folder by their paths in it, which is where bundle.json lies.
 * @param {{path: string, file: File}[]} list @returns {Promise<{name: string, files: [string, Uint8Array][]}>}
 */
export async function readFolder(list) {
  const manifest = list.map((f) => f.path).filter((p) => /(^|\/)bundle\.json$/.test(p)).sort((a, b) => a.length - b.length)[0];
  const root = manifest ? manifest.slice(0, -'bundle.json'.length) : '';
  /** @type {[string, Uint8Array][]} */
  const files = [];
  for (const { path, file } of list) {
    if (path.startsWith(root)) files.push([path.slice(root.length), new Uint8Array(await file.arrayBuffer())]);
  }
  return { name: root.slice(0, -1) || list[0]?.path.split('/')[0] || 'the folder', files };
}

/**
 * The files of what was dropped, those of folders too. The entries must be taken before anything is
 * waited for.
 * @param {DataTransfer} dropped @returns {Promise<{path: string, file: File}[]>}
 */
export async function droppedFiles(dropped) {
  const entries = [...dropped.items].map((i) => i.webkitGetAsEntry()).filter(Boolean);
  /** @type {{path: string, file: File}[]} */
  const list = [];
  /** @param {any} entry @param {string} path */
  const walk = async (entry, path) => {
    if (entry.isFile) {
      list.push({ path: path + entry.name, file: await new Promise((done, failed) => entry.file(done, failed)) });
      return;
    }
    const reader = entry.createReader();
    for (;;) { // a reader gives some entries at a time
      const some = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (!some.length) return;
      for (const one of some) await walk(one, `${path}${entry.name}/`);
    }
  };
  for (const entry of entries) await walk(entry, '');
  return list;
}
