/** Approvals: exactly what is allowed by a yes, whether it can be undone, and what the answer is bound to. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { newKey, Refused, useRead, write } from '../core/api';
import type { AnsweredView, ApprovalPage, ApprovalView, Done, EventView } from '../core/contract';
import { mod, useKeys } from '../core/keys';
import { isLive } from '../core/live';
import { enter } from '../core/project';
import { enc, go } from '../core/router';
import { runName } from '../core/runs';
import { useStore } from '../core/store';
import { actor, clock, count, headed, listed, number, shell, short, spaced, when } from '../core/words';
import { NoAnswer, Shell } from '../frame/shell';
import { Fields, filled, type Schema } from '../kit/form';
import { Icon } from '../kit/icons';
import { Bones, Button, Empty, Pill, StateIcon, Time, Twin, toast } from '../kit/kit';
import type { PageProps } from '../routes';
import { WAITING } from '../states';
import { Effects } from './effects';
import { NotDone } from './run/do';
import { lookOfStep } from './run/model';

const hrefOf = (one: { run: string; step: string }): string => `/approvals/${enc(one.run)}/${enc(one.step)}`;

export function ApprovalsPage({ params }: PageProps): JSX.Element {
  const list = useRead<ApprovalPage>('/approvals', { all: true });
  const all = list.data?.approvals ?? [];
  const mine = all.filter((one) => one.may_answer);
  const others = all.filter((one) => !one.may_answer);
  const isChosen = !!params.run;
  const first = mine[0];
  const chosen = all.find((one) => one.run === params.run && one.step === params.step);
  useEffect(() => {
    if (!isChosen && first && innerWidth > 900) go(hrefOf(first), true);
  }, [isChosen, first?.run, first?.step]);
  useKeys({
    j: () => step(1),
    k: () => step(-1),
  });
  const step = (by: number): void => {
    const at = all.findIndex((one) => one.run === params.run && one.step === params.step);
    const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
    if (next) go(hrefOf(next), true);
  };
  return (
    <Shell crumbs={isChosen ? [{ word: 'Approvals', href: '/approvals' }, { word: headed(chosen?.text ?? '')[0] || spaced(params.step!) }] : [{ word: 'Approvals' }]} title={mine.length === 1 ? '1 approval waits for you' : `${number(mine.length)} approvals wait for you`} flush>
      {list.data ? (
        <div class={`split${isChosen ? ' chosen' : ''}`}>
          <div class="split-list">
            <h1 class="sr">Approvals</h1>
            <h2>
              Waiting for you <span class="c-3">{number(mine.length)}</span>
            </h2>
            {mine.map((one) => (
              <Pick key={one.run + one.step} one={one} chosen={one.run === params.run && one.step === params.step} />
            ))}
            {mine.length ? null : <p class="meta" style={{ padding: '0 10px' }}>Nothing.</p>}
            <h2>
              Waiting for others <span class="c-3">{number(others.length)}</span>
            </h2>
            {others.map((one) => (
              <Pick key={one.run + one.step} one={one} chosen={one.run === params.run && one.step === params.step} />
            ))}
            {others.length ? null : <p class="meta" style={{ padding: '0 10px' }}>Nothing.</p>}
            {list.data.answered?.length ? (
              <>
                <h2>
                  Answered <span class="c-3">{number(list.data.answered.length)}</span>
                </h2>
                {list.data.answered.map((one) => (
                  <Answered key={`${one.run} ${one.n}`} one={one} />
                ))}
              </>
            ) : null}
          </div>
          <div class="split-main">
            {isChosen ? (
              <Approval key={`${params.run} ${params.step}`} run={params.run!} step={params.step!} digest={chosen?.digest ?? ''} answer={list.data.answered?.find((one) => one.run === params.run && one.step === params.step)} />
            ) : (
              <Empty icon="completed" tone="ok" title="No pending approvals">
                When a run asks a person, the question stands here. You can close this page: runs go on without it.
              </Empty>
            )}
          </div>
        </div>
      ) : (
        <div style={{ padding: 'var(--pad)' }}>
          <NoAnswer {...list} />
        </div>
      )}
    </Shell>
  );
}

function Pick({ one, chosen }: { one: ApprovalView; chosen: boolean }): JSX.Element {
  return (
    <a class="pick" href={hrefOf(one)} aria-current={chosen ? 'true' : undefined}>
      <StateIcon look={WAITING.approval!} />
      <div class="grow">
        <p>{headed(one.text)[0]}</p>
        <p class="meta">
          {runName(one)} · <Time at={one.since} />
        </p>
        {one.expires ? <p class="meta c-wait">expires {when(one.expires)}</p> : null}
      </div>
    </a>
  );
}

const answerOf = (one: EventView): string => `${actor(one.actor)} ${one.kind === 'approval_given' ? 'approved' : one.kind === 'approval_overridden' ? 'went past it' : 'rejected'}`;

function Answered({ one }: { one: AnsweredView }): JSX.Element {
  const isYes = one.kind === 'approval_given';
  const data = (one.data ?? {}) as Record<string, unknown>;
  return (
    <a class="pick" href={`/runs/${enc(one.run)}/journal/${one.n}`}>
      <Icon name={isYes ? 'approvals' : 'failed'} tone={isYes ? 'ok' : 'bad'} />
      <div class="grow">
        <p>{headed(one.text ?? '')[0] || `“${one.step}” of ${one.run}`}</p>
        <p class="meta">
          {one.name ? `${[one.name, one.label].filter(Boolean).join(' ')} · ` : ''}
          {answerOf(one)}, {clock(one.at, false)}
          {data.reason ? ` · “${String(data.reason)}”` : ''}
        </p>
      </div>
    </a>
  );
}

/** `digest` is of the question in the list of those that wait; empty if it is not one of them. */
function Approval({ run, step, digest, answer }: { run: string; step: string; digest: string; answer: EventView | undefined }): JSX.Element {
  const given = useRead<ApprovalView>(`/approvals/${enc(run)}/${enc(step)}`);
  const data = given.data;
  const home = data?.project;
  useEffect(() => {
    if (!digest && !home?.hint) enter(home?.id); // it waits in another project: the list of that one has it
  }, [digest, home?.id]);
  const known = useRef(digest);
  useEffect(() => {
    if (known.current !== digest) given.again();
    known.current = digest;
  }, [digest]);
  /** What the reader saw first: if the server's question changes, the card says so and asks again. */
  const seen = useRef('');
  const [changed, setChanged] = useState('');
  useEffect(() => {
    if (!data) return;
    if (!seen.current) seen.current = data.digest;
    else if (seen.current !== data.digest) setChanged(data.digest);
  }, [data?.digest]);
  if (!digest && !given.error) {
    return home?.hint ? (
      <Empty icon="project" title={`It belongs to ${home.name}`}>
        {home.hint}
      </Empty>
    ) : (
      <Bones />
    );
  }
  if (!digest) {
    return (
      <Empty icon="approvals" title={answer ? `${answerOf(answer)} ${clock(answer.at)}` : 'This question is not open'} actions={<Button href={`/runs/${enc(run)}/journal${answer ? `/${answer.n}` : '?show=decisions'}`}>See the journal</Button>}>
        {answer ? `“${String(answer.data?.reason ?? '')}” Your own answer is not needed any more.` : 'It has expired, or the run has moved on.'}
      </Empty>
    );
  }
  if (!data) return <NoAnswer {...given} />;
  const [question, about] = headed(data.text);
  return (
    <article class="approval">
      <div class="row wrap">
        <Pill look={WAITING.approval!} />
        <p class="meta">
          <a class="link" href={`/runs/${enc(run)}`}>
            {run}
          </a>{' '}
          · asked <Time at={data.since} />
          {data.by?.length ? ` · for ${listed(data.by.map(actor))}` : ''}
          {data.expires ? (
            <>
              {' '}
              · expires <Time at={data.expires} />
            </>
          ) : null}
        </p>
      </div>
      <h1 class="question">{question}</h1>
      {about ? <p class="question-about">{about}</p> : null}
      <p class="c-2">
        {runName(data)}
        {(data.approvals ?? 1) > 1 ? ` · ${number(data.approved_by?.length ?? 0)} of ${count(data.approvals!, 'person', 'people')} have said yes${data.approved_by?.length ? `: ${listed(data.approved_by.map(actor))}` : ''}` : ''}
      </p>
      <h2>What a yes lets happen</h2>
      <Effects asked={data} />
      {data.done?.length ? (
        <>
          <h2>What is already done</h2>
          <p class="row wrap">
            {data.done.slice(0, 24).map((one) => (
              <a class="labelled" key={one.id} href={`/runs/${enc(run)}/steps/${enc(one.id)}`}>
                <StateIcon look={lookOfStep(one)} size={14} named />
                <span>
                  {one.title}
                  {(one.attempts ?? 0) > 1 ? <span class="c-wait"> ({one.attempts} tries)</span> : null}
                </span>
              </a>
            ))}
            {data.done.length > 24 ? <span class="c-3">and {number(data.done.length - 24)} more</span> : null}
          </p>
        </>
      ) : null}
      <div class="bound">
        <Icon name="lock" />
        <div class="grow">
          <p>
            <b>Your answer is bound to exactly this.</b> If the text, inputs or steps change, it does not count and you are asked again.
          </p>
          <code title={data.digest}>{data.digest}</code>
        </div>
      </div>
      {changed ? (
        <div class="said-no" role="alert">
          <Icon name="warning" tone="bad" />
          <p class="grow">
            <b>The question has changed while you looked.</b> It was {short(seen.current)}, it is {short(changed)} now. What stands above is the new one: read it again.
          </p>
          <Button
            small
            onClick={() => {
              seen.current = changed;
              setChanged('');
            }}
          >
            I have read it
          </Button>
        </div>
      ) : null}
      {data.may_answer ? <Answer run={run} step={step} data={data} blocked={!!changed} again={given.again} /> : <MayNot data={data} />}
    </article>
  );
}

function MayNot({ data }: { data: ApprovalView }): JSX.Element {
  return (
    <div class="bound">
      <Icon name="person" />
      <p>
        <b>You may not answer.</b> {data.why_not} {data.by?.length ? `It needs ${listed(data.by.map(actor))}.` : ''} {data.hint}
      </p>
    </div>
  );
}

function Answer({ run, step, data, blocked, again }: { run: string; step: string; data: ApprovalView; blocked: boolean; again: () => void }): JSX.Element {
  const [reason, setReason] = useState('');
  const [passphrase, setPassphrase] = useState('');
  const [values, setValues] = useState<Record<string, unknown>>({});
  const [state, setState] = useState<'' | 'approve' | 'reject' | 'late'>('');
  const [refused, setRefused] = useState<Refused | null>(null);
  const key = useRef({ of: '', key: '' });
  const live = useStore(isLive);
  const schema = data.schema as Schema | undefined;
  const isReady = live && !blocked && !!reason.trim() && !state && (!data.needs_passphrase || !!passphrase);
  const send = async (answer: 'approve' | 'reject'): Promise<void> => {
    if (!isReady) return;
    const body = { answer, reason: reason.trim(), digest: data.digest, ...(schema && answer === 'approve' ? { output: filled(schema, values) } : {}), ...(data.needs_passphrase ? { passphrase } : {}) };
    const same = JSON.stringify(body);
    if (key.current.of !== same) key.current = { of: same, key: newKey() };
    setState(answer);
    setRefused(null);
    try {
      const done = await write<Done>(`/approvals/${enc(run)}/${enc(step)}`, body, key.current.key, () => setState('late'));
      const entry = Number(done.receipt.split(':')[0]);
      toast({ text: answer === 'approve' ? 'Approved.' : 'Rejected.', href: `/runs/${enc(run)}/journal/${entry}`, link: `Entry ${number(entry)}` });
      go(`/runs/${enc(run)}`);
    } catch (error) {
      setState('');
      setRefused(error instanceof Refused ? error : new Refused({ detail: String(error) }));
      again();
    }
  };
  useKeys({ 'mod+Enter': () => void send('approve') });
  return (
    <form
      class="answer"
      onSubmit={(event) => {
        event.preventDefault();
        void send('approve');
      }}
    >
      {schema?.properties ? <Fields schema={schema} values={values} onChange={setValues} /> : null}
      <div class="field">
        <label for="reason">
          Reason <span>(required, goes into the journal)</span>
        </label>
        <textarea id="reason" rows={2} maxLength={2000} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </div>
      {data.needs_passphrase ? (
        <div class="field" style={{ marginTop: '8px' }}>
          <label for="passphrase">
            Passphrase <span>(set with handrail approvals passphrase)</span>
          </label>
          <input id="passphrase" type="password" autocomplete="off" value={passphrase} onInput={(event) => setPassphrase(event.currentTarget.value)} />
        </div>
      ) : null}
      {refused ? <NotDone refused={refused} word="Your answer" run={run} /> : null}
      <div class="row wrap">
        <Button type="submit" kind="primary" icon="approvals" kbd={`${mod} ↵`} disabled={!isReady}>
          {state === 'approve' || state === 'late' ? 'Sending…' : 'Approve'}
        </Button>
        <Button kind="danger" disabled={!isReady} onClick={() => void send('reject')}>
          {state === 'reject' ? 'Sending…' : 'Reject'}
        </Button>
        <span class="meta grow">{state === 'late' ? 'handrail has not answered yet; it is safe to wait. The same click cannot happen twice.' : live ? 'Rejecting undoes nothing by itself: the run then waits for a decision, or does what its failure policy says.' : 'Actions are back when the page is live.'}</span>
      </div>
      <div style={{ marginTop: '12px' }}>
        <Twin command={`handrail approve ${run} ${shell(step)} --digest ${data.digest} --reason ${shell(reason.trim() || '…')}`} label="Copy as CLI" />
      </div>
    </form>
  );
}
