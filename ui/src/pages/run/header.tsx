/** The top of a run's page: name, state, who, how long; one segment for each step; and why it is where it is. */
import type { JSX } from 'preact';
import { remembered } from '../../core/api';
import type { AboutServer, LegalAction, RunView } from '../../core/contract';
import { isLive } from '../../core/live';
import { command } from '../../core/project';
import { enc, go } from '../../core/router';
import { leftWords, lookOf, took, workflowId } from '../../core/runs';
import { useStore } from '../../core/store';
import { actor, clock, count, duration, listed, number, instant, shell, short } from '../../core/words';
import { Icon, Labelled, type IconName } from '../../kit/icons';
import { Button, Menu, Pill, Time, copyText } from '../../kit/kit';
import { useNow } from '../../kit/now';
import { STEP } from '../../states';
import { ACTIONS, actionHref } from './actions';
import { MANY, isContainer, runUrl, stepHref, tally, type Row } from './model';

interface HeaderProps {
  run: string;
  view: RunView;
  rows: readonly Row[];
  name: string;
  tab: string;
}

export function Header({ run, view, rows, name, tab }: HeaderProps): JSX.Element {
  const look = lookOf(view);
  const now = useNow();
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
          <a href={`/library/${enc(workflowId(view.workflow))}`}>{view.workflow}</a>
        </Labelled>
        {by || view.started ? (
          <Labelled name={view.starter?.startsWith('agent:') ? 'robot' : 'person'}>
            {by ? `started by ${by}, ` : 'started '}
            {startedWords(view.started)}
          </Labelled>
        ) : null}
        <Labelled name="clock">{durationWords(view, now)}</Labelled>
        {view.n ? (
          <Labelled name="shield">
            <a href={`/proof/${enc(run)}`}>{count(view.n, 'event')}</a>
          </Labelled>
        ) : null}
        {view.node ? <Labelled name="clock">{view.node}</Labelled> : null}
        {view.goal && view.goal !== name ? <Labelled name="said">{view.goal}</Labelled> : null}
      </p>
      {view.project?.hint ? (
        <p class="banner" role="status">
          <Icon name="project" tone="wait" />
          <span>
            Project <b>{view.project.name}</b>: {view.project.hint}
          </span>
        </p>
      ) : null}
      {view.archived ? (
        <p class="banner" role="status" style={{ flexWrap: 'wrap' }}>
          <Icon name="library" tone="2" />
          <span class="grow" style={{ flexBasis: '220px' }}>
            <b>Archived.</b> Its events are read from the archive <code>{short(view.archived, 16)}</code>. It can be read and forked; to undo it, bring it back first.
          </span>
          <Button small onClick={() => void copyText(command(`handrail db unarchive ${run}`))}>
            Copy “handrail db unarchive”
          </Button>
        </p>
      ) : null}
      {rows.length > MANY ? <Cells run={run} rows={rows} progress={view.progress} /> : <Segments rows={rows} />}
      {tab === 'journal' || tab === 'values' || tab === 'definition' ? null : <Why run={run} view={view} />}
    </div>
  );
}

function startedWords(at: string | undefined): string {
  const old = Date.now() - instant(at) > 43_200_000;
  return old ? (at ?? '').slice(0, 16).replace('T', ' ') : clock(at);
}

function durationWords(view: RunView, now: number): string {
  const end = view.as_of ? instant(view.as_of.at) : now;
  const since = view.waiting_for?.[0]?.since;
  if (since && view.status === 'waiting') return `${took(view, end)}, of it ${duration(Math.max(0, end - instant(since)))} waiting`;
  const left = view.as_of ? '' : leftWords({ ...view, done: view.progress.done }, view.progress.total, now);
  const waited = (view.waited_ms ?? 0) > 1_000 ? `of it ${duration(view.waited_ms)} waiting for a person` : '';
  return [took(view, end), waited, left].filter(Boolean).join(', ');
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
          <button type="button" onClick={() => void copyText(command(`handrail run show ${run} --full`))}>
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

/** It works in any shell of this machine: most people have no HANDRAIL_HOME set. */
export function curl(path: string): string {
  const home = remembered<AboutServer>('/about')?.home;
  return `curl -H "Authorization: Bearer $(cat ${home ? shell(`${home}/console-key`) : '$HANDRAIL_HOME/console-key'})" ${location.origin}${path}`;
}

export function Segments({ rows }: { rows: readonly Row[] }): JSX.Element | null {
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
  const columns = (total > 1_200 ? 200 : 100) / (innerWidth > 700 ? 1 : 2);
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
    if (row) go(stepHref(run, row.step.id));
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

const WHY: Record<string, readonly [IconName, string]> = {
  failed: ['failed', 'bad'],
  unknown: ['uncertain', 'unc'],
  undo: ['undone', 'undo'],
  undo_failed: ['undo_failed', 'bad'],
  cancelled: ['cancelled', 'off'],
  paused: ['paused', 'wait'],
  approval: ['person', 'wait'],
  agent: ['robot', 'wait'],
  skipped: ['skipped', 'off'],
};
const WHY_MAX = 6;

/** What failed, in the tool's own words; whether it was retried; who decided then; what is left behind: as the server says it. */
function Why({ run, view }: { run: string; view: RunView }): JSX.Element | null {
  // That somebody has to decide is what the state says already.
  const lines = (view.why ?? []).filter((one) => one.kind !== 'decision').slice(0, WHY_MAX);
  if (!lines.length && !view.fork) return null;
  return (
    <div class={`card why${view.status === 'waiting' || view.status === 'paused' ? ' waits' : ''}`}>
      {lines.map((one) => (
        <div class="why-line" key={one.kind + one.step}>
          <Icon name={WHY[one.kind]![0]} tone={WHY[one.kind]![1]} />
          <p class="grow">
            <b>{one.lead}</b> {one.words ? (PEOPLE.has(one.kind) ? `“${one.words}”` : one.words) : ''} {one.note ? <span class="c-3">· {one.note}</span> : null}{' '}
            {one.until ? (
              <span class="c-3">
                · {one.kind === 'agent' ? 'held until' : 'expires'} <Time at={one.until} />{' '}
              </span>
            ) : null}
            {one.kind === 'agent' ? (
              <button type="button" class="link" onClick={() => void copyText(`Go on with handrail run ${run}`)}>
                Copy resume line
              </button>
            ) : one.kind === 'approval' && !view.as_of ? (
              <a class="link" href={`/approvals/${enc(run)}/${enc(one.step ?? '')}`}>
                Review
              </a>
            ) : null}
          </p>
          {one.n ? (
            <a class="link nowrap" href={runUrl(run, `/journal/${one.n}`)}>
              Entry {number(one.n)}
            </a>
          ) : null}
        </div>
      ))}
      {view.fork ? (
        <div class="why-line">
          <Icon name="link" tone="2" />
          <p class="grow">
            Forked from <a class="link" href={`/runs/${enc(view.fork.run)}`}>{view.fork.run}</a> at “{view.fork.step}”
            {view.fork.effects?.length ? `; effects not undone there: ${listed(view.fork.effects)}` : ''}
          </p>
        </div>
      ) : null}
    </div>
  );
}

/** The words of these lines are what a person wrote. */
const PEOPLE = new Set(['undo', 'cancelled', 'paused', 'skipped']);
