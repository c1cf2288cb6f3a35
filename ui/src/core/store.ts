/** A value that components can watch. Small on purpose: snapshots come from the server, so there is little state here. */
import { useEffect, useReducer } from 'preact/hooks';

export interface Store<T> {
  readonly value: T;
  set(next: T): void;
  watch(listener: () => void): () => void;
}

export function store<T>(first: T): Store<T> {
  const listeners = new Set<() => void>();
  let value = first;
  return {
    get value() {
      return value;
    },
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    watch(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore<T>(watched: Store<T>): T {
  const [, again] = useReducer((count: number) => count + 1, 0);
  const seen = watched.value;
  useEffect(() => {
    const stop = watched.watch(() => again(0 as never));
    if (!Object.is(seen, watched.value)) again(0 as never); // it changed between drawing and watching
    return stop;
  }, [watched]);
  return seen;
}

/** A choice kept in this browser, where it allows that. */
export function kept(name: string, fallback: string): Store<string> & { keep(next: string): void } {
  const key = `handrail.${name}`;
  let first = fallback;
  try {
    first = localStorage.getItem(key) ?? fallback;
  } catch {
    first = fallback; // storage is switched off: the choice lives as long as the page
  }
  const inner = store(first);
  return Object.assign(inner, {
    keep(next: string) {
      inner.set(next);
      try {
        localStorage.setItem(key, next);
      } catch {
        return; // as above
      }
    },
  });
}
