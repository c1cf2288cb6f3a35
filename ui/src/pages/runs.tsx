/** All runs: a list with a query that is also the address, or a grid of one workflow: columns are runs, rows are steps. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useRead } from '../core/api';
import type { RunPage as RunList, RunLine } from '../core/contract';
import { useKeys } from '../core/keys';
import { go, usePlace, withQuery } from '../core/router';
import { lookOf, runHref, runName, titled, took, whyOf } from '../core/runs';
import { actor, count, duration, number } from '../core/words';
import { NoAnswer, Shell } from '../frame/shell';
import { NewChip, useHeld } from '../kit/held';
import { Icon } from '../kit/icons';
import { Bar, Button, Empty, Find, Pill, StateIcon, Time } from '../kit/kit';
import { useNow } from '../kit/now';
import type { PageProps } from '../routes';
import { RUN, STEP } from '../states';
import { lookOfStep, tookOf, useStepsOf, type Step } from './run/model';

const PAGE = 50;
const STATES = ['running', 'waiting', 'paused', 'compensating', 'completed', 'compensated', 'failed', 'compensation_failed', 'cancelled'];
const SINCE: readonly (readonly [string, string])[] = [['24h', '24 hours'], ['7d', '7 days'], ['30d', '30 days']];
const NAMES = ['state', 'workflow', 'by', 'since', 'q', 'project'];

export function RunsPage(_props: PageProps): JSX.Element {
  const { query } = usePlace();
  const [limit, setLimit] = useState(PAGE);
  const view = query.get('view') === 'grid' ? 'grid' : 'list';
  const asked = new URLSearchParams();
  for (const name of NAMES) for (const value of filters(query, name)) asked.append(name, value);
  if (limit > PAGE) asked.set('limit', String(limit));
  const list = useRead<RunList>(asked.size ? `/runs?${asked}` : '/runs', { all: true });
  const box = useRef<HTMLDivElement>(null);
  const [runs, fresh, release] = useHeld(list.data?.runs ?? [], (run) => run.run, box);
  const isFiltered = NAMES.some((name) => filters(query, name).length);
  const [text, setText] = useState(() => wordsOf(query));
  useEffect(() => setText(wordsOf(query)), [query.toString()]);
  return (
    <Shell crumbs={[{ word: 'Runs' }]} title="Runs" actions={<span class="meta">{list.data ? `${count(runs.length, 'run')}${list.data.cursor ? ' of more' : ''}` : ''}</span>}>
      <h1 class="sr">Runs</h1>
      <div class="filter-row">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            go(urlOf(text, query));
          }}
        >
          <Find value={text} label="Find runs, or state:failed" onInput={setText} />
        </form>
        {NAMES.flatMap((name) =>
          filters(query, name).map((value) => (
            <a key={name + value} class="chip" href={without(query, name, value)} >
              <span class="sr">Remove </span>
              {name} <b>{RUN[value]?.word.toLowerCase() ?? value}</b> <Icon name="close" size={12} />
            </a>
          )),
        )}
        <Choose label="+ state" options={STATES.map((one) => [one, RUN[one]!.word] as const)} onChange={(value) => go(adding(query, 'state', value))} />
        <Choose label="+ since" options={SINCE} onChange={(value) => go(withQuery({ since: value }))} />
        <Choose label="+ started by" options={[...new Set(runs.map((run) => actor(run.starter)))].filter(Boolean).map((one) => [one, one] as const)} onChange={(value) => go(withQuery({ by: value }))} />
        <span class="grow" />
        <nav class="seg" aria-label="View">
          <a href={withQuery({ view: undefined })} aria-current={view === 'list' ? 'true' : undefined}>
            List
          </a>
          <a href={withQuery({ view: 'grid' })} aria-current={view === 'grid' ? 'true' : undefined}>
            Grid
          </a>
        </nav>
      </div>
      {!list.data ? (
        <div class="card">
          <NoAnswer whole={false} {...list} rows={10} />
        </div>
      ) : !runs.length ? (
        <div class="card">{isFiltered ? <NoMatch text={wordsOf(query)} /> : <None />}</div>
      ) : view === 'grid' ? (
        <Grid runs={runs} />
      ) : (
        <>
          <NewChip number={fresh} onClick={release} />
          <div ref={box}>
            <List runs={runs} />
          </div>
          {list.data.cursor && limit < 500 ? (
            <p style={{ marginTop: '12px' }}>
              <Button onClick={() => setLimit(Math.min(500, limit * 3))}>Show more</Button>
            </p>
          ) : null}
        </>
      )}
    </Shell>
  );
}

/** What a filter is set to; one project is where the console is, and no filter. */
const filters = (query: URLSearchParams, name: string): string[] => query.getAll(name).filter((value) => value && (name !== 'project' || value === '*'));

const wordsOf = (query: URLSearchParams): string =>
  NAMES.flatMap((name) => filters(query, name).map((value) => (name === 'q' ? value : `${name}:${/\s/.test(value) ? `"${value}"` : value}`))).join(' ');

/** `workflow:ship-release state:failed since:7d words` as an address. */
function urlOf(text: string, query: URLSearchParams): string {
  const next = new URLSearchParams();
  const rest: string[] = [];
  for (const part of text.match(/\w+:"[^"]*"|\S+/g) ?? []) {
    const found = /^(state|workflow|by|since|project):"?([^"]*)"?$/.exec(part);
    if (found) next.append(found[1]!, found[2]!);
    else rest.push(part);
  }
  if (rest.length) next.set('q', rest.join(' '));
  if (query.get('view')) next.set('view', query.get('view')!);
  const words = next.toString();
  return `/runs${words ? `?${words}` : ''}`;
}

function without(query: URLSearchParams, name: string, value: string): string {
  const next = new URLSearchParams(query);
  next.delete(name, value);
  return `/runs?${next}`;
}
function adding(query: URLSearchParams, name: string, value: string): string {
  const next = new URLSearchParams(query);
  next.append(name, value);
  return `/runs?${next}`;
}

function Choose({ label, options, onChange }: { label: string; options: readonly (readonly [string, string])[]; onChange: (value: string) => void }): JSX.Element {
  return (
    <select class="chip" style={{ width: 'auto', borderColor: 'transparent' }} aria-label={label} value="" onChange={(event) => event.currentTarget.value && onChange(event.currentTarget.value)}>
      <option value="">{label}</option>
      {options.map(([key, word]) => (
        <option key={key} value={key}>
          {word}
        </option>
      ))}
    </select>
  );
}

function List({ runs }: { runs: readonly RunLine[] }): JSX.Element {
  const { query } = usePlace();
  const now = useNow();
  const [at, setAt] = useState(-1);
  const move = (by: number): void => {
    const next = Math.max(0, Math.min(runs.length - 1, at + by));
    setAt(next);
    document.querySelectorAll<HTMLElement>('.runs-table tbody a')[next]?.focus();
  };
  useKeys({ j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1) });
  return (
    <div class="card grid-wrap">
      <table class="table runs-table">
        <thead>
          <tr>
            <th>State</th>
            <th>Run</th>
            <th>Why, or now</th>
            <th class="num">Done</th>
            <th>By</th>
            <th class="num">Took</th>
            <th class="num">Started</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.run}>
              <td>
                <Pill look={lookOf(run)} />
              </td>
              <td>
                <a class="title cut" href={runHref(run.run)} title={runName(run)}>
                  {runName(run)}
                </a>
                <span class="meta">
                  <span class="mono">{run.run}</span>
                  {run.archived ? ' · archived' : ''}
                  {query.get('project') && run.project ? ` · ${run.project.name}` : ''}
                </span>
              </td>
              <td class="c-2">
                <span class="clamp">{whyOf(run)}</span>
              </td>
              <td class="num">{run.total ? `${number(run.done)} of ${number(run.total)}` : number(run.done)}</td>
              <td class="c-2">{actor(run.starter)}</td>
              <td class="num">{took(run, now)}</td>
              <td class="num c-2">
                <Time at={run.started} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const COLUMNS = 14;

interface GridRow {
  id: string;
  title: string;
  depth: number;
  cells: readonly (Step | undefined)[];
}

/** One workflow: is it always the same step? */
function Grid({ runs }: { runs: readonly RunLine[] }): JSX.Element {
  const { query } = usePlace();
  const workflows = [...new Set(runs.map((run) => run.workflow.replace(/@.*/, '')))];
  const workflow = query.get('workflow') ?? workflows[0] ?? '';
  const shown = useMemo(() => runs.filter((run) => run.workflow.replace(/@.*/, '') === workflow).slice(0, COLUMNS), [runs, workflow]);
  const steps = useStepsOf(shown);
  const rows = useMemo(() => gridRows(shown, steps), [shown, steps]);
  const [at, setAt] = useState<readonly [number, number]>([0, 0]);
  const now = useNow();
  const picked = shown[at[1]];
  const longest = Math.max(1, ...shown.map((run) => lengthOf(run, now)));
  const move = (event: KeyboardEvent): void => {
    const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const next: readonly [number, number] = [Math.max(0, Math.min(rows.length - 1, at[0] + by[0]!)), Math.max(0, Math.min(shown.length - 1, at[1] + by[1]!))];
    setAt(next);
    (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-cell="${next[0]} ${next[1]}"]`)?.focus();
  };
  return (
    <>
      {workflows.length > 1 && !query.get('workflow') ? (
        <p class="row wrap" style={{ marginBottom: '12px' }}>
          <span class="c-2">The grid is of one workflow:</span>
          {workflows.map((one) => (
            <a key={one} class="chip" href={withQuery({ workflow: one })} aria-current={one === workflow ? 'true' : undefined}>
              {titled(one)}
            </a>
          ))}
        </p>
      ) : null}
      <div class="two">
        <div>
          <div class="card grid-wrap" onKeyDown={move}>
            <table class="grid-table">
              <caption class="sr">Steps of the newest runs of {workflow}: one column a run, one row a step</caption>
              <thead>
                <tr>
                  <th scope="col" style={{ textAlign: 'left', paddingLeft: '16px' }}>
                    Step
                  </th>
                  {shown.map((run) => (
                    <th scope="col" key={run.run} class={run === picked ? 'col-on' : ''}>
                      <span class="meta">{duration(lengthOf(run, now))}</span>
                      <span class="length" style={{ height: `${Math.max(3, (lengthOf(run, now) / longest) * 24)}px` }} />
                      <a href={runHref(run.run)} aria-label={`${runName(run)}, ${lookOf(run).word}`} title={`${runName(run)}, ${lookOf(run).word}`}>
                        {run.label ? <span class="col-name cut">{run.label}</span> : null}
                        <StateIcon look={lookOf(run)} />
                      </a>
                    </th>
                  ))}
                  <th scope="col">Success</th>
                  <th scope="col" class="num">
                    Typical
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map((row, index) => (
                  <tr key={row.id}>
                    <th scope="row" style={{ paddingLeft: `${16 + row.depth * 14}px` }} title={row.title}>
                      {row.title}
                    </th>
                    {row.cells.map((cell, column) => (
                      <td key={shown[column]!.run} class={shown[column] === picked ? 'col-on' : ''} onMouseEnter={() => setAt([index, column])} onFocusIn={() => setAt([index, column])}>
                        {cell ? <Cell run={shown[column]!} cell={cell} title={row.title} place={`${index} ${column}`} isStop={at[0] === index && at[1] === column} /> : null}
                      </td>
                    ))}
                    <Success row={row} now={now} />
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="states-legend">
            {[...new Set(rows.flatMap((row) => row.cells.map((cell) => cell?.status)))].filter(Boolean).map((status) => (
              <span class="labelled" key={status}>
                <StateIcon look={STEP[status!]!} size={14} />
                <span>{STEP[status!]!.word}</span>
              </span>
            ))}
            <span class="labelled">
              <b class="c-wait">3</b>
              <span>Tries, if more than one</span>
            </span>
          </p>
        </div>
        <aside>
          {picked ? <Picked run={picked} other={shown[at[1] + 1] ?? shown[at[1] - 1]} /> : null}
          <Says rows={rows} runs={shown} />
        </aside>
      </div>
    </>
  );
}

/** The run of the column that is pointed at. */
function Picked({ run, other }: { run: RunLine; other: RunLine | undefined }): JSX.Element {
  return (
    <section class="card pad">
      <p>
        <b>{runName(run)}</b>
      </p>
      <p style={{ margin: '4px 0' }}>
        <Pill look={lookOf(run)} />
      </p>
      <p class="c-2 clamp">{whyOf(run)}</p>
      <p class="row" style={{ marginTop: '10px' }}>
        <Button small kind="primary" href={runHref(run.run)}>
          Open run
        </Button>
        {other ? (
          <Button small href={`${runHref(run.run)}/compare/${encodeURIComponent(other.run)}`}>
            Compare
          </Button>
        ) : null}
      </p>
    </section>
  );
}

function Cell({ run, cell, title, place, isStop }: { run: RunLine; cell: Step; title: string; place: string; isStop: boolean }): JSX.Element {
  const look = lookOfStep(cell);
  const tries = cell.attempts ?? 0;
  const name = `${runName(run)}: ${title}, ${look.word}${tries > 1 ? `, ${tries} tries` : ''}`;
  return (
    <a href={`${runHref(run.run)}/steps/${encodeURIComponent(cell.id)}`} data-cell={place} tabIndex={isStop ? 0 : -1} aria-label={name} title={name}>
      <StateIcon look={look} />
      {tries > 1 ? <span class="tries-badge">{tries}</span> : null}
    </a>
  );
}

function Success({ row, now }: { row: GridRow; now: number }): JSX.Element {
  const over = row.cells.filter((cell) => cell && ['completed', 'compensated', 'failed', 'compensation_failed', 'uncertain'].includes(cell.status));
  const good = over.filter((cell) => cell!.status === 'completed' || cell!.status === 'compensated').length;
  const times = row.cells.flatMap((cell) => (cell && cell.worked_ms !== undefined && cell.worked_ms !== null ? [cell.worked_ms] : [])).sort((a, b) => a - b);
  const typical = times.length ? duration(times[Math.floor(times.length / 2)]) : row.cells.find(Boolean) ? tookOf(row.cells.find(Boolean)!, now) : '–';
  return (
    <>
      <td>
        {over.length ? (
          <span class="share">
            <Bar label={`${good} of ${over.length}`} parts={[{ tone: 'ok', share: good / over.length }]} />
            <span class="num">{over.length < 5 ? `${good} of ${over.length}` : `${Math.round((good / over.length) * 100)}%`}</span>
          </span>
        ) : null}
      </td>
      <td class="num">{typical}</td>
    </>
  );
}

/** What the grid shows, in words: the same step again and again. */
function Says({ rows, runs }: { rows: readonly GridRow[]; runs: readonly RunLine[] }): JSX.Element | null {
  const bad = rows.map((row) => ({ row, failed: row.cells.filter((cell) => cell?.status === 'failed' || cell?.status === 'uncertain').length, tries: row.cells.filter((cell) => (cell?.attempts ?? 0) > 1).length }));
  const lines = [...bad.filter((one) => one.failed).sort((a, b) => b.failed - a.failed).slice(0, 3).map((one) => ({ icon: 'failed' as const, tone: 'bad', text: `“${one.row.title}” failed in ${one.failed} of ${count(runs.length, 'run')}.` })), ...bad.filter((one) => one.tries).slice(0, 2).map((one) => ({ icon: 'clock' as const, tone: 'wait', text: `“${one.row.title}” needed more than one try in ${one.tries} of ${count(runs.length, 'run')}.` }))];
  if (!lines.length) return null;
  return (
    <section style={{ marginTop: '20px' }}>
      <h2>What the grid says</h2>
      {lines.map((line) => (
        <p class="says" key={line.text}>
          <Icon name={line.icon} tone={line.tone} />
          <span>{line.text}</span>
        </p>
      ))}
    </section>
  );
}

const lengthOf = (run: RunLine, now: number): number => Math.max(0, (run.ended ? Date.parse(run.ended) : now) - Date.parse(run.started ?? ''));

const ROWS_MAX = 60;

function gridRows(runs: readonly RunLine[], steps: ReadonlyMap<string, readonly Step[]>): readonly GridRow[] {
  const order: string[] = [];
  const titles = new Map<string, string>();
  for (const run of runs) {
    for (const step of steps.get(run.run) ?? []) {
      if (step.kind === 'each' || step.kind === 'repeat' || titles.has(step.id)) continue;
      titles.set(step.id, step.title || step.id);
      order.push(step.id);
    }
  }
  const by = new Map(runs.map((run) => [run.run, new Map((steps.get(run.run) ?? []).map((step) => [step.id, step]))]));
  return order.slice(0, ROWS_MAX).map((id) => ({ id, title: titles.get(id)!, depth: id.includes('.') ? 1 : 0, cells: runs.map((run) => by.get(run.run)?.get(id)) }));
}

function NoMatch({ text }: { text: string }): JSX.Element {
  return (
    <Empty title="No run matches" actions={<Button href="/runs">Clear filter</Button>}>
      {text}
    </Empty>
  );
}

function None(): JSX.Element {
  return (
    <Empty icon="runs" title="No runs yet" actions={<Button kind="primary" href="/library" kbd="S">Start a workflow</Button>}>
      Start a workflow here, or say to your agent: “use handrail to fix issue 42”.
    </Empty>
  );
}
