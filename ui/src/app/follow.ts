/** What the page shows: the run that a call was about, read again while it is open. */
import type { CallAhead, RunView, WaitingFor } from '../core/contract';
import { store } from '../core/store';
import { callTool, type Host, type ToolResult } from './bridge';

/** What a person is asked, in full; with `card` if an answer on this page counts, else with the reason why not. */
export type Card = WaitingFor & { ahead?: readonly CallAhead[]; ahead_unshown?: number; command: string; card?: string; why_not?: string };
export type AppRun = RunView & { console?: string };
/** A run in the list that `status` gives without a run. */
export interface ListedRun {
  run: string;
  workflow: string;
  status: string;
  goal?: string;
  waiting_for?: readonly { kind: string }[];
}

export interface Shown {
  run?: AppRun;
  cards?: readonly Card[];
  runs?: readonly ListedRun[];
  /** What is neither: the answer in words. */
  words?: string;
  problem?: string;
}

const CARDS = 'handrail/cards';
const ENDED = new Set(['completed', 'failed', 'cancelled', 'compensated', 'compensation_failed']);
const BUSY = new Set(['running', 'compensating']);
const BUSY_MS = 3_000;
const IDLE_MS = 10_000;
/** A page that is open for longer than this was probably forgotten; a click goes on. */
const READS_MAX = 400;

export const shown = store<Shown>({});
export const isFollowing = store(false);

let host: Host | undefined;
let wanted = '';
let timer = 0;
let reads = 0;

export function attach(to: Host): void {
  host = to;
  if (wanted && !shown.value.run) void read(wanted);
}

/** The arguments of the call that this page belongs to: they name the run, also if the call is refused. */
export function expect(run: unknown): void {
  if (typeof run === 'string' && run) wanted = run;
}

export function take(result: ToolResult): void {
  const data = result.structuredContent ?? {};
  const words = (result.content ?? []).map((part) => part.text ?? '').join('\n');
  if (typeof data.run === 'string' && data.progress) {
    wanted = data.run;
    show(result);
    if (host) void read(wanted);
  } else if (Array.isArray(data.runs)) {
    shown.set({ runs: data.runs as ListedRun[] });
  } else if (result.isError && wanted && host?.calls) {
    void read(wanted); // a refused call still has a run, and perhaps a question for a person
  } else {
    shown.set({ words });
  }
}

function show(result: ToolResult): void {
  const run = result.structuredContent as unknown as AppRun;
  const known = shown.value.run;
  const steps = run.steps ?? (known?.run === run.run ? known.steps : undefined);
  const cards = result._meta?.[CARDS] as readonly Card[] | undefined;
  shown.set({ run: { ...run, steps }, cards: cards ?? fallback(run) });
}

/** A client that keeps `_meta` from the page: the question is shown as the agent sees it, and can't be answered here. */
function fallback(run: AppRun): readonly Card[] {
  return (run.waiting_for ?? [])
    .filter((one) => one.kind === 'approval')
    .map((one) => ({ ...(one as Card), effects: [], unshown: one.effects?.length ?? 0, why_not: 'this client shows only a part of the question' }));
}

/** Read the run again; repeat after a while, as long as it is open. */
export async function read(run: string, isAsked = false): Promise<void> {
  clearTimeout(timer);
  if (!host?.calls) return;
  wanted = run;
  if (isAsked) reads = 0;
  try {
    const result = await callTool('status', { run, detail: 'full' });
    if (run !== wanted) return;
    if (result.isError) {
      stop(String(result.structuredContent?.message ?? 'The run could not be read.'));
      return;
    }
    show(result);
    again(String(result.structuredContent?.status));
  } catch (error) {
    stop((error as Error).message);
  }
}

function again(status: string): void {
  const isOpen = !ENDED.has(status) && ++reads < READS_MAX;
  isFollowing.set(isOpen);
  if (isOpen) timer = window.setTimeout(later, BUSY.has(status) ? BUSY_MS : IDLE_MS);
}

function later(): void {
  if (document.hidden) document.addEventListener('visibilitychange', () => void read(wanted), { once: true });
  else void read(wanted);
}

function stop(problem: string): void {
  isFollowing.set(false);
  shown.set({ ...shown.value, problem });
}

export function leave(): void {
  clearTimeout(timer);
  isFollowing.set(false);
  host = undefined;
}

/** Send a person's answer with the seal of the card that they saw; the reason why it does not count, or nothing. */
export async function answer(run: string, card: Card, action: 'approve' | 'reject', reason: string, output?: unknown): Promise<string> {
  const given = { run, step: card.step, action, reason, card: card.card, ...(output === undefined ? {} : { output }) };
  try {
    const result = await callTool('control', given);
    if (!result.isError && result.structuredContent?.run) {
      await read(run, true);
      return '';
    }
    const said = result.structuredContent ?? {};
    await read(run, true);
    return [said.message ?? 'The client did not pass the answer on.', said.hint].filter(Boolean).join('. ');
  } catch (error) {
    return (error as Error).message;
  }
}
