/** Reads and writes of the API. A read is kept with its ETag, shown at once the next time and asked for again;
 * a write carries a key, so that the same click can't happen twice. */
import { useEffect, useReducer, useRef } from 'preact/hooks';
import { isLive, startFrom, watchEvents, type Wanted } from './live';
import { asked, enter, isOfProject, project } from './project';
import { store, useStore } from './store';
import type { ProblemDetails } from './contract';

export const API = '/api/v1';
const KEPT_MAX = 200;
const LATE_MS = 2_000;

/** An error as the API says it, or that there was no answer. */
export class Refused extends Error {
  readonly problem: Partial<ProblemDetails>;
  constructor(problem: Partial<ProblemDetails>) {
    super(problem.detail ?? problem.title ?? 'handrail does not answer');
    this.problem = problem;
  }
  get status(): number {
    return this.problem.status ?? 0;
  }
  get name(): string {
    return this.problem.name ?? 'no_answer';
  }
}

interface Kept {
  etag: string;
  data: unknown;
  at: number;
  /** It came with the page, and is no older than the page. */
  isNew?: boolean;
}

const memory = new Map<string, Kept>();
const underWay = new Map<string, Promise<unknown>>();

const NEW_MS = 2_000;

/** The page brings its first answers with it: what is drawn first needs no request. */
export function takeState(): void {
  const element = document.getElementById('state');
  for (const one of JSON.parse(element?.textContent || '[]') as { path: string; project: string; etag: string; at: string; data: unknown }[]) {
    if (!project.value && isOfProject(one.path)) enter(one.project);
    if (isOfProject(one.path) && one.project !== project.value) continue; // this tab is in another one
    memory.set(asked(one.path), { etag: one.etag, data: one.data, at: Date.now(), isNew: true });
    startFrom(one.at);
  }
  element?.remove();
}

/** Whether an answer came with the page just now: the feed goes on from there, so it need not be asked for again. */
export function isNew(path: string): boolean {
  const known = memory.get(asked(path));
  return !!known?.isNew && Date.now() - known.at < NEW_MS;
}

export const remembered = <T>(path: string): T | undefined => memory.get(asked(path))?.data as T | undefined;

/** Read a path below /api/v1; two readers of one path at once share the request. */
export function read<T>(about: string): Promise<T> {
  const path = asked(about);
  const shared = underWay.get(path);
  if (shared) return shared as Promise<T>;
  const answer = fetchJson(path).finally(() => underWay.delete(path));
  underWay.set(path, answer);
  return answer as Promise<T>;
}

async function fetchJson(path: string): Promise<unknown> {
  const known = memory.get(path);
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (known?.etag) headers['If-None-Match'] = known.etag;
  const answer = await send(path, { headers });
  if (answer.status === 304 && known) {
    known.at = Date.now();
    return known.data;
  }
  isOut.set(answer.status === 401);
  if (!answer.ok) throw new Refused(await problemOf(answer));
  startFrom(answer.headers.get('Handrail-At') ?? '');
  // A tab that was opened without a project stays in the one that answered first.
  if (!project.value && isOfProject(path)) enter(answer.headers.get('Handrail-Project'));
  const data: unknown = await answer.json();
  memory.delete(path);
  memory.set(path, { etag: answer.headers.get('ETag') ?? '', data, at: Date.now() });
  if (memory.size > KEPT_MAX) memory.delete(memory.keys().next().value!);
  return data;
}

async function send(path: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(API + path, { credentials: 'same-origin', cache: 'no-store', ...options });
  } catch {
    throw new Refused({ status: 0, name: 'no_answer', detail: `handrail at ${location.host} does not answer` });
  }
}

/** The server answers, but this browser has no session. */
export const isOut = store(false);

async function problemOf(answer: Response): Promise<Partial<ProblemDetails>> {
  try {
    return { ...((await answer.json()) as ProblemDetails), status: answer.status };
  } catch {
    return { status: answer.status, name: 'no_answer', detail: `handrail answered ${answer.status}` };
  }
}

const KEY = 'handrail.key';

/** The key for writes comes with the one-time link, after `#`, and leaves the address at once. */
export function takeKey(): void {
  const found = /(?:^#|&)key=([\w-]+)/.exec(location.hash);
  if (!found) return;
  keepKey(found[1]!);
  history.replaceState(null, '', location.pathname);
}

let pageKey = '';
function keepKey(key: string): void {
  pageKey = key;
  try {
    localStorage.setItem(KEY, key);
  } catch {
    return; // storage is off: the key lives as long as the page
  }
}

function writeKey(): string {
  try {
    return localStorage.getItem(KEY) ?? pageKey;
  } catch {
    return pageKey;
  }
}

export const newKey = (): string => crypto.randomUUID();

/** Write. The caller keeps the key until there is an answer: a second try is then the same request. */
export async function write<T>(path: string, body: unknown, key: string, onLate?: () => void): Promise<T> {
  const late = onLate ? setTimeout(onLate, LATE_MS) : 0;
  const isFile = body instanceof Blob;
  try {
    const answer = await send(asked(path), {
      method: 'POST',
      headers: {
        Accept: 'application/json',
        'Content-Type': isFile ? 'application/octet-stream' : 'application/json',
        'Idempotency-Key': key,
        'X-Handrail-Key': writeKey(),
      },
      body: isFile ? body : JSON.stringify(body),
    });
    if (!answer.ok) throw new Refused(await problemOf(answer));
    return (await answer.json()) as T;
  } finally {
    clearTimeout(late);
  }
}

export interface Reading<T> {
  data: T | undefined;
  error: Refused | undefined;
  /** Nothing to show yet, and no error. */
  loading: boolean;
  /** When what is shown was read. */
  at: number;
  again: () => void;
}

/** Read a path while a component is shown; read it again when an event that it is about comes in. */
export function useRead<T>(about: string | null, wanted?: Wanted): Reading<T> {
  useStore(project);
  const path = about && asked(about);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const state = useRef<{ path: string | null; error?: Refused; data?: T; busy?: boolean; dirty?: boolean }>({ path: null });
  const now = state.current;
  if (now.path !== path) {
    state.current = { path, data: path ? remembered<T>(path) : undefined };
  }
  const load = (): void => {
    const mine = state.current;
    if (!mine.path) return;
    if (mine.busy) {
      mine.dirty = true;
      return;
    }
    mine.busy = true;
    read<T>(mine.path)
      .then(
        (data) => {
          const same = data === mine.data && !mine.error;
          mine.data = data;
          mine.error = undefined;
          return same;
        },
        (error: unknown) => {
          mine.error = error instanceof Refused ? error : new Refused({ detail: String(error) });
          return false;
        },
      )
      .then((same) => {
        mine.busy = false;
        if (state.current !== mine) return;
        if (!same) redraw(0 as never);
        if (mine.dirty) {
          mine.dirty = false;
          load();
        }
      });
  };
  const key = wanted ? JSON.stringify(wanted) : '';
  useEffect(() => {
    if (!path || !isNew(path)) load();
    if (!path || !wanted) return undefined;
    const stopEvents = watchEvents(wanted, load);
    const stopLive = isLive.watch(() => isLive.value && load());
    return () => {
      stopEvents();
      stopLive();
    };
  }, [path, key]);
  const seen = state.current;
  return {
    data: seen.data,
    error: seen.error,
    loading: seen.data === undefined && !seen.error && !!path,
    at: (path && memory.get(path)?.at) || 0,
    again: load,
  };
}
