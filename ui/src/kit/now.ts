/** One clock for all relative times; it stands still while the page is hidden. */
import { store, useStore } from '../core/store';

export const now = store(Date.now());
let timer = 0;
let every = 10_000;

function schedule(): void {
  clearInterval(timer);
  timer = document.hidden ? 0 : window.setInterval(() => now.set(Date.now()), every);
  if (!document.hidden) now.set(Date.now());
}

document.addEventListener('visibilitychange', schedule);
schedule();

export const useNow = (): number => useStore(now);

/** Something counts seconds: tick each second as long as that is so. */
export function countSeconds(counting: boolean): void {
  const wanted = counting ? 1_000 : 10_000;
  if (wanted === every) return;
  every = wanted;
  schedule();
}
