/** The controls of a run: words, keys, and the same on the command line. Each opens a preview first. */
import type { LegalAction } from '../../core/contract';
import { enc } from '../../core/router';
import { shell } from '../../core/words';
import type { Command } from '../../frame/commands';
import type { IconName } from '../../kit/icons';

export interface ActionWords {
  word: string;
  icon: IconName;
  key?: string;
  /** On a step, or on the whole run. */
  on: 'step' | 'run';
  /** In the order in which options are shown. */
  rank: number;
}

export const ACTIONS: Record<string, ActionWords> = {
  retry: { word: 'Retry', icon: 'running', key: 'r', on: 'step', rank: 1 },
  accept: { word: 'It did happen', icon: 'completed', on: 'step', rank: 2 },
  skip: { word: 'Skip', icon: 'skipped', on: 'step', rank: 3 },
  compensate: { word: 'Undo', icon: 'undo', key: 'u', on: 'run', rank: 4 },
  record: { word: 'It was undone by hand', icon: 'undone', on: 'step', rank: 4 },
  cancel: { word: 'Cancel', icon: 'cancelled', on: 'run', rank: 5 },
  pause: { word: 'Pause', icon: 'paused', key: 'p', on: 'run', rank: 6 },
  resume: { word: 'Resume', icon: 'play', key: 'p', on: 'run', rank: 6 },
  fork: { word: 'Fork from a step', icon: 'link', on: 'step', rank: 7 },
};

export const actionHref = (run: string, action: string, step = ''): string => `/runs/${enc(run)}/do/${action}${step ? `?step=${encodeURIComponent(step)}` : ''}`;

/** The same control for all steps that failed for the same reason as one. */
export const groupHref = (run: string, action: string, step: string): string => `/runs/${enc(run)}/do/${action}?like=${encodeURIComponent(step)}`;

/** The command that does the same. */
export function commandOf(run: string, action: string, step: string, reason: string): string {
  const words = ['handrail', 'run', action === 'record' ? 'compensated' : action, run];
  if (step && action !== 'compensate' && action !== 'cancel' && action !== 'pause' && action !== 'resume') words.push(step);
  if (reason) words.push(action === 'record' ? '--description' : '--reason', reason);
  return words.map(shell).join(' ');
}

export function commandsOf(run: string, actions: readonly LegalAction[], name: string): readonly Command[] {
  const seen = new Set<string>();
  return actions.flatMap((one) => {
    const words = ACTIONS[one.action];
    if (!words || seen.has(one.action)) return [];
    seen.add(one.action);
    return [{ word: `${words.word}… ${name}`, note: 'opens the preview', icon: words.icon, key: words.key, href: actionHref(run, one.action, one.step) }];
  });
}
