/** Compare values: two steps, two tries, before and after a step, two runs. The signs + and - say it, the tint only repeats it. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { useRead } from '../../core/api';
import type { RunComparison, RunPage, StepDetail, ValueComparison, ValueDifference } from '../../core/contract';
import { enc, go, match, usePlace, withQuery } from '../../core/router';
import { lookOf, runName } from '../../core/runs';
import { count, duration } from '../../core/words';
import { NoAnswer } from '../../frame/shell';
import { Empty, Pill } from '../../kit/kit';
import { flat, text } from '../../kit/value';
import { stepLook } from '../../states';
import { isContainer, runPath, stepHref, type Row } from './model';
import type { TabProps } from './run';

const MODES: readonly (readonly [string, string])[] = [
  ['steps', 'Two steps'],
  ['tries', 'Two tries'],
  ['around', 'Before and after'],
  ['runs', 'Two runs'],
];

export function Values(props: TabProps): JSX.Element {
  const { run, rows } = props;
  const { query, path } = usePlace();
  const other = match('/runs/:run/compare/:other', path)?.other ?? query.get('run') ?? '';
  const mode = other ? 'runs' : query.get('mode') ?? 'steps';
  const withOutput = rows.filter((row) => !isContainer(row.step) && row.step.started);
  const tried = rows.filter((row) => row.step.kind === 'prompt' && (row.step.attempts ?? 0) > 1);
  const choices = mode === 'tries' ? tried : withOutput;
  const a = query.get('a') ?? (mode === 'tries' ? (choices[0] ? `${choices[0].step.id}:1` : '') : choices[0]?.step.id ?? '');
  const b = query.get('b') ?? (mode === 'tries' ? (choices[0] ? `${choices[0].step.id}:${choices[0].step.attempts}` : '') : choices[1]?.step.id ?? '');
  // What is compared stands in the address, so that its link and its JSON say the same.
  useEffect(() => {
    if (mode !== 'runs' && a && !query.get('a')) go(withQuery({ mode, a, b: mode === 'around' ? '' : b }), true);
  }, [mode, a]);
  return (
    <>
      <div class="picture-bar">
        {mode === 'runs' ? <RunPick run={run} other={other} workflow={props.view.workflow} /> : mode === 'around' ? <Pick label="What the step added" name="a" value={a} rows={choices} /> : mode === 'tries' ? <TryPick a={a} b={b} rows={choices} /> : <TwoPicks a={a} b={b} rows={choices} />}
        <span class="grow" />
        <nav class="seg" aria-label="What to compare">
          {MODES.map(([key, word]) => (
            <a key={key} href={`/runs/${enc(run)}/values?mode=${key}`} aria-current={key === mode ? 'true' : undefined}>
              {word}
            </a>
          ))}
        </nav>
      </div>
      {mode === 'runs' ? <TwoRuns run={run} other={other} /> : !a ? <Empty title={mode === 'tries' ? 'Nothing was submitted twice' : 'No step has an output yet'}>Choose another way to compare.</Empty> : <Differences run={run} a={a} b={mode === 'around' ? '' : b} mode={mode} rows={rows} />}
    </>
  );
}

function Pick({ label, name, value, rows, without }: { label: string; name: string; value: string; rows: readonly Row[]; without?: boolean }): JSX.Element {
  return (
    <label class="row">
      <span class="nowrap">{label}</span>
      <select value={value} onChange={(event) => go(withQuery({ [name]: event.currentTarget.value }), true)} aria-label={without ? label : undefined}>
        {rows.map((row) => (
          <option key={row.step.id} value={row.step.id}>
            {row.title} ({row.step.id})
          </option>
        ))}
      </select>
    </label>
  );
}

const TwoPicks = ({ a, b, rows }: { a: string; b: string; rows: readonly Row[] }): JSX.Element => (
  <>
    <Pick label="Compare the output of" name="a" value={a} rows={rows} />
    <Pick label="with" name="b" value={b} rows={rows} />
  </>
);

function TryPick({ a, b, rows }: { a: string; b: string; rows: readonly Row[] }): JSX.Element {
  const [step, first] = cut(a);
  const second = cut(b)[1];
  const tries = rows.find((row) => row.step.id === step)?.step.attempts ?? 2;
  const numbers = Array.from({ length: tries }, (_, index) => String(index + 1));
  const choose = (name: 'a' | 'b', value: string): void => go(withQuery({ mode: 'tries', a: name === 'a' ? `${step}:${value}` : a, b: name === 'b' ? `${step}:${value}` : b }), true);
  return (
    <>
      <label class="row">
        <span class="nowrap">Step</span>
        <select value={step} onChange={(event) => go(withQuery({ mode: 'tries', a: `${event.currentTarget.value}:1`, b: `${event.currentTarget.value}:2` }), true)}>
          {rows.map((row) => (
            <option key={row.step.id} value={row.step.id}>
              {row.title}
            </option>
          ))}
        </select>
      </label>
      {(['a', 'b'] as const).map((name) => (
        <label class="row" key={name}>
          <span class="nowrap">{name === 'a' ? 'try' : 'with try'}</span>
          <select value={name === 'a' ? first : second} onChange={(event) => choose(name, event.currentTarget.value)}>
            {numbers.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
      ))}
    </>
  );
}

const cut = (name: string): readonly [string, string] => {
  const at = name.lastIndexOf(':');
  return at < 0 ? [name, '1'] : [name.slice(0, at), name.slice(at + 1)];
};

function Differences({ run, a, b, mode, rows }: { run: string; a: string; b: string; mode: string; rows: readonly Row[] }): JSX.Element {
  const { query } = usePlace();
  const asked = new URLSearchParams({ mode, a, ...(b ? { b } : {}) });
  const given = useRead<ValueComparison>(runPath(run, `/values?${asked}`), { run });
  const wholeA = useRead<StepDetail>(mode === 'steps' ? runPath(run, `/steps/${enc(a)}`) : null).data;
  const wholeB = useRead<StepDetail>(mode === 'steps' && b ? runPath(run, `/steps/${enc(b)}`) : null).data;
  const only = query.get('only') === '1';
  const data = given.data;
  if (!data) return <NoAnswer whole={false} {...given} rows={6} />;
  const differences = data.differences ?? [];
  const same = mode === 'steps' && wholeA && wholeB && !only ? equalLines(wholeA.output, wholeB.output) : [];
  const title = (name: string): string => rows.find((row) => row.step.id === cut(name)[0] || row.step.id === name)?.title ?? name;
  return (
    <>
      <p class="row" style={{ padding: '0 var(--pad)' }}>
        <span class="grow">
          <b>{count(differences.length, 'value')} differ{differences.length === 1 ? 's' : ''}</b>
          {same.length ? <span class="c-2">, {same.length} are the same</span> : null}
          {data.is_cut ? <span class="c-2"> · cut, there are more</span> : null}
        </span>
        {mode === 'steps' ? (
          <a class="link" href={withQuery({ only: only ? undefined : '1' })}>
            {only ? 'All values' : 'Only differences'}
          </a>
        ) : null}
      </p>
      {differences.length || same.length ? (
        <div class="card pairs">
          <SideOf head={data.a || a} title={title(a)} sign="-" differences={differences} same={same} pick="a" />
          <SideOf head={data.b || b || `after ${a}`} title={b ? title(b) : 'after it'} sign="+" differences={differences} same={same} pick="b" />
        </div>
      ) : (
        <Empty icon="completed" tone="ok" title="They are the same">
          No value differs.
        </Empty>
      )}
    </>
  );
}

function equalLines(a: unknown, b: unknown): readonly (readonly [string, string])[] {
  const other = new Map(flat(b));
  return flat(a).filter(([path, value]) => other.get(path) === value);
}

function SideOf({ head, title, sign, differences, same, pick }: { head: string; title: string; sign: string; differences: readonly ValueDifference[]; same: readonly (readonly [string, string])[]; pick: 'a' | 'b' }): JSX.Element {
  return (
    <div>
      <header>
        <b class="mono">{head}</b> <span class="c-2">· {title}</span>
      </header>
      {same.map(([where, value]) => (
        <div class="pair" key={where}>
          <span class="sign" />
          <span class="where">{where || 'value'}</span>
          <span>{value}</span>
        </div>
      ))}
      {differences.map((one) => {
        const isHere = one.sign === '~' || one.sign === sign;
        return (
          <div class={`pair${isHere ? (pick === 'a' ? ' minus' : ' plus') : ''}`} key={one.where}>
            <span class="sign">{isHere ? sign : ''}</span>
            <span class="where">{one.where || 'value'}</span>
            <span>{isHere ? text(one[pick]).slice(0, 4_000) : <span class="c-3">not there</span>}</span>
          </div>
        );
      })}
    </div>
  );
}

function RunPick({ run, other, workflow }: { run: string; other: string; workflow: string }): JSX.Element {
  const runs = useRead<RunPage>(`/runs?workflow=${encodeURIComponent(workflow.replace(/@.*/, ''))}&limit=50`).data?.runs ?? [];
  return (
    <label class="row">
      <span class="nowrap">Compare this run with</span>
      <select value={other} onChange={(event) => go(event.currentTarget.value ? `/runs/${enc(run)}/compare/${enc(event.currentTarget.value)}` : `/runs/${enc(run)}/values?mode=runs`, true)}>
        <option value="">Choose a run</option>
        {runs
          .filter((one) => one.run !== run)
          .map((one) => (
            <option key={one.run} value={one.run}>
              {runName(one)} ({one.run}, {lookOf(one).word.toLowerCase()})
            </option>
          ))}
      </select>
    </label>
  );
}

function TwoRuns({ run, other }: { run: string; other: string }): JSX.Element {
  const given = useRead<RunComparison>(other ? runPath(run, `/compare/${enc(other)}`) : null);
  const data = given.data;
  if (!other) return <Empty title="With which run?">Choose another run of the same workflow above.</Empty>;
  if (!data) return <NoAnswer whole={false} {...given} rows={6} />;
  return (
    <div class="picture">
      <p style={{ marginBottom: '12px' }}>
        <b>{data.first_difference ? `They part at “${data.first_difference}”.` : 'Both went the same way.'}</b> {data.same_definition ? 'Same definition.' : 'Another definition.'} {count(data.inputs?.length ?? 0, 'input')} differ{data.inputs?.length === 1 ? 's' : ''}.
      </p>
      {data.inputs?.length ? (
        <div class="card pairs" style={{ margin: '0 0 16px' }}>
          <SideOf head={data.a.run} title={runName(data.a)} sign="-" differences={data.inputs} same={[]} pick="a" />
          <SideOf head={data.b.run} title={runName(data.b)} sign="+" differences={data.inputs} same={[]} pick="b" />
        </div>
      ) : null}
      <div class="card">
        <table class="table">
          <thead>
            <tr>
              <th>Step</th>
              <th>{runName(data.a)}</th>
              <th>{runName(data.b)}</th>
              <th class="num">Took</th>
              <th>Output</th>
            </tr>
          </thead>
          <tbody>
            {(data.steps ?? []).map((one) => (
              <tr key={one.step}>
                <td>
                  <a href={stepHref(run, one.step)}>
                    <code>{one.step}</code>
                  </a>
                </td>
                <td>{one.a ? <Pill look={stepLook(one.a)} /> : '–'}</td>
                <td>{one.b ? <Pill look={stepLook(one.b)} /> : '–'}</td>
                <td class="num">
                  {duration(one.worked_a_ms || undefined)} · {duration(one.worked_b_ms || undefined)}
                </td>
                <td>{one.output_differs ? 'differs' : 'same'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
