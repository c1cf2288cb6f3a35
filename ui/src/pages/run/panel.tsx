/** One step: what went wrong first, then what went in and out, then the small print. */
import type { ComponentChildren, JSX } from 'preact';
import { useRead } from '../../core/api';
import type { CheckView, LegalAction, StepDetail, TryView, UndoView } from '../../core/contract';
import { useKeys } from '../../core/keys';
import { isLive } from '../../core/live';
import { enc, go, usePlace, withQuery } from '../../core/router';
import { useStore } from '../../core/store';
import { actor, clock, count, duration, exact, instant, listed, number, said, short, spaced } from '../../core/words';
import { NoAnswer } from '../../frame/shell';
import { Icon } from '../../kit/icons';
import { Button, Pill, copyText } from '../../kit/kit';
import { Value } from '../../kit/value';
import { ATTEMPT, PROOF, WAITING } from '../../states';
import { ACTIONS, actionHref } from './actions';
import { lookOfStep, runPath, tabHref, type Row, type Step } from './model';

interface PanelProps {
  run: string;
  step: string;
  rows: readonly Row[];
  tab: string;
}

export function StepPanel({ run, step, rows, tab }: PanelProps): JSX.Element {
  const { query } = usePlace();
  const at = query.get('at');
  const detail = useRead<StepDetail>(runPath(run, `/steps/${enc(step)}${at ? `?at=${at}` : ''}`), at ? undefined : { run });
  const data = detail.data;
  const row = rows.find((one) => one.step.id === step);
  const view = (data?.step ?? row?.step) as Step | undefined;
  const tries = (data?.tries ?? []).filter((one) => !one.is_undo);
  const chosen = Number(query.get('try')) || tries.length;
  const pick = (number: number): void => {
    if (number >= 1 && number <= tries.length) go(withQuery({ try: String(number) }), true);
  };
  useKeys({ '[': () => pick(chosen - 1), ']': () => pick(chosen + 1) });
  if (!view) {
    return (
      <>
        <PanelHead run={run} tab={tab} note="" title={step} />
        <NoAnswer whole={false} {...detail} />
      </>
    );
  }
  const look = lookOfStep(view);
  const words = said(view.message);
  const note = row ? `Step ${number(row.index + 1)} of ${number(rows.length)}` : '';
  const held = view.status === 'waiting' && view.due ? ` · held until ${clock(view.due)}` : '';
  return (
    <>
      <PanelHead run={run} tab={tab} note={note + held} title={row?.title ?? view.title ?? step} />
      <div class="tags">
        <Pill look={look} />
        <ProofTag proof={view.proof || (view.status === 'completed' ? { tool: 'executed', approve: 'approved' }[view.kind as string] : '')} />
        {view.by ? (
          <span class="tag">
            {view.status === 'waiting' ? 'with' : 'by'} {actor(view.by)}
          </span>
        ) : null}
        <code class="tag">{view.id}</code>
      </div>
      <StepActions run={run} actions={data?.actions ?? []} step={step} asked={view.kind === 'prompt' && ['ready', 'waiting'].includes(view.status)} />
      {view.message && (look.tone === 'bad' || look.tone === 'unc' || view.status === 'skipped') ? (
        <div class={`said-no${view.status === 'skipped' ? ' ok' : ''}`}>
          <Icon name={look.icon} tone={look.tone} />
          <p class="grow">
            {words.text} <span class="c-2">· {[words.code, view.category && spaced(view.category), words.host && `from ${words.host}`].filter(Boolean).join(', ')}</span>
          </p>
        </div>
      ) : null}
      {data ? <Detail run={run} data={data} view={view} tries={tries} chosen={chosen} /> : <NoAnswer whole={false} {...detail} rows={5} />}
    </>
  );
}

function PanelHead({ run, tab, note, title }: { run: string; tab: string; note: string; title: string }): JSX.Element {
  return (
    <header>
      <div class="grow">
        <p class="meta">{note}</p>
        <h2>{title}</h2>
      </div>
      <Button kind="quiet" small icon="link" label="Copy link to this step" onClick={() => void copyText(location.origin + location.pathname, 'Link copied')} />
      <Button kind="quiet" small icon="close" label="Close the panel" href={tabHref(run, tab)} />
    </header>
  );
}

export function ProofTag({ proof }: { proof?: string }): JSX.Element | null {
  if (!proof) return null;
  const words = PROOF[proof] ?? { word: proof, icon: 'said' as const };
  return (
    <span class="tag">
      <Icon name={words.icon} size={14} />
      {words.word}
      {proof === 'executed' ? ' by handrail' : ''}
    </span>
  );
}

function StepActions({ run, actions, step, asked }: { run: string; actions: readonly LegalAction[]; step: string; asked: boolean }): JSX.Element | null {
  const live = useStore(isLive);
  const own = actions.filter((one) => one.step === step && ACTIONS[one.action]);
  const answers = actions.filter((one) => one.action === 'approve');
  if (!own.length && !answers.length && !asked) return null;
  return (
    <div class="row wrap" style={{ marginTop: '12px' }}>
      {answers.length ? (
        <Button small kind="primary" href={`/approvals/${enc(run)}/${enc(step)}`} disabled={!live}>
          Review
        </Button>
      ) : null}
      {asked ? (
        <Button small href={actionHref(run, 'submit', step)} disabled={!live}>
          Submit…
        </Button>
      ) : null}
      {own.map((one) => (
        <Button key={one.action} small href={actionHref(run, one.action, step)} disabled={!live}>
          {ACTIONS[one.action]!.word}…
        </Button>
      ))}
    </div>
  );
}

function Section({ title, note, children }: { title: string; note?: ComponentChildren; children: ComponentChildren }): JSX.Element {
  return (
    <section>
      <h3>
        {title} {note ? <span class="c-3">· {note}</span> : null}
      </h3>
      {children}
    </section>
  );
}

function Detail({ run, data, view, tries, chosen }: { run: string; data: StepDetail; view: Step; tries: readonly TryView[]; chosen: number }): JSX.Element {
  const shown = tries[chosen - 1];
  const output = shown && chosen !== tries.length ? data.outputs?.[String(shown.attempt)] : data.output;
  const prompt = typeof data.input === 'string' ? data.input : undefined;
  const judged = data.judged?.at(-1);
  return (
    <>
      {judged?.checks?.length ? (
        <Section title={`Checks handrail ran, ${judged.accepted ? 'accepted' : 'not accepted'}`} note={<EntryLink run={run} n={judged.n} />}>
          <Checks checks={judged.checks.map((one) => ({ ...one, severity: data.checks?.find((other) => other.rule === one.rule)?.severity }))} />
        </Section>
      ) : data.checks?.length ? (
        <Section title="Checks" note={count(data.checks.length, 'check')}>
          <Checks checks={data.checks} />
        </Section>
      ) : null}
      {tries.length ? (
        <Section title="Tries">
          <Tries tries={tries} run={run} chosen={chosen} asked={view.kind === 'prompt'} />
        </Section>
      ) : null}
      {data.undo ? <Undo undo={data.undo} run={run} view={view} /> : null}
      {data.input === undefined || data.input === null ? null : (
        <Section title={prompt ? 'Prompt, as the agent got it' : 'Input'}>
          {prompt ? <p class="box prompt">{prompt}</p> : <Value value={data.input} />}
        </Section>
      )}
      <Section
        title="Output"
        note={
          <>
            {shown && chosen !== tries.length ? `of try ${chosen} · ` : ''}
            <a class="link" href={`/runs/${enc(run)}/values?a=${encodeURIComponent(view.id)}`}>
              Compare…
            </a>
          </>
        }
      >
        <Value value={output} empty={view.status === 'completed' ? 'Nothing was given back.' : look(view) === 'bad' ? 'Nothing: it failed.' : 'Nothing yet.'} />
      </Section>
      {view.kind === 'tool' && !data.checks?.length && view.status === 'completed' ? (
        <Section title="Checks">
          <p class="meta">None declared. Done because the call came back without an error.</p>
        </Section>
      ) : null}
      <Small run={run} data={data} view={view} />
    </>
  );
}

const EntryLink = ({ run, n }: { run: string; n: number }): JSX.Element => (
  <a class="link" href={`/runs/${enc(run)}/journal/${n}`}>
    entry {number(n)}
  </a>
);

const look = (view: Step): string => lookOfStep(view).tone;

function Tries({ tries, run, chosen, asked }: { tries: readonly TryView[]; run: string; chosen: number; asked?: boolean }): JSX.Element {
  return (
    <ol class="tries">
      {tries.map((one, index) => {
        const isOpen = !one.outcome;
        const look = one.outcome === 'completed' ? ATTEMPT.completed! : one.outcome === 'lost' ? ATTEMPT.lost! : one.outcome === 'deferred' ? ATTEMPT.running! : isOpen ? (asked ? WAITING.agent! : ATTEMPT.running!) : ATTEMPT.attempt_failed!;
        const next = tries[index + 1];
        const waited = one.wait_ms ?? (next ? instant(next.started) - instant(one.ended || one.started) : Number.NaN);
        return (
          <li key={`${one.attempt} ${one.n ?? index}`}>
            <div class="line">
              <Icon name={look.icon} tone={look.tone} size={14} label={look.word} />
              <a class={`nowrap${index + 1 === chosen ? ' strong' : ''}`} href={withQuery({ try: String(index + 1) })}>
                Try {number(one.attempt)}
              </a>
              <p class="grow" style={{ overflowWrap: 'anywhere' }}>
                {said(one.message).text || (one.outcome === 'completed' ? 'worked' : isOpen ? (asked ? 'not submitted yet' : 'running') : one.outcome)}
                {one.category ? <span class="c-3"> · {spaced(one.category)}</span> : null}
                {one.by && actor(one.by) !== 'handrail' ? <span class="c-3"> · {actor(one.by)}</span> : null}
              </p>
              <span class="num c-2">{typeof one.took_ms === 'number' ? duration(one.took_ms) : one.ended ? duration(instant(one.ended) - instant(one.started)) : ''}</span>
            </div>
            {one.findings ? <p class="wait">{count(one.findings, 'finding')}</p> : null}
            <p class="wait">
              {next && waited > 0 ? `waited ${duration(waited)}${one.due ? ', as scheduled' : ''} · ` : one.due && !next ? `next try at ${clock(one.due)} · ` : ''}
              <EntryLink run={run} n={one.ended_n || one.n} />
            </p>
          </li>
        );
      })}
    </ol>
  );
}

function Findings({ findings, of }: { findings: readonly Record<string, any>[]; of: string }): JSX.Element {
  return (
    <ul class="more">
      {findings.slice(0, 20).map((one, index) => (
        <li key={index}>
          {one.rule && one.rule !== of ? <b>{String(one.rule)}: </b> : null}
          {String(one.message ?? '')}
          {one.fix ? (
            <>
              {' '}
              <b>To fix:</b> {String(one.fix)}
            </>
          ) : null}
        </li>
      ))}
      {findings.length > 20 ? <li>and {count(findings.length - 20, 'more finding', 'more findings')}</li> : null}
    </ul>
  );
}

function Checks({ checks }: { checks: readonly CheckView[] }): JSX.Element {
  return (
    <ul class="checks">
      {checks.map((check, index) => {
        const state = check.passed === true ? 'passed' : check.passed === false ? 'failed' : 'not run yet';
        const proof = check.evidence ?? {};
        return (
          <li key={check.rule + index}>
            <div class="line">
              <Icon name={check.passed === true ? 'completed' : check.passed === false ? 'failed' : 'pending'} tone={check.passed === true ? 'ok' : check.passed === false ? 'bad' : 'off'} size={14} />
              <p class="grow">
                <b>{check.rule}</b> <span class={check.passed === true ? 'c-ok' : check.passed === false ? 'c-bad' : 'c-3'}>{state}</span>
              </p>
              <span class="meta">{check.looks_at === 'words' ? 'form only' : check.passed === false ? check.severity : check.looks_at === 'world' ? 'looked at the world' : check.severity}</span>
            </div>
            {check.findings?.length ? <Findings findings={check.findings} of={check.rule} /> : null}
            {check.looks_at === 'words' && check.passed ? <p class="more">The agent’s own words, only compared.</p> : null}
            {proof.ran || proof.tree || proof.digest ? <Evidence proof={proof} rule={check.rule} /> : null}
          </li>
        );
      })}
    </ul>
  );
}

function Evidence({ proof, rule }: { proof: Record<string, any>; rule: string }): JSX.Element {
  const counts = Object.entries((proof.counts ?? {}) as Record<string, number>).map(([word, value]) => `${value} ${word}`);
  return (
    <details class="more">
      <summary>Evidence of {rule}</summary>
      <dl class="facts">
        {proof.ran?.length ? (
          <>
            <dt>Ran</dt>
            <dd>
              <code>{(proof.ran as string[]).join(' ')}</code>
            </dd>
          </>
        ) : null}
        <dt>Result</dt>
        <dd>{[proof.exit === undefined || proof.exit === null ? '' : `exit ${proof.exit}`, proof.took ? `in ${duration(Number(proof.took))}` : '', ...counts, proof.cached ? 'reused: nothing it read has changed' : ''].filter(Boolean).join(' · ') || (proof.passed ? 'passed' : 'failed')}</dd>
        {proof.tree ? (
          <>
            <dt>Files as of</dt>
            <dd>
              <code>tree {short(String(proof.tree), 12)}</code>
            </dd>
          </>
        ) : null}
        {proof.digest ? (
          <>
            <dt>What it read</dt>
            <dd>
              <code>sha256 {short(String(proof.digest), 12)}</code>
            </dd>
          </>
        ) : null}
      </dl>
      {proof.excerpt ? <pre class="box">{String(proof.excerpt)}</pre> : null}
    </details>
  );
}

const HOW: Record<string, string> = { executed: 'Executed by handrail', by_agent: 'Done by the agent', recorded: 'Recorded: done by hand', not_needed: 'Not needed', none: 'Not undone' };

function Undo({ undo, run, view }: { undo: UndoView; run: string; view: Step }): JSX.Element | null {
  const call = undo.call;
  const did = !!undo.how && undo.how !== 'none';
  // What would undo a step is of interest once it has happened.
  const isPlan = !did && !undo.tries?.length && undo.how !== 'none';
  if (isPlan && (!call || call.effect === 'none' || !['completed', 'uncertain', 'failed'].includes(view.status))) return null;
  const words = call ? (call.own_undo ? `${call.tool ?? ''} puts back what was there` : [call.tool || call.workflow, callArgs(call.args)].filter(Boolean).join(' ') || call.text) : '';
  return (
    <Section title="Undo" note={call?.by === 'agent' ? 'handed to the agent' : call?.effect ? effectWords(call.effect) : undefined}>
      <dl class="facts">
        <dt>{did ? 'Did' : 'Would do'}</dt>
        <dd>{words ? <code>{words}</code> : view.status === 'completed' ? <span class="c-bad">Nothing says how to undo it</span> : 'nothing'}</dd>
        {call?.problem ? (
          <>
            <dt>Problem</dt>
            <dd class="c-bad">{call.problem}</dd>
          </>
        ) : null}
        {undo.how ? (
          <>
            <dt>Result</dt>
            <dd class={undo.how === 'none' ? 'c-bad' : 'c-undo'}>
              {HOW[undo.how] ?? undo.how}
              {view.undone_ms ? ` in ${duration(view.undone_ms)}` : ''}
              {undo.message ? <span class="c-2">: {undo.message}</span> : null}
            </dd>
          </>
        ) : null}
      </dl>
      {undo.tries?.length ? <Tries tries={undo.tries} run={run} chosen={undo.tries.length} /> : null}
    </Section>
  );
}

const effectWords = (effect: string): string => ({ none: 'no effect', reversible: 'reversible', compensatable: 'can be undone', irreversible: 'cannot be undone' })[effect] ?? effect;

export function callArgs(args: unknown): string {
  if (args === undefined || args === null || args === '') return '';
  if (typeof args === 'string') return args;
  const entries = Object.entries(args as object);
  return entries.map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`).join(' ');
}

/** A call in few words: `DELETE …/store/upload?macos`, `delete notes.md`. */
export function callShort(tool: string, args: unknown): string {
  const given = (args && typeof args === 'object' ? args : {}) as Record<string, unknown>;
  if (typeof given.url === 'string') return `${String(given.method ?? 'GET')} ${given.url.replace(/^https?:\/\/[^/]+/, '…')}`;
  if (typeof given.path === 'string') return `${tool.replace(/^.*\./, '')} ${given.path}`;
  return [tool, callArgs(args)].filter(Boolean).join(' ');
}

/** Whether the tool said, when it was called, that a call under the same key has its effect only once. */
const isRepeatable = (data: StepDetail, view: Step): boolean => view.effect === 'none' || !!data.events?.some((one) => one.kind === 'attempt_started' && one.data?.idempotent);

function Small({ run, data, view }: { run: string; data: StepDetail; view: Step }): JSX.Element {
  const last = data.events?.[data.events.length - 1];
  return (
    <Section title="Small print">
      <dl class="facts">
        {view.started ? (
          <>
            <dt>Started</dt>
            <dd>{exact(view.started)}</dd>
          </>
        ) : null}
        {view.ended ? (
          <>
            <dt>Ended</dt>
            <dd>{exact(view.ended)}</dd>
          </>
        ) : null}
        {data.key ? (
          <>
            <dt>Key</dt>
            <dd>
              <code>{data.key}</code> <span class="meta">the same for each attempt{isRepeatable(data, view) ? ': it cannot happen twice' : ', but nothing shows that this tool looks at it: a retry may do it twice'}</span>
            </dd>
          </>
        ) : null}
        {view.channel ? (
          <>
            <dt>Answered by</dt>
            <dd>{view.channel}</dd>
          </>
        ) : null}
        {view.approved_by?.length ? (
          <>
            <dt>Approved by</dt>
            <dd>{listed(view.approved_by.map(actor))}</dd>
          </>
        ) : null}
        {last ? (
          <>
            <dt>Journal</dt>
            <dd>
              {(data.events ?? []).slice(-6).map((one) => (
                <>
                  <a class="link" href={`/runs/${enc(run)}/journal/${one.n}`}>
                    #{one.n} {spaced(one.kind)}
                  </a>{' '}
                </>
              ))}
            </dd>
          </>
        ) : null}
      </dl>
      {data.definition && Object.keys(data.definition).length ? (
        <details>
          <summary class="meta">As its author wrote it</summary>
          <Value value={data.definition} />
        </details>
      ) : null}
    </Section>
  );
}
