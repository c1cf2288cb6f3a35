/** The steps as a graph. A loop is one box with lanes, tiles or cells; undo is a dashed line that runs backwards with 1, 2, 3 for its order. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useRead } from '../../core/api';
import type { Graph as GraphGiven, GraphNode } from '../../core/contract';
import { useKeys } from '../../core/keys';
import { go } from '../../core/router';
import { count, duration, instant, number } from '../../core/words';
import { Icon } from '../../kit/icons';
import { Button, StateIcon } from '../../kit/kit';
import { layout, type Arrow, type Box, type Layout } from '../../kit/layout';
import { isContainer, runPath, stepHref, triesOf, type Row } from './model';
import type { TabProps } from './run';
import { worst } from './steps';

const NODE = { width: 126, height: 58 };
const LANES_MAX = 6;
const TILES_MAX = 120;
/** A cell is an element of its own: more of them than this make the page slow. */
const CELLS_MAX = 1_000;
const FOLD_FROM = 14;
const HEAD = 34;
const PAD = 12;

interface Unit {
  id: string;
  row?: Row;
  /** Steps that are folded into one box. */
  folded?: readonly Row[];
  rounds?: ReadonlyMap<number, readonly Row[]>;
  /** Rounds that are not drawn: there are too many for one page. */
  hidden?: readonly (readonly Row[])[];
  inner?: { layout: Layout; kind: 'lanes' | 'tiles' | 'cells'; columns: number };
}

export function Graph({ run, rows, selected, at }: TabProps): JSX.Element {
  const given = useRead<GraphGiven>(runPath(run, `/graph${at}`), at ? undefined : { run }).data;
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(1100);
  const [asTable, setAsTable] = useState(false);
  const [down, setDown] = useState(innerWidth < 900);
  const [fold, setFold] = useState<boolean | null>(null);
  const [worstFirst, setWorstFirst] = useState(false);
  const [fit, setFit] = useState(true);
  const nodes = useMemo(() => new Map((given?.nodes ?? []).map((node) => [node.id, node])), [given]);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width));
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, [asTable]);
  const tops = rows.filter((row) => row.depth === 0);
  const isFolded = fold ?? tops.length > FOLD_FROM;
  const edges = useMemo(() => edgesOf(given, tops), [given, tops.length]);
  const { units, arrows } = useMemo(() => unitsOf(rows, tops, edges, isFolded, worstFirst), [rows, edges, isFolded, worstFirst]);
  const drawn = useMemo(() => layout(units.map((unit) => sizeOf(unit)), arrows, { down, gap: 30, spread: 22 }), [units, arrows, down]);
  const scale = fit && !down ? Math.max(0.72, Math.min(1, (width - 4) / (drawn.width + 12))) : 1;
  const hasLoop = units.some((unit) => unit.inner && unit.inner.kind !== 'lanes');
  useKeys({ t: () => setAsTable(!asTable), f: () => setFit(!fit), c: () => setFold(!isFolded), w: () => setWorstFirst(!worstFirst) });
  useEffect(() => {
    const first = worst(rows);
    if (!first) return;
    document.querySelector(`.graph [data-step="${CSS.escape(first.step.id)}"]`)?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [run]);
  return (
    <>
      <div class="picture-bar">
        <p class="grow">
          {hasLoop ? 'A loop is one box with a tile for each round. ' : 'Arrow keys move along edges, '}
          <kbd>↵</kbd> opens the step, <kbd>f</kbd> fits, <kbd>c</kbd> folds finished chains.
        </p>
        {hasLoop ? (
          <Segmented label="Order of rounds" value={worstFirst ? 'worst' : 'planned'} options={[['planned', 'As planned'], ['worst', 'Worst first']]} onChange={(value) => setWorstFirst(value === 'worst')} />
        ) : (
          <Segmented label="Direction" value={down ? 'down' : 'right'} options={[['right', 'Left to right'], ['down', 'Top down']]} onChange={(value) => setDown(value === 'down')} />
        )}
        <Segmented label="Size" value={fit ? 'fit' : 'full'} options={[['fit', 'Fit'], ['full', '100%']]} onChange={(value) => setFit(value === 'fit')} />
        <Button small kbd="T" onClick={() => setAsTable(!asTable)}>
          {asTable ? 'As picture' : 'As table'}
        </Button>
      </div>
      {asTable ? (
        <GraphTable run={run} rows={rows} nodes={nodes} edges={edges} />
      ) : (
        <div class="picture" ref={box}>
          <Drawing run={run} rows={rows} units={units} drawn={drawn} nodes={nodes} selected={selected} scale={scale} down={down} />
        </div>
      )}
    </>
  );
}

export function Segmented({ label, value, options, onChange }: { label: string; value: string; options: readonly (readonly [string, string])[]; onChange: (value: string) => void }): JSX.Element {
  return (
    <div class="seg" role="group" aria-label={label}>
      {options.map(([key, word]) => (
        <button key={key} type="button" aria-pressed={key === value} onClick={() => onChange(key)}>
          {word}
        </button>
      ))}
    </div>
  );
}

function edgesOf(given: GraphGiven | undefined, tops: readonly Row[]): readonly Arrow[] {
  const ids = new Set(tops.map((row) => row.step.id));
  const edges = (given?.edges ?? []).filter((edge) => ids.has(edge.source) && ids.has(edge.target));
  if (edges.length || given) return edges;
  return tops.slice(1).map((row, index) => ({ source: tops[index]!.step.id, target: row.step.id }));
}

function unitsOf(rows: readonly Row[], tops: readonly Row[], edges: readonly Arrow[], fold: boolean, worstFirst: boolean): { units: readonly Unit[]; arrows: readonly Arrow[] } {
  const units: Unit[] = tops.map((row) => {
    const inside = isContainer(row.step) ? rows.filter((one) => one.step.id.startsWith(`${row.step.id}[`) || one.step.id.startsWith(`${row.step.id}.`)) : [];
    return inside.length ? { id: row.step.id, row, ...loopOf(row, inside, worstFirst) } : { id: row.step.id, row };
  });
  if (!fold) return { units, arrows: edges };
  return folded(units, edges);
}

/** Chains of three or more finished steps become one box. */
function folded(units: readonly Unit[], edges: readonly Arrow[]): { units: readonly Unit[]; arrows: readonly Arrow[] } {
  const next = (id: string): string[] => edges.filter((edge) => edge.source === id).map((edge) => edge.target);
  const previous = (id: string): string[] => edges.filter((edge) => edge.target === id).map((edge) => edge.source);
  const isOver = (unit: Unit | undefined): unit is Unit => !!unit && !unit.inner && unit.row?.step.status === 'completed';
  const byId = new Map(units.map((unit) => [unit.id, unit]));
  const into = new Map<string, string>();
  const result: Unit[] = [];
  for (const unit of units) {
    if (into.has(unit.id)) continue;
    const chain: Unit[] = [];
    for (let one: Unit | undefined = unit; isOver(one) && (!chain.length || previous(one.id).length === 1); ) {
      chain.push(one);
      const after = next(one.id);
      one = after.length === 1 ? byId.get(after[0]!) : undefined;
    }
    if (chain.length < 3) {
      result.push(unit);
      continue;
    }
    for (const one of chain) into.set(one.id, unit.id);
    result.push({ id: unit.id, folded: chain.map((one) => one.row!) });
  }
  const arrows = edges.map((edge) => ({ source: into.get(edge.source) ?? edge.source, target: into.get(edge.target) ?? edge.target })).filter((edge) => edge.source !== edge.target);
  return { units: result, arrows };
}

function loopOf(row: Row, inside: readonly Row[], worstFirst: boolean): Pick<Unit, 'rounds' | 'inner' | 'hidden'> {
  const rounds = new Map<number, Row[]>();
  const from = row.step.id.length;
  for (const one of inside) {
    const at = Number(/^\[(\d+)\]/.exec(one.step.id.slice(from))?.[1] ?? 0);
    rounds.set(at, [...(rounds.get(at) ?? []), one]);
  }
  const byWorst = worstFirst || rounds.size > CELLS_MAX ? [...rounds].sort((a, b) => badness(a[1]) - badness(b[1])) : [...rounds];
  const shown = byWorst.slice(0, CELLS_MAX);
  const hidden = byWorst.slice(CELLS_MAX).map(([, list]) => list);
  const sorted = new Map(worstFirst ? shown : shown.sort((a, b) => a[0] - b[0]));
  if (rounds.size <= LANES_MAX) return { rounds: sorted, inner: lanes(sorted, row) };
  const isTiles = rounds.size <= TILES_MAX;
  const columns = isTiles ? Math.min(4, Math.ceil(rounds.size / 4)) : 40;
  const cell = isTiles ? { width: 170, height: 34 } : { width: 14, height: 14 };
  const width = Math.max(260, columns * cell.width) + 2 * PAD;
  const height = Math.ceil(sorted.size / columns) * cell.height + HEAD + PAD + (hidden.length ? 24 : 0);
  return { rounds: sorted, hidden, inner: { kind: isTiles ? 'tiles' : 'cells', columns, layout: { boxes: new Map(), arrows: [], width, height } } };
}

const BAD = ['bad', 'unc', 'wait', 'run', 'undo', 'off', 'ok'];
const badness = (rows: readonly Row[]): number => Math.min(...rows.map((row) => BAD.indexOf(row.look.tone)));
const worstOf = (rows: readonly Row[]): Row => [...rows].sort((a, b) => BAD.indexOf(a.look.tone) - BAD.indexOf(b.look.tone))[0]!;

function lanes(rounds: ReadonlyMap<number, readonly Row[]>, row: Row): Unit['inner'] {
  const boxes = new Map<string, { x: number; y: number; width: number; height: number; layer: number }>();
  const arrows: (Arrow & { path: string })[] = [];
  let columns = 0;
  let y = HEAD + 4;
  for (const [, list] of rounds) {
    const depth = row.depth + 1;
    const steps = list.filter((one) => one.depth === depth);
    steps.forEach((one, column) => {
      const x = PAD + column * (NODE.width + 20);
      boxes.set(one.step.id, { x, y, ...NODE, layer: column });
      if (!column) return;
      const line = y + NODE.height / 2;
      arrows.push({ source: steps[column - 1]!.step.id, target: one.step.id, path: `M${x - 20} ${line}L${x - 2} ${line}` });
    });
    columns = Math.max(columns, steps.length);
    y += NODE.height + 14;
  }
  const width = Math.max(240, 2 * PAD + columns * (NODE.width + 20) - 20);
  return { kind: 'lanes', columns, layout: { boxes, arrows, width, height: y } };
}

function sizeOf(unit: Unit): Box {
  return { id: unit.id, ...(unit.inner ? { width: unit.inner.layout.width, height: unit.inner.layout.height } : NODE) };
}

interface DrawingProps {
  run: string;
  rows: readonly Row[];
  units: readonly Unit[];
  drawn: Layout;
  nodes: ReadonlyMap<string, GraphNode>;
  selected: string;
  scale: number;
  down: boolean;
}

function Drawing({ run, rows, units, drawn, nodes, selected, scale, down }: DrawingProps): JSX.Element {
  const [focus, setFocus] = useState('');
  const places = useMemo(() => absolute(units, drawn), [units, drawn]);
  const ids = [...places.keys()];
  const tabStop = places.has(focus) ? focus : places.has(selected) ? selected : worst(rows.filter((row) => places.has(row.step.id)))?.step.id ?? ids[0];
  const orders = useMemo(() => undoOrders(rows, nodes), [rows, nodes]);
  const undo = undoLine(rows, units, drawn, down);
  const move = (event: KeyboardEvent): void => {
    const id = (event.target as HTMLElement).dataset.step;
    const next = id && neighbour(id, event.key, places, drawn, units);
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    setFocus(next);
    document.querySelector<HTMLElement>(`.graph [data-step="${CSS.escape(next)}"]`)?.focus();
  };
  const height = drawn.height + (undo ? 72 : 16);
  const card = (row: Row, at: { x: number; y: number; width: number; height: number }): JSX.Element => <Node key={row.step.id} run={run} row={row} at={at} order={orders.get(row.step.id)} selected={row.step.id === selected} tab={row.step.id === tabStop} />;
  return (
    <div style={{ height: `${(height + 16) * scale}px` }}>
      <div class="graph" role="group" aria-label="Graph of the steps; press t for a table" onKeyDown={move} style={{ width: `${drawn.width + 12}px`, height: `${height}px`, transform: scale < 1 ? `scale(${scale})` : undefined, transformOrigin: '0 0', marginTop: '14px' }}>
        {units.map((unit) => {
          const at = drawn.boxes.get(unit.id)!;
          if (!unit.inner) return null;
          return <Loop key={unit.id} run={run} unit={unit} at={at} selected={selected} tabStop={tabStop} />;
        })}
        <svg class="edges" width={drawn.width} height={height} aria-hidden>
          <defs>
            <marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M1 1l6 3-6 3" fill="none" stroke="var(--ctl)" stroke-width="1.3" />
            </marker>
            <marker id="undo-head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" orient="auto">
              <path d="M1 1l6 3-6 3" fill="none" stroke="var(--undo)" stroke-width="1.6" />
            </marker>
          </defs>
          {drawn.arrows.map((arrow) => (
            <path key={`${arrow.source} ${arrow.target}`} class="edge" d={arrow.path} marker-end="url(#head)" />
          ))}
          {units.map((unit) => {
            const at = drawn.boxes.get(unit.id)!;
            return unit.inner?.layout.arrows.map((arrow) => <path key={arrow.target} class="edge" d={arrow.path} transform={`translate(${at.x} ${at.y})`} marker-end="url(#head)" />);
          })}
          {undo ? (
            <>
              <path class="undo-edge" d={undo.trunk} />
              {undo.arms.map((arm) => (
                <path key={arm} class="undo-edge" d={arm} marker-end="url(#undo-head)" />
              ))}
            </>
          ) : null}
        </svg>
        {units.map((unit) => {
          const at = drawn.boxes.get(unit.id)!;
          if (unit.folded) return <Folded key={unit.id} run={run} rows={unit.folded} at={at} />;
          if (unit.inner) {
            return [...unit.inner.layout.boxes].map(([id, inner]) => {
              const row = rows.find((one) => one.step.id === id);
              return row ? card(row, { ...inner, x: at.x + inner.x, y: at.y + inner.y }) : null;
            });
          }
          return unit.row ? card(unit.row, at) : null;
        })}
        {undo ? (
          <span class="undo-label" style={{ left: `${undo.label.x}px`, top: `${undo.label.y}px` }}>
            {undo.words}
          </span>
        ) : null}
      </div>
    </div>
  );
}

const at = (place: { x: number; y: number; width: number; height: number }): Record<string, string> => ({ left: `${place.x}px`, top: `${place.y}px`, width: `${place.width}px`, height: `${place.height}px` });

function Node({ run, row, at: place, order, selected, tab }: { run: string; row: Row; at: { x: number; y: number; width: number; height: number }; order?: number; selected: boolean; tab: boolean }): JSX.Element {
  const { step, look } = row;
  const tone = look.tone === 'off' ? (step.status === 'pending' ? 'not-begun' : '') : look.tone === 'ok' ? '' : look.tone;
  const tries = triesOf(step) > 1 ? `${triesOf(step)} tries` : '';
  const note = step.status === 'pending' ? 'not started' : [look.tone === 'ok' || look.tone === 'undo' ? row.took : look.tone === 'bad' && step.category ? step.category.replace(/_/g, ' ') : look.word, tries].filter(Boolean).join(' · ');
  return (
    <a class={`node ${tone}`} href={stepHref(run, step.id, 'graph')} data-step={step.id} style={at(place)} tabIndex={tab ? 0 : -1} aria-current={selected ? 'true' : undefined} title={row.title}>
      <StateIcon look={look} size={14} named />
      <b>{row.title}</b>
      <span class="meta">{note}</span>
      {order ? (
        <span class="order">
          <span class="sr">undone as number </span>
          {number(order)}
        </span>
      ) : null}
    </a>
  );
}

function Folded({ run, rows, at: place }: { run: string; rows: readonly Row[]; at: { x: number; y: number; width: number; height: number } }): JSX.Element {
  const first = rows[0]!;
  const from = instant(first.step.started);
  const to = instant(rows[rows.length - 1]!.step.ended);
  return (
    <a class="node" href={stepHref(run, first.step.id, 'graph')} data-step={first.step.id} style={at(place)}>
      <Icon name="completed" tone="ok" size={14} />
      <b>{count(rows.length, 'step')} completed</b>
      <span class="meta">{duration(to - from)}</span>
    </a>
  );
}

function Loop({ run, unit, at: place, selected, tabStop }: { run: string; unit: Unit; at: { x: number; y: number; width: number; height: number }; selected: string; tabStop: string | undefined }): JSX.Element {
  const row = unit.row!;
  const inner = unit.inner!;
  const hidden = unit.hidden ?? [];
  const over = [...unit.rounds!.values(), ...hidden].filter((list) => list.every((one) => one.look.tone === 'ok' || one.look.tone === 'undo' || one.step.status === 'skipped')).length;
  const known = row.step.rounds || unit.rounds!.size + hidden.length;
  const shared = sharedStart([...unit.rounds!.values()].map((list) => worstOf(list).title));
  return (
    <section class="loop" style={at(place)} aria-label={row.title}>
      <header>
        <b class="cut">{row.title}</b>
        <span class="c-2 nowrap">
          {row.step.kind === 'workflow' ? '' : `${number(over)} of ${count(known, 'round')} · `}
          {row.took}
        </span>
      </header>
      {inner.kind === 'lanes' ? null : (
        <div class="tiles" style={{ gridTemplateColumns: `repeat(${inner.columns}, minmax(0, 1fr))`, gap: inner.kind === 'cells' ? '2px' : undefined }}>
          {[...unit.rounds!].map(([index, list]) => {
            const bad = worstOf(list);
            const open = bad.step.id;
            const name = `Round ${index + 1}: ${bad.title}, ${bad.look.word}`;
            const link = { href: stepHref(run, open, 'graph'), 'data-step': open, tabIndex: open === tabStop ? 0 : -1, title: name, ...(inner.kind === 'cells' ? { 'aria-label': name } : {}), 'aria-current': open === selected ? ('true' as const) : undefined };
            return inner.kind === 'cells' ? (
              <a key={index} class={`gcell f-${bad.look.tone}`} {...link} />
            ) : (
              <a key={index} class={`tile ${bad.look.tone}`} {...link}>
                <StateIcon look={bad.look} size={14} named />
                <span class="cut">{bad.title.slice(shared)}</span>
                <span class="num">{(bad.step.attempts ?? 0) > 1 ? `${bad.step.attempts} tries` : bad.took}</span>
              </a>
            );
          })}
        </div>
      )}
      {hidden.length ? <p class="meta">and {count(hidden.length, 'more round', 'more rounds')}, not worse than these; the list of steps has them all</p> : null}
    </section>
  );
}

/** How many letters all titles begin with, up to a space: tiles leave them out. */
function sharedStart(titles: readonly string[]): number {
  const first = titles[0] ?? '';
  let at = 0;
  while (at < first.length && titles.every((title) => title[at] === first[at])) at++;
  return titles.length > 1 ? first.slice(0, at).lastIndexOf(' ') + 1 : 0;
}

/** Where every box that can have the focus stands. */
function absolute(units: readonly Unit[], drawn: Layout): ReadonlyMap<string, { x: number; y: number }> {
  const places = new Map<string, { x: number; y: number }>();
  for (const unit of units) {
    const place = drawn.boxes.get(unit.id)!;
    if (!unit.inner) places.set(unit.id, { x: place.x + place.width / 2, y: place.y + place.height / 2 });
    else if (unit.inner.kind === 'lanes') {
      for (const [id, inner] of unit.inner.layout.boxes) places.set(id, { x: place.x + inner.x + inner.width / 2, y: place.y + inner.y + inner.height / 2 });
    } else {
      [...unit.rounds!.values()].forEach((list, index) => {
        places.set(worstOf(list).step.id, { x: place.x + (index % unit.inner!.columns) * 10, y: place.y + Math.floor(index / unit.inner!.columns) * 10 });
      });
    }
  }
  return places;
}

const TOWARDS: Record<string, readonly [number, number]> = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** Along an edge if there is one that way, else the nearest box that way. */
function neighbour(id: string, key: string, places: ReadonlyMap<string, { x: number; y: number }>, drawn: Layout, units: readonly Unit[]): string | undefined {
  const towards = TOWARDS[key];
  const here = places.get(id);
  if (!towards || !here) return undefined;
  const edges = [...drawn.arrows, ...units.flatMap((unit) => unit.inner?.layout.arrows ?? [])];
  const linked = towards[0] > 0 ? edges.filter((edge) => edge.source === id).map((edge) => edge.target) : towards[0] < 0 ? edges.filter((edge) => edge.target === id).map((edge) => edge.source) : [];
  const direct = linked.find((one) => places.has(one));
  if (direct) return direct;
  let best: string | undefined;
  let least = Infinity;
  for (const [other, place] of places) {
    const [dx, dy] = [place.x - here.x, place.y - here.y];
    const ahead = dx * towards[0] + dy * towards[1];
    if (other === id || ahead <= 1) continue;
    const aside = Math.abs(dx * towards[1]) + Math.abs(dy * towards[0]);
    const cost = ahead + aside * 2.5;
    if (cost < least) [best, least] = [other, cost];
  }
  return best;
}

/** In which order steps were undone: as the server says, else by when each was. */
function undoOrders(rows: readonly Row[], nodes: ReadonlyMap<string, GraphNode>): ReadonlyMap<string, number> {
  const undone = rows.filter((row) => row.isUndone && !isContainer(row.step));
  const given = undone.filter((row) => nodes.get(row.step.id)?.undo_order);
  if (given.length === undone.length) return new Map(given.map((row) => [row.step.id, nodes.get(row.step.id)!.undo_order!]));
  const sorted = [...undone].filter((row) => row.step.status === 'compensated').sort((a, b) => instant(a.step.ended) - instant(b.step.ended) || b.index - a.index);
  return new Map(sorted.map((row, index) => [row.step.id, index + 1]));
}

/** The dashed line that runs back from the failure to every step that is undone. */
function undoLine(rows: readonly Row[], units: readonly Unit[], drawn: Layout, down: boolean): { trunk: string; arms: readonly string[]; label: { x: number; y: number }; words: string } | null {
  const undone = rows.filter((row) => row.isUndone && !isContainer(row.step));
  if (!undone.length || down) return null;
  const boxOf = (row: Row) => drawn.boxes.get(units.find((unit) => unit.id === row.step.id.split(/[.[]/)[0])?.id ?? '');
  const failed = [...rows].reverse().find((row) => row.step.status === 'failed' && !isContainer(row.step));
  const source = boxOf(failed ?? undone[undone.length - 1]!);
  const targets = [...new Set(undone.map(boxOf))].filter((box) => box && box !== source);
  if (!source || !targets.length) return null;
  const floor = drawn.height + 40;
  const right = source.x + source.width / 2;
  const centres = targets.map((box) => box!.x + box!.width / 2);
  const left = Math.min(...centres);
  const done = undone.filter((row) => row.step.status === 'compensated').length;
  const words = done === undone.length ? `Undone newest first, ${done === 1 ? '1 step' : `1 to ${done}`}` : `Undoing newest first, ${done} of ${undone.length}`;
  return {
    trunk: `M${right} ${source.y + source.height}V${floor}H${left}`,
    arms: targets.map((box) => `M${box!.x + box!.width / 2} ${floor}V${box!.y + box!.height + 4}`),
    label: { x: (Math.max(...centres) + right) / 2, y: floor },
    words,
  };
}

function GraphTable({ run, rows, nodes, edges }: { run: string; rows: readonly Row[]; nodes: ReadonlyMap<string, GraphNode>; edges: readonly Arrow[] }): JSX.Element {
  const orders = undoOrders(rows, nodes);
  const title = (id: string): string => rows.find((row) => row.step.id === id)?.title ?? id;
  return (
    <div class="picture">
      <div class="card">
        <table class="table">
          <caption class="sr">The graph as a table</caption>
          <thead>
            <tr>
              <th>Step</th>
              <th>State</th>
              <th>Follows</th>
              <th class="num">Tries</th>
              <th class="num">Undone as</th>
              <th class="num">Took</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, 1000).map((row) => (
              <tr key={row.step.id} onClick={() => go(stepHref(run, row.step.id, 'graph'))}>
                <td style={{ paddingLeft: `${16 + row.depth * 18}px` }}>
                  <a href={stepHref(run, row.step.id, 'graph')}>{row.title}</a> <code class="c-3">{row.step.id}</code>
                </td>
                <td>
                  <span class="labelled">
                    <StateIcon look={row.look} size={14} />
                    <span>{row.look.word}</span>
                  </span>
                </td>
                <td class="c-2">{edges.filter((edge) => edge.target === row.step.id).map((edge) => title(edge.source)).join(', ')}</td>
                <td class="num">{row.step.attempts || ''}</td>
                <td class="num">{orders.get(row.step.id) ?? ''}</td>
                <td class="num">{row.took}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
