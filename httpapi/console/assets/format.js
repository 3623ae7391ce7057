/** Numbers and times as the pages show them. */

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 });

/** A whole number, or an amount with all its digits, in groups of three. @param {any} n */
export const whole = (n) => (n === null || n === undefined ? '–' : grouped.format(n));

/** @param {number} digits */
const fixed = (digits) => new Intl.NumberFormat('en-US',
  { minimumFractionDigits: digits, maximumFractionDigits: digits });
const formats = new Map();

/** A number with so many digits after the point. @param {any} n @param {number} digits */
export function decimal(n, digits = 2) {
  if (n === null || n === undefined || !Number.isFinite(Number(n))) return '–';
  if (!formats.has(digits)) formats.set(digits, fixed(digits));
  return formats.get(digits).format(n);
}

/** How many digits after the point a price has. @param {any} price */
export function digitsOf(price) {
  if (price === null || price === undefined) return 0;
  const text = String(price);
  if (text.includes('e')) return 6;
  const point = text.indexOf('.');
  return point < 0 ? 0 : Math.min(6, text.length - point - 1);
}

/** The digits that show every one of these prices in full, at least two. @param {any[]} prices */
export function commonDigits(prices) {
  let most = 2;
  for (const price of prices) most = Math.max(most, digitsOf(price));
  return most;
}

const zoned = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short' });

/** The zone in which this browser shows times. */
export const zone = zoned.resolvedOptions().timeZone || 'local';

/** Its offset at a moment, as GMT+1. @param {Date} d */
const offset = (d) => zoned.formatToParts(d).find((part) => part.type === 'timeZoneName')?.value || zone;

/** The date of a moment in a zone, as yyyy-mm-dd. @param {Date|number} at @param {string|undefined} timeZone */
export const dateIn = (at, timeZone) => new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' }).format(at);

const pad = (n, size = 2) => String(n).padStart(size, '0');

/** The time of day with milliseconds; the date before it when it is another day. @param {any} at */
export function clock(at) {
  if (!at) return '–';
  const d = new Date(at);
  if (Number.isNaN(d.getTime())) return '–';
  const time = `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}.${
    pad(d.getMilliseconds(), 3)}`;
  return new Date().toDateString() === d.toDateString() ? time : `${day(d)} ${time}`;
}

/** The date in this browser's zone. @param {Date} d */
export function day(d) { return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`; }

/** Date, time and zone. @param {any} at */
export function instant(at) {
  if (!at) return '–';
  const d = new Date(at);
  return Number.isNaN(d.getTime()) ? '–' : `${day(d)} ${pad(d.getHours())}:${pad(d.getMinutes())}:${
    pad(d.getSeconds())}.${pad(d.getMilliseconds(), 3)} ${offset(d)}`;
}

/** How long ago, in words. @param {number} ms */
export function age(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

/** A duration of seconds with three significant digits. @param {any} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return '–';
  if (seconds === 0) return '0 s';
  for (const [unit, factor] of /** @type {[string, number][]} */ ([['s', 1], ['ms', 1e3], ['µs', 1e6]])) {
    const n = seconds * factor;
    if (n >= 1 || unit === 'µs') return `${n >= 100 ? n.toFixed(0) : n.toPrecision(3)} ${unit}`;
  }
  return '–';
}

/** So many of something. @param {number} n @param {string} one */
export const counted = (n, one) => `${whole(n)} ${one}${n === 1 ? '' : 's'}`;

/** What is said of a list that goes on; nothing of a whole one. @param {{items: any[], more: boolean}|null|undefined} list */
export const cut = (list, end = 'first') => (list?.more ? `the ${end} ${whole(list.items.length)}` : '');

/** A share as a percentage. @param {number} part */
export const percent = (part) => `${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %`;

/** A status as words. @param {any} status */
export const words = (status) => String(status ?? '–').toLowerCase().replaceAll('_', ' ');
