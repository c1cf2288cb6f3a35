/** The keyboard map. Nothing that changes a run happens on one key: a key opens the preview, Ctrl+Enter confirms.
 * Keys are off inside fields, and can be switched off altogether (WCAG 2.1.4). */
import { useEffect, useRef } from 'preact/hooks';
import { kept } from './store';

export type Handler = (event: KeyboardEvent) => void;
type Layer = { current: Record<string, Handler> };

export const keysOn = kept('keys', 'on');
const layers: Layer[] = [];
let first = '';
let firstAt = 0;
const SEQUENCE_MS = 1_200;
let ahead: string | null = null;

/** From now on, what is typed is for a field that is on its way, not for the page; `typedAhead` gives it to the field. */
export const holdTyping = (): void => void (ahead = '');
export function typedAhead(): string {
  const text = ahead ?? '';
  ahead = null;
  return text;
}

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
export const mod = isMac ? '⌘' : 'Ctrl';

/** Bind keys while a component is shown; the newest layer is asked first, that of the frame last. `g h` is a sequence, `mod+k` a chord. */
export function useKeys(bindings: Record<string, Handler>, isFrame = false): void {
  const layer = useRef(bindings);
  layer.current = bindings;
  useEffect(() => {
    if (isFrame) layers.unshift(layer);
    else layers.push(layer);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
    };
  }, []);
}

export function inField(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (!element?.closest) return false;
  return element.isContentEditable || !!element.closest('input:not([type=radio]):not([type=checkbox]), textarea, select');
}

const name = (event: KeyboardEvent): string => {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const shift = event.shiftKey && /^[a-z]$/.test(key) ? 'shift+' : '';
  return (event.ctrlKey || event.metaKey ? 'mod+' : '') + shift + key;
};

export function listenForKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || event.altKey) return;
    const pressed = name(event);
    const always = pressed.startsWith('mod+') || pressed === 'Escape';
    const isInDialog = !!document.querySelector('dialog[open]');
    if (isInDialog && pressed === 'Escape') return; // the dialog closes itself
    if (pressed === 'Escape' && inField(event.target)) return (event.target as HTMLElement).blur();
    if (ahead !== null && !isInDialog && event.key.length === 1 && !always) {
      ahead += event.key;
      return event.preventDefault();
    }
    if (!always && (isInDialog || inField(event.target) || keysOn.value === 'off')) return;
    const sequence = first && event.timeStamp - firstAt < SEQUENCE_MS ? `${first} ${pressed}` : '';
    first = pressed === 'g' ? 'g' : '';
    firstAt = event.timeStamp;
    for (const key of [sequence, pressed]) {
      if (!key) continue;
      for (const layer of [...layers].reverse()) {
        const handler = layer.current[key];
        if (!handler) continue;
        if (!always && isOwn(event, pressed)) return;
        event.preventDefault();
        first = '';
        handler(event);
        return;
      }
    }
  });
}

/** Enter and Space belong to the button or link that has the focus. */
const isOwn = (event: KeyboardEvent, pressed: string): boolean =>
  (pressed === 'Enter' || pressed === ' ') && !!(event.target as HTMLElement | null)?.closest?.('a, button, summary, [role=button]');
