/** Values that came from tools, agents and people: always text, never markup; cut at 64 kB. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Button } from './kit';

const CUT = 64 * 1024;
const LINES = 400;
export type Flat = readonly (readonly [path: string, text: string])[];

/** A value as lines of `path text`: objects are opened, short lists stay in one line. */
export function flat(value: unknown, prefix = ''): Flat {
  const lines: [string, string][] = [];
  const add = (path: string, inner: unknown, depth: number): void => {
    if (lines.length >= LINES) return;
    const opened = inner !== null && typeof inner === 'object' && Object.keys(inner).length > 0 && depth < 6;
    if (!opened || (Array.isArray(inner) && isShort(inner))) {
      lines.push([path, text(inner)]);
      return;
    }
    for (const [key, child] of Object.entries(inner as object)) {
      const step = Array.isArray(inner) ? `${path}[${key}]` : path ? `${path}.${key}` : key;
      add(step, child, depth + 1);
    }
  };
  add(prefix, value, 0);
  return lines;
}

const isShort = (list: unknown[]): boolean => list.every((one) => one === null || typeof one !== 'object') && JSON.stringify(list).length < 120;
export const text = (value: unknown): string => (value === undefined ? '–' : typeof value === 'string' && value.includes('\n') ? value : JSON.stringify(value));

export function Value({ value, empty = 'Nothing.' }: { value: unknown; empty?: string }): JSX.Element {
  const [all, setAll] = useState(false);
  if (value === undefined || value === null || value === '') return <p class="meta">{empty}</p>;
  const lines = typeof value === 'object' ? flat(value) : [['', text(value)] as const];
  let room = all ? Infinity : CUT;
  let wasCut = lines.length >= LINES;
  const shown = lines.map(([path, words]) => {
    const part = words.slice(0, Math.max(0, room));
    wasCut ||= part.length < words.length;
    room -= part.length;
    return [path, part] as const;
  });
  return (
    <div class="box">
      {shown.length === 1 && !shown[0]![0] ? (
        <pre>{shown[0]![1]}</pre>
      ) : (
        <dl class="values">
          {shown.map(([path, part]) => (
            <>
              <dt>{path}</dt>
              <dd>{part}</dd>
            </>
          ))}
        </dl>
      )}
      {wasCut && !all ? (
        <Button small kind="quiet" onClick={() => setAll(true)}>
          Show all
        </Button>
      ) : null}
    </div>
  );
}
