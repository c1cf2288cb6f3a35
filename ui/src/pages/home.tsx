/** Home: what waits for me comes first; then agents, what runs, and what ended. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useRead } from '../core/api';
import type { ClientList, DoctorReport, Home, RunLine, WaitingItem } from '../core/contract';
import { useKeys } from '../core/keys';
import { isLive } from '../core/live';
import { enc, go } from '../core/router';
import { leftWords, lookOf, runHref, runName, took, whyOf } from '../core/runs';
import { useStore } from '../core/store';
import { actor, clock, count, headed, instant, listed, number, spaced, when } from '../core/words';
import { NoAnswer, Shell } from '../frame/shell';
import { NewChip, useHeld } from '../kit/held';
import { Icon } from '../kit/icons';
import { Bar, Button, Empty, Kbd, Pill, StateIcon, Time, copyText } from '../kit/kit';
import { useNow } from '../kit/now';
import type { PageProps } from '../routes';
import { RUN, WAITING, type Look } from '../states';

export function HomePage(_props: PageProps): JSX.Element {
  const home = useRead<Home>('/home', { all: true });
  const data = home.data;
  const live = useStore(isLive);
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [mine, fresh, release] = useHeld(sorted(data?.waiting_for_me ?? []), (one) => `${one.run} ${one.step}`, box);
  // What is paused stands apart; what could not be undone waits for somebody, above.
  const moving = data?.running?.filter((run) => run.status === 'running' || run.status === 'compensating') ?? [];
  const agents = (data?.waiting_for_others ?? []).filter((one) => one.kind === 'agent');
  const others = (data?.waiting_for_others ?? []).filter((one) => one.kind !== 'agent');
  const move = (by: number): void => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>('[data-row]') ?? [])];
    const next = Math.max(0, Math.min(links.length - 1, at + by));
    setAt(next);
    links[next]?.querySelector<HTMLElement>('a')?.focus();
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => mine[0] && go(hrefOf(mine[0])),
    e: () => {
      const first = mine.find((one) => one.kind !== 'decision');
      if (first) go(hrefOf(first));
    },
    r: () => {
      const first = mine.find((one) => one.kind === 'decision');
      if (first) go(`${runHref(first.run)}/do/retry?step=${encodeURIComponent(first.step)}`);
    },
  });
  useNotifications(mine);
  return (
    <Shell
      crumbs={[{ word: 'Home' }]}
      title="Home"
      actions={
        <Button kind="primary" small icon="play" kbd="S" href="/library">
          Start a workflow
        </Button>
      }
    >
      {data ? (
        <div class="home" ref={list}>
          <div class="home-main">
            <h1>{titleOf(mine.length + fresh)}</h1>
            <NewChip number={fresh} onClick={release} />
            <div ref={box}>{isNew(data) ? <NoRuns /> : mine.length ? <Waiting items={mine} live={live} /> : <NothingWaits running={moving.length} />}</div>
            {others.length ? <Section title="Waiting for others" number={others.length}>{others.map((one) => <OtherRow key={one.run + one.step} item={one} />)}</Section> : null}
            {agents.length ? <Section title="Waiting for an agent" number={agents.length}>{agents.map((one) => <AgentRow key={one.run + one.step} item={one} />)}</Section> : null}
            <Moving title="Running" runs={moving} />
            <Moving title="Paused" runs={data.running?.filter((run) => run.status === 'paused')} />
            <Ended data={data} />
          </div>
          <aside class="home-side">
            <Today data={data} />
            <Attention data={data} />
            {isNew(data) ? null : <KeyHints />}
          </aside>
        </div>
      ) : (
        <NoAnswer {...home} rows={8} />
      )}
    </Shell>
  );
}

const KeyHints = (): JSX.Element => (
  <p class="key-hints" aria-hidden>
    <span>
      <Kbd>j</Kbd> <Kbd>k</Kbd> move
    </span>
    <span>
      <Kbd>↵</Kbd> open
    </span>
    <span>
      <Kbd>r</Kbd> retry
    </span>
    <span>
      <Kbd>e</Kbd> approve
    </span>
    <span>
      <Kbd>?</Kbd> all keys
    </span>
  </p>
);

const titleOf = (waiting: number): string => (waiting === 0 ? 'Nothing waits for you' : waiting === 1 ? '1 thing waits for you' : `${number(waiting)} things wait for you`);
const isNew = (data: Home): boolean => !data.waiting_for_me?.length && !data.waiting_for_others?.length && !data.running?.length && !data.ended?.length && !data.failed?.length;

/** Approvals, then decisions; what expires first comes first, then what has waited longest. */
const RANK = ['approval', 'confirmation', 'decision', 'agent'];
const sorted = (items: readonly WaitingItem[]): readonly WaitingItem[] =>
  [...items].sort((a, b) => RANK.indexOf(a.kind) - RANK.indexOf(b.kind) || +!a.expires - +!b.expires || (instant(a.expires || a.since) || 0) - (instant(b.expires || b.since) || 0));

const hrefOf = (item: WaitingItem): string => (item.kind === 'approval' || item.kind === 'confirmation' ? `/approvals/${enc(item.run)}/${enc(item.step)}` : item.kind === 'decision' ? runHref(item.run) : `${runHref(item.run)}/steps/${enc(item.step)}`);

/** What a person must decide on, in few words. */
function troubleOf(item: WaitingItem): string {
  const many = item.alike ?? 1;
  const steps = many > 1 ? `${number(many)} steps` : item.title;
  const why = many > 1 && (item.causes ?? 1) === 1 ? ' for one reason' : '';
  if (item.status === 'compensation_failed') return `undo of ${steps} failed${why}`;
  if (item.status === 'uncertain') return `it is unknown whether ${steps} happened`;
  return `${steps} failed${why}`;
}

function Section({ title, number: value, children, more }: { title: string; number?: number; children: ComponentChildren; more?: ComponentChildren }): JSX.Element {
  return (
    <section>
      <div class="row section-head">
        <h2 class="grow">
          {title} {value === undefined ? null : <span class="c-3">{number(value)}</span>}
        </h2>
        {more}
      </div>
      <div class="card">{children}</div>
    </section>
  );
}

function Waiting({ items, live }: { items: readonly WaitingItem[]; live: boolean }): JSX.Element {
  return (
    <div class="card">
      {items.map((item, index) => (
        <WaitingRow key={item.run + item.step} item={item} first={index === 0} live={live} />
      ))}
    </div>
  );
}

function WaitingRow({ item, first, live }: { item: WaitingItem; first: boolean; live: boolean }): JSX.Element {
  const look = WAITING[item.kind] ?? RUN.waiting!;
  const isQuestion = item.kind === 'approval' || item.kind === 'confirmation';
  const many = item.alike ?? 1;
  const name = runName(item);
  const act = (action: string): string => `${runHref(item.run)}/do/${action}?${many > 1 ? 'like' : 'step'}=${encodeURIComponent(item.step)}`;
  return (
    <div class={`line wait-row${first ? ' first' : ''}`} data-row>
      <StateIcon look={look} />
      <div class="grow">
        <a class="title" href={hrefOf(item)}>
          {isQuestion ? headed(item.text ?? '')[0] || `Approve “${item.title}”` : `${name}: ${troubleOf(item)}`}
        </a>
        <p class="cause">
          <b class={`c-${look.tone}`}>{look.word}</b>
          {item.irreversible ? <b class="c-bad"> · {count(item.irreversible, 'step')} cannot be undone</b> : null}
          {item.why ? <span class="c-2"> · {item.why}</span> : null}
        </p>
        <p class="meta">
          {isQuestion ? `${name} · asked ` : ''}
          {item.can_undo ? `${count(item.can_undo, 'effect')} can be undone · ` : ''}
          <Time at={item.since} />
          {item.expires ? (
            <>
              {' '}
              · expires <Time at={item.expires} />
            </>
          ) : null}
          {item.project?.name ? ` · ${item.project.name}` : ''}
        </p>
      </div>
      <div class="row acts-row">
        {isQuestion ? (
          <Button kind={first ? 'primary' : 'plain'} small href={hrefOf(item)} kbd={first ? '↵' : undefined}>
            Review
          </Button>
        ) : (
          <>
            <Button small href={act('retry')} disabled={!live}>
              {many > 1 ? `Retry all ${number(many)}…` : 'Retry…'}
            </Button>
            <Button small href={`${runHref(item.run)}${item.can_undo ? '/do/compensate' : ''}`} disabled={!live}>
              Decide…
            </Button>
          </>
        )}
      </div>
    </div>
  );
}

function OtherRow({ item }: { item: WaitingItem }): JSX.Element {
  const look = WAITING[item.kind] ?? RUN.waiting!;
  return (
    <div class="line wait-row" data-row>
      <StateIcon look={look} />
      <div class="grow">
        <a class="title" href={hrefOf(item)}>
          {headed(item.text ?? '')[0] || spaced(item.step)}
        </a>
        <p class="meta">
          {look.word} · {runName(item)} {item.by?.length ? `· needs ${listed(item.by.map(actor))}` : ''}
        </p>
      </div>
    </div>
  );
}

function AgentRow({ item }: { item: WaitingItem }): JSX.Element {
  const clients = useRead<ClientList>('/clients', { all: true }).data?.clients;
  const held = item.by?.map(actor).join(', ') ?? '';
  // One name an agent: the journal's, which may be longer than what it calls itself.
  const agent = clients?.find((one) => one.run === item.run && one.step === item.step && held && actor(one.name).startsWith(held))?.name ?? held;
  return (
    <div class="line wait-row" data-row>
      <StateIcon look={WAITING.agent!} />
      <div class="grow">
        <a class="title" href={runHref(item.run)}>
          {runName(item)}
        </a>
        <p class="cause">
          <b class="c-wait">Waiting for agent</b>
          <span class="c-2">
            {' '}
            · {agent ? `${actor(agent)} holds` : 'no agent holds'} “{item.title}”{item.expires ? ` until ${clock(item.expires, false)}` : ''}
          </span>
          {item.refused ? <b class="c-bad"> · refused {item.refused === 1 ? 'once' : `${number(item.refused)} times`}</b> : null}
        </p>
        <p class="meta">
          {item.name || item.workflow} · <Time at={item.since} />
        </p>
      </div>
      <div class="row acts-row">
        <Button small onClick={() => void copyText(`Go on with handrail run ${item.run}`, 'Copied: paste it into any agent')}>
          Copy resume line
        </Button>
      </div>
    </div>
  );
}

function Moving({ title, runs }: { title: string; runs: readonly RunLine[] | undefined }): JSX.Element | null {
  return runs?.length ? (
    <Section title={title} number={runs.length}>
      {runs.map((run) => (
        <RunningRow key={run.run} run={run} />
      ))}
    </Section>
  ) : null;
}

function RunningRow({ run }: { run: RunLine }): JSX.Element {
  const now = useNow();
  const total = run.total ?? 0;
  const failed = run.failed ?? 0;
  return (
    <div class="line run-row" data-row>
      <StateIcon look={lookOf(run)} />
      <div>
        <a class="title" href={runHref(run.run)}>
          {runName(run)}
        </a>
        <p class="meta cut">{run.why}</p>
      </div>
      <Pill look={lookOf(run)} />
      <div class="grow">
        {total ? <Bar label={`${run.done} of ${total} steps`} parts={[{ tone: 'ok', share: run.done / total }, { tone: 'bad', share: failed / total }]} /> : null}
        {failed ? <p class="meta c-bad">{number(failed)} failed permanently</p> : null}
      </div>
      <div class="num">
        {total ? `${number(run.done)} of ${number(total)}` : count(run.done, 'step')}
        <p class="meta">{leftWords(run, total, now) || took(run, now)}</p>
      </div>
    </div>
  );
}

function Ended({ data }: { data: Home }): JSX.Element | null {
  const failed = data.failed ?? [];
  const ended = [...failed, ...(data.ended ?? []).filter((one) => !failed.some((other) => other.run === one.run))];
  if (!ended.length) return null;
  return (
    <Section title="Ended" number={ended.length} more={<a class="link" href="/runs">All runs</a>}>
      {ended.slice(0, 12).map((run) => (
        <div class="line end-row" key={run.run} data-row>
          <StateIcon look={lookOf(run)} />
          <a class="title" href={runHref(run.run)}>
            {runName(run)}
          </a>
          <Pill look={lookOf(run)} />
          <span class="c-2 cut grow" title={whyOf(run)}>
            {whyOf(run) || `took ${took(run)}`}
          </span>
          <span class="num c-2">
            <Time at={run.ended} />
          </span>
        </div>
      ))}
    </Section>
  );
}

const OUTCOMES = ['completed', 'compensated', 'failed', 'compensation_failed', 'cancelled'];

function Today({ data }: { data: Home }): JSX.Element | null {
  const isToday = Object.keys(data.today ?? {}).length > 0;
  const counts = (isToday ? data.today : data.counts) ?? {};
  const all = Object.values(counts).reduce((sum, one) => sum + one, 0);
  if (!all) return null;
  const over = OUTCOMES.filter((key) => counts[key]);
  const sum = over.reduce((total, key) => total + counts[key]!, 0);
  return (
    <section>
      <h2 class="section-head">{isToday ? 'Last 24 hours' : 'So far'}</h2>
      <div class="card today">
        <p>
          <span class="figure">{number(all)}</span>{' '}
          <span class="c-2">
            {all === 1 ? 'run' : 'runs'}
            {all > sum ? `, ${number(all - sum)} still open` : ''}
          </span>
        </p>
        {sum ? <Bar label={over.map((key) => `${counts[key]} ${RUN[key]!.word}`).join(', ')} parts={over.map((key) => ({ tone: RUN[key]!.tone, share: counts[key]! / sum }))} /> : null}
        {over.map((key) => (
          <a class="row today-row" key={key} href={`/runs?state=${key}${isToday ? '&since=24h' : ''}`}>
            <StateIcon look={RUN[key] as Look} />
            <span class="grow">{RUN[key]!.word}</span>
            <b class="num">{number(counts[key]!)}</b>
          </a>
        ))}
      </div>
    </section>
  );
}

function Attention({ data }: { data: Home }): JSX.Element | null {
  // It takes the server a moment, so it is asked once, after what waits is shown.
  const wrong = (useRead<DoctorReport>('/doctor').data?.checks ?? []).filter((one) => one.level !== 'ok');
  const found = wrong.length ? [`${count(wrong.length, 'thing')} to fix: ${listed(wrong.map((one) => one.name))}`] : [];
  const items = [...(data.attention ?? []), ...found];
  if (!items.length) return null;
  return (
    <section>
      <h2 class="section-head">Needs a look</h2>
      <div class="card">
        {items.map((text) => {
          const href = found.includes(text) ? '/settings/doctor' : /server|call/i.test(text) ? '/tools' : /journal|checkpoint/i.test(text) ? '/proof' : '/settings/doctor';
          return (
            <div class="line row attention" key={text}>
              <Icon name="warning" tone="wait" />
              <span class="grow">{text}</span>
              <a class="link" href={href}>
                See
              </a>
            </div>
          );
        })}
      </div>
    </section>
  );
}

function NoRuns(): JSX.Element {
  return (
    <div class="card">
      <Empty
        icon="runs"
        title="No runs yet"
        actions={
          <>
            <Button kind="primary" href="/library" kbd="S">
              Start a workflow
            </Button>
            <Button onClick={() => void copyText('handrail demo')}>Copy “handrail demo”</Button>
          </>
        }
      >
        Start a workflow here, or say to your agent: “use handrail to fix issue 42”.
      </Empty>
    </div>
  );
}

function NothingWaits({ running }: { running: number }): JSX.Element {
  return (
    <div class="card">
      <Empty icon="completed" tone="ok" title="All quiet" actions={running ? <Button href="/runs?state=running">See running</Button> : undefined}>
        {running ? `${count(running, 'run')} ${running === 1 ? 'is' : 'are'} running. ` : ''}You can close this page: runs go on without it, and it shows up here when one needs you.
      </Empty>
    </div>
  );
}

/** A browser notification for each new thing that waits, if the reader has switched them on; none for progress. */
function useNotifications(items: readonly WaitingItem[]): void {
  const known = useRef<Set<string> | null>(null);
  const keys = items.map((one) => `${one.run} ${one.step}`).join('\n');
  useEffect(() => {
    const before = known.current;
    known.current = new Set(items.map((one) => `${one.run} ${one.step}`));
    let on = false;
    try {
      on = localStorage.getItem('handrail.notify') === 'on';
    } catch {
      on = false; // storage is off: they can not have been switched on
    }
    if (!before || !on || !('Notification' in window) || Notification.permission !== 'granted') return;
    for (const item of items) {
      if (before.has(`${item.run} ${item.step}`)) continue;
      const note = new Notification(WAITING[item.kind]?.word ?? 'Waits for you', { body: item.text || `${runName(item)}: ${item.step}, ${when(item.since)}`, tag: `${item.run} ${item.step}` });
      note.onclick = () => {
        focus();
        go(hrefOf(item));
      };
    }
  }, [keys]);
}
