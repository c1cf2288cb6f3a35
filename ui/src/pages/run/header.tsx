/** The top of a run's page: name, state, who, how long; one segment for each step; and why it is where it is. */
import type { ComponentChildren, JSX } from 'preact';
import { useRead } from '../../core/api';
import type { EventPage, LegalAction, RunView } from '../../core/contract';
import { isLive } from '../../core/live';
import { enc, go } from '../../core/router';
import { took } from '../../core/runs';
import { useStore } from '../../core/store';
import { actor, clock, count, duration, listed, number, roughly, said, spaced, instant } from '../../core/words';
import { Icon, Labelled } from '../../kit/icons';
import { Button, Menu, Pill, Time, copyText } from '../../kit/kit';
import { useNow } from '../../kit/now';
import { STEP, runLook } from '../../states';
import { ACTIONS, actionHref } from './actions';
import { MANY, isContainer, runPath, tally, type Row } from './model';

interface HeaderProps {
  run: string;
  view: RunView;
  rows: readonly Row[];
  name: string;
  tab: string;
}

type Extra = { worked_ms?: number; waited_ms?: number; undone_ms?: number };

export function Header({ run, view, rows, name, tab }: HeaderProps): JSX.Element {
  const status = view;
  const look = runLook(status.status, status.waiting_for?.[0]?.kind);
  const now = useNow();
  const workflow = status.workflow.includes('@') || !view.version ? status.workflow : `${status.workflow}@${view.version}`;
  const by = actor(view.starter);
  return (
    <div class="run-head">
      <div class="row wrap">
        <h1>{name}</h1>
        <Pill look={look} />
        <div class="grow" />
        <Controls run={run} actions={view.actions ?? []} />
      </div>
      <p class="run-meta">
        <button type="button" class="labelled mono" title="Copy the id" onClick={() => void copyText(run)}>
          <Icon name="link" size={14} />
          <span>{run}</span>
        </button>
        <Labelled name="library">
          <a href={`/library/${enc(status.workflow.replace(/@.*/, ''))}`}>{workflow}</a>
        </Labelled>
        {by || status.started ? (
          <Labelled name={view.starter?.startsWith('agent:') ? 'robot' : 'person'}>
            {by ? `started by ${by}, ` : 'started '}
            {startedWords(status.started)}
          </Labelled>
        ) : null}
        <Labelled name="clock">{durationWords(view, now)}</Labelled>
        {view.n ? (
          <Labelled name="shield">
            <a href={`/proof/${enc(run)}`}>{count(view.n, 'event')}</a>
          </Labelled>
        ) : null}
        {status.goal && status.goal !== name ? <Labelled name="said">{status.goal}</Labelled> : null}
      </p>
      {rows.length > MANY ? <Cells run={run} rows={rows} progress={status.progress} /> : <Segments rows={rows} />}
      {tab === 'journal' || tab === 'values' || tab === 'definition' ? null : <Why run={run} view={view} rows={rows} />}
    </div>
  );
}

function startedWords(at: string | undefined): string {
  const old = Date.now() - instant(at) > 43_200_000;
  return old ? (at ?? '').slice(0, 16).replace('T', ' ') : clock(at);
}

function durationWords(view: RunView, now: number): string {
  const status = view;
  const { worked_ms, waited_ms } = view as Extra;
  const whole = took(status, now);
  if (waited_ms && waited_ms > 1_000) return `${whole}, of it ${duration(waited_ms)} waiting`;
  if (worked_ms && !status.ended) return `${whole}, of it ${duration(worked_ms)} of work`;
  const since = status.waiting_for?.[0]?.since;
  if (since && status.status === 'waiting') return `${whole}, waiting for ${roughly(Math.max(0, now - instant(since)))}`;
  return whole;
}

/** At most three buttons; the rest is behind the dots. */
function Controls({ run, actions }: { run: string; actions: readonly LegalAction[] }): JSX.Element {
  const live = useStore(isLive);
  const distinct = [...new Map(actions.filter((one) => ACTIONS[one.action]).map((one) => [one.action, one])).values()];
  const sorted = distinct.sort((a, b) => ACTIONS[a.action]!.rank - ACTIONS[b.action]!.rank);
  const front = sorted.filter((one) => one.action !== 'fork').slice(0, 4);
  const rest = sorted.filter((one) => !front.includes(one));
  return (
    <div class={`row controls${front.length ? '' : ' idle'}`}>
      {front.map((one) => (
        <Button key={one.action} href={actionHref(run, one.action, one.step)} kbd={ACTIONS[one.action]!.key?.toUpperCase()} disabled={!live}>
          {ACTIONS[one.action]!.word}…
        </Button>
      ))}
      {front.length ? null : (
        <Button href={`/api/v1/journal/bundle/${enc(run)}`} download>
          Export proof
        </Button>
      )}
      <Menu label="More about this run">
        {rest.map((one) => (
          <li key={one.action}>
            <a href={actionHref(run, one.action, one.step)}>{ACTIONS[one.action]!.word}…</a>
          </li>
        ))}
        <li>
          <a href={`/api/v1/journal/bundle/${enc(run)}`} download>
            Export proof
          </a>
        </li>
        <li>
          <button type="button" onClick={() => void copyText(`handrail run show ${run} --full`)}>
            Copy as CLI
          </button>
        </li>
        <li>
          <button type="button" onClick={() => void copyText(curl(`/api/v1/runs/${enc(run)}`))}>
            Copy as curl
          </button>
        </li>
        <li>
          <button type="button" onClick={() => void copyText(`Go on with handrail run ${run}`)}>
            Copy line for an agent
          </button>
        </li>
      </Menu>
    </div>
  );
}

export const curl = (path: string): string => `curl -H "Authorization: Bearer $(cat $HANDRAIL_HOME/console-key)" ${location.origin}${path}`;

function Segments({ rows }: { rows: readonly Row[] }): JSX.Element | null {
  const parts = rows.filter((row) => !isContainer(row.step));
  if (!parts.length) return null;
  const counts = tally(rows);
  return (
    <div class="segments">
      <div class="parts" role="img" aria-label={counts.map((one) => `${one.count} ${one.word.toLowerCase()}`).join(', ')}>
        {parts.map((row) => (
          <i key={row.step.id} class={row.look.tone === 'off' ? `f-off ${row.step.status}` : `f-${row.look.tone}`} />
        ))}
      </div>
      <Counts rows={rows} />
    </div>
  );
}

function Counts({ rows, unknown = 0 }: { rows: readonly Row[]; unknown?: number }): JSX.Element {
  const known = tally(rows);
  const open = known.find((one) => one.word === STEP.pending!.word);
  const all = !unknown ? known : [...known.filter((one) => one !== open), { word: STEP.pending!.word, tone: 'off', count: (open?.count ?? 0) + unknown }];
  return (
    <p class="counts">
      {all.map((one, index) => (
        <span key={one.word}>
          {index ? ' · ' : ''}
          <span class={one.tone === 'ok' || one.tone === 'off' ? '' : `c-${one.tone}`}>
            {number(one.count)} {one.word.toLowerCase()}
          </span>
        </span>
      ))}
    </p>
  );
}

/** Many steps: one cell each, drawn as one picture; the list below is its twin in words. */
function Cells({ run, rows, progress }: { run: string; rows: readonly Row[]; progress: RunView['progress'] }): JSX.Element {
  const parts = rows.filter((row) => !isContainer(row.step));
  // The server counts a loop as a step of its own; here only what does something has a cell.
  const total = Math.max(parts.length, (progress.known_total ?? progress.total) - (rows.length - parts.length));
  const columns = total > 1_200 ? 200 : 100;
  const size = 10;
  const paths = new Map<string, string>();
  const crosses: string[] = [];
  for (let index = 0; index < total; index++) {
    const x = (index % columns) * (size + 1);
    const y = Math.floor(index / columns) * (size + 1);
    const tone = parts[index]?.look.tone ?? 'off';
    paths.set(tone, `${paths.get(tone) ?? ''}M${x + 0.5} ${y + 0.5}h8v8h-8z`);
    if (tone === 'bad') crosses.push(`M${x + 2.5} ${y + 2.5}l4 4M${x + 6.5} ${y + 2.5}l-4 4`);
    if (tone === 'wait' || tone === 'run') crosses.push(`M${x + 3.5} ${y + 4.5}h2`);
  }
  const done = parts.filter((row) => row.look.tone === 'ok' || row.step.status === 'skipped').length;
  const height = Math.ceil(total / columns) * (size + 1);
  const pick = (event: MouseEvent): void => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
    const line = Math.floor(((event.clientY - box.top) / box.height) * Math.ceil(total / columns));
    const row = parts[line * columns + column];
    if (row) go(`/runs/${enc(run)}/steps/${enc(row.step.id)}`);
  };
  return (
    <div class="card cells">
      <div class="row wrap">
        <p class="grow">
          <b>
            {number(done)} of {number(total)}
          </b>{' '}
          steps done
        </p>
        <Counts rows={rows} unknown={total - parts.length} />
      </div>
      <svg viewBox={`0 0 ${columns * (size + 1)} ${height}`} role="img" aria-label={`${number(done)} of ${number(total)} steps done; the list below names them`} onClick={pick}>
        {[...paths].map(([tone, d]) => (
          <path key={tone} d={d} class={`cell-${tone}`} />
        ))}
        <path d={crosses.join('')} class="cross" />
      </svg>
    </div>
  );
}

function Line({ icon, tone, children, entry, run }: { icon: 'failed' | 'undone' | 'undoing' | 'undo_failed' | 'person' | 'robot' | 'cancelled' | 'warning' | 'uncertain' | 'paused' | 'link' | 'skipped'; tone: string; children: ComponentChildren; entry?: number; run: string }): JSX.Element {
  return (
    <div class="why-line">
      <Icon name={icon} tone={tone} />
      <p class="grow">{children}</p>
      {entry ? (
        <a class="link nowrap" href={`/runs/${enc(run)}/journal/${entry}`}>
          Entry {number(entry)}
        </a>
      ) : null}
    </div>
  );
}

/** The entries that the lines link to. */
const DECIDED = '/journal?kind=step_failed&kind=step_became_uncertain&kind=compensation_started&kind=run_cancelled&kind=run_paused&kind=output_refused&limit=200';

/** What failed, in the tool's own words; whether it was retried; who decided then; what is left behind. */
function Why({ run, view, rows }: { run: string; view: RunView; rows: readonly Row[] }): JSX.Element | null {
  const status = view;
  const lines: JSX.Element[] = [];
  const title = (step: string): string => rows.find((row) => row.step.id === step)?.title ?? step;
  const failed = rows.filter((row) => row.step.status === 'failed' && !isContainer(row.step));
  const failure = status.failure;
  const decided = useRead<EventPage>(runPath(run, DECIDED), { run }).data?.events ?? [];
  const entryOf = (kind: string, step?: string): number | undefined => decided.findLast((one) => one.kind === kind && (!step || one.step === step))?.n;
  const whoDid = (kind: string): string => actor(decided.findLast((one) => one.kind === kind)?.actor);
  if (failure && !(failed.length && rows.some((row) => row.step.id === failure.step && isContainer(row.step)))) {
    const words = failure.parts ? { text: failure.parts.said, code: String(failure.parts.status ?? ''), host: failure.parts.host ?? '' } : said(failure.message);
    const code = [words.code, failure.category && spaced(failure.category)].filter(Boolean).join(', ');
    const tries = (failure.attempts ?? 1) > 1 ? `tried ${number(failure.attempts)} times` : 'not retried';
    const unknown = !failure.category && rows.some((row) => row.step.id === failure.step && row.step.status === 'uncertain');
    lines.push(
      <Line key="failure" run={run} icon={unknown ? 'uncertain' : 'failed'} tone={unknown ? 'unc' : 'bad'} entry={entryOf(unknown ? 'step_became_uncertain' : 'step_failed', failure.step)}>
        {unknown ? <b>Nobody knows whether “{title(failure.step)}” happened.</b> : <b>“{title(failure.step)}” failed permanently:</b>} {words.text}{' '}
        <span class="c-3">· {[code, tries].filter(Boolean).join(', ')}</span>
        {failed.length > 1 ? <span class="c-3"> · {number(failed.length - 1)} more failed</span> : null}
      </Line>,
    );
  } else if (failed.length) {
    const first = failed[0]!;
    lines.push(
      <Line key="failed" run={run} icon="failed" tone="bad" entry={entryOf('step_failed', first.step.id)}>
        <b>{failed.length === 1 ? `“${first.title}” failed permanently:` : `${count(failed.length, 'step')} failed permanently:`}</b> {said(first.step.message).text}{' '}
        <span class="c-3">· {[said(first.step.message).code, first.step.category && spaced(first.step.category), (first.step.attempts ?? 1) > 1 ? `tried ${first.step.attempts} times` : 'not retried'].filter(Boolean).join(', ')}</span>
      </Line>,
    );
  }
  for (const waits of status.waiting_for ?? []) {
    if (waits.kind === 'decision' || lines.length > 3) continue;
    const agent = waits.kind === 'agent';
    const text = waits.text || title(waits.step);
    const refused = agent ? decided.findLast((one) => one.kind === 'output_refused' && one.step === waits.step) : undefined;
    const wrong = [...new Set(((refused?.data?.findings ?? []) as { rule?: string }[]).map((one) => String(one.rule ?? '')))];
    lines.push(
      <Line key={waits.kind + waits.step} run={run} icon={agent ? 'robot' : 'person'} tone="wait" entry={refused?.n}>
        {agent ? (
          <>
            <b>
              {waits.by?.length ? `${listed(waits.by.map(actor))} is to submit` : 'An agent is to submit'} “{title(waits.step)}”{refused ? ' again' : ''}.
            </b>{' '}
            {wrong.length ? `${count(wrong.length, 'check')} failed: ${listed(wrong)}. ` : ''}
            <button type="button" class="link" onClick={() => void copyText(`Go on with handrail run ${run}`)}>
              Copy resume line
            </button>
          </>
        ) : (
          <>
            <b>Asked for {waits.kind}:</b> {text}{' '}
            <span class="c-3">
              {waits.expires ? (
                <>
                  · expires <Time at={waits.expires} />
                </>
              ) : null}
            </span>{' '}
            <a class="link" href={`/approvals/${enc(run)}/${enc(waits.step)}`}>
              Review
            </a>
          </>
        )}
      </Line>,
    );
  }
  const undone = rows.filter((row) => row.step.status === 'compensated');
  const couldNot = rows.filter((row) => row.step.status === 'compensation_failed');
  const left = status.not_compensated ?? [];
  if (undone.length || couldNot.length || status.status === 'compensating') {
    const ended = status.status === 'compensated';
    lines.push(
      <Line key="undo" run={run} icon={couldNot.length ? 'undo_failed' : ended ? 'undone' : 'undoing'} tone={couldNot.length ? 'bad' : 'undo'} entry={entryOf('compensation_started')}>
        <b>{couldNot.length ? `${count(couldNot.length, 'effect')} could not be undone.` : !whoDid('compensation_started') ? 'Undone:' : `${whoDid('compensation_started')} ${ended || couldNot.length ? 'chose to undo' : 'is undoing'}${status.reason ? ':' : ''}`}</b>
        {status.reason ? <> “{status.reason}”</> : null}{' '}
        <span class="c-3">
          · {count(undone.length, 'step')} undone, {left.length ? `still there: ${listed(left.map(title))}` : 'nothing left behind'}
        </span>
      </Line>,
    );
  } else if (status.reason && (status.status === 'cancelled' || status.status === 'paused' || (status.status === 'failed' && !lines.length))) {
    lines.push(
      <Line key="reason" run={run} icon={status.status === 'paused' ? 'paused' : status.status === 'failed' ? 'failed' : 'cancelled'} tone={status.status === 'paused' ? 'wait' : status.status === 'failed' ? 'bad' : 'off'}>
        <b>{status.status === 'failed' ? 'Failed permanently:' : `${whoDid(status.status === 'paused' ? 'run_paused' : 'run_cancelled')} ${status.status} it:`}</b> “{status.reason}”
      </Line>,
    );
  }
  for (const one of (status.exceptions ?? []).slice(0, 3)) {
    lines.push(
      <Line key={`x${one.step}`} run={run} icon="skipped" tone="off">
        <b>{actor(one.by)}</b> {one.kind === 'override' ? 'went past the approval' : one.kind === 'skipped_check' ? 'skipped the checks of' : 'skipped'} “{title(one.step)}”{one.reason ? `: “${one.reason}”` : ''}
      </Line>,
    );
  }
  if (status.fork) {
    lines.push(
      <Line key="fork" run={run} icon="link" tone="2">
        Forked from <a class="link" href={`/runs/${enc(status.fork.run)}`}>{status.fork.run}</a> at “{title(status.fork.step)}”
        {status.fork.effects?.length ? `; effects not undone there: ${listed(status.fork.effects)}` : ''}
      </Line>,
    );
  }
  if (!lines.length) return null;
  const waits = status.status === 'waiting' || status.status === 'paused';
  return <div class={`card why${waits ? ' waits' : ''}`}>{lines}</div>;
}
