/** A run as its page needs it: steps with what their definition says of them, and what happened in words. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { isNew, read, Refused, remembered, useRead } from '../../core/api';
import type { RunLine, RunStep, RunView, StepPage, StepView } from '../../core/contract';
import { watchEvents } from '../../core/live';
import { enc, place } from '../../core/router';
import { actor, duration, instant, isAgent, isPerson, count } from '../../core/words';
import type { IconName } from '../../kit/icons';
import { stepLook, type Look, type Tone } from '../../states';

export const MANY = 60;
/** How long a run of many pages rests between two reads while it changes. */
const LONG_RUN_MS = 500;

export type Step = RunStep;

export interface Row {
  step: Step;
  index: number;
  depth: number;
  title: string;
  look: Look;
  by: { icon: IconName; word: string };
  effect: { word: string; tone?: Tone };
  took: string;
  isUndone: boolean;
  needs: boolean;
}

export const runPath = (run: string, rest = ''): string => `/runs/${encodeURIComponent(run)}${rest}`;
/** An address within a run; the moment at which it is looked at goes along. */
export function runUrl(run: string, rest = '', query: Record<string, string> = {}): string {
  const at = place.value.query.get('at');
  const text = new URLSearchParams(at ? { ...query, at } : query).toString();
  return `/runs/${enc(run)}${rest}${text && `?${text}`}`;
}
export const stepHref = (run: string, step: string, tab = ''): string => runUrl(run, `/steps/${enc(step)}`, tab && tab !== 'steps' ? { tab } : {});
export const tabHref = (run: string, tab: string): string => runUrl(run, tab === 'steps' ? '' : `/${tab}`);

/** A run now, or as it was after one of its events. */
export const useRun = (run: string, at: string): ReturnType<typeof useRead<RunView>> => useRead<RunView>(runPath(run, at && `?at=${at}`), at ? undefined : { run });

/** All steps of a run, read page by page; a page that has not changed is answered by its ETag. */
export function useSteps(run: string, at: string): { steps: readonly Step[] | undefined; error: Refused | undefined } {
  const first = runPath(run, `/steps${at && `?at=${at}`}`);
  const [steps, setSteps] = useState<readonly Step[] | undefined>(() => known(first));
  const [error, setError] = useState<Refused | undefined>();
  const seen = useRef<readonly StepPage[]>([]);
  useEffect(() => {
    let gone = false;
    let busy = false;
    let dirty = false;
    let many = false;
    // One moment of a run follows another: the last one stays until there is something else to show.
    setSteps((old) => known(first) ?? old);
    seen.current = [];
    const load = async (): Promise<void> => {
      if (busy) {
        dirty = true;
        return;
      }
      busy = true;
      try {
        // Of a long run the first page is shown while the others come.
        const pages = await readPages(first, seen.current, (page) => !gone && !seen.current.length && setSteps(page.steps ?? []));
        if (gone) return;
        many = pages.length > 1;
        if (pages.some((page, index) => page !== seen.current[index]) || pages.length !== seen.current.length) {
          seen.current = pages;
          setSteps(pages.flatMap((page) => page.steps ?? []));
        }
        setError(undefined);
      } catch (problem) {
        if (!gone) setError(problem instanceof Refused ? problem : new Refused({ detail: String(problem) }));
      } finally {
        busy = false;
      }
      if (dirty && !gone) {
        dirty = false;
        timer = window.setTimeout(() => void load(), many ? LONG_RUN_MS : 0);
      }
    };
    let timer = 0;
    if (!isNew(first) || !known(first)) void load();
    const stop = at ? () => undefined : watchEvents({ run }, () => void load());
    return () => {
      gone = true;
      clearTimeout(timer);
      stop();
    };
  }, [first]);
  return { steps, error };
}

const known = (path: string): readonly Step[] | undefined => {
  const page = remembered<StepPage>(path);
  return page && !page.cursor ? page.steps ?? [] : undefined;
};

async function readPages(first: string, seen: readonly StepPage[], early: (page: StepPage) => void): Promise<readonly StepPage[]> {
  const after = (page: StepPage | undefined): string => (page?.cursor ? `${first}${first.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(page.cursor)}` : '');
  const pages: StepPage[] = [await read<StepPage>(first)];
  if (pages[0]!.cursor) early(pages[0]!);
  // A page starts where the one before it ended, last time as well: what is known to follow is asked for at once.
  if (after(pages[0]) === after(seen[0])) pages.push(...(await Promise.all(seen.slice(0, -1).map((page) => read<StepPage>(after(page))))));
  for (let next = after(pages.at(-1)); next; next = after(pages.at(-1))) pages.push(await read<StepPage>(next));
  return pages;
}

const UNDONE = new Set(['compensating', 'compensated', 'compensation_failed']);
const NEEDS = new Set(['failed', 'uncertain', 'compensation_failed', 'running', 'ready', 'compensating']);

export function waitOf(step: StepView): string | undefined {
  return step.waits_for?.find((one) => one.kind !== 'step')?.kind;
}

export function lookOfStep(step: StepView): Look {
  const wait = waitOf(step);
  if (step.status === 'waiting' || (step.status === 'ready' && wait === 'agent')) return stepLook('waiting', wait);
  return stepLook(step.status);
}

export function rowsOf(steps: readonly Step[], now: number): readonly Row[] {
  return steps.map((step, index) => ({
    step,
    index,
    depth: (step.id.match(/\./g) ?? []).length,
    title: step.title || step.id,
    look: lookOfStep(step),
    by: doneBy(step),
    effect: effectOf(step),
    took: tookOf(step, now),
    isUndone: UNDONE.has(step.status),
    needs: NEEDS.has(step.status) || step.status === 'waiting',
  }));
}

function doneBy(step: Step): Row['by'] {
  if (step.kind === 'each' || step.kind === 'repeat') return { icon: 'loop', word: roundsOf(step) };
  if (step.tool) return { icon: 'bolt', word: step.tool };
  if (step.kind === 'workflow') return { icon: 'library', word: 'a workflow' };
  if (step.kind === 'approve') return { icon: 'person', word: isPerson(step.by) ? actor(step.by) : 'a person' };
  if (step.kind === 'prompt') return { icon: isPerson(step.by) ? 'person' : 'robot', word: isAgent(step.by) || isPerson(step.by) ? actor(step.by) : 'an agent' };
  return { icon: 'bolt', word: actor(step.by) || 'handrail' };
}

function roundsOf(step: Step): string {
  if (step.kind === 'each' && step.rounds) return `${step.round ?? 0} of ${count(step.rounds, 'round')}`;
  return step.round ? count(step.round, 'round') : 'a loop';
}

const HOW: Record<string, string> = { executed: '', by_agent: ' by the agent', recorded: ', recorded', not_needed: ': not needed' };

function effectOf(step: Step): Row['effect'] {
  if (step.status === 'compensated') {
    const time = step.undone_ms ? ` in ${duration(step.undone_ms)}` : '';
    return { word: `Undone${HOW[step.compensation ?? ''] ?? ''}${time}`, tone: 'undo' };
  }
  if (step.status === 'compensating') return { word: 'Undoing', tone: 'undo' };
  if (step.status === 'compensation_failed') return { word: 'Undo failed', tone: 'bad' };
  if (step.compensation === 'none') return { word: 'Not undone', tone: 'bad' };
  if (step.status === 'failed') return { word: step.category ? step.category.replace(/_/g, ' ') : 'failed' };
  if (step.status === 'uncertain') return { word: 'Outcome unknown', tone: 'unc' };
  if (step.kind !== 'tool' && step.kind !== 'prompt') return { word: '' };
  if (step.status !== 'completed' || !step.effect) return { word: '' };
  if (step.effect === 'none') return { word: 'none' };
  if (step.effect === 'irreversible') return { word: 'Cannot be undone', tone: 'bad' };
  return { word: step.has_undo || step.effect === 'reversible' ? 'can be undone' : 'no undo' };
}

/** How often it was tried: calls of its tool, or submissions, of which the last one may have been accepted. */
export const triesOf = (step: StepView): number => (step.kind === 'prompt' ? (step.refused ?? 0) + (['completed', 'compensating', 'compensated', 'compensation_failed'].includes(step.status) ? 1 : 0) : step.attempts ?? 0);

export function tookOf(step: Step, now: number): string {
  // A step that failed, or whose undo did, waits for a decision from then on: that is not how long it took.
  const isOver = step.status === 'failed' || step.status === 'uncertain' || step.status === 'compensation_failed';
  if (typeof step.worked_ms === 'number' || typeof step.waited_ms === 'number') return duration((step.worked_ms ?? 0) + (isOver ? 0 : step.waited_ms ?? 0));
  const from = instant(step.started);
  if (Number.isNaN(from)) return '–';
  const to = step.ended ? instant(step.ended) : now;
  return duration(Math.max(0, to - from));
}

/** What steps have in common that failed alike: rounds of one loop by their category, others by their words; as the server has it. */
export const likeness = ({ id, category, message }: StepView): string => {
  const rounds = id.replace(/\[\d+\]/g, '[]');
  return rounds === id ? `${message} ${category}` : `${rounds} ${category}`;
};

/** Steps that failed like this one, and are not boxes of others. */
export const alike = (rows: readonly Row[], step: string): readonly Row[] => {
  const one = rows.find((row) => row.step.id === step)?.step;
  return one ? rows.filter((row) => row.step.status === 'failed' && likeness(row.step) === likeness(one) && !isContainer(row.step)) : [];
};

/** Whether all of them say the same. */
export const isOneReason = (rows: readonly Row[]): boolean => rows.every((row) => row.step.message === rows[0]!.step.message);

/** Loops are boxes of other steps; the bar has one segment for each step that does something. */
export const isContainer = (step: StepView): boolean => step.kind === 'each' || step.kind === 'repeat' || step.kind === 'workflow';

export interface Tally {
  tone: Tone;
  word: string;
  count: number;
}

export function tally(rows: readonly Row[]): readonly Tally[] {
  const counts = new Map<string, Tally>();
  for (const row of rows) {
    if (isContainer(row.step) && row.step.rounds !== 0) continue;
    const word = row.look.word;
    const known = counts.get(word);
    if (known) known.count += 1;
    else counts.set(word, { word, tone: row.look.tone, count: 1 });
  }
  return [...counts.values()].sort((a, b) => ORDER.indexOf(a.tone) - ORDER.indexOf(b.tone));
}
const ORDER: readonly Tone[] = ['ok', 'undo', 'unc', 'bad', 'wait', 'run', 'off'];

/** The steps of several runs, to compare them. */
export function useStepsOf(runs: readonly RunLine[]): ReadonlyMap<string, readonly Step[]> {
  const [steps, setSteps] = useState<ReadonlyMap<string, readonly Step[]>>(new Map());
  const key = runs.map((run) => `${run.run} ${run.updated}`).join();
  useEffect(() => {
    let gone = false;
    void Promise.allSettled(runs.map(async (run) => [run.run, (await read<StepPage>(`${runPath(run.run)}/steps?limit=120`)).steps ?? []] as const)).then((all) => {
      if (!gone) setSteps(new Map(all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))));
    });
    return () => {
      gone = true;
    };
  }, [key]);
  return steps;
}
