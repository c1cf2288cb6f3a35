/** Insight: what should be fixed first? Figures from the journal; every bar is a link to the runs behind it. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useRead } from '../core/api';
import type { Statistics } from '../core/contract';
import { useKeys } from '../core/keys';
import { go, usePlace, withQuery } from '../core/router';
import { titled } from '../core/runs';
import { count, duration, number, spaced } from '../core/words';
import { NoAnswer, Shell } from '../frame/shell';
import { Button, Empty, StateIcon } from '../kit/kit';
import type { PageProps } from '../routes';
import { RUN } from '../states';

const OUTCOMES = ['completed', 'compensated', 'cancelled', 'failed', 'compensation_failed'];
const SINCE: readonly (readonly [string, string])[] = [['24h', 'last 24 hours'], ['7d', 'last 7 days'], ['14d', 'last 14 days'], ['90d', 'last 90 days']];
type Counts = Readonly<Record<string, number>>;
const sumOf = (counts: Counts, keys = OUTCOMES): number => keys.reduce((sum, key) => sum + (counts[key] ?? 0), 0);

export function InsightPage(_props: PageProps): JSX.Element {
  const { query } = usePlace();
  const since = query.get('since') ?? '14d';
  const workflow = query.get('workflow') ?? '';
  const given = useRead<Statistics>(`/stats?since=${since}${workflow ? `&workflow=${encodeURIComponent(workflow)}` : ''}`);
  const [asTable, setAsTable] = useState(false);
  useKeys({ t: () => setAsTable(!asTable) });
  const data = given.data;
  const counts = data?.statuses ?? {};
  const over = sumOf(counts);
  const good = counts.completed ?? 0;
  const bad = (counts.failed ?? 0) + (counts.compensation_failed ?? 0);
  const failures = causes(data);
  const title = !data ? 'Insight' : !over ? 'No run has ended in this time' : over < 5 ? `${number(good)} of ${count(over, 'run')} completed` : `${Math.round((good / over) * 100)}% of runs completed${failures[0] ? `; most failed tries: ${failures[0][0]}` : ''}`;
  return (
    <Shell crumbs={[{ word: 'Insight' }]} title={title}>
      {!data ? (
        <NoAnswer {...given} rows={8} />
      ) : (
        <>
          <div class="row wrap">
            <h1 class="grow">{title}</h1>
            <select class="chip" style={{ width: 'auto' }} aria-label="Workflow" value={workflow} onChange={(event) => go(withQuery({ workflow: event.currentTarget.value }))}>
              <option value="">all workflows</option>
              {[...new Set([...(data.workflows ?? []).map((one) => one.workflow.replace(/@.*/, '')), ...(workflow ? [workflow] : [])])].map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
            <select class="chip" style={{ width: 'auto' }} aria-label="Since" value={since} onChange={(event) => go(withQuery({ since: event.currentTarget.value }))}>
              {SINCE.map(([key, word]) => (
                <option key={key} value={key}>
                  {word}
                </option>
              ))}
            </select>
          </div>
          <div class="figures">
            <Figure value={over < 5 ? `${number(good)} of ${number(over)}` : `${Math.round((good / Math.max(1, over)) * 100)}%`} word="of ended runs completed" note={over < 5 ? '' : `${number(good)} of ${number(over)}`} />
            <Figure value={number(counts.compensated ?? 0)} word="runs undone" note={counts.compensation_failed ? `${number(counts.compensation_failed)} could not be undone` : counts.compensated ? 'every undo worked' : ''} />
            <Figure value={number(bad)} word="failed permanently" note={bad && failures[0] ? `most failed tries: ${failures[0][0]}` : ''} />
            <Figure value={number(data.runs ?? 0)} word="runs started" note={`${number((counts.running ?? 0) + (counts.waiting ?? 0) + (counts.paused ?? 0))} still open`} />
          </div>
          <section class="card pad">
            <div class="row wrap">
              <h2 class="grow">Runs by how they are now, per day</h2>
              {OUTCOMES.filter((key) => counts[key]).map((key) => (
                <span class="labelled meta" key={key}>
                  <StateIcon look={RUN[key]!} size={14} />
                  <span>{RUN[key]!.word}</span>
                </span>
              ))}
              <Button small kbd="T" onClick={() => setAsTable(!asTable)}>
                {asTable ? 'As picture' : 'As table'}
              </Button>
            </div>
            <Days data={data} since={since} asTable={asTable} />
          </section>
          <div class="halves">
            <Bars title="Slowest workflows" note="half under · 95% under" rows={(data.workflows ?? []).filter((one) => one.p50_ms).sort((a, b) => (b.p50_ms ?? 0) - (a.p50_ms ?? 0)).slice(0, 6).map((one) => ({ word: titled(one.workflow), share: one.p50_ms ?? 0, value: `${duration(one.p50_ms)} · ${duration(one.p95_ms)}`, href: `/runs?workflow=${encodeURIComponent(one.workflow.replace(/@.*/, ''))}&view=grid`, tone: 'off' }))} />
            <Bars title="Slowest tools" note="half under · 95% under" rows={(data.tools ?? []).filter((one) => one.p50_ms).sort((a, b) => (b.p95_ms ?? 0) - (a.p95_ms ?? 0)).slice(0, 6).map((one) => ({ word: one.tool + (one.is_undo ? ' (undo)' : ''), share: one.p95_ms ?? 0, value: `${duration(one.p50_ms)} · ${duration(one.p95_ms)}`, href: '/tools', tone: 'off' }))} />
            <Bars title="Why calls failed" note="failed tries" rows={failures.slice(0, 6).map(([word, value]) => ({ word, share: value, value: number(value), href: '/runs?state=failed', tone: 'bad' }))} />
          </div>
          {data.is_cut ? <p class="meta">Only the newest runs are counted here; there are more.</p> : null}
        </>
      )}
    </Shell>
  );
}

function causes(data: Statistics | undefined): readonly (readonly [string, number])[] {
  const all = new Map<string, number>();
  for (const tool of data?.tools ?? []) for (const [kind, value] of Object.entries(tool.failures ?? {})) all.set(spaced(kind), (all.get(spaced(kind)) ?? 0) + value);
  return [...all].sort((a, b) => b[1] - a[1]);
}

const Figure = ({ value, word, note }: { value: string; word: string; note: string }): JSX.Element => (
  <section class="card pad">
    <p class="figure">{value}</p>
    <p class="c-2">{word}</p>
    <p class="meta">{note}</p>
  </section>
);

type Day = NonNullable<Statistics['days']>[number];
const LABELS_MAX = 16;
const LONG = 86_400_000;
const dayName = (day: string): string => new Date(day).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Also the days without a run: a gap is a finding, too. */
function everyDay(days: readonly Day[], since: string): readonly Day[] {
  const known = new Map(days.map((one) => [one.day, one]));
  const length = since.endsWith('d') ? parseInt(since, 10) : 2;
  const names = Array.from({ length }, (_, index) => new Date(Date.now() - (length - 1 - index) * LONG).toISOString().slice(0, 10));
  return [...days.filter((one) => one.day < names[0]!), ...names.map((day) => known.get(day) ?? { day })];
}

function Days({ data, since, asTable }: { data: Statistics; since: string; asTable: boolean }): JSX.Element {
  const days = everyDay(data.days ?? [], since);
  const most = Math.max(1, ...days.map((one) => sumOf(one.statuses ?? {})));
  if (!data.days?.length) return <Empty icon="insight" title="Nothing to draw yet" />;
  if (asTable) {
    return (
      <table class="table">
        <thead>
          <tr>
            <th>Day</th>
            {OUTCOMES.map((key) => (
              <th class="num" key={key}>
                {RUN[key]!.word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.map((one) => (
            <tr key={one.day}>
              <td>{one.day}</td>
              {OUTCOMES.map((key) => (
                <td class="num" key={key}>
                  {one.statuses?.[key] ?? 0}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    );
  }
  return (
    <>
      <div class="days" role="group" aria-label="Runs per day; press t for a table">
        {days.map((one) => {
          const counts = one.statuses ?? {};
          const words = OUTCOMES.filter((key) => counts[key]).map((key) => `${counts[key]} ${RUN[key]!.word.toLowerCase()}`);
          return (
            <a key={one.day} href={`/runs?since=${one.day}T00:00:00Z&until=${one.day}T23:59:59Z`} aria-label={`${one.day}: ${words.join(', ') || 'no run ended'}`} title={`${one.day}: ${words.join(', ')}`}>
              {OUTCOMES.filter((key) => counts[key]).map((key) => (
                <i key={key} class={`f-${RUN[key]!.tone}`} style={{ height: `${(counts[key]! / most) * 92}%` }} />
              ))}
            </a>
          );
        })}
      </div>
      <div class="day-names" aria-hidden>
        {days.map((one, index) => (
          <span key={one.day}>{(days.length - 1 - index) % Math.ceil(days.length / LABELS_MAX) ? '' : dayName(one.day)}</span>
        ))}
      </div>
    </>
  );
}

interface BarRow {
  word: string;
  share: number;
  value: string;
  href: string;
  tone: string;
}

function Bars({ title, note, rows }: { title: string; note: string; rows: readonly BarRow[] }): JSX.Element {
  const most = Math.max(1, ...rows.map((row) => row.share));
  return (
    <section class="card pad">
      <div class="row">
        <h2 class="grow">{title}</h2>
        <span class="meta">{note}</span>
      </div>
      {rows.map((row) => (
        <a class="hbar" key={row.word} href={row.href}>
          <span class="cut">{row.word}</span>
          <span class="track">
            <i class={`f-${row.tone}`} style={{ width: `${Math.max(2, (row.share / most) * 100)}%` }} />
          </span>
          <span class="num">{row.value}</span>
        </a>
      ))}
      {rows.length ? null : <p class="meta">Nothing.</p>}
    </section>
  );
}
