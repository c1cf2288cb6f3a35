/** A run as its page needs it: steps with what their definition says of them, and what happened in words. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { read, Refused, remembered, useRead } from '../../core/api';
import type { DefinitionView, RunView, StepPage, StepView } from '../../core/contract';
import { watchEvents } from '../../core/live';
import { enc } from '../../core/router';
import { actor, duration, instant, isAgent, isPerson, listed, count } from '../../core/words';
import type { IconName } from '../../kit/icons';
import { stepLook, type Look, type Tone } from '../../states';

export const PAGE = 500;
export const MANY = 60;

/** What newer answers add; older ones leave it out. */
export type Step = StepView & {
  tool?: string;
  effect?: string | null;
  has_undo?: boolean;
  undo?: unknown;
  worked_ms?: number | null;
  waited_ms?: number | null;
  undone_ms?: number | null;
  n?: number;
};

export interface Facts {
  /** Of a loop: what an item is called, and the list if it is known from the inputs. */
  as?: string;
  items?: readonly unknown[];
  tool: string;
  hand: 'agent' | 'handrail' | 'person' | 'loop' | 'workflow';
  effect: string;
  undo: boolean;
}

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
export const stepHref = (run: string, step: string, query = ''): string => `/runs/${enc(run)}/steps/${enc(step)}${query}`;

/** `build[2].make` as its author wrote it: `build.make`. */
export const template = (path: string): string => path.replace(/\[\d+\]/g, '');

export function useRun(run: string): ReturnType<typeof useRead<RunView>> {
  return useRead<RunView>(runPath(run), { run });
}

/** All steps of a run, read page by page; a page that has not changed is answered by its ETag. */
export function useSteps(run: string): { steps: readonly Step[] | undefined; error: Refused | undefined } {
  const first = runPath(run, `/steps?limit=${PAGE}`);
  const [steps, setSteps] = useState<readonly Step[] | undefined>(() => known(first));
  const [error, setError] = useState<Refused | undefined>();
  const seen = useRef<readonly StepPage[]>([]);
  useEffect(() => {
    let gone = false;
    let busy = false;
    let dirty = false;
    setSteps(known(first));
    const load = async (): Promise<void> => {
      if (busy) {
        dirty = true;
        return;
      }
      busy = true;
      try {
        const pages = await readPages(first);
        if (gone) return;
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
        void load();
      }
    };
    void load();
    const stop = watchEvents({ run }, () => void load());
    return () => {
      gone = true;
      stop();
    };
  }, [first]);
  return { steps, error };
}

const known = (path: string): readonly Step[] | undefined => {
  const page = remembered<StepPage>(path);
  return page && !page.cursor ? page.steps ?? [] : undefined;
};

async function readPages(first: string): Promise<readonly StepPage[]> {
  const pages: StepPage[] = [];
  let next = first;
  while (next) {
    const page: StepPage = await read<StepPage>(next);
    pages.push(page);
    next = page.cursor ? `${first}&cursor=${encodeURIComponent(page.cursor)}` : '';
  }
  return pages;
}

/** What the pinned definition says of each step, by its path without rounds. */
export function useFacts(run: string): ReadonlyMap<string, Facts> {
  const view = useRead<DefinitionView>(runPath(run, '/definition')).data;
  return useMemo(() => factsOf(view), [view]);
}

type Written = Record<string, any>;

export function factsOf(view: { definition?: Written; inputs?: Written } | undefined): ReadonlyMap<string, Facts> {
  const facts = new Map<string, Facts>();
  const pinned = (view?.definition?.pinned ?? {}) as Record<string, Written>;
  const walk = (steps: unknown, prefix: string, depth: number): void => {
    if (!Array.isArray(steps) || depth > 8) return;
    for (const step of steps as Written[]) {
      const path = prefix + String(step.id ?? '');
      facts.set(path, { ...factsOfStep(step), ...loopFacts(step, view?.inputs) });
      walk(bodyOf(step), `${path}.`, depth + 1);
      const called = typeof step.workflow === 'string' ? pinned[step.workflow] : undefined;
      if (called) walk(called.steps, `${path}.`, depth + 1);
    }
  };
  walk(view?.definition?.steps, '', 0);
  return facts;
}

function loopFacts(step: Written, inputs: Written | undefined): Pick<Facts, 'as' | 'items'> {
  if (step.each === undefined) return {};
  const named = typeof step.each === 'string' ? /^\s*inputs\.([\w-]+)\s*$/.exec(step.each)?.[1] : undefined;
  const items: unknown = Array.isArray(step.each) ? step.each : named ? inputs?.[named] : undefined;
  return { as: typeof step.as === 'string' ? step.as : 'item', items: Array.isArray(items) ? items : undefined };
}

/** The item of the innermost round that a step is in. */
export function itemOf(path: string, facts: ReadonlyMap<string, Facts>): { as: string; item: unknown } | undefined {
  const found = /^(.*)\[(\d+)\](?:\.[^[\]]*)?$/.exec(path);
  if (!found) return undefined;
  const loop = facts.get(template(found[1]!));
  const item = loop?.items?.[Number(found[2])];
  return loop?.as && item !== undefined ? { as: loop.as, item } : undefined;
}

/** A title is written once for all rounds: `Upload {{ target }}` is `Upload macos` in the third. */
function roundTitle(step: StepView, facts: ReadonlyMap<string, Facts>): string {
  const title = step.title || step.id.replace(/^.*\./, '');
  const round = itemOf(step.id, facts);
  const number = /\[(\d+)\](?!.*\[)/.exec(step.id)?.[1];
  const shown = title.replace(/\{\{\s*([\w.]+)\s*\}\}/g, (whole, name: string) => {
    if (!round || name.split('.')[0] !== round.as) return number === undefined ? whole : String(Number(number) + 1);
    const value = name.split('.').slice(1).reduce<unknown>((inner, key) => (inner as Written | undefined)?.[key], round.item);
    return typeof value === 'object' ? JSON.stringify(value) : String(value);
  });
  if (shown !== title || number === undefined) return shown;
  const label = round && (typeof round.item === 'string' || typeof round.item === 'number') ? String(round.item) : `${Number(number) + 1}`;
  return `${shown} ${label.slice(0, 40)}`;
}

function bodyOf(step: Written): unknown {
  const loop = step.each ?? step.repeat;
  return step.steps ?? step.do ?? step.body ?? (loop && typeof loop === 'object' ? loop.steps ?? loop.do : undefined);
}

function factsOfStep(step: Written): Facts {
  const hand = step.prompt !== undefined ? 'agent' : step.approve !== undefined ? 'person' : step.each !== undefined || step.repeat !== undefined ? 'loop' : step.workflow !== undefined ? 'workflow' : 'handrail';
  return {
    tool: typeof step.tool === 'string' ? step.tool : '',
    hand,
    effect: typeof step.effect === 'string' ? step.effect : '',
    undo: step.undo !== undefined && step.undo !== null,
  };
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

export function rowsOf(steps: readonly Step[], facts: ReadonlyMap<string, Facts>, now: number): readonly Row[] {
  return steps.map((step, index) => {
    const fact = facts.get(template(step.id));
    const isUndone = UNDONE.has(step.status);
    return {
      step,
      index,
      depth: (step.id.match(/\./g) ?? []).length,
      title: /\[\d+\]/.test(step.id) ? roundTitle(step, facts) : titleOf(step),
      look: lookOfStep(step),
      by: doneBy(step, fact),
      effect: effectOf(step, fact),
      took: tookOf(step, now),
      isUndone,
      needs: NEEDS.has(step.status) || step.status === 'waiting',
    };
  });
}

/** Without the items of its loop: `Build {{ target }}` is `Build 3` in the third round. */
export const titleOf = (step: StepView): string => {
  const round = /\[(\d+)\](?!.*\[)/.exec(step.id)?.[1];
  const title = step.title || step.id;
  return round === undefined ? title : title.replace(/\{\{.*?\}\}/g, String(Number(round) + 1));
};

function doneBy(step: Step, fact: Facts | undefined): Row['by'] {
  if (step.kind === 'each' || step.kind === 'repeat') return { icon: 'loop', word: roundsOf(step) };
  const tool = step.tool || fact?.tool;
  if (step.kind === 'tool' && tool) return { icon: 'bolt', word: tool };
  if (step.kind === 'workflow') return { icon: 'library', word: 'a workflow' };
  if (step.kind === 'approve') return { icon: 'person', word: isPerson(step.by) ? actor(step.by) : 'a person' };
  if (step.kind === 'prompt') return { icon: 'robot', word: isAgent(step.by) || isPerson(step.by) ? actor(step.by) : 'an agent' };
  return { icon: 'bolt', word: tool || actor(step.by) || 'handrail' };
}

function roundsOf(step: Step): string {
  if (step.kind === 'each' && step.rounds) return `${step.round ?? 0} of ${count(step.rounds, 'round')}`;
  return step.round ? count(step.round, 'round') : 'a loop';
}

const HOW: Record<string, string> = { executed: '', by_agent: ' by the agent', recorded: ', recorded', not_needed: ': not needed' };

function effectOf(step: Step, fact: Facts | undefined): Row['effect'] {
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
  const effect = step.effect ?? fact?.effect ?? '';
  if (step.status !== 'completed') return { word: '' };
  if (effect === 'irreversible') return { word: 'Cannot be undone', tone: 'bad' };
  if (step.has_undo ?? step.undo ?? fact?.undo) return { word: 'can be undone' };
  if (effect === 'reversible') return { word: 'can be undone' };
  if (effect === 'none' || effect === '') return { word: effect === 'none' ? 'none' : '' };
  return { word: 'no undo' };
}

export function tookOf(step: Step, now: number): string {
  // A step that failed waits for a decision from then on: that is not how long it took.
  const isOver = step.status === 'failed' || step.status === 'uncertain';
  if (typeof step.worked_ms === 'number' || typeof step.waited_ms === 'number') return duration((step.worked_ms ?? 0) + (isOver ? 0 : step.waited_ms ?? 0));
  const from = instant(step.started);
  if (Number.isNaN(from)) return '–';
  const to = step.ended ? instant(step.ended) : now;
  return duration(Math.max(0, to - from));
}

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

export const names = (rows: readonly Row[]): string => listed(rows.map((row) => `“${row.title}”`));
