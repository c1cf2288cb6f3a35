/** A list under the pointer or the focus stands still: what is new waits behind a chip, so that nothing moves away under a click. */
import type { JSX, RefObject } from 'preact';
import { useReducer, useRef } from 'preact/hooks';
import { count } from '../core/words';

/** The list to show, how many entries are held back, and how to let them in. What is in the list already is always up to date. */
export function useHeld<T>(list: readonly T[], keyOf: (one: T) => string, box: RefObject<HTMLElement | null>): [readonly T[], number, () => void] {
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  const shown = useRef<readonly string[]>([]);
  const newest = new Map(list.map((one) => [keyOf(one), one]));
  const isHeld = !!box.current && (box.current.matches(':hover') || box.current.contains(document.activeElement));
  if (!isHeld) shown.current = [...newest.keys()];
  const kept = shown.current.flatMap((key) => newest.get(key) ?? []);
  const release = (): void => {
    shown.current = [...newest.keys()];
    redraw(0 as never);
  };
  return [kept, list.filter((one) => !shown.current.includes(keyOf(one))).length, release];
}

export const NewChip = ({ number, onClick }: { number: number; onClick: () => void }): JSX.Element | null =>
  number ? (
    <button type="button" class="chip new-chip" onClick={onClick}>
      {count(number, 'new', 'new')}
    </button>
  ) : null;
