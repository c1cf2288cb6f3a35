/** Tools: is it us or them? Servers first, those in trouble before the others; then every tool that plans can call. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useRead } from '../core/api';
import type { ServerView, Statistics, ToolFiguresView, ToolPage, ToolView } from '../core/contract';
import { enc, go, usePlace, withQuery } from '../core/router';
import { clock, count, day, duration, instant, listed, number, roughly, spaced } from '../core/words';
import { NoAnswer, Shell } from '../frame/shell';
import { Icon } from '../kit/icons';
import { Button, Empty, Find, Pill, Twin, copyText } from '../kit/kit';
import { useNow } from '../kit/now';
import { Value } from '../kit/value';
import type { PageProps } from '../routes';
import { SERVER } from '../states';

const TROUBLE = new Set(['open', 'half_open', 'untrusted']);

export function ToolsPage({ params }: PageProps): JSX.Element {
  return params.server ? <Server name={params.server} /> : <AllTools />;
}

function AllTools(): JSX.Element {
  const { query } = usePlace();
  const find = query.get('q') ?? '';
  const page = useRead<ToolPage>(`/tools?limit=500`, { all: true });
  const stats = useRead<Statistics>('/stats?since=24h').data;
  const data = page.data;
  const servers = data?.servers ?? [];
  const trouble = servers.filter((one) => TROUBLE.has(one.state));
  const figures = new Map((stats?.tools ?? []).filter((one) => !one.is_undo).map((one) => [one.tool, one]));
  const tools = (data?.tools ?? []).filter((one) => !find || `${one.name} ${one.description}`.toLowerCase().includes(find.toLowerCase()));
  const used = tools.filter((one) => figures.get(one.name)?.calls);
  const rest = tools.filter((one) => !figures.get(one.name)?.calls);
  const title = !servers.length ? 'No tool server is set up' : trouble.length ? `${trouble.length} of ${count(servers.length, 'server')} ${trouble.length === 1 ? 'is' : 'are'} not being called` : servers.length === 1 ? 'The tool server works' : `All ${number(servers.length)} servers work`;
  return (
    <Shell crumbs={[{ word: 'Tools' }]} title={title} actions={<span class="meta">last 24 hours</span>}>
      {!data ? (
        <NoAnswer {...page} rows={10} />
      ) : (
        <>
          <div class="row wrap">
            <div class="grow">
              <h1>{title}</h1>
              <p class="c-2">Everything plans can call, and how it has behaved in the last 24 hours, from the journal.</p>
            </div>
            <Button onClick={() => void copyText('handrail tools check')}>Copy “handrail tools check”</Button>
          </div>
          {servers.length ? (
            <div class="card grid-wrap" style={{ marginTop: '14px' }}>
              <Table>
                {[...servers].sort((a, b) => Number(TROUBLE.has(b.state)) - Number(TROUBLE.has(a.state))).map((one) => (
                  <ServerRow key={one.server} one={one} />
                ))}
              </Table>
            </div>
          ) : null}
          {trouble.length ? (
            <div class="halves">
              {trouble.map((one) => (
                <Trouble key={one.server} one={one} />
              ))}
            </div>
          ) : null}
          <div class="row wrap" style={{ margin: '24px 0 10px' }}>
            <h2 class="grow">
              Tools <span class="c-3">{number(data.total ?? tools.length)}</span>
            </h2>
            <div style={{ width: '240px' }}>
              <Find value={find} label="Find a tool" onInput={(text) => go(withQuery({ q: text }), true)} />
            </div>
          </div>
          {Object.entries(data.broken ?? {}).map(([name, why]) => (
            <p class="labelled c-wait" key={name}>
              <Icon name="warning" /> <span>{`${name} can’t be used: ${why}`}</span>
            </p>
          ))}
          <div class="card grid-wrap">
            <Table>
              {[...used, ...rest].map((one) => (
                <ToolRow key={one.name} one={one} figures={figures.get(one.name)} />
              ))}
            </Table>
            {tools.length ? null : <Empty title="No tool matches" actions={<Button href="/tools">Clear filter</Button>} />}
          </div>
        </>
      )}
    </Shell>
  );
}

function Table({ children }: { children: JSX.Element[] }): JSX.Element {
  return (
    <table class="table">
      <thead>
        <tr>
          <th>Server or tool</th>
          <th>State</th>
          <th class="num">Calls</th>
          <th class="num">Half under</th>
          <th class="num">95% under</th>
          <th>Failures</th>
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

function ServerRow({ one }: { one: ServerView }): JSX.Element {
  const now = useNow();
  const look = SERVER[one.state]!;
  const figures = one.figures ?? [];
  const calls = figures.reduce((sum, each) => sum + (each.calls ?? 0), 0);
  const slow = [...figures].sort((a, b) => (b.calls ?? 0) - (a.calls ?? 0))[0];
  const left = one.state === 'open' && one.until ? instant(one.until) - now : 0;
  return (
    <tr>
      <td>
        <a class="labelled" href={`/tools/${enc(one.server)}`}>
          <Icon name="tools" tone="2" />
          <span class="title">{one.server}</span>
        </a>
        <p class="meta">{count(one.tools?.length ?? 0, 'tool')}</p>
      </td>
      <td>
        <Pill look={look} note={left > 0 ? `Not called for ${roughly(left)}` : undefined} />
      </td>
      <td class="num">{number(calls)}</td>
      <td class="num">{duration(slow?.p50_ms)}</td>
      <td class="num">{duration(slow?.p95_ms)}</td>
      <td class={one.state === 'open' ? 'c-bad' : 'c-2'}>{one.why || failureWords(merged(figures))}</td>
    </tr>
  );
}

function ToolRow({ one, figures }: { one: ToolView; figures: ToolFiguresView | undefined }): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <>
      <tr>
        <td>
          <button type="button" class="labelled" aria-expanded={open} onClick={() => setOpen(!open)}>
            <Icon name={one.server ? 'tools' : 'bolt'} tone="2" />
            <span class="title">{one.name}</span>
          </button>
          <p class="meta">
            {one.server || 'built in'} · {effectWords(one)}
          </p>
        </td>
        <td>{one.off ? <Pill look={SERVER.untrusted!} note="Refused" /> : figures?.calls ? <Pill look={SERVER.used!} /> : <span class="c-3">{SERVER.unasked!.word}</span>}</td>
        <td class="num">{figures?.calls ? number(figures.calls) : ''}</td>
        <td class="num">{figures ? duration(figures.p50_ms) : ''}</td>
        <td class="num">{figures ? duration(figures.p95_ms) : ''}</td>
        <td class="c-2">{one.off || (figures ? failureWords(figures.failures ?? {}) : '')}</td>
      </tr>
      {open ? (
        <tr>
          <td colSpan={6}>
            <p style={{ maxWidth: '90ch', whiteSpace: 'pre-line' }}>{one.description}</p>
            <Value value={one.args} empty="It takes no arguments." />
          </td>
        </tr>
      ) : null}
    </>
  );
}

const effectWords = (one: ToolView): string => ({ none: 'no effect', reversible: 'brings its own undo', compensatable: 'can be undone', irreversible: 'cannot be undone' })[one.effect] ?? one.effect;

function merged(figures: readonly ToolFiguresView[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const one of figures) for (const [kind, value] of Object.entries(one.failures ?? {})) all[kind] = (all[kind] ?? 0) + value;
  return all;
}

function failureWords(failures: Readonly<Record<string, number>>): string {
  const sorted = Object.entries(failures).sort((a, b) => b[1] - a[1]);
  return sorted.length ? sorted.map(([kind, value]) => `${number(value)} ${spaced(kind)}`).join(' · ') : 'none';
}

function Trouble({ one }: { one: ServerView }): JSX.Element {
  const last = one.outages?.[0];
  const isTrust = one.state === 'untrusted';
  return (
    <section class="card pad">
      <div class="row">
        <Icon name={isTrust ? 'lock' : 'failed'} tone={isTrust ? 'wait' : 'bad'} />
        <h2 class="grow">
          {one.server} is {isTrust ? 'not trusted yet' : 'not being called'}
        </h2>
        <span class="meta">{isTrust ? '' : 'circuit breaker open'}</span>
      </div>
      <p class="c-2" style={{ margin: '6px 0 10px' }}>
        {one.why || last?.reason}
        {last ? ` Since ${clock(last.opened)}, ${count(last.failures, 'failure')} in a row.` : ''} {isTrust ? 'A person has to agree to what this project switches on.' : 'Steps that need it wait instead of failing; nothing is lost.'} {one.until ? `One trial call at ${clock(one.until)}.` : ''}
      </p>
      <Twin command={isTrust ? 'handrail trust' : `handrail tools check ${one.server}`} />
    </section>
  );
}

function Server({ name }: { name: string }): JSX.Element {
  const given = useRead<ServerView>(`/tools/${enc(name)}`, { all: true });
  const data = given.data;
  return (
    <Shell crumbs={[{ word: 'Tools', href: '/tools' }, { word: name }]} title={name}>
      {!data ? (
        <NoAnswer {...given} rows={8} />
      ) : (
        <>
          <div class="row wrap" style={{ marginBottom: '14px' }}>
            <h1>{data.server}</h1>
            <Pill look={SERVER[data.state]!} />
          </div>
          {TROUBLE.has(data.state) ? <Trouble one={data} /> : null}
          <h2 style={{ margin: '20px 0 8px' }}>Calls</h2>
          <div class="card grid-wrap">
            {data.figures?.length ? (
              <Table>
                {data.figures.map((one) => (
                  <tr key={one.tool + String(one.is_undo)}>
                    <td>
                      {one.tool}
                      {one.is_undo ? <span class="c-undo"> as an undo</span> : null}
                    </td>
                    <td class="meta">last {day(one.last)}</td>
                    <td class="num">{number(one.calls ?? 0)}</td>
                    <td class="num">{duration(one.p50_ms)}</td>
                    <td class="num">{duration(one.p95_ms)}</td>
                    <td class="c-2">{failureWords(one.failures ?? {})}</td>
                  </tr>
                ))}
              </Table>
            ) : (
              <Empty icon="tools" title="It has not been called yet" />
            )}
          </div>
          <h2 style={{ margin: '20px 0 8px' }}>Times in which it was not called</h2>
          {data.outages?.length ? (
            <div class="card">
              {data.outages.map((one) => (
                <p class="line pad" key={one.opened}>
                  <b>{day(one.opened)}</b> {one.closed ? `for ${duration(one.lasted_ms)}` : 'until now'} · {one.reason} <span class="c-2">· {count(one.failures, 'failure')}, {count(one.probes ?? 0, 'trial call')}</span>
                </p>
              ))}
            </div>
          ) : (
            <p class="c-2">None.</p>
          )}
          <h2 style={{ margin: '20px 0 8px' }}>Tools</h2>
          <p>{data.tools?.length ? listed(data.tools, 60) : 'It has not been asked for its tools yet.'}</p>
        </>
      )}
    </Shell>
  );
}
