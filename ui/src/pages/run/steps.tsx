/** The steps of a run on their rail. Undo is a second, dashed rail that runs back up from the failure, with a dot at each undone step. */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useRead } from '../../core/api';
import type { EventPage } from '../../core/contract';
import { useKeys } from '../../core/keys';
import { go, place, withQuery } from '../../core/router';
import { actor, count, listed, number, said } from '../../core/words';
import { Icon } from '../../kit/icons';
import { Button, Empty, Find, StateIcon } from '../../kit/kit';
import { ACTIONS, groupHref } from './actions';
import { isContainer, isOneReason, likeness, runPath, runUrl, stepHref, triesOf, type Row } from './model';
import type { TabProps } from './run';

type Chip = { key: string; word: string; icon?: 'failed' | 'running' | 'ready' | 'completed'; tone?: string; fits: (row: Row) => boolean };
const CHIPS: readonly Chip[] = [
  { key: 'attention', word: 'Needs attention', fits: (row) => row.needs },
  { key: 'failed', word: 'Failed', icon: 'failed', tone: 'bad', fits: (row) => row.look.tone === 'bad' || row.look.tone === 'unc' },
  { key: 'running', word: 'Running', icon: 'running', tone: 'run', fits: (row) => row.step.status === 'running' },
  { key: 'ready', word: 'Ready', icon: 'ready', tone: 'off', fits: (row) => row.step.status === 'ready' },
  { key: 'completed', word: 'Completed', icon: 'completed', tone: 'ok', fits: (row) => row.step.status === 'completed' },
  { key: 'all', word: 'All', fits: () => true },
];

export function StepList(props: TabProps & { many: boolean }): JSX.Element {
  const { run, rows, selected, many, view } = props;
  const query = place.value.query;
  const hasNeeds = rows.some((row) => row.needs);
  const show = query.get('show') ?? (many && hasNeeds ? 'attention' : 'all');
  const find = query.get('find') ?? '';
  const chip = CHIPS.find((one) => one.key === show) ?? CHIPS[CHIPS.length - 1]!;
  const low = find.toLowerCase();
  const shown = useMemo(
    () => rows.filter((row) => (row.step.id === selected && !find) || (chip.fits(row) && (!low || `${row.title} ${row.step.id} ${row.step.message ?? ''}`.toLowerCase().includes(low)))),
    [rows, chip, low, selected],
  );
  const groups = useMemo(() => (many && show !== 'all' ? causes(shown) : []), [shown, many, show]);
  const grouped = new Set(groups.flat());
  const rest = shown.filter((row) => !grouped.has(row));
  const isAgents = rows.some((row) => row.step.kind === 'prompt');
  useListKeys(run, shown, selected);
  useOpening(run, rows, selected, many);
  return (
    <div class={`steps${isAgents ? ' agents' : ''}`}>
      {many ? (
        <div class="row wrap steps-filter">
          {CHIPS.map((one) => {
            const held = rows.filter(one.fits).length;
            return held || one.key === show ? (
              <a key={one.key} class="chip" href={withQuery({ show: one.key })} aria-current={one.key === show ? 'true' : undefined}>
                {one.icon ? <Icon name={one.icon} tone={one.tone} size={14} /> : null}
                {one.word} <b>{number(held)}</b>
              </a>
            ) : null;
          })}
          <div class="grow" />
          <Find value={find} label="Find a step" onInput={(text) => go(withQuery({ find: text }), true)} />
        </div>
      ) : null}
      {groups.map((group) => (
        <section class="card cause" key={group[0]!.step.id}>
          <header class="row wrap">
            <Icon name="failed" tone="bad" />
            <p class="grow">
              <b>
                {number(group.length)} failed {isOneReason(group) ? 'for one reason:' : 'alike, the first:'}
              </b>{' '}
              {said(group[0]!.step.message).text} <span class="c-3">{said(group[0]!.step.message).code}</span>
            </p>
            {['retry', 'skip'].map((action) =>
              view.actions?.some((one) => one.action === action && one.step === group[0]!.step.id) ? (
                <Button key={action} small href={groupHref(run, action, group[0]!.step.id)}>
                  {ACTIONS[action]!.word} all {number(group.length)}…
                </Button>
              ) : null,
            )}
          </header>
          <Rows run={run} rows={group} all={rows} selected={selected} plain />
        </section>
      ))}
      {rest.length ? (
        <div class={many ? 'card plain-rows' : ''}>
          {many ? null : (
            <div class="step-row head" aria-hidden>
              <span />
              <span>Step</span>
              <span class="by">Done by</span>
              <span class="num tries">Tries</span>
              <span class="effect">{isAgents ? 'How it is known' : 'Effect'}</span>
              <span class="num">Took</span>
            </div>
          )}
          <Rows run={run} rows={rest} all={rows} selected={selected} plain={many && show !== 'all'} />
        </div>
      ) : null}
      {isAgents && !many ? <Decisions run={run} at={props.at} /> : null}
      {shown.length ? null : (
        <Empty title="No step matches" actions={<Button href={withQuery({ show: 'all', find: undefined })}>Show all {number(rows.length)}</Button>}>
          {count(rows.length, 'step')} {rows.length === 1 ? 'is' : 'are'} hidden by this filter.
        </Empty>
      )}
      {many && shown.length && shown.length < rows.length ? (
        <p class="meta hidden-by">
          {count(rows.length - shown.length, 'step')} hidden by the filter{' '}
          <a class="link" href={withQuery({ show: 'all', find: undefined })}>
            Show all {number(rows.length)}
          </a>
        </p>
      ) : null}
    </div>
  );
}

const DECISIONS_SHOWN = 3;

/** What was decided on the way, the newest last: the journal has all of it. */
function Decisions({ run, at }: { run: string; at: string }): JSX.Element | null {
  const list = useRead<EventPage>(runPath(run, '/journal?kind=decision_recorded&limit=100'), at ? undefined : { run });
  const made = (list.data?.events ?? []).filter((one) => !at || one.n <= Number(at.slice(4)));
  return made.length ? (
    <section class="card decided" aria-label="Decisions">
      {made.slice(-DECISIONS_SHOWN).map(({ n, actor: by, data }) => (
        <div class="why-line" key={n}>
          <Icon name="said" tone="2" />
          <p class="grow">
            <b>{actor(by)} decided:</b> {String(data?.decision ?? '')} <span class="c-2">{String(data?.reason ?? '')}</span>
            {data?.alternatives ? <span class="c-3"> Also considered: {listed(data.alternatives as string[])}.</span> : null}
          </p>
          <a class="link nowrap" href={runUrl(run, `/journal/${n}`)}>
            Entry {number(n)}
          </a>
        </div>
      ))}
      {made.length > DECISIONS_SHOWN ? (
        <a class="link" href={runUrl(run, '/journal?show=decisions')}>
          All {number(made.length)} decisions
        </a>
      ) : null}
    </section>
  ) : null;
}

/** Failures that are alike are one group. */
function causes(rows: readonly Row[]): readonly (readonly Row[])[] {
  const by = new Map<string, Row[]>();
  for (const row of rows) {
    if (row.step.status !== 'failed' || !row.step.message || isContainer(row.step)) continue;
    const held = by.get(likeness(row.step));
    if (held) held.push(row);
    else by.set(likeness(row.step), [row]);
  }
  return [...by.values()].filter((list) => list.length > 1);
}

/** Open on the step that failed, waits or runs, and select it; only on a wide screen, and only once. */
function useOpening(run: string, rows: readonly Row[], selected: string, many: boolean): void {
  const was = useRef('');
  useEffect(() => {
    if (was.current === run || !rows.length) return;
    was.current = run;
    if (selected || many || innerWidth < 1100 || place.value.path !== `/runs/${run}`) return;
    const first = worst(rows) ?? rows.find((row) => row.isUndone);
    if (first) go(stepHref(run, first.step.id), true);
  }, [run, rows]);
}

const RANK = ['uncertain', 'compensation_failed', 'failed', 'waiting', 'running', 'compensating'];
export function worst(rows: readonly Row[]): Row | undefined {
  for (const status of RANK) {
    const found = rows.find((row) => (row.step.status === status || (status === 'waiting' && row.look.tone === 'wait')) && !isContainer(row.step));
    if (found) return found;
  }
  return undefined;
}

function useListKeys(run: string, rows: readonly Row[], selected: string): void {
  const move = (by: number, onlyNeeds = false): void => {
    const here = rows.findIndex((row) => row.step.id === selected);
    for (let index = here + by; index >= 0 && index < rows.length; index += by) {
      if (onlyNeeds && !rows[index]!.needs && rows[index]!.look.tone !== 'bad') continue;
      go(stepHref(run, rows[index]!.step.id), true);
      focusRow(rows[index]!.step.id);
      return;
    }
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    'shift+j': () => move(1, true),
    'shift+k': () => move(-1, true),
  });
}

function focusRow(id: string): void {
  requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-step="${CSS.escape(id)}"]`)?.focus());
}

interface RowsProps {
  run: string;
  rows: readonly Row[];
  all: readonly Row[];
  selected: string;
  plain?: boolean;
}

const WINDOWED = 120;
const OVER = 12;

/** The rows; of many only those near the screen are in the page. */
export function Rows({ run, rows, all, selected, plain }: RowsProps): JSX.Element {
  const box = useRef<HTMLOListElement>(null);
  const height = useRowHeight();
  const [range, setRange] = useState<readonly [number, number]>([0, 60]);
  const isWindowed = rows.length > WINDOWED;
  useLayoutEffect(() => {
    if (!isWindowed) return undefined;
    const look = (): void => {
      const top = box.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / height) - OVER);
      const last = Math.min(rows.length, Math.ceil((innerHeight - top) / height) + OVER);
      setRange((old) => (old[0] === first && old[1] === last ? old : [first, Math.max(first, last)]));
    };
    look();
    addEventListener('scroll', look, { passive: true });
    addEventListener('resize', look);
    return () => {
      removeEventListener('scroll', look);
      removeEventListener('resize', look);
    };
  }, [isWindowed, rows.length, height]);
  useEffect(() => {
    const index = rows.findIndex((row) => row.step.id === selected);
    if (index < 0 || !box.current) return;
    const at = box.current.getBoundingClientRect().top + index * height;
    if (at < 60 || at > innerHeight - 80) scrollBy({ top: at - innerHeight / 3 });
  }, [selected]);
  const undo = useMemo(() => undoRail(all), [all]);
  const [from, to] = isWindowed ? range : [0, rows.length];
  return (
    <ol class="rail" ref={box} style={isWindowed ? { height: `${rows.length * height}px`, paddingTop: `${from * height}px` } : undefined}>
      {rows.slice(from, to).map((row) => (
        <StepRow key={row.step.id} run={run} row={row} selected={row.step.id === selected} plain={plain} undo={plain ? '' : undo.get(row.index) ?? ''} ends={`${row.index === 0 ? ' u-first' : ''}${row.index === all.length - 1 ? ' u-last' : ''}`} />
      ))}
    </ol>
  );
}

function useRowHeight(): number {
  const [height, setHeight] = useState(36);
  useLayoutEffect(() => {
    const read = (): void => setHeight(Number.parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--row')) || 36);
    read();
    addEventListener('resize', read);
    return () => removeEventListener('resize', read);
  }, []);
  return height;
}

/** Which piece of the undo rail each row draws: `u-from` where it leaves, `u-dot` at an undone step, `u-top` where it ends. */
export function undoRail(rows: readonly Row[]): ReadonlyMap<number, string> {
  const pieces = new Map<number, string>();
  const undone = rows.filter((row) => row.isUndone);
  if (!undone.length) return pieces;
  const top = undone[0]!.index;
  const lastUndone = undone[undone.length - 1]!.index;
  const failed = [...rows].reverse().find((row) => row.step.status === 'failed' && row.index > lastUndone);
  const bottom = failed?.index ?? lastUndone;
  for (let index = top; index <= bottom; index++) {
    const dot = rows[index]!.isUndone ? ' u-dot' : '';
    const bad = rows[index]!.step.status === 'compensation_failed' ? ' u-bad' : '';
    pieces.set(index, `undo${index === top ? ' u-top' : ''}${index === bottom ? (failed ? ' u-from' : ' u-end') : ''}${dot}${bad}`);
  }
  return pieces;
}

interface StepRowProps {
  run: string;
  row: Row;
  selected: boolean;
  plain?: boolean;
  undo: string;
  ends: string;
}

const KNOWN: Record<string, { word: string; icon: 'approvals' | 'said' | 'bolt' | 'person' | 'link'; tone?: string }> = {
  verified: { word: 'verified', icon: 'approvals', tone: 'ok' },
  checked: { word: 'claimed, form checked', icon: 'said' },
  claimed: { word: 'claimed', icon: 'said' },
  approved: { word: 'approved', icon: 'person' },
  carried: { word: 'carried over', icon: 'link' },
};

/** Why a step was skipped, in few words: its panel has the condition. */
const skipped = (message: string | undefined): string => (message?.startsWith('`when:') ? 'condition not met' : message || 'skipped');

function StepRow({ run, row, selected, plain, undo, ends }: StepRowProps): JSX.Element {
  const { step, look } = row;
  const tries = triesOf(step);
  const known = step.kind === 'prompt' && step.status === 'completed' ? KNOWN[step.proof ?? ''] : undefined;
  const dim = step.status === 'pending' || step.status === 'skipped' ? ' dim' : '';
  const line = useRef<HTMLAnchorElement>(null);
  const was = useRef(step.status);
  useEffect(() => {
    if (was.current !== step.status && !matchMedia('(prefers-reduced-motion: reduce)').matches) line.current?.animate([{ backgroundColor: `var(--${look.tone}-t)` }, {}], 600);
    was.current = step.status;
  }, [step.status]);
  const note = step.says || (step.status === 'skipped' ? skipped(step.message) : plain || look.tone === 'bad' ? said(step.message).text : '') || '';
  return (
    <li class={`${undo}${ends}${dim}`}>
      <a ref={line} class={`step-row${plain ? ' plain' : ''}`} href={stepHref(run, step.id)} data-step={step.id} aria-current={selected ? 'true' : undefined}>
        <span class="rail-icon">
          <StateIcon look={look} named />
        </span>
        <span class="what cut" title={row.title} style={{ paddingLeft: `${row.depth * 18}px` }}>
          <span class={row.depth ? '' : 'strong'}>{row.title}</span> <code class="c-3">{step.id}</code>
        </span>
        {plain ? (
          <span class="note cut c-2">{note || (step.status === 'waiting' ? look.word : row.by.word)}</span>
        ) : (
          <>
            <span class="by labelled c-2">
              <Icon name={row.by.icon} size={14} />
              <span>{row.by.word}</span>
            </span>
            <span class={`num tries ${tries > 1 ? 'c-wait' : 'c-2'}`}>{tries || ''}</span>
            <span class={`effect labelled ${row.effect.tone ? `c-${row.effect.tone}` : known?.tone ? `c-${known.tone}` : 'c-2'}`}>
              {row.effect.tone === 'undo' ? <Icon name="undone" size={14} /> : row.effect.tone === 'bad' ? <Icon name={look.icon === 'undo_failed' ? 'undo_failed' : 'warning'} size={14} /> : known ? <Icon name={known.icon} size={14} /> : null}
              <span>{row.effect.tone ? row.effect.word : known?.word ?? (row.effect.word || (step.status === 'skipped' ? skipped(step.message) : step.status === 'waiting' ? look.word : ''))}</span>
            </span>
          </>
        )}
        <span class="num c-2">{row.took}</span>
      </a>
    </li>
  );
}
