/** What a run is called and what it says in one line, from what the API gives. */
import { count, duration, instant, roughly } from './words';
import type { Look } from '../states';
import { runLook } from '../states';
import type { RunLine } from './contract';

/** `Ship a release 2.4.0`, `Fix a bug: crash on an empty file`: what it is for, or the name of its workflow and the input that tells it from the others. */
export function runName(one: { workflow: string; goal?: string; name?: string; label?: string }): string {
  if (one.goal) return one.goal;
  const id = workflowId(one.workflow);
  const name = one.name && one.name !== id ? one.name : titled(id);
  if (!one.label) return name;
  if (one.label.toLowerCase().startsWith(name.toLowerCase())) return one.label;
  return /\s/.test(one.label) ? `${name}: ${one.label}` : `${name} ${one.label}`;
}

export const workflowId = (workflow: string): string => workflow.replace(/@.*$/, '');

/** `ship-release` read as words: Ship release. */
export function titled(workflow: string): string {
  const words = workflowId(workflow).replace(/^.*\//, '').replace(/[-_]+/g, ' ').trim();
  return words ? words.charAt(0).toUpperCase() + words.slice(1) : workflow;
}

export const waitingKind = (one: { waiting_for?: readonly { kind: string }[] | null }): string | undefined => one.waiting_for?.[0]?.kind;
export const lookOf = (one: { status: string; waiting_for?: readonly { kind: string }[] | null }): Look => runLook(one.status, waitingKind(one));

export const runHref = (run: string, rest = ''): string => `/runs/${encodeURIComponent(run)}${rest}`;

/** How long it took, or takes. */
export function took(one: { started?: string; ended?: string }, now = Date.now()): string {
  const from = instant(one.started);
  if (Number.isNaN(from)) return '–';
  const to = one.ended ? instant(one.ended) : now;
  return duration(Math.max(0, to - from));
}

/** How long it will still take, once five steps are done; a run that waits takes as long as somebody lets it. */
export function leftWords(one: { status: string; started?: string; done: number }, total: number, now: number): string {
  if (one.status !== 'running' || one.done < 5 || total <= one.done) return '';
  return `about ${roughly(((now - instant(one.started)) / one.done) * (total - one.done))} left`;
}

/** One line that says why a run is where it is. */
export const whyOf = (one: RunLine): string => one.why || (one.exceptions ? count(one.exceptions, 'exception') : '');
