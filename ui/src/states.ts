/** The one table of states: icon, word and colour of everything that a run, a step or a server can be.
 * A test compares the keys of RUN and STEP with docs/reference/states.md. */
import type { IconName } from './kit/icons';

export type Tone = 'ok' | 'run' | 'wait' | 'bad' | 'undo' | 'unc' | 'off';
export interface Look {
  word: string;
  icon: IconName;
  tone: Tone;
}

const look = (word: string, icon: IconName, tone: Tone): Look => ({ word, icon, tone });

export const RUN: Record<string, Look> = {
  new: look('Not started', 'pending', 'off'),
  running: look('Running', 'running', 'run'),
  waiting: look('Waiting', 'decision', 'wait'),
  paused: look('Paused', 'paused', 'wait'),
  compensating: look('Undoing', 'undoing', 'undo'),
  failed: look('Failed permanently', 'failed', 'bad'),
  cancelled: look('Cancelled', 'cancelled', 'off'),
  compensation_failed: look('Undo failed', 'undo_failed', 'bad'),
  completed: look('Completed', 'completed', 'ok'),
  compensated: look('Undone', 'undone', 'undo'),
};

export const STEP: Record<string, Look> = {
  pending: look('Not started', 'pending', 'off'),
  ready: look('Ready', 'ready', 'off'),
  running: look('Running', 'running', 'run'),
  waiting: look('Waiting', 'clock', 'wait'),
  failed: look('Failed permanently', 'failed', 'bad'),
  uncertain: look('Outcome unknown', 'uncertain', 'unc'),
  completed: look('Completed', 'completed', 'ok'),
  compensating: look('Undoing', 'undoing', 'undo'),
  compensation_failed: look('Undo failed', 'undo_failed', 'bad'),
  skipped: look('Skipped', 'skipped', 'off'),
  cancelled: look('Cancelled', 'cancelled', 'off'),
  compensated: look('Undone', 'undone', 'undo'),
};

/** What `waiting` means, by who or what is waited for. */
export const WAITING: Record<string, Look> = {
  approval: look('Waiting for approval', 'person', 'wait'),
  confirmation: look('Waiting for confirmation', 'person', 'wait'),
  decision: look('Waiting for a decision', 'decision', 'wait'),
  agent: look('Waiting for agent', 'robot', 'wait'),
  retry: look('Waiting to retry', 'clock', 'wait'),
  time: look('Waiting for a time', 'clock', 'wait'),
  breaker: look('Waiting: server is not being called', 'clock', 'wait'),
  limit: look('Waiting for a free place', 'clock', 'wait'),
};

export const ATTEMPT: Record<string, Look> = {
  attempt_failed: look('Failed try', 'failed', 'bad'),
  completed: look('Worked', 'completed', 'ok'),
  running: look('Running', 'running', 'run'),
  lost: look('Outcome unknown', 'uncertain', 'unc'),
};

export const SERVER: Record<string, Look> = {
  used: look('Working', 'completed', 'ok'),
  not_called: look('Not called yet', 'ready', 'off'),
  open: look('Not being called', 'failed', 'bad'),
  half_open: look('Trying again', 'clock', 'wait'),
  changed: look('Changed since pinned', 'warning', 'wait'),
  untrusted: look('Not trusted yet', 'lock', 'wait'),
};

/** How a step is known to be done. "Verified" only if a check looked at the world. */
export const PROOF: Record<string, { word: string; icon: IconName }> = {
  executed: { word: 'executed', icon: 'bolt' },
  verified: { word: 'verified', icon: 'approvals' },
  checked: { word: 'claimed, form checked', icon: 'said' },
  approved: { word: 'approved', icon: 'person' },
  claimed: { word: 'claimed', icon: 'said' },
  carried: { word: 'carried over', icon: 'link' },
};

const UNKNOWN = look('Unknown state', 'uncertain', 'unc');

export function runLook(status: string, waiting?: string): Look {
  if (status === 'waiting' && waiting && WAITING[waiting]) return WAITING[waiting];
  return RUN[status] ?? UNKNOWN;
}

export function stepLook(status: string, waiting?: string): Look {
  if (status === 'waiting' && waiting && WAITING[waiting]) return WAITING[waiting];
  return STEP[status] ?? UNKNOWN;
}

/** States in which a step asks for somebody, worst first. */
export const ATTENTION = ['compensation_failed', 'uncertain', 'failed', 'waiting', 'compensating', 'running', 'ready'];
