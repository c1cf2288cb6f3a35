/** How numbers, times and names are written. */

const grouped = new Intl.NumberFormat('en-GB');
export const number = (value: number): string => grouped.format(value).replace(/,/g, ',');

/** A count never stands without its noun: `1 step`, `3 steps`. */
export function count(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

export function duration(ms: number | undefined | null): string {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return '–';
  if (ms < 100) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${trim(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return pair(Math.floor(seconds / 60), 'min', seconds % 60, 's', seconds < 600);
  const minutes = Math.round(seconds / 60);
  if (minutes < 2880) return pair(Math.floor(minutes / 60), 'h', minutes % 60, 'min', true);
  const hours = Math.round(minutes / 60);
  return pair(Math.floor(hours / 24), 'days', hours % 24, 'h', hours < 240);
}

const trim = (seconds: number): string => (seconds < 30 ? seconds.toFixed(1) : String(Math.round(seconds)));
const pair = (big: number, unit: string, small: number, smaller: string, both: boolean): string =>
  small && both ? `${big} ${unit} ${small} ${smaller}` : `${big} ${unit}`;

export const instant = (text: string | undefined): number => (text ? Date.parse(text) : Number.NaN);

export function clock(text: string | undefined, withSeconds = true): string {
  const at = instant(text);
  if (Number.isNaN(at)) return '–';
  const options: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  if (withSeconds) options.second = '2-digit';
  return new Date(at).toLocaleTimeString('en-GB', options);
}

const DAY = 86_400_000;

/** Relative under 12 hours, else the day and the time. */
export function when(text: string | undefined, now = Date.now()): string {
  const at = instant(text);
  if (Number.isNaN(at)) return '–';
  const ago = now - at;
  if (ago < -5_000) return `in ${roughly(-ago)}`;
  if (ago < 5_000) return 'just now';
  if (ago < DAY / 2) return `${roughly(ago)} ago`;
  return day(text);
}

export function day(text: string | undefined): string {
  const at = instant(text);
  if (Number.isNaN(at)) return '–';
  const date = new Date(at);
  const sameYear = date.getFullYear() === new Date().getFullYear();
  const options: Intl.DateTimeFormatOptions = { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  if (!sameYear) options.year = 'numeric';
  return date.toLocaleString('en-GB', options).replace(',', '');
}

export function roughly(ms: number): string {
  if (ms < 60_000) return `${Math.max(1, Math.round(ms / 1000))} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  const minutes = Math.round(ms / 60_000);
  if (ms < 2 * DAY) return minutes % 60 && ms < DAY ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.round(minutes / 60)} h`;
  return `${Math.round(ms / DAY)} days`;
}

export const exact = (text: string | undefined): string => (text ? text.replace('T', ' ').replace(/(\.\d{1,3})\d*Z$/, '$1Z').replace('Z', ' UTC') : '');

/** `person:ada` is ada, `agent:claude` is claude; handrail and its workers are handrail. */
export function actor(name: string | undefined): string {
  if (!name) return '';
  if (name.startsWith('worker:') || name === 'handrail') return 'handrail';
  return name.replace(/^(person|agent):/, '');
}
export const isPerson = (name: string | undefined): boolean => !!name?.startsWith('person:');
export const isAgent = (name: string | undefined): boolean => !!name?.startsWith('agent:');

export const short = (hash: string | undefined, length = 8): string => (hash ?? '').replace(/^sha256:/, '').slice(0, length);

export function listed(words: readonly string[], most = 4): string {
  if (words.length <= 1) return words[0] ?? '';
  if (words.length > most) return `${words.slice(0, most - 1).join(', ')} and ${words.length - most + 1} more`;
  return `${words.slice(0, -1).join(', ')} and ${words[words.length - 1]}`;
}

/** What is asked, and what was said about it below: a title is one line. */
export function headed(text: string): readonly [string, string] {
  const [head = '', ...rest] = text.trim().split('\n');
  return [head, rest.join('\n').trim()];
}

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
export const spaced = (word: string): string => word.replace(/_/g, ' ');

/** A word as a shell argument. */
export const shell = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`);

export interface Said {
  text: string;
  /** The code that came with it, as 403. */
  code: string;
  host: string;
}

/** A tool's error apart: `403 from store.example: {"error": "token expired"}` says token expired. */
export function said(message: string | undefined): Said {
  const found = /^(\d{3}) from (\S+?)(?::\s*([\s\S]*))?$/.exec(message ?? '');
  if (!found) return { text: message ?? '', code: '', host: '' };
  return { code: found[1]!, host: found[2]!, text: inside(found[3] ?? '') || `answered ${found[1]}` };
}

function inside(body: string): string {
  try {
    const data = JSON.parse(body) as Record<string, unknown>;
    const words = data.error ?? data.message ?? data.detail ?? data.title;
    if (typeof words === 'string') return words;
    if (words && typeof words === 'object') return inside(JSON.stringify(words));
  } catch {
    return body; // not JSON: it is the words themselves
  }
  return body;
}
