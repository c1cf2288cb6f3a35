/** A definition as its author would write it: YAML, with line numbers. */
import type { JSX } from 'preact';

const PLAIN = /^[A-Za-z_/][\w ./@-]*$/;
const WORDS = /^(true|false|null|yes|no|on|off|y|n)$/i;

function scalar(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(scalar).join(', ')}]`;
  const isPlain = typeof value === 'string' && PLAIN.test(value) && !WORDS.test(value) && !value.endsWith(' ');
  return isPlain ? value : JSON.stringify(value);
}

const isInner = (value: unknown): value is object => value !== null && typeof value === 'object' && Object.keys(value).length > 0;
const isLong = (value: unknown): value is string => typeof value === 'string' && /^[^\s][^]*\n/.test(value) && !/\n\n$|[\r\t]| \n| $/.test(value);

/** The lines of a value, each with its own indent; what is empty, short or simple stands in one. */
function lines(value: unknown, indent: string): string {
  if (isLong(value)) return `|${value.endsWith('\n') ? '' : '-'}\n${value.replace(/\n$/, '').replace(/^(?=.)/gm, `${indent}  `)}`;
  if (!isInner(value)) return scalar(value);
  if (Array.isArray(value)) {
    if (!value.some(isInner) && !value.some(isLong) && scalar(value).length < 90) return scalar(value);
    return value.map((one) => `\n${indent}- ${isInner(one) && !Array.isArray(one) ? lines(one, `${indent}  `).trimStart() : lines(one, `${indent}  `)}`).join('');
  }
  return Object.entries(value)
    .map(([name, one]) => `\n${indent}${scalar(name)}: ${lines(one, isInner(one) ? `${indent}  ` : indent)}`)
    .join('');
}

/** What a definition is comes before what it does. */
const LAST = ['steps', 'outputs'];
const headFirst = (value: unknown): unknown => (isInner(value) && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => LAST.indexOf(a) - LAST.indexOf(b))) : value);

export const yaml = (value: unknown): string => lines(headFirst(value), '').trimStart().replace(/: +$/gm, ':');

export function Source({ text }: { text: string }): JSX.Element {
  return (
    <div class="card source">
      <pre class="lines" aria-hidden>
        {text
          .split('\n')
          .map((_, index) => index + 1)
          .join('\n')}
      </pre>
      <pre style={{ whiteSpace: 'pre', overflowX: 'auto' }} tabIndex={0}>
        {text}
      </pre>
    </div>
  );
}
