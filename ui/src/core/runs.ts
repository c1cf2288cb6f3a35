/** What a run is called and what it says in one line, from what the API gives. */
import { actor, clock, count, duration, instant, spaced } from './words';
import type { Look } from '../states';
import { runLook } from '../states';
import type { RunSummary, Status, WaitingItem } from './contract';

type Named = { run: string; workflow: string; goal?: string; name?: string; label?: string; title?: string };

/** `Ship a release 2.4.0`: the name of its workflow, and the input or goal that tells it from the others. */
export function runName(one: Named): string {
  if (one.title) return one.title;
  if (one.goal) return one.goal;
  const name = one.name || titled(one.workflow);
  const label = one.label;
  if (!label) return name;
  return label.toLowerCase().startsWith(name.toLowerCase()) ? label : `${name} ${label}`;
}

/** What the library calls its workflows, by id; lists of runs only have the id. */
export const workflowNames = new Map<string, string>();

/** `ship-release@1.2.0` read as words: Ship release. */
export function titled(workflow: string): string {
  const known = workflowNames.get(workflow.replace(/@.*$/, ''));
  if (known) return known;
  const words = workflow.replace(/@.*$/, '').replace(/^.*\//, '').replace(/[-_]+/g, ' ').trim();
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

/** One line that says why a run is where it is. */
export function whyOf(one: RunSummary & { why?: string; now?: string; reason?: string; starter?: string }): string {
  if (one.why) return one.why;
  const waits = one.waiting_for?.[0];
  if (waits) return [waits.step && `“${spaced(waits.step)}”`, waits.text].filter(Boolean).join(': ');
  if (one.now) return `now: ${one.now}`;
  if (one.exceptions) return count(one.exceptions, 'exception');
  return one.ended ? `ended ${clock(one.ended, false)}` : '';
}

export function failureWords(status: Status): string {
  const failure = status.failure;
  if (!failure) return status.reason ?? '';
  return failure.message + (failure.category ? ` (${spaced(failure.category)})` : '');
}

export const askedName = (item: WaitingItem): string => (item.by?.length ? item.by.map(actor).join(', ') : '');
