/** Steps that failed alike, decided together: one preview each, one reason, and one request each under a key of its own.
 * What became of each is said line by line; what did not happen can be sent again under the same keys. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { newKey, read, Refused, write } from '../../core/api';
import type { Done, Preview } from '../../core/contract';
import { mod, useKeys } from '../../core/keys';
import { isLive } from '../../core/live';
import { useStore } from '../../core/store';
import { count, number, said } from '../../core/words';
import { Icon } from '../../kit/icons';
import { Button, Twin } from '../../kit/kit';
import { ACTIONS, commandOf, groupHref } from './actions';
import { callText, ReasonField, type DoProps } from './do';
import { alike, isOneReason, runPath, runUrl, tabHref, type Row } from './model';

/** How many are shown with the call that would be made; the others are alike. */
const PREVIEWS = 12;
const MOST = 200;
type State = 'sending' | Done | Refused | undefined;

export function GroupPanel({ run, view, rows, action, like, tab }: DoProps & { like: string }): JSX.Element {
  // As they were when the panel was opened: those that are decided leave the list of failures one by one.
  const [group, setGroup] = useState<readonly Row[]>([]);
  const [previews, setPreviews] = useState<ReadonlyMap<string, Preview>>(new Map());
  const [states, setStates] = useState<ReadonlyMap<string, State>>(new Map());
  const [reason, setReason] = useState('');
  const [isSending, setSending] = useState(false);
  const keys = useRef(new Map<string, string>());
  const gone = useRef(false);
  const live = useStore(isLive);
  const word = ACTIONS[action]?.word ?? action;
  useEffect(() => () => void (gone.current = true), []);
  useEffect(() => {
    if (!group.length) setGroup(alike(rows, like).slice(0, MOST));
  }, [rows]);
  useEffect(() => {
    let isOver = false;
    const all = new Map<string, Preview>();
    void (async () => {
      for (const { step } of group.slice(0, PREVIEWS)) {
        const one = await read<Preview>(runPath(run, `/do/${action}?step=${encodeURIComponent(step.id)}`)).catch(() => undefined);
        if (isOver) return;
        if (one) setPreviews(new Map(all.set(step.id, one)));
      }
    })();
    return () => {
      isOver = true;
    };
  }, [group, action]);
  const isDone = (row: Row): boolean => !!states.get(row.step.id) && states.get(row.step.id) !== 'sending' && !(states.get(row.step.id) instanceof Refused);
  const may = (row: Row): boolean => !!view.actions?.some((one) => one.action === action && one.step === row.step.id);
  const left = group.filter((row) => !isDone(row) && may(row));
  const done = group.filter(isDone).length;
  const failed = [...states.values()].filter((one) => one instanceof Refused).length;
  const isReady = live && !isSending && !!reason.trim() && left.length > 0;

  const send = async (): Promise<void> => {
    if (!isReady) return;
    setSending(true);
    const mark = (step: string, state: State): void => setStates((old) => new Map(old).set(step, state));
    for (const { step } of left) {
      const body = { reason: reason.trim(), step: step.id };
      const same = JSON.stringify([action, body]);
      const key = keys.current.get(same) ?? newKey();
      keys.current.set(same, key);
      mark(step.id, 'sending');
      try {
        mark(step.id, await write<Done>(runPath(run, `/${action}`), body, key));
      } catch (error) {
        const refused = error instanceof Refused ? error : new Refused({ detail: String(error) });
        mark(step.id, refused);
        // Without an answer, the others would get none either.
        if (!refused.status) break;
      }
      if (gone.current) return;
    }
    setSending(false);
  };
  useKeys({ 'mod+Enter': () => void send() });
  return (
    <>
      <header>
        <div class="grow">
          <h2>
            {count(group.length, 'step')} failed {isOneReason(group) ? 'for one reason' : 'alike'}
          </h2>
          <p class="meta">
            {isOneReason(group) ? '' : 'The first: '}
            {said(group[0]?.step.message).text}
          </p>
        </div>
        <Button kind="quiet" small icon="close" label="Not now" href={tabHref(run, tab)} />
      </header>
      <nav class="seg" style={{ marginTop: '10px' }} aria-label="What should happen to all of them">
        {['retry', 'skip'].map((one) => (
          <a key={one} href={groupHref(run, one, like)} aria-current={one === action ? 'true' : undefined}>
            {ACTIONS[one]!.word} all {number(group.length)}
          </a>
        ))}
      </nav>
      <ol class="ahead together">
        {group.map((row, index) => (
          <li key={row.step.id}>
            <span class="n">{number(index + 1)}</span>
            <span class="cut" title={row.step.id}>
              {row.title}
            </span>
            <Outcome run={run} state={states.get(row.step.id)} preview={previews.get(row.step.id)} may={may(row)} />
          </li>
        ))}
      </ol>
      {done || failed ? (
        <p class="labelled" role="status">
          <Icon name={failed ? 'warning' : 'completed'} tone={failed ? 'bad' : 'ok'} />
          <b>
            {number(done)} of {count(group.length, 'step')} done{failed ? `, ${number(failed)} did not happen` : isSending ? '' : '.'}
          </b>
        </p>
      ) : null}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        {left.length ? <ReasonField value={reason} onInput={setReason} note="(required, the same for all)" /> : null}
        <div class="acts">
          {left.length ? (
            <Button type="submit" kind="primary" icon={ACTIONS[action]?.icon} kbd={`${mod} ↵`} disabled={!isReady}>
              {isSending ? 'Sending…' : failed ? `${word} the other ${number(left.length)}` : `${word} ${count(left.length, 'step')}`}
            </Button>
          ) : null}
          <Button href={tabHref(run, tab)}>{done ? 'Close' : 'Not now'}</Button>
        </div>
        {live ? null : <p class="meta">Actions are back when the page is live.</p>}
      </form>
      <Twin command={group.map((row) => commandOf(run, action, row.step.id, reason.trim() || '…')).join('\n')} label="Copy as CLI" />
    </>
  );
}

function Outcome({ run, state, preview, may }: { run: string; state: State; preview: Preview | undefined; may: boolean }): JSX.Element {
  if (state === 'sending') return <span class="c-2">Sending…</span>;
  if (state instanceof Refused) return <span class="c-bad">Did not happen: {state.message}</span>;
  if (state) {
    const entry = Number(state.receipt.split(':')[0]);
    return (
      <a class="link" href={runUrl(run, `/journal/${entry}`)}>
        Done, entry {number(entry)}
      </a>
    );
  }
  if (!may) return <span class="c-3">not possible now</span>;
  if (preview && (!preview.legal || !preview.allowed)) return <span class="c-bad">{preview.message || preview.why}</span>;
  const call = preview?.calls?.[0];
  return <code class="cut c-2">{call ? callText(call) : ''}</code>;
}
