/** Tools: is it us or them? Servers first, those in trouble before the others; then every tool that plans can call. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { newKey, read, Refused, useRead, write } from '../core/api';
import type { NodesView, PinChange, PlanView, ServerView, ToolFiguresView, ToolPage, ToolView } from '../core/contract';
import { isLive } from '../core/live';
import { enc, go, usePlace, withQuery } from '../core/router';
import { useStore } from '../core/store';
import { clock, count, day, duration, instant, listed, number, roughly, spaced } from '../core/words';
import { NoAnswer, Shell } from '../frame/shell';
import { Icon } from '../kit/icons';
import { Button, Empty, Find, Pill, Twin, copyText, toast } from '../kit/kit';
import { useNow } from '../kit/now';
import { Value } from '../kit/value';
import type { PageProps } from '../routes';
import { SERVER } from '../states';

const TROUBLE = new Set(['open', 'half_open', 'untrusted']);

export function ToolsPage({ params }: PageProps): JSX.Element {
  return params.server ? <Server key={params.server} name={params.server} /> : <AllTools />;
}

function AllTools(): JSX.Element {
  const { query } = usePlace();
  const find = query.get('q') ?? '';
  const page = useRead<ToolPage>('/tools', { all: true });
  const data = page.data;
  const servers = data?.servers ?? [];
  const trouble = servers.filter((one) => TROUBLE.has(one.state));
  const changed = servers.filter((one) => one.changed?.length);
  const tools = (data?.tools ?? []).filter((one) => !find || `${one.name} ${one.description}`.toLowerCase().includes(find.toLowerCase()));
  const used = tools.filter((one) => one.figures?.calls);
  const title = titleOf(servers, trouble, changed);
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
            <Table>
              {servers.map((one) => (
                <ServerRow key={one.server} one={one} />
              ))}
            </Table>
          ) : null}
          <Cards servers={servers} />
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
          <Table first="Tool">
            {[...used, ...tools.filter((one) => !used.includes(one))].map((one) => (
              <ToolRow key={one.name} one={one} trouble={trouble.find((server) => server.server === one.server)} />
            ))}
          </Table>
          {tools.length ? null : <Empty title="No tool matches" actions={<Button href="/tools">Clear filter</Button>} />}
          <Nodes />
        </>
      )}
    </Shell>
  );
}

/** Who executes runs, and what waits for a node. */
function Nodes(): JSX.Element | null {
  const data = useRead<NodesView>('/nodes', { all: true }).data;
  if (!data) return null;
  return (
    <>
      <h2 style={{ margin: '24px 0 10px' }}>Nodes</h2>
      {data.nodes?.map((one) => (
        <p key={one.id}>
          <code>{one.id}</code> <span class="c-2">{[one.state, count(one.used ?? 0, 'run'), ...(one.labels ?? [])].join(' · ')}</span>
        </p>
      ))}
      {data.waiting ? <p class="c-wait">{count(data.waiting, 'run')} waiting for a node</p> : null}
    </>
  );
}

function titleOf(servers: readonly ServerView[], trouble: readonly ServerView[], changed: readonly ServerView[]): string {
  const all = servers.length;
  const unasked = servers.filter((one) => one.state === 'not_called').length;
  if (!all) return 'No tool server is set up';
  if (trouble.length) return `${trouble.length} of ${count(all, 'server')} ${trouble.length === 1 ? 'is' : 'are'} not being called`;
  if (changed.length) return `${listed(changed.map((one) => one.server))} changed since plans were saved`;
  if (unasked) return `${count(unasked, 'server')} ${unasked === 1 ? 'has' : 'have'} not been called yet`;
  return all === 1 ? 'The tool server works' : `All ${number(all)} servers work`;
}

const HEADS = ['Calls', 'Half under', '95% under'];

function Table({ children, first = 'Server' }: { children: ComponentChildren; first?: string }): JSX.Element {
  return (
    <div class="card grid-wrap" role="region" aria-label={`By ${first.toLowerCase()}`} tabIndex={0} style={{ marginTop: '14px' }}>
      <table class="table">
        <thead>
          <tr>
            <th>{first}</th>
            <th>State</th>
            {HEADS.map((word) => (
              <th class="num" key={word}>
                {word}
              </th>
            ))}
            <th>Latency, 24 h</th>
            <th>Failures</th>
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** The figures of a row: the same for a server, a tool and a tool of one server. */
function Figures({ of, bad, note }: { of: ToolFiguresView | null | undefined; bad?: boolean; note?: string }): JSX.Element {
  return (
    <>
      <td class="num">{of?.calls ? number(of.calls) : ''}</td>
      <td class="num">{of ? duration(of.p50_ms) : ''}</td>
      <td class="num">{of ? duration(of.p95_ms) : ''}</td>
      <td>
        <Latency of={of} bad={bad} />
      </td>
      <td class={bad ? 'c-bad' : 'c-2'}>{note ? <p class="tool-note">{note}</p> : of ? failureWords(of.failures ?? {}) : ''}</td>
    </>
  );
}

const DAY = 86_400_000;
const WIDE = 92;
const HIGH = 24;

/** Two lines: half of the calls were faster than the lower one, 95% than the upper one. The server's page has the numbers. */
function Latency({ of, bad }: { of: ToolFiguresView | null | undefined; bad?: boolean }): JSX.Element | null {
  const now = useNow();
  const slots = of?.slots ?? [];
  if (!slots.length) return null;
  const most = Math.max(1, ...slots.map((one) => one.p95_ms ?? 0));
  const line = (value: (one: (typeof slots)[number]) => number): string =>
    slots.map((one, index) => `${index ? 'L' : 'M'}${Math.max(0, 1 - (now - instant(one.start)) / DAY) * (WIDE - 4) + 2} ${HIGH - 2 - (value(one) / most) * (HIGH - 4)}`).join('') + (slots.length < 2 ? 'h.01' : '');
  return (
    <svg class={`latency${bad ? ' c-bad' : ''}`} width={WIDE} height={HIGH} role="img" aria-label={`In the last 24 hours half of the calls took up to ${duration(of!.p50_ms)}, 95% up to ${duration(of!.p95_ms)}; the slowest half hour had ${duration(most)}`}>
      <path class="base" d={`M0 ${HIGH - 1}H${WIDE}`} />
      <path d={line((one) => one.p95_ms ?? 0)} />
      <path class="half" d={line((one) => one.p50_ms ?? 0)} />
    </svg>
  );
}

function failureWords(failures: Readonly<Record<string, number>>): string {
  const sorted = Object.entries(failures).sort((a, b) => b[1] - a[1]);
  return sorted.length ? sorted.map(([kind, value]) => `${number(value)} ${spaced(kind)}`).join(' · ') : 'none';
}

function ServerRow({ one }: { one: ServerView }): JSX.Element {
  const now = useNow();
  const left = one.state === 'open' && one.until ? instant(one.until) - now : 0;
  const changes = one.changed?.length ?? 0;
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
        <Pill look={SERVER[one.state]!} note={left > 0 ? `Not called for ${roughly(left)}` : undefined} />
      </td>
      <Figures of={one.whole} bad={one.state === 'open'} note={one.why || (changes ? `${count(changes, 'description')} differ${changes === 1 ? 's' : ''}` : '')} />
    </tr>
  );
}

function ToolRow({ one, trouble }: { one: ToolView; trouble: ServerView | undefined }): JSX.Element {
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
            {one.server || 'built in'} · {one.effect === 'compensatable' && !one.undo ? 'undone only by an undo in the plan' : EFFECTS[one.effect] ?? one.effect}
          </p>
        </td>
        <td>{one.off ? <Pill look={SERVER.untrusted!} note="Refused" /> : trouble ? <Pill look={SERVER[trouble.state]!} /> : one.figures?.calls ? <Pill look={SERVER.used!} /> : <span class="c-3 nowrap">{SERVER.not_called!.word}</span>}</td>
        <Figures of={one.figures} note={one.off} />
      </tr>
      {open ? (
        <tr>
          <td colSpan={7}>
            <p style={{ maxWidth: '90ch', whiteSpace: 'pre-line' }}>{one.description}</p>
            <Value value={one.args} empty="It takes no arguments." />
          </td>
        </tr>
      ) : null}
    </>
  );
}

const EFFECTS: Record<string, string> = { none: 'no effect', reversible: 'brings its own undo', compensatable: 'can be undone', irreversible: 'cannot be undone' };

/** What needs a hand. */
function Cards({ servers }: { servers: readonly ServerView[] }): JSX.Element | null {
  const cards = servers.flatMap((one) => [...(TROUBLE.has(one.state) ? [<Trouble key={one.server} one={one} />] : []), ...(one.changed?.length ? [<Changed key={`${one.server} changed`} server={one.server} changes={one.changed} />] : [])]);
  return cards.length ? <div class="halves">{cards}</div> : null;
}

/** When it is tried again; the time of that may be over, and no step has needed it since. */
const trialWords = ({ until }: ServerView, now: number): string => (!until ? '' : instant(until) > now ? `One trial call at ${clock(until)}.` : 'The next step that needs it is the trial call.');

function Trouble({ one }: { one: ServerView }): JSX.Element {
  const now = useNow();
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
        {last ? `. Since ${clock(last.opened)}, ${count(last.failures, 'failure')} in a row.` : ''} {isTrust ? 'A person has to agree to what this project switches on.' : 'Steps that need it wait instead of failing; nothing is lost.'} {trialWords(one, now)}
      </p>
      <Twin command={isTrust ? 'handrail trust' : `handrail tools check ${one.server}`} />
    </section>
  );
}

/** A server that describes its tools otherwise than when plans were saved: what differs, and who accepts it how. */
function Changed({ server, changes }: { server: string; changes: readonly PinChange[] }): JSX.Element {
  const plans = [...new Set(changes.flatMap((one) => one.plans ?? []))];
  const runs = [...new Set(changes.flatMap((one) => one.runs ?? []))];
  return (
    <section class="card pad">
      <div class="row">
        <Icon name="warning" tone="wait" />
        <h2 class="grow">{server} says something else than when plans were saved</h2>
      </div>
      <p class="c-2" style={{ margin: '6px 0' }}>
        {plans.length ? `${count(plans.length, 'saved plan')} and ` : ''}
        {count(runs.length, 'open run')} use it. Each run stops before the call and asks a person, who sees the difference.{' '}
        {runs.length ? (
          <a class="link" href="/approvals">
            Answer
          </a>
        ) : null}
      </p>
      {changes.map((one) => (
        <details key={one.tool}>
          <summary>
            Difference of <code>{one.tool}</code>
          </summary>
          <pre class="box">{one.difference}</pre>
        </details>
      ))}
      {plans.length ? <Accept plans={plans} /> : null}
    </section>
  );
}

/** A plan that is saved again is pinned to what its tools are now. */
function Accept({ plans }: { plans: readonly string[] }): JSX.Element {
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const live = useStore(isLive);
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    for (const id of plans) {
      try {
        const plan = await read<PlanView>(`/plans/${enc(id)}`);
        const saved = await write<{ version: number }>('/plans', { plan: plan.definition, note: reason.trim() }, newKey());
        toast({ text: `${id} saved as version ${saved.version}.`, href: `/plans/${enc(id)}` });
      } catch (error) {
        toast({ text: `${id} was not saved: ${error instanceof Refused ? `${error.message} ${error.problem.hint ?? ''}` : String(error)}`, bad: true });
      }
    }
    setBusy(false);
  };
  return (
    <form class="row wrap" style={{ marginTop: '10px' }} onSubmit={(event) => void save(event)}>
      <input class="grow" type="text" maxLength={300} aria-label="Why the new description is right" placeholder="Why the new description is right" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      <Button type="submit" small disabled={!live || busy || !reason.trim()}>
        {busy ? 'Saving…' : `Accept for ${count(plans.length, 'plan')}`}
      </Button>
      <p class="meta">Saves {listed(plans)} again, as a new version.</p>
    </form>
  );
}

function Server({ name }: { name: string }): JSX.Element {
  const given = useRead<ServerView>(`/tools/${enc(name)}`, { all: true });
  const data = given.data;
  const hours = data?.whole?.slots ?? [];
  return (
    <Shell crumbs={[{ word: 'Tools', href: '/tools' }, { word: name }]} title={name} actions={<span class="meta">last 24 hours</span>}>
      {!data ? (
        <NoAnswer {...given} rows={8} />
      ) : (
        <>
          <div class="row wrap" style={{ marginBottom: '14px' }}>
            <h1>{data.server}</h1>
            <Pill look={SERVER[data.state]!} />
          </div>
          <Cards servers={[data]} />
          <h2 style={{ margin: '20px 0 0' }}>Calls</h2>
          {data.figures?.length ? (
            <Table first="Tool">
              {data.figures.map((one) => (
                <tr key={one.tool + String(one.is_undo)}>
                  <td>
                    {one.tool}
                    {one.is_undo ? <span class="c-undo"> as an undo</span> : null}
                  </td>
                  <td class="meta">last {day(one.last)}</td>
                  <Figures of={one} />
                </tr>
              ))}
            </Table>
          ) : (
            <p class="c-2">It has not been called in this time.</p>
          )}
          {hours.length ? (
            <details style={{ marginTop: '12px' }}>
              <summary>The lines in numbers</summary>
              <Table first="From">
                {hours.map((one) => (
                  <tr key={one.start}>
                    <td>{day(one.start)}</td>
                    <td>{one.failed ? <span class="c-bad">{number(one.failed)} failed</span> : ''}</td>
                    <Figures of={{ tool: '', calls: one.calls, p50_ms: one.p50_ms, p95_ms: one.p95_ms, slots: [] }} note=" " />
                  </tr>
                ))}
              </Table>
            </details>
          ) : null}
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
