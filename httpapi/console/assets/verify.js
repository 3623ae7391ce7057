/** The verifier of proofs: the same code as `posttrade evidence verify`, as WebAssembly. It is loaded
 * when the first file is verified; from then on it works without a network. */

import { session } from './api.js';

/** @type {Promise<(file: Uint8Array, keys: string, witnesses: string) => {exit: number, text: string}>|undefined} */
let loaded;

async function load() {
  const script = document.createElement('script');
  script.src = '/assets/verify/wasm_exec.js';
  await new Promise((done, failed) => {
    script.onload = done;
    script.onerror = () => failed(new Error('the verifier was not loaded'));
    document.head.append(script);
  });
  const go = new /** @type {any} */ (window).Go();
  const answer = await fetch('/assets/verify/verify.wasm');
  if (!answer.ok) throw new Error('the verifier is not in this build');
  const { instance } = await WebAssembly.instantiateStreaming(answer, go.importObject);
  go.run(instance);
  return /** @type {any} */ (window).posttradeVerify;
}

/** Has the verifier here, so that it works when the network has gone. */
export function prepare() {
  if (!session.value?.prover) return Promise.reject(new Error('The verifier is not in this build.'));
  loaded ||= load().catch((error) => { loaded = undefined; throw error; });
  return loaded;
}

/** @param {Uint8Array} file @param {string} keys @param {string} witnesses @returns {Promise<{exit: number, text: string}>} */
export async function verify(file, keys, witnesses) { return (await prepare())(file, keys, witnesses); }
