/** Decide: every control first shows what it would do, as the server computes it; asks for a reason; and is done when the receipt is back. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { newKey, Refused, useRead, write } from '../../core/api';
import type { CallAhead, Done, LegalAction, Preview, RunView } from '../../core/contract';
import { mod, useKeys } from '../../core/keys';
import { isLive } from '../../core/live';
import { enc, go, place } from '../../core/router';
import { useStore } from '../../core/store';
import { capital, count, listed, number, spaced } from '../../core/words';
import { NoAnswer } from '../../frame/shell';
import { Icon } from '../../kit/icons';
import { Button, Twin, copyText, toast } from '../../kit/kit';
import { RUN } from '../../states';
import { ACTIONS, actionHref, commandOf } from './actions';
import { curl } from './header';
import { GroupPanel } from './group';
import { runPath, tabHref, type Row } from './model';
import { callArgs, callShort } from './panel';

export interface DoProps {
  run: string;
  view: RunView;
  rows: readonly Row[];
  action: string;
  step: string;
  tab: string;
}

const rarely = (category: string): string => `An error of this kind (${spaced(category)}) rarely heals by itself.`;
const RETRIED = new Set(['transient', 'timeout', 'rate_limited']);

export function DoPanel(props: DoProps): JSX.Element {
  const like = place.value.query.get('like');
  return like ? <GroupPanel key={props.action} {...props} like={like} /> : <OnePanel {...props} />;
}

function OnePanel({ run, view, rows, action, step, tab }: DoProps): JSX.Element {
  const path = runPath(run, `/do/${action}${step ? `?step=${encodeURIComponent(step)}` : ''}`);
  // That something was done by hand is only recorded: nothing is called, so there is nothing to preview.
  const isRecord = action === 'record';
  // A fork needs a step: until one is chosen there is nothing to look at either.
  const preview = useRead<Preview>(isRecord || (action === 'fork' && !step) ? null : path, { run });
  const [reason, setReason] = useState('');
  const [passphrase, setPassphrase] = useState('');
  const [output, setOutput] = useState('');
  const [state, setState] = useState<'' | 'sending' | 'late'>('');
  const [refused, setRefused] = useState<Refused | null>(null);
  const key = useRef({ of: '', key: '' });
  const live = useStore(isLive);
  const given = isRecord ? ({ action, run, step, legal: true, allowed: true, means: 'Nothing is called. Your words go into the journal, and the step counts as undone' } as unknown as Preview) : preview.data;
  const byHand = (view.failure?.options ?? []).filter((one) => one.action === 'record') as unknown as LegalAction[];
  const options = action === 'fork' ? forks(rows) : optionsOf([...(view.actions ?? []), ...byHand], action, step);
  const first = action === 'fork' && !step ? (options.find((one) => one.step === view.failure?.step) ?? options.at(-1))?.step : undefined;
  useEffect(() => {
    if (first) go(actionHref(run, 'fork', first), true);
  }, [first]);
  const legal = !!given?.legal && given.allowed !== false;
  const isReady = live && legal && !!reason.trim() && state === '' && (!given?.passphrase || !!passphrase);

  const send = async (): Promise<void> => {
    if (!isReady || !given) return;
    const body = isRecord ? { step, description: reason.trim() } : { reason: reason.trim(), step: step || '', ...(given.passphrase ? { passphrase } : {}), ...(action === 'accept' && output.trim() ? { output: valueOf(output) } : {}) };
    const same = JSON.stringify([path, body]);
    // The key is kept as long as the request is the same: a second click can't be a second control.
    if (key.current.of !== same) key.current = { of: same, key: newKey() };
    setState('sending');
    setRefused(null);
    try {
      const done = await write<Done>(runPath(run, isRecord ? '/compensation' : `/${action}`), body, key.current.key, () => setState('late'));
      const entry = Number(done.receipt.split(':')[0]);
      const words = ACTIONS[action]?.word ?? action;
      toast({ text: `${doneWords(action)}${done.repeated ? ' (it was done before)' : ''}.`, href: entry ? `/runs/${enc(done.run)}/journal/${entry}` : undefined, link: entry ? `Entry ${number(entry)}` : words });
      go(action === 'fork' ? tabHref(done.run, 'steps') : tabHref(run, tab));
    } catch (error) {
      setState('');
      setRefused(error instanceof Refused ? error : new Refused({ detail: String(error) }));
      preview.again();
    }
  };
  useKeys({ 'mod+Enter': () => void send() });
  // Who came by a key reads the preview first; the reason is one Tab away.
  useEffect(() => document.querySelector<HTMLElement>('.option[aria-checked=true]')?.focus(), []);
  return (
    <>
      <header>
        <div class="grow">
          <h2>{options.length > 1 ? 'What should happen?' : `${ACTIONS[action]?.word ?? action}?`}</h2>
          <p class="meta">Nothing moves until you choose. Your choice goes into the journal.</p>
        </div>
        <Button kind="quiet" small icon="close" label="Not now" href={tabHref(run, tab)} />
      </header>
      <div class="options" role="radiogroup" aria-label="What should happen">
        {options.map((one) => {
          const isChosen = one.action === action && (one.step ?? '') === step;
          return (
            <div key={one.action + one.step} class="option" role="radio" aria-checked={isChosen} tabIndex={isChosen ? 0 : -1} onClick={() => go(actionHref(run, one.action, one.step), true)} onKeyDown={(event) => moveOption(event, run, options, action, step)}>
              <b>{optionTitle(one, rows)}</b>
              {isChosen ? given ? <PreviewBody given={given} rows={rows} view={view} /> : <NoAnswer whole={false} {...preview} rows={3} /> : <span class="meta">{optionNote(one, view, rows)}</span>}
            </div>
          );
        })}
      </div>
      {refused ? <NotDone refused={refused} word={ACTIONS[action]?.word ?? action} run={run} /> : null}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        {action === 'accept' ? (
          <div class="field" style={{ marginTop: '16px' }}>
            <label for="output">
              What it gave back <span>(its output, as JSON or text; optional)</span>
            </label>
            <textarea id="output" class="mono" rows={2} maxLength={100_000} value={output} onInput={(event) => setOutput(event.currentTarget.value)} />
          </div>
        ) : null}
        <ReasonField value={reason} onInput={setReason} />
        {given?.passphrase ? (
          <div class="field" style={{ marginTop: '8px' }}>
            <label for="passphrase">
              Passphrase <span>(this goes past an approval)</span>
            </label>
            <input id="passphrase" type="password" autocomplete="off" value={passphrase} onInput={(event) => setPassphrase(event.currentTarget.value)} />
          </div>
        ) : null}
        <div class="acts">
          <Button type="submit" kind={action === 'compensate' ? 'undo' : 'primary'} icon={ACTIONS[action]?.icon} kbd={`${mod} ↵`} disabled={!isReady}>
            {state ? 'Sending…' : buttonWords(action, step, given, rows)}
          </Button>
          <Button href={tabHref(run, tab)}>Not now</Button>
        </div>
        {state === 'late' ? <p class="meta">handrail has not answered yet; it is safe to wait. The same click cannot happen twice.</p> : null}
        {!live ? <p class="meta">Actions are back when the page is live.</p> : null}
      </form>
      <div class="row">
        <div class="grow">
          <Twin command={commandOf(run, action, step, reason.trim() || '…')} label="Copy as CLI" />
        </div>
        <Button kind="quiet" small label="Copy as curl" onClick={() => void copyText(curlOf(run, isRecord ? 'compensation' : action, step, reason))}>
          curl
        </Button>
      </div>
    </>
  );
}

export const ReasonField = ({ value, onInput, note = '(required)' }: { value: string; onInput: (text: string) => void; note?: string }): JSX.Element => (
  <div class="field" style={{ marginTop: '16px' }}>
    <label for="reason">
      Reason <span>{note}</span>
    </label>
    <textarea id="reason" rows={2} maxLength={2000} value={value} onInput={(event) => onInput(event.currentTarget.value)} />
  </div>
);

/** What somebody typed: a value if it reads as JSON, else the text itself. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

const curlOf = (run: string, action: string, step: string, reason: string): string =>
  `${curl(`/api/v1/runs/${enc(run)}/${action}`)} -H 'Content-Type: application/json' -d '${JSON.stringify({ [action === 'compensation' ? 'description' : 'reason']: reason || '…', ...(step ? { step } : {}) }).replace(/'/g, `'\\''`)}'`;

function moveOption(event: KeyboardEvent, run: string, options: readonly LegalAction[], action: string, step: string): void {
  const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  if (!by || (event.target as HTMLElement).getAttribute('role') !== 'radio') return;
  event.preventDefault();
  event.stopPropagation();
  const here = options.findIndex((one) => one.action === action && (one.step ?? '') === step);
  const next = options[(here + by + options.length) % options.length];
  if (!next) return;
  go(actionHref(run, next.action, next.step), true);
  requestAnimationFrame(() => document.querySelector<HTMLElement>('.option[aria-checked=true]')?.focus());
}

/** The steps that a new run can start from; of many the newest. */
const forks = (rows: readonly Row[]): readonly LegalAction[] =>
  rows
    .filter((row) => !row.depth && row.step.started)
    .slice(-30)
    .map((row) => ({ action: 'fork', step: row.step.id }));

/** The controls to choose from: those of this step and of the run; what only pauses stands alone. */
function optionsOf(actions: readonly LegalAction[], action: string, step: string): readonly LegalAction[] {
  const alone = new Set(['pause', 'resume']);
  const asked = { action, step } as LegalAction;
  if (alone.has(action)) return [asked];
  const about = step || actions.find((one) => one.action === 'retry' || one.action === 'skip' || one.action === 'accept')?.step || '';
  const fit = actions.filter((one) => ACTIONS[one.action] && one.action !== 'fork' && !alone.has(one.action) && (!one.step || one.step === about));
  const list = fit.some((one) => one.action === action && (one.step ?? '') === step) ? fit : [asked, ...fit];
  return [...list].sort((a, b) => (ACTIONS[a.action]?.rank ?? 9) - (ACTIONS[b.action]?.rank ?? 9));
}

const named = (step: string | undefined, rows: readonly Row[]): string => rows.find((row) => row.step.id === step)?.title ?? step ?? '';

function optionTitle(one: LegalAction, rows: readonly Row[]): string {
  const step = named(one.step, rows);
  // What failed is then its undo.
  const isUndo = rows.some((row) => row.step.id === one.step && row.step.status === 'compensation_failed');
  switch (one.action as string) {
    case 'retry':
      return `Retry ${isUndo ? 'the undo of ' : ''}“${step}”`;
    case 'skip':
      return isUndo ? `Leave “${step}” as it is` : `Skip “${step}” and go on`;
    case 'accept':
      return `“${step}” did happen`;
    case 'record':
      return `“${step}” was undone by hand`;
    case 'compensate':
      return 'Undo what this run did';
    case 'cancel':
      return 'Cancel and keep everything';
    case 'pause':
      return 'Start no new steps';
    case 'resume':
      return 'Go on';
    case 'fork':
      return `A new run from “${step}” on`;
    default:
      return one.action;
  }
}

function optionNote(one: LegalAction, view: RunView, rows: readonly Row[]): string {
  const means = [...(view.failure?.options ?? []), ...(view.options ?? [])].find((option) => option.action === one.action)?.means;
  if (one.action === 'retry') {
    const category = rows.find((row) => row.step.id === one.step)?.step.category;
    if (category && !RETRIED.has(category)) return rarely(category);
  }
  // The server names steps by id, behind a colon or the verb.
  const found = /^(undo |.*?: )(.+)$/i.exec(means ?? '');
  return sentence(found ? found[1] + found[2]!.replace(/[\w.[\]-]*[\w\]]/g, (id) => named(id, rows)) : means);
}

const sentence = (words: string | undefined): string => (words ? capital(words).replace(/\.?$/, '.') : '');

function PreviewBody({ given, rows, view }: { given: Preview; rows: readonly Row[]; view: RunView }): JSX.Element {
  const calls = given.calls ?? [];
  const stays = given.stays ?? [];
  const notes = given.notes ?? [];
  const refusal = given.message || (given.allowed === false ? given.why : '');
  const isUndo = given.action === 'compensate';
  const category = rows.find((row) => row.step.id === given.step)?.step.category;
  return (
    <>
      {refusal ? (
        <span class="meta c-bad">
          {refusal} {given.hint} {given.who_may ? `May: ${given.who_may}.` : ''}
        </span>
      ) : (
        <span class="meta">{given.action === 'retry' && category && !RETRIED.has(category) ? rarely(category) : isUndo ? `${count(calls.length, 'step')}, newest first.` : sentence(given.means)}</span>
      )}
      {given.in_progress?.length ? <span class="meta">{count(given.in_progress.length, 'step')} being executed now end{given.in_progress.length === 1 ? 's' : ''} first: {listed(given.in_progress.map((one) => named(one, rows)))}.</span> : null}
      {calls.length ? (
        <ol class="ahead">
          {calls.slice(0, 60).map((call, index) => (
            <li key={`${call.step} ${index}`}>
              <span class="n" style={isUndo ? undefined : { color: 'var(--text3)' }}>
                {number(call.order ?? index + 1)}
              </span>
              <span class="cut" title={call.step}>
                {named(call.step, rows) || call.title}
                {call.by && call.by !== 'handrail' ? <span class="c-wait"> · by {call.by === 'agent' ? 'the agent' : 'a person'}</span> : null}
                {call.problem ? <span class="c-bad"> · would fail: {call.problem}</span> : null}
              </span>
              <code class="c-2" title={callArgs(call.args)}>
                {callText(call)}
              </code>
            </li>
          ))}
        </ol>
      ) : null}
      {given.unshown || calls.length > 60 ? <span class="meta">and {number((given.unshown ?? 0) + Math.max(0, calls.length - 60))} more</span> : null}
      {given.fork ? <span class="meta">{count(given.fork.carried?.length ?? 0, 'step')} carried over, {count(given.fork.again?.length ?? 0, 'step')} done again.</span> : null}
      {refusal ? null : stays.length ? (
        <div class="stays c-bad">
          <Icon name="warning" size={14} />
          <span>
            <b>What stays behind:</b> {listed(stays.map((one) => (named(one.step, rows) || one.title) + staysWhy(one.why)), 8)}
          </span>
        </div>
      ) : isUndo || given.action === 'cancel' ? (
        <div class="stays">
          <Icon name="completed" tone="ok" size={14} />
          <span>Nothing stays behind.</span>
        </div>
      ) : null}
      {notes.map((note) => (
        <span class="meta" key={note}>
          {sentence(note)}
        </span>
      ))}
      {given.ends || given.becomes ? <span class="meta">The run is then {(RUN[given.ends ?? given.becomes ?? '']?.word ?? spaced(given.ends ?? given.becomes ?? '')).toLowerCase()}{view.status === given.becomes ? ', as it is now' : ''}.</span> : null}
    </>
  );
}

const STAYS: Record<string, string> = { no_undo: ' (nothing says how to undo it)', unknown: ' (it is unknown whether it happened)', given_up: ' (its undo was given up)', undo_fails: ' (its undo would fail)', not_undone: '' };
const staysWhy = (why: string | undefined): string => (why ? STAYS[why] ?? ` (${why})` : '');

export function callText(call: CallAhead): string {
  if (call.own_undo) return `${call.tool ?? ''} puts back what was there`;
  return callShort(call.tool || call.workflow || '', call.args) || call.text || '';
}

function buttonWords(action: string, step: string, given: Preview | undefined, rows: readonly Row[]): string {
  const calls = given?.calls?.length ?? 0;
  switch (action) {
    case 'compensate':
      return `Undo ${count(calls, 'step')}`;
    case 'retry':
      return `Retry ${named(step, rows) || 'step'}`;
    case 'skip':
      return `Skip ${named(step, rows) || 'step'}`;
    case 'record':
      return 'Say it was undone';
    case 'accept':
      return 'Say it did happen';
    case 'cancel':
      return 'Cancel this run';
    case 'pause':
      return 'Pause this run';
    case 'resume':
      return 'Resume this run';
    case 'fork':
      return 'Start the new run';
    default:
      return action;
  }
}

const doneWords = (action: string): string =>
  ({ compensate: 'Undo started', retry: 'Retry started', skip: 'Skipped', record: 'Recorded', accept: 'Accepted', cancel: 'Cancelled', pause: 'Paused', resume: 'Resumed', fork: 'New run started' })[action] ?? 'Done';

/** What happened instead, in one sentence; the typed reason is kept. */
export function NotDone({ refused, word, run }: { refused: Refused; word: string; run?: string }): JSX.Element {
  const entry = /\bentry (\d+)|\b(\d+):[0-9a-f]{8,}/.exec(refused.message);
  const n = entry?.[1] ?? entry?.[2];
  return (
    <div class="said-no" role="alert">
      <Icon name="failed" tone="bad" />
      <p class="grow">
        <b>{word} did not happen.</b> {refused.message} <span class="c-2">({refused.name})</span>
        {refused.problem.hint ? <> {refused.problem.hint}</> : null} Your reason is kept.
      </p>
      {n && run ? (
        <a class="link nowrap" href={`/runs/${enc(run)}/journal/${n}`}>
          See entry {n}
        </a>
      ) : null}
    </div>
  );
}
