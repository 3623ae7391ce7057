/** Files that the installation has written for people: a list with a link to each. */
import { html, useAsked } from './dom.js';
import { get } from './api.js';
import { instant, whole } from './format.js';
import { Failure, Table } from './parts.js';

export function Files({ folder, label, empty, wants = (_name) => true }) {
  const { answer: rows, error } = useAsked(10_000,
    async () => (await get(`files/${folder}`)).items.filter((f) => wants(f.name)), [folder]);
  if (error && !rows) return html`<${Failure} error=${error} what=${label} />`;
  return html`<${Table} label=${label} rows=${rows} keyOf=${(f) => f.name} empty=${empty} most=${30} columns=${[
    { label: 'File', show: (f) => html`<a href=${`/api/files/${folder}/${f.name}`} download>${f.name}</a>` },
    { label: 'Bytes', num: true, show: (f) => whole(f.bytes) },
    { label: 'Written', show: (f) => instant(f.modified) }]} />`;
}
