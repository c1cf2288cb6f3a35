/** The journal of a run: a story, or every entry; each has a link. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { read, Refused, useRead } from '../../core/api';
import type { EventPage, EventView, Verified } from '../../core/contract';
import { useKeys } from '../../core/keys';
import { watchEvents } from '../../core/live';
import { enc, go, usePlace, withQuery } from '../../core/router';
import { actor, clock, count, exact, isAgent, isPerson, number, spaced } from '../../core/words';
import { NoAnswer } from '../../frame/shell';
import { Icon } from '../../kit/icons';
import { Button, Empty, Find, copyText } from '../../kit/kit';
import { Value } from '../../kit/value';
import { runPath } from './model';
import type { TabProps } from './run';
import { KIND_GROUPS, storyOf, type Chapter } from './story';

const PAGE = 500;
const SHOWN = 300;

/** All entries of a run, in order; what is known is not read again. */
function useEntries(run: string): { events: readonly EventView[] | undefined; error: Refused | undefined } {
  const [events, setEvents] = useState<readonly EventView[] | undefined>();
  const [error, setError] = useState<Refused | undefined>();
  useEffect(() => {
    let gone = false;
    let busy = false;
    let dirty = false;
    const load = async (): Promise<void> => {
      if (busy) {
        dirty = true;
        return;
      }
      busy = true;
      try {
        const all: EventView[] = [];
        let cursor = '';
        do {
          const page: EventPage = await read<EventPage>(runPath(run, `/journal?limit=${PAGE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`));
          all.push(...(page.events ?? []));
          cursor = page.cursor ?? '';
        } while (cursor && !gone);
        if (!gone) setEvents(all);
      } catch (problem) {
        if (!gone) setError(problem instanceof Refused ? problem : new Refused({ detail: String(problem) }));
      } finally {
        busy = false;
      }
      if (dirty && !gone) {
        dirty = false;
        void load();
      }
    };
    void load();
    const stop = watchEvents({ run }, () => void load());
    return () => {
      gone = true;
      stop();
    };
  }, [run]);
  return { events, error };
}

export function Journal({ run, rows, entry }: TabProps & { entry?: string }): JSX.Element {
  const { events, error } = useEntries(run);
  const { query } = usePlace();
  const show = query.get('show') ?? 'story';
  const find = (query.get('find') ?? '').toLowerCase();
  const [limit, setLimit] = useState(SHOWN);
  const chosen = Number(entry) || 0;
  const titles = useMemo(() => new Map(rows.map((row) => [row.step.id, row.title])), [rows]);
  const title = (step: string): string => titles.get(step) ?? step;
  const story = useMemo(() => storyOf(events ?? [], title), [events, titles]);
  const isStory = show === 'story' && !find;
  const entries = useMemo(() => (events ?? []).filter((event) => fits(event, show) && (!find || `${event.kind} ${event.step ?? ''} ${event.actor} ${JSON.stringify(event.data ?? {})}`.toLowerCase().includes(find))), [events, show, find]);
  const shown: readonly number[] = isStory ? story.map((one) => one.from) : entries.map((one) => one.n);
  const move = (by: number): void => {
    const at = shown.findIndex((n, index) => n >= chosen && (shown[index + 1] ?? Infinity) > chosen);
    const next = shown[Math.max(0, Math.min(shown.length - 1, chosen ? at + by : 0))];
    if (next) go(`/runs/${enc(run)}/journal/${next}${location.search}`, true);
  };
  useKeys({ j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1) });
  useEffect(() => {
    if (!chosen || !events) return;
    const found = document.querySelector<HTMLElement>('.entry[aria-current=true]');
    found?.scrollIntoView({ block: 'nearest' });
    found?.focus({ preventScroll: true });
  }, [chosen, !!events]);
  if (!events) return <NoAnswer loading={!error} error={error} rows={10} />;
  return (
    <div class="story-body">
      <div class="story">
        {isStory
          ? story.slice(0, limit).map((one) => <StoryLine key={`${one.from} ${one.to} ${one.icon}`} run={run} one={one} chosen={chosen >= one.from && chosen <= one.to && (one.from === one.to || !story.some((other) => other.from === other.to && other.from === chosen))} />)
          : entries.slice(0, limit).map((event) => <EntryLine key={event.n} run={run} event={event} title={title} chosen={event.n === chosen} />)}
        {shown.length ? null : (
          <Empty title="No entry matches" actions={<Button href={`/runs/${enc(run)}/journal`}>Show the story</Button>}>
            {count(events.length, 'entry', 'entries')} hidden by this filter.
          </Empty>
        )}
        {shown.length > limit ? (
          <Button small onClick={() => setLimit(limit + 500)}>
            Show {number(Math.min(500, shown.length - limit))} more of {number(shown.length)}
          </Button>
        ) : null}
      </div>
      <Side run={run} events={events} story={story.length} show={show} find={query.get('find') ?? ''} chosen={chosen} />
    </div>
  );
}

function fits(event: EventView, show: string): boolean {
  if (show === 'story' || show === 'all') return true;
  if (show.startsWith('by:')) return event.actor === show.slice(3);
  return KIND_GROUPS[show]?.has(event.kind) ?? true;
}

function StoryLine({ run, one, chosen }: { run: string; one: Chapter; chosen: boolean }): JSX.Element {
  const href = `/runs/${enc(run)}/journal/${one.to === one.from ? one.from : one.to}`;
  return (
    <article class={`entry${one.isCard ? ` carded e-${one.tone}` : ''}`} aria-current={chosen ? 'true' : undefined} tabIndex={-1} id={`entry-${one.from}`}>
      <span class="at">{clock(one.at)}</span>
      <Icon name={one.icon} tone={one.tone} />
      <div class="words">
        <p>
          {one.lead ? <b>{one.lead}</b> : null} {one.text} {one.small && !one.isCard ? <span class="c-3">· {one.small}</span> : null}
        </p>
        {one.quote ? <p>“{one.quote}”</p> : null}
        {one.small && one.isCard ? <p class="meta">{one.small}</p> : null}
      </div>
      <span class="row">
        {chosen ? (
          <Button small icon="link" onClick={() => void copyText(location.origin + href, 'Link copied')}>
            Copy link
          </Button>
        ) : null}
        <a class="n" href={href} title={one.from === one.to ? `Entry ${one.from}` : `Entries ${one.from} to ${one.to}`}>
          #{one.from === one.to ? one.from : `${one.from}–${one.to}`}
        </a>
      </span>
    </article>
  );
}

function EntryLine({ run, event, title, chosen }: { run: string; event: EventView; title: (step: string) => string; chosen: boolean }): JSX.Element {
  const tone = KIND_GROUPS.failures!.has(event.kind) ? 'bad' : KIND_GROUPS.undo!.has(event.kind) ? 'undo' : event.kind.startsWith('approval') ? 'wait' : event.kind === 'step_completed' ? 'ok' : '2';
  const icon = isPerson(event.actor) ? 'person' : isAgent(event.actor) ? 'robot' : tone === 'bad' ? 'failed' : tone === 'undo' ? 'undo' : tone === 'ok' ? 'completed' : 'dot';
  const data = (event.data ?? {}) as Record<string, unknown>;
  const words = data.message ?? data.reason ?? data.text ?? data.decision ?? data.description ?? '';
  return (
    <article class="entry" aria-current={chosen ? 'true' : undefined} tabIndex={-1}>
      <span class="at">{clock(event.at)}</span>
      <Icon name={icon} tone={tone} size={icon === 'dot' ? 10 : 16} />
      <div class="words">
        <p>
          <b>{spaced(event.kind)}</b> {event.step ? title(event.step) : ''} {event.attempt && event.attempt > 1 ? `, try ${event.attempt}` : ''} <span class="c-3">{actor(event.actor)}</span> {words ? <span class="c-2">{String(words).slice(0, 300)}</span> : null}
        </p>
      </div>
      <a class="n" href={`/runs/${enc(run)}/journal/${event.n}${location.search}`}>
        #{event.n}
      </a>
    </article>
  );
}

function Side({ run, events, story, show, find, chosen }: { run: string; events: readonly EventView[]; story: number; show: string; find: string; chosen: number }): JSX.Element {
  const tally = (key: string): number => events.filter((event) => fits(event, key)).length;
  const people = [...new Set(events.map((event) => event.actor))].filter((one) => isPerson(one) || isAgent(one)).slice(0, 6);
  const list: readonly (readonly [string, string, number])[] = [
    ['story', 'Story', story],
    ['all', 'Every entry', events.length],
    ['decisions', 'Decisions and approvals', tally('decisions')],
    ['failures', 'Failures and retries', tally('failures')],
    ['undo', 'Undo', tally('undo')],
    ...people.map((one) => [`by:${one}`, `By ${actor(one)}`, tally(`by:${one}`)] as const),
  ];
  return (
    <aside class="story-side" aria-label="Filter and proof">
      <h2>Show</h2>
      <nav class="show-list" aria-label="Show">
        {list.map(([key, word, value]) => (
          <a key={key} href={withQuery({ show: key === 'story' ? undefined : key }, `/runs/${enc(run)}/journal`)} aria-current={key === show ? 'true' : undefined}>
            {word} <span class="c-3">{number(value)}</span>
          </a>
        ))}
      </nav>
      <div style={{ marginTop: '10px' }}>
        <Find value={find} label="Find in this journal" onInput={(text) => go(withQuery({ find: text }), true)} />
      </div>
      <Intact run={run} />
      {chosen ? <Raw run={run} n={chosen} /> : null}
    </aside>
  );
}

function Intact({ run }: { run: string }): JSX.Element {
  const [asked, setAsked] = useState(0);
  const proof = useRead<Verified>(asked ? `/proof/${enc(run)}` : null);
  const data = proof.data;
  return (
    <>
      <h2>Is it intact?</h2>
      {data ? (
        <>
          <p class={`labelled ${data.ok ? 'c-ok' : 'c-bad'}`}>
            <Icon name={data.ok ? 'shield' : 'failed'} />
            <b>{data.ok ? `Intact, ${count(data.events, 'entry', 'entries')}` : 'The journal was changed'}</b>
          </p>
          <p class="meta">
            Checked {clock(data.at)}. {number(data.signed_events)} signed by {count(data.checkpoints, 'checkpoint')}.
          </p>
          {data.first_bad ? (
            <p class="meta c-bad">
              Entry {data.first_bad.n} of {data.first_bad.stream}: {data.first_bad.reason}
            </p>
          ) : null}
        </>
      ) : (
        <p class="meta">{asked ? (proof.error ? proof.error.message : 'Checking…') : 'handrail follows the chain of every entry and compares it with the signed checkpoints.'}</p>
      )}
      <div class="row wrap" style={{ marginTop: '8px' }}>
        <Button
          small
          onClick={() => {
            setAsked(asked + 1);
            if (asked) proof.again();
          }}
        >
          {data ? 'Verify again' : 'Verify now'}
        </Button>
        <Button small href={`/api/v1/journal/bundle/${enc(run)}`} download>
          Export proof
        </Button>
      </div>
    </>
  );
}

function Raw({ run, n }: { run: string; n: number }): JSX.Element {
  const entry = useRead<EventView>(runPath(run, `/journal/${n}`));
  const data = entry.data;
  if (!data) return <NoAnswer {...entry} rows={4} />;
  const facts: readonly (readonly [string, string])[] = [
    ['Kind', data.kind],
    ['At', exact(data.at)],
    ['By', data.actor],
    ['Step', data.step ?? ''],
    ['Try', data.attempt ? String(data.attempt) : ''],
    ['Hash', data.hash],
    ['Link', `/runs/${run}/journal/${n}`],
  ];
  return (
    <>
      <h2>Entry {number(n)}</h2>
      <dl class="facts">
        {facts
          .filter(([, value]) => value)
          .map(([word, value]) => (
            <>
              <dt>{word}</dt>
              <dd>
                <code title={value}>{word === 'Hash' ? `${value.slice(0, 16)}…` : value}</code>
              </dd>
            </>
          ))}
      </dl>
      <h2>Its data</h2>
      <Value value={data.data} empty={data.erased ? 'Erased. The chain still holds.' : 'None.'} />
    </>
  );
}
