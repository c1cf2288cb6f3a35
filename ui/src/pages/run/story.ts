/** The journal as a story: routine entries are folded into sentences; what people, checks and failures said stands alone. Pure. */
import type { EventView } from '../../core/contract';
import { actor, capital, count, duration, listed, number, said, spaced } from '../../core/words';
import type { IconName } from '../../kit/icons';
import type { Tone } from '../../states';

export interface Chapter {
  from: number;
  to: number;
  at: string;
  icon: IconName;
  tone: Tone | '2';
  /** A card stands alone; a line is routine. */
  isCard: boolean;
  lead: string;
  text?: string;
  quote?: string;
  small?: string;
  kinds: ReadonlySet<string>;
  actors: ReadonlySet<string>;
}

type Data = Record<string, any>;
const UNDO_KINDS = new Set(['undo_started', 'undo_lost', 'step_compensated']);
const ROUTINE = new Set(['attempt_started', 'step_completed', 'step_opened', 'round_started', 'retry_scheduled', 'attempt_failed', 'attempt_lost', 'step_handed_out', 'project_recorded', 'vars_set', 'step_deferred', 'step_carried', 'action_recorded', 'step_cancelled', 'answer_came_late']);

export const KIND_GROUPS: Record<string, ReadonlySet<string>> = {
  decisions: new Set(['decision_recorded', 'approval_requested', 'approval_given', 'approval_rejected', 'approval_overridden', 'approval_expired', 'approval_withdrawn', 'run_paused', 'run_resumed', 'run_cancelled', 'step_retried', 'step_skipped', 'step_accepted', 'compensation_started']),
  failures: new Set(['attempt_failed', 'retry_scheduled', 'step_failed', 'run_failed', 'output_refused', 'attempt_lost', 'step_became_uncertain', 'undo_failed', 'undo_lost', 'undo_became_uncertain', 'run_compensation_failed']),
  undo: new Set(['compensation_started', 'undo_started', 'undo_failed', 'undo_lost', 'undo_became_uncertain', 'step_compensated', 'run_compensated', 'run_compensation_failed']),
};

export function storyOf(events: readonly EventView[], title: (step: string) => string): readonly Chapter[] {
  const chapters: Chapter[] = [];
  let routine: EventView[] = [];
  let undo: EventView[] = [];
  const close = (): void => {
    if (routine.length) chapters.push(...routineChapters(routine, title));
    if (undo.length) chapters.push(undoChapter(undo, title));
    routine = [];
    undo = [];
  };
  for (const event of events) {
    const silent = event.kind === 'step_skipped' && event.actor === 'handrail';
    if (ROUTINE.has(event.kind) || silent) {
      if (undo.length) close();
      routine.push(event);
    } else if (UNDO_KINDS.has(event.kind)) {
      if (routine.length) close();
      undo.push(event);
    } else {
      const own = event.kind === 'step_failed' ? takeOwn(routine, event.step ?? '') : [];
      close();
      chapters.push(own.length ? withTries(cardOf(event, title), own) : cardOf(event, title));
    }
  }
  close();
  return chapters;
}

/** The tries of a step that then failed belong to its card. */
function takeOwn(routine: EventView[], step: string): readonly EventView[] {
  const own: EventView[] = [];
  while (routine.length && routine[routine.length - 1]!.step === step) own.unshift(routine.pop()!);
  return own;
}

function withTries(card: Chapter, own: readonly EventView[]): Chapter {
  const tries = own.filter((event) => event.kind === 'attempt_failed');
  const took = tries.reduce((sum, event) => sum + Number((event.data as Data)?.took ?? 0), 0);
  const words = tries.length ? [count(tries.length, 'try', 'tries'), took ? duration(took) : ''].filter(Boolean).join(', ') : '';
  return { ...card, from: own[0]!.n, at: own[0]!.at, small: [card.small, words].filter(Boolean).join(' · '), kinds: new Set([...card.kinds, ...own.map((event) => event.kind)]) };
}

const base = (events: readonly EventView[]): Pick<Chapter, 'from' | 'to' | 'at' | 'kinds' | 'actors'> => ({
  from: events[0]!.n,
  to: events[events.length - 1]!.n,
  at: events[0]!.at,
  kinds: new Set(events.map((event) => event.kind)),
  actors: new Set(events.map((event) => event.actor)),
});

/** What was done in one go, and a line of its own for each step that needed more than one try. */
function routineChapters(events: readonly EventView[], title: (step: string) => string): readonly Chapter[] {
  const chapters: Chapter[] = [];
  const done = events.filter((event) => event.kind === 'step_completed');
  const skipped = events.filter((event) => event.kind === 'step_skipped');
  const failed = new Map<string, EventView[]>();
  for (const event of events) {
    if (event.kind === 'attempt_failed') failed.set(event.step!, [...(failed.get(event.step!) ?? []), event]);
  }
  const parts: string[] = [];
  if (done.length) parts.push(`Completed ${listed(distinct(done.map((event) => `“${title(event.step!)}”`)), 4)}`);
  if (skipped.length) parts.push(`skipped ${listed(distinct(skipped.map((event) => `“${title(event.step!)}”`)), 3)}`);
  const handed = events.filter((event) => event.kind === 'step_handed_out');
  if (handed.length) parts.push(`${parts.length ? 'handed' : 'Handed'} ${listed(distinct(handed.map((event) => title(event.step!))), 3)} to ${listed(distinct(handed.map((event) => actor(String((event.data as Data)?.agent ?? event.actor)) || 'an agent')))}`);
  const acts = events.filter((event) => event.kind === 'action_recorded');
  if (acts.length) parts.push(acts.length === 1 ? `${actor(acts[0]!.actor)}: ${String((acts[0]!.data as Data)?.description ?? 'recorded an action')}` : `recorded ${count(acts.length, 'action')}`);
  const started = distinct(events.filter((event) => event.kind === 'attempt_started').map((event) => event.step!)).filter((step) => !done.some((event) => event.step === step) && !failed.has(step));
  if (!parts.length && started.length) parts.push(`Started ${listed(started.map(title), 3)}`);
  if (!parts.length) parts.push(capital(listed(distinct(events.map((event) => spaced(event.kind))), 3)));
  const took = Date.parse(events[events.length - 1]!.at) - Date.parse(events[0]!.at);
  chapters.push({ ...base(events), icon: done.length ? 'completed' : handed.length ? 'robot' : 'running', tone: done.length ? 'ok' : '2', isCard: false, lead: '', text: parts.join(', ') + (took > 100 ? ` in ${duration(took)}` : ''), small: events.length > 3 ? count(events.length, 'entry', 'entries') : undefined });
  for (const [step, list] of failed) {
    const last = list[list.length - 1]!;
    const works = done.some((event) => event.step === step && event.n > last.n);
    chapters.push({ ...base(list), icon: 'clock', tone: 'wait', isCard: false, lead: `${title(step)} failed ${times(list.length)}:`, text: said(String((last.data as Data)?.message ?? '')).text + (works ? '. Then it worked.' : ''), small: spaced(String((last.data as Data)?.category ?? '')) });
  }
  return chapters;
}

const times = (value: number): string => (value === 1 ? 'once' : value === 2 ? 'twice' : `${number(value)} times`);
const distinct = (words: readonly string[]): string[] => [...new Set(words)];
const HOW: Record<string, string> = { executed: 'executed by handrail', by_agent: 'done by the agent', recorded: 'recorded as done by hand', not_needed: 'not needed' };

function undoChapter(events: readonly EventView[], title: (step: string) => string): Chapter {
  const done = events.filter((event) => event.kind === 'step_compensated');
  const how = distinct(done.map((event) => HOW[String((event.data as Data)?.how ?? '')] ?? ''));
  const text = done.length ? `Undid ${listed(done.map((event) => `“${title(event.step!)}”`), 6)}` : `Started to undo ${listed(distinct(events.map((event) => title(event.step!))), 4)}`;
  return { ...base(events), icon: 'undo', tone: 'undo', isCard: false, lead: '', text: `${text}${how.length === 1 && how[0] ? `, each ${how[0]}` : how.length ? `: ${listed(how.filter(Boolean))}` : ''}`, small: events.length > 2 ? count(events.length, 'entry', 'entries') : undefined };
}

type Words = Omit<Chapter, 'from' | 'to' | 'at' | 'kinds' | 'actors'>;
const card = (icon: IconName, tone: Words['tone'], lead: string, more: Partial<Words> = {}): Words => ({ icon, tone, isCard: true, lead, ...more });
const reasonOf = (data: Data): string | undefined => (data.reason ? String(data.reason) : undefined);

const CARDS: Record<string, (data: Data, who: string, step: string) => Words> = {
  run_started: (data, who) => ({ icon: 'person', tone: '2', isCard: false, lead: who, text: `started the run${inputs(data.inputs)}` }),
  run_adopted: (data, who) => card('project', '2', `${who} gave the run a project`, { quote: reasonOf(data) }),
  run_paused: (data, who) => card('paused', 'wait', `${who} paused the run`, { quote: reasonOf(data) }),
  run_resumed: (data, who) => card('play', 'run', `${who} resumed the run`, { quote: reasonOf(data) }),
  run_cancelled: (data, who) => card('cancelled', 'off', `${who} cancelled the run`, { quote: reasonOf(data), small: 'What was done stays.' }),
  run_completed: () => ({ icon: 'completed', tone: 'ok', isCard: false, lead: 'Run completed.', text: '' }),
  run_failed: (data) => card('failed', 'bad', 'Run failed permanently', { text: String(data.message ?? '') }),
  run_compensated: (data) => ({ icon: 'undone', tone: 'undo', isCard: false, lead: 'Run undone.', text: data.not_compensated?.length ? `Still there: ${listed(data.not_compensated)}.` : 'Nothing was left behind.' }),
  run_compensation_failed: (data) => card('undo_failed', 'bad', 'The undo failed', { text: `Not undone: ${listed([...(data.steps ?? []), ...(data.not_compensated ?? [])], 8)}` }),
  compensation_started: (data, who) => card('undone', 'undo', `${who} chose to undo ${count(data.steps?.length ?? 0, 'step')}`, { quote: reasonOf(data) }),
  approval_requested: (data) => card('person', 'wait', 'Asked for approval:', { text: String(data.text ?? ''), small: [`Bound to digest ${String(data.digest ?? '').replace('sha256:', '').slice(0, 8)}`, data.by?.length ? `for ${listed(data.by.map((one: string) => actor(one)))}` : ''].filter(Boolean).join(' · ') }),
  approval_given: (data, who) => card('approvals', 'ok', `${who} approved`, { quote: reasonOf(data), small: [`Same digest ${String(data.digest ?? '').replace('sha256:', '').slice(0, 8)}: nothing had changed between question and answer`, data.channel ? `by ${data.channel}` : '', data.missing ? `${count(data.missing, 'more answer')} needed` : ''].filter(Boolean).join(' · ') }),
  approval_rejected: (data, who) => card('failed', 'bad', `${who} rejected`, { quote: reasonOf(data), small: data.channel ? `by ${data.channel}` : undefined }),
  approval_overridden: (data, who, step) => card('warning', 'bad', `${who} went past the approval “${step}”`, { quote: reasonOf(data) }),
  approval_expired: (data, _who, step) => card('clock', 'wait', `Nobody answered “${step}” in time`, { text: data.again ? 'It is asked again.' : '' }),
  approval_withdrawn: (data, _who, step) => card('warning', 'wait', `The question “${step}” no longer holds`, { text: `Changed since: ${listed([data.changed ?? ''].flat().map(String))}. It is asked again.` }),
  decision_recorded: (data, who) => card('said', '2', `${who} decided:`, { text: String(data.decision ?? ''), quote: reasonOf(data), small: data.alternatives?.length ? `Also considered: ${listed(data.alternatives.map(String))}` : undefined }),
  output_refused: (data, who, step) => card('failed', 'bad', `“${step}” was not accepted`, { text: (data.findings ?? []).slice(0, 5).map((one: Data) => `${one.rule}: ${one.message}`).join('; '), small: `submitted by ${who}` }),
  step_failed: (data, _who, step) => card('failed', 'bad', `${step} failed permanently:`, { text: said(String(data.message ?? '')).text, small: [said(String(data.message ?? '')).code, spaced(String(data.category ?? ''))].filter(Boolean).join(', ') }),
  step_became_uncertain: (_data, _who, step) => card('uncertain', 'unc', `Nobody knows whether “${step}” happened`, { text: 'handrail was stopped in the middle.' }),
  undo_became_uncertain: (_data, _who, step) => card('uncertain', 'unc', `Nobody knows whether “${step}” is undone`),
  undo_failed: (data, _who, step) => card('undo_failed', 'bad', `Undo of ${step} failed${data.final ? ' permanently' : ''}:`, { text: said(String(data.message ?? '')).text, small: spaced(String(data.category ?? '')) }),
  step_skipped: (data, who, step) => card('skipped', 'off', `${who} skipped “${step}”`, { quote: reasonOf(data) }),
  step_retried: (data, who, step) => card('running', 'run', `${who} chose to retry “${step}”`, { quote: reasonOf(data) }),
  step_accepted: (data, who, step) => card('completed', 'ok', `${who} said that “${step}” did happen`, { quote: reasonOf(data) }),
};

function cardOf(event: EventView, title: (step: string) => string): Chapter {
  const data = (event.data ?? {}) as Data;
  const step = event.step ? title(event.step) : '';
  if (event.erased) return { ...base([event]), ...card('lock', 'off', `${spaced(event.kind)}: the words of this entry were erased.`, { small: 'The chain still holds.' }) };
  const words = CARDS[event.kind]?.(data, actor(event.actor), step) ?? card('said', '2', capital(spaced(event.kind)), { text: step });
  return { ...base([event]), ...words };
}

function inputs(given: unknown): string {
  const entries = Object.entries((given as Data) ?? {}).slice(0, 4);
  if (!entries.length) return '';
  return `: ${entries.map(([name, value]) => `${name} ${typeof value === 'string' ? value.slice(0, 60) : JSON.stringify(value).slice(0, 60)}`).join(', ')}`;
}
