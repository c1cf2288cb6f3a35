/** Where the reader is. Every page, tab, step, entry and filter is a URL; the address is the only state of a view. */
import { carried, enter } from './project';
import { store, useStore } from './store';

export interface Place {
  path: string;
  query: URLSearchParams;
  hash: string;
}

const read = (): Place => ({
  path: decodePath(location.pathname),
  query: new URLSearchParams(location.search),
  hash: location.hash.slice(1),
});

function decodePath(path: string): string {
  const cut = path.length > 1 ? path.replace(/\/+$/, '') : path;
  return cut || '/';
}

export const place = store<Place>(read());
export const usePlace = (): Place => useStore(place);

addEventListener('popstate', arrive);

function arrive(): void {
  const next = read();
  enter(next.query.get('project'));
  place.set(next);
}

/** Go to a URL of the console; `replace` for what should not be a step back (filters while typing). */
export function go(url: string, replace = false): void {
  const next = new URL(url, location.href);
  enter(next.searchParams.get('project'));
  carried(next);
  if (next.href !== location.href) history[replace ? 'replaceState' : 'pushState'](null, '', next);
  const samePath = decodePath(next.pathname) === place.value.path;
  arrive();
  if (!samePath && !replace) scrollTo(0, 0);
}

/** The current URL with some query values changed; an empty one is removed. */
export function withQuery(changes: Record<string, string | undefined>, path = location.pathname): string {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  return path + (text ? `?${text}` : '');
}

/** Ordinary clicks on links to our own pages stay in the page; all others are the browser's. */
export function followLinks(): void {
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = ownLink(event);
    if (!link) return;
    event.preventDefault();
    go(link.href);
  });
  // Before the browser opens or copies it by itself.
  document.addEventListener('pointerdown', ownLink);
}

/** The link to a page of ours that was clicked, with the project that the console is in now. */
function ownLink(event: Event): HTMLAnchorElement | null {
  const link = (event.target as Element | null)?.closest?.('a');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return null;
  if (link.pathname.startsWith('/api/') || link.pathname.endsWith('.json')) return null;
  const written = (link.dataset.to = link.dataset.to === undefined || link.dataset.by !== link.href ? link.href : link.dataset.to);
  link.dataset.by = link.href = carried(new URL(written)).href;
  return link;
}

/** Match `/runs/:run/steps/*path`; the values are decoded. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  const found: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    if (part.startsWith('*')) {
      found[part.slice(1)] = given.slice(index).map(decode).join('/');
      return given.length > index ? found : null;
    }
    const here = given[index];
    if (here === undefined) return null;
    if (part.startsWith(':')) found[part.slice(1)] = decode(here);
    else if (part !== here) return null;
  }
  return given.length === wanted.length ? found : null;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a stray % in a hand-typed address
  }
}

export const enc = (part: string): string => encodeURIComponent(part).replace(/%5B/g, '[').replace(/%5D/g, ']').replace(/%40/g, '@');
