/** What happened when: work, failed tries, waits, undo that points left, and the critical path as an ink line. */
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { useRead } from '../../core/api';
import type { RunTimeline as Given, SpanView as Bar } from '../../core/contract';
import { useKeys } from '../../core/keys';
import { actor, capital, count, duration, exact, instant, listed } from '../../core/words';
import { NoAnswer } from '../../frame/shell';
import { Button, Empty, StateIcon } from '../../kit/kit';
import { useNow } from '../../kit/now';
import { Segmented } from './graph-view';
import { isContainer, runPath, stepHref, type Row } from './model';
import type { TabProps } from './run';
import { scaleOf, ticksOf, type Piece, type Scale } from './time-scale';

const LANE = 28;
const WIDE = 1_000;
const ROUNDS_MAX = 40;
const LANES_MAX = 300;
const STRIP = 200;
const IDLE = new Set(['person_wait', 'agent_wait', 'retry_wait', 'decision_wait', 'time_wait', 'undo_wait', 'paused']);
const WORD: Record<string, string> = { work: 'work', failed: 'failed try', lost: 'outcome unknown', retry_wait: 'wait before a retry', person_wait: 'waiting for a person', agent_wait: 'with the agent', decision_wait: 'waiting for a decision', time_wait: 'waiting for a time', undo_wait: 'wait before the undo is tried again', paused: 'paused', undo: 'undo', undo_failed: 'failed undo', running: 'running' };

interface Lane {
  row: Row;
  bars: readonly Bar[];
  isCritical: boolean;
}

/** Ticks of one axis have one unit: 80 ms, 100 ms, 120 ms. */
const tickWords = (at: number, last: number): string => (!at ? '0 s' : last < 1_000 ? `${at} ms` : duration(at));

export function Timeline({ run, view, rows, at }: TabProps): JSX.Element {
  const given = useRead<Given>(runPath(run, `/timeline${at}`), at ? undefined : { run });
  const [compress, setCompress] = useState(true);
  const [asTable, setAsTable] = useState(false);
  const now = useNow();
  const data = given.data;
  useKeys({ t: () => setAsTable(!asTable) });
  const lanes = useMemo(() => lanesOf(rows, data), [rows, data]);
  const bars = data?.spans ?? [];
  const end = Math.max(instant(data?.end) || 0, view.ended ? instant(view.ended) : now, ...bars.map((bar) => instant(bar.end) || 0));
  const start = instant(data?.start || view.started);
  const scale = useMemo(() => scaleOf({ from: start, to: end }, bars.filter((bar) => !IDLE.has(bar.kind)).map((bar) => ({ from: instant(bar.start), to: bar.end ? instant(bar.end) : end })), compress), [data, end, compress]);
  if (!data) return <NoAnswer whole={false} {...given} rows={10} />;
  if (!bars.length) return <Empty icon="clock" title="Nothing has happened yet">The first bar is drawn when the first step starts.</Empty>;
  return (
    <>
      <div class="picture-bar">
        <Legend bars={bars} />
        <span class="grow" />
        <Segmented label="Scale" value={compress ? 'short' : 'true'} options={[['short', 'Compress waits'], ['true', 'True scale']]} onChange={(value) => setCompress(value === 'short')} />
        <Button small kbd="T" onClick={() => setAsTable(!asTable)}>
          {asTable ? 'As picture' : 'As table'}
        </Button>
      </div>
      <div class="picture">
        {asTable ? <TimeTable run={run} bars={bars} rows={rows} end={end} /> : <Drawing run={run} lanes={lanes} scale={scale} end={end} critical={(data.critical ?? []).map((one) => one.step)} />}
        <Cost data={data} rows={rows} />
      </div>
    </>
  );
}

function lanesOf(rows: readonly Row[], data: Given | undefined): readonly Lane[] {
  const by = new Map<string, Bar[]>();
  for (const bar of data?.spans ?? []) by.set(bar.step, [...(by.get(bar.step) ?? []), bar]);
  const critical = new Set((data?.critical ?? []).map((one) => one.step));
  const long = rows.filter((row) => (row.step.round ?? 0) > ROUNDS_MAX).map((row) => `${row.step.id}[`);
  const lanes: Lane[] = [];
  for (const row of rows) {
    if (long.some((prefix) => row.step.id.startsWith(prefix))) continue;
    const own = by.get(row.step.id) ?? [];
    const inside = long.includes(`${row.step.id}[`) ? (data?.spans ?? []).filter((bar) => bar.step.startsWith(`${row.step.id}[`)) : [];
    if (!own.length && !inside.length && !isContainer(row.step)) continue;
    lanes.push({ row, bars: [...own, ...inside], isCritical: critical.has(row.step.id) });
    if (lanes.length >= LANES_MAX) break;
  }
  return lanes;
}

/** Whether the words of a wait would run into those of the one before; every second one of a row stands higher. */
const isClose = (gaps: readonly Piece[], index: number): boolean => index > 0 && gaps[index]!.x - gaps[index - 1]!.x < 0.14 && !isClose(gaps, index - 1);

function Drawing({ run, lanes, scale, end, critical }: { run: string; lanes: readonly Lane[]; scale: Scale; end: number; critical: readonly string[] }): JSX.Element {
  const [focus, setFocus] = useState(0);
  const height = lanes.length * LANE;
  const x = (at: number): number => scale.x(at) * WIDE;
  const ticks = ticksOf(scale);
  const undoAt = Math.min(...lanes.flatMap((lane) => lane.bars.filter((bar) => bar.kind.startsWith('undo')).map((bar) => instant(bar.start))));
  const move = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.max(0, Math.min(lanes.length - 1, focus + by));
    setFocus(next);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('.lane-name')[next]?.focus();
  };
  return (
    <div class="time" role="group" aria-label="Timeline; press t for a table">
      <span />
      <div class="axis" aria-hidden>
        {ticks.map((at) => (
          <span key={at} style={{ left: `${scale.x(scale.from + at) * 100}%` }}>
            {tickWords(at, ticks.at(-1) ?? 0)}
          </span>
        ))}
        {scale.pieces
          .filter((piece) => piece.isGap)
          .map((piece, index, gaps) => (
            <span key={piece.from} style={{ left: `${(piece.x + piece.width / 2) * 100}%`, top: isClose(gaps, index) ? '-12px' : undefined }}>
              {duration(piece.to - piece.from)} wait
            </span>
          ))}
      </div>
      <div onKeyDown={move}>
        {lanes.map((lane, index) => (
          <a key={lane.row.step.id} class={`lane-name${lane.isCritical ? ' critical' : ''}`} href={stepHref(run, lane.row.step.id, 'timeline')} tabIndex={index === focus ? 0 : -1} style={{ paddingLeft: `${lane.row.depth * 14}px` }}>
            <StateIcon look={lane.row.look} size={14} named />
            <span class="cut">{lane.row.title}</span>
            <span class="sr">
              {lane.row.took}
              {lane.isCritical ? ', on the critical path' : ''}
            </span>
          </a>
        ))}
      </div>
      <div class="lanes" style={{ height: `${height}px` }}>
        <svg viewBox={`0 0 ${WIDE} ${height}`} preserveAspectRatio="none" aria-hidden>
          {scale.pieces
            .filter((piece) => piece.isGap)
            .map((piece) => (
              <rect key={piece.from} class="gap" x={piece.x * WIDE} y={0} width={piece.width * WIDE} height={height} />
            ))}
          {ticks.map((at) => (
            <line key={at} class="grid-line" x1={x(scale.from + at)} x2={x(scale.from + at)} y1={0} y2={height} vector-effect="non-scaling-stroke" />
          ))}
          {lanes.map((_, index) => (
            <line key={index} class="grid-line" x1={0} x2={WIDE} y1={(index + 1) * LANE - 0.5} y2={(index + 1) * LANE - 0.5} vector-effect="non-scaling-stroke" />
          ))}
          {Number.isFinite(undoAt) ? <line class="undo-start" x1={x(undoAt)} x2={x(undoAt)} y1={0} y2={height} vector-effect="non-scaling-stroke" /> : null}
          <Drops lanes={lanes} critical={critical} x={x} />
        </svg>
        <div class="bars">
          {lanes.map((lane, index) => (
            <LaneBars key={lane.row.step.id} lane={lane} top={index * LANE} scale={scale} end={end} />
          ))}
        </div>
      </div>
    </div>
  );
}

/** A strip of many bars: one for each place on it, a failure before anything else. */
function thinned(bars: readonly Bar[], scale: Scale): readonly Bar[] {
  if (bars.length <= STRIP) return bars;
  const at = new Map<number, Bar>();
  for (const bar of bars) {
    const place = Math.round(scale.x(instant(bar.start)) * STRIP);
    if (!at.has(place) || /failed|lost/.test(bar.kind)) at.set(place, bar);
  }
  return [...at.values()];
}

function LaneBars({ lane, top, scale, end }: { lane: Lane; top: number; scale: Scale; end: number }): JSX.Element {
  const { row } = lane;
  const bars = thinned(lane.bars, scale);
  const percent = (value: number): string => `${value * 100}%`;
  const last = bars.filter((bar) => !bar.kind.startsWith('undo')).at(-1);
  const holds = isContainer(row.step) && !bars.length && row.step.started;
  return (
    <>
      {holds ? <i class="hold" style={{ left: percent(scale.x(instant(row.step.started))), width: percent(scale.x(row.step.ended ? instant(row.step.ended) : end) - scale.x(instant(row.step.started))), top: `${top + 12}px` }} /> : null}
      {bars.map((bar, index) => {
        const from = scale.x(instant(bar.start));
        const to = scale.x(bar.end ? instant(bar.end) : end);
        const kind: string = bar.end || IDLE.has(bar.kind) ? bar.kind : 'running';
        const length = (bar.end ? instant(bar.end) : end) - instant(bar.start);
        const says = kind === 'person_wait' ? `${actor(row.step.by) || 'a person'}, ${duration(length)}` : '';
        return (
          <i key={index} class={`tbar b-${kind}${lane.isCritical && !kind.startsWith('undo') ? ' on-path' : ''}`} title={`${row.title}: ${WORD[kind] ?? kind}, ${duration(length)}`} style={{ left: `min(${percent(from)}, 100% - 3px)`, width: `max(3px, ${percent(to - from)})`, top: `${top + 7}px` }}>
            {says && to - from > 0.07 ? <span>{says}</span> : null}
          </i>
        );
      })}
      {last && bars.length < 20 ? (
        <span class={`took${scale.x(last.end ? instant(last.end) : end) > 0.95 ? ' left' : ''}`} style={{ left: percent(scale.x(last.end ? instant(last.end) : end)), top: `${top + 4}px` }}>
          {last.kind === 'person_wait' ? '' : row.took}
        </span>
      ) : null}
    </>
  );
}

/** Dotted lines from the end of one critical step to the start of the next. */
function Drops({ lanes, critical, x }: { lanes: readonly Lane[]; critical: readonly string[]; x: (at: number) => number }): JSX.Element {
  const at = new Map(lanes.map((lane, index) => [lane.row.step.id, { lane, index }]));
  const lines: string[] = [];
  for (let index = 1; index < critical.length; index++) {
    const from = at.get(critical[index - 1]!);
    const to = at.get(critical[index]!);
    const ended = from && Math.max(...from.lane.bars.filter((bar) => !bar.kind.startsWith('undo')).map((bar) => instant(bar.end)));
    if (!from || !to || !ended || !Number.isFinite(ended)) continue;
    lines.push(`M${x(ended)} ${from.index * LANE + 22}V${to.index * LANE + (to.index > from.index ? 6 : 22)}`);
  }
  return <path class="drop" d={lines.join('')} vector-effect="non-scaling-stroke" />;
}

/** Waits look alike: their word is that of the only kind that there is. */
const WAITS = new Set(['person_wait', 'agent_wait', 'time_wait', 'decision_wait', 'paused']);

function Legend({ bars }: { bars: readonly Bar[] }): JSX.Element {
  const kinds = new Set<string>(bars.map((bar) => bar.kind));
  const waits = [...kinds].filter((kind) => WAITS.has(kind));
  const all: readonly (readonly [string, string])[] = [['work', 'Work'], ['failed', 'Failed try'], ['lost', 'Outcome unknown'], ['retry_wait', 'Wait before a retry'], [waits[0] ?? '', waits.length === 1 ? capital(WORD[waits[0]!] ?? '') : 'Waiting'], ['undo', 'Undo'], ['undo_failed', 'Failed undo']];
  const shown = all.filter(([kind]) => kinds.has(kind));
  return (
    <div class="legend">
      {shown.map(([kind, word]) => (
        <span class="labelled" key={kind}>
          <i class={`tbar b-${kind} sample`} />
          <span>{word}</span>
        </span>
      ))}
      <span class="labelled">
        <i class="path-sample" />
        <span>Critical path</span>
      </span>
    </div>
  );
}

/** What the critical path cost, in a sentence. */
function Cost({ data, rows }: { data: Given; rows: readonly Row[] }): JSX.Element | null {
  const critical = data.critical ?? [];
  if (!critical.length && !data.says) return null;
  const title = (step: string): string => rows.find((row) => row.step.id === step)?.title ?? step;
  const worked = critical.reduce((sum, one) => sum + (one.worked_ms ?? 0), 0);
  const slowest = [...critical].sort((a, b) => (b.worked_ms ?? 0) - (a.worked_ms ?? 0)).filter((one) => one.worked_ms);
  return (
    <p class="cost">
      <b>Critical path, {duration(worked)} of work:</b> {data.says || `${listed(slowest.slice(0, 2).map((one) => `${title(one.step)} took ${duration(one.worked_ms)}`))}.`}
      {data.says || !data.waited_ms ? '' : ` ${duration(data.waited_ms)} were spent waiting.`}
      {data.unshown ? ` ${count(data.unshown, 'bar')} not shown.` : ''}
    </p>
  );
}

function TimeTable({ run, bars, rows, end }: { run: string; bars: readonly Bar[]; rows: readonly Row[]; end: number }): JSX.Element {
  const title = (step: string): string => rows.find((row) => row.step.id === step)?.title ?? step;
  return (
    <div class="card">
      <table class="table">
        <caption class="sr">The timeline as a table</caption>
        <thead>
          <tr>
            <th>Step</th>
            <th>What</th>
            <th class="num">Try</th>
            <th>From</th>
            <th class="num">Took</th>
          </tr>
        </thead>
        <tbody>
          {bars.slice(0, 2000).map((bar, index) => (
            <tr key={index}>
              <td>
                <a href={stepHref(run, bar.step, 'timeline')}>{title(bar.step)}</a> <code class="c-3">{bar.step}</code>
              </td>
              <td>{WORD[bar.kind] ?? bar.kind}</td>
              <td class="num">{bar.attempt || ''}</td>
              <td class="mono">{exact(bar.start)}</td>
              <td class="num">{duration((bar.end ? instant(bar.end) : end) - instant(bar.start))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
