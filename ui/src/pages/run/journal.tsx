/** The journal of a run: a story as the server tells it, or every entry; each has a link. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useRead } from '../../core/api';
import type { EventPage, EventView, RunStory, StoryLine, Verified } from '../../core/contract';
import { useKeys } from '../../core/keys';
import { go, enc, usePlace, withQuery } from '../../core/router';
import { actor, clock, count, duration, exact, instant, isAgent, isPerson, number, short, spaced } from '../../core/words';
import { NoAnswer } from '../../frame/shell';
import { Icon, type IconName } from '../../kit/icons';
import { Button, Empty, Find, copyText } from '../../kit/kit';
import { Value } from '../../kit/value';
import { runPath, runUrl, type Row } from './model';
import type { TabProps } from './run';

const SHOWN = 200;
const MOST = 500;
const ABOUT = ['decisions', 'failures', 'undo'];

export function Journal({ run, rows, entry, at }: TabProps & { entry?: string }): JSX.Element {
  const { query } = usePlace();
  const show = query.get('show') ?? 'story';
  const find = query.get('find') ?? '';
  const [limit, setLimit] = useState(SHOWN);
  const chosen = Number(entry) || 0;
  const live = at ? undefined : { run };
  const story = useRead<RunStory>(runPath(run, `/story${at}`), live);
  const isStory = show === 'story' && !find;
  const asked = new URLSearchParams(ABOUT.includes(show) ? { about: show } : show.startsWith('by:') ? { actor: show.slice(3) } : {});
  if (find) asked.set('text', find);
  asked.set('limit', String(Math.min(limit, MOST)));
  const list = useRead<EventPage>(isStory ? null : runPath(run, `/journal?${asked}`), live);
  const lines = story.data?.lines ?? [];
  const events = (list.data?.events ?? []).filter((one) => !at || one.n <= Number(at.slice(4)));
  const shown = isStory ? lines.map((one) => one.first) : events.map((one) => one.n);
  const move = (by: number): void => {
    const here = shown.findIndex((n, index) => n >= chosen && (shown[index + 1] ?? Infinity) > chosen);
    const next = shown[Math.max(0, Math.min(shown.length - 1, chosen ? here + by : 0))];
    if (next) go(`/runs/${enc(run)}/journal/${next}${location.search}`, true);
  };
  useKeys({ j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1) });
  useEffect(() => {
    if (!chosen || !shown.length) return;
    const found = document.querySelector<HTMLElement>('.entry[aria-current=true]');
    found?.scrollIntoView({ block: 'nearest' });
    found?.focus({ preventScroll: true });
  }, [chosen, !shown.length]);
  if (!story.data) return <NoAnswer whole={false} {...story} rows={10} />;
  const more = isStory ? lines.length - limit : list.data?.cursor ? MOST - limit : 0;
  return (
    <div class="story-body">
      <div class="story">
        {isStory ? lines.slice(0, limit).map((one) => <StoryRow key={one.first} run={run} one={one} chosen={chosen >= one.first && chosen <= one.last} />) : events.map((event) => <EntryLine key={event.n} run={run} event={event} rows={rows} chosen={event.n === chosen} />)}
        {shown.length ? null : list.data || isStory ? (
          <Empty title="No entry matches" actions={<Button href={runUrl(run, '/journal')}>Show the story</Button>}>
            {count(story.data.n, 'entry', 'entries')} hidden by this filter.
          </Empty>
        ) : (
          <NoAnswer whole={false} {...list} rows={10} />
        )}
        {more > 0 ? (
          <Button small onClick={() => setLimit(limit + SHOWN * 2)}>
            Show more
          </Button>
        ) : null}
        {list.data?.cursor && limit >= MOST ? <p class="meta">The first {number(MOST)} are shown. Find narrows them down.</p> : null}
      </div>
      <Side run={run} story={story.data} show={show} find={find} chosen={chosen} />
    </div>
  );
}

/** By the event that a line is about: its icon and colour; a line without one is routine. */
const EVENT: Record<string, readonly [IconName, string]> = {
  run_paused: ['paused', 'wait'],
  run_resumed: ['play', 'run'],
  run_cancelled: ['cancelled', 'off'],
  run_completed: ['completed', 'ok'],
  run_compensated: ['undone', 'undo'],
  run_compensation_failed: ['undo_failed', 'bad'],
  run_adopted: ['project', '2'],
  compensation_started: ['undone', 'undo'],
  approval_requested: ['person', 'wait'],
  approval_given: ['approvals', 'ok'],
  approval_expired: ['clock', 'wait'],
  approval_withdrawn: ['warning', 'wait'],
  approval_overridden: ['warning', 'bad'],
  step_skipped: ['skipped', 'off'],
  step_retried: ['running', 'run'],
  step_accepted: ['completed', 'ok'],
  step_became_uncertain: ['uncertain', 'unc'],
  undo_became_uncertain: ['uncertain', 'unc'],
  undo_failed: ['undo_failed', 'bad'],
};
const KIND: Record<string, readonly [IconName, string]> = { start: ['person', '2'], routine: ['completed', 'ok'], undo: ['undo', 'undo'], decision: ['said', '2'], action: ['said', '2'], approval: ['failed', 'bad'], failure: ['failed', 'bad'], refused: ['failed', 'bad'], end: ['failed', 'bad'] };
const PLAIN = new Set(['start', 'routine', 'action']);
const ERASED = '[erased]';

const FACT: Record<string, (value: string) => string> = { code: (value) => value, digest: (value) => `digest ${short(value)}`, tries: (value) => count(Number(value), 'try', 'tries') };

function StoryRow({ run, one, chosen }: { run: string; one: StoryLine; chosen: boolean }): JSX.Element {
  const href = runUrl(run, `/journal/${one.last}`);
  const [icon, tone] = EVENT[one.event ?? ''] ?? KIND[one.kind] ?? ['said', '2'];
  const isCard = !!one.event && !PLAIN.has(one.kind) && one.event !== 'run_completed' && one.event !== 'run_compensated';
  const took = one.until ? instant(one.until) - instant(one.at) : 0;
  const facts = Object.entries(one.facts ?? {}).map(([name, value]) => (FACT[name] ?? ((given) => `${name} ${given}`))(value));
  const entries = one.last - one.first + 1;
  return (
    <article class={`entry${isCard ? ` carded e-${tone}` : ''}`} aria-current={chosen ? 'true' : undefined} tabIndex={-1}>
      <span class="at">{clock(one.at)}</span>
      <Icon name={icon} tone={tone} />
      <div class="words">
        <p>
          {isCard ? <b>{one.text}</b> : one.text}
          {took > 100 && !isCard ? ` in ${duration(took)}` : ''} {!one.event && entries > 3 ? <span class="c-3">· {number(entries)} entries</span> : null}
        </p>
        {one.words ? <p>{one.words === ERASED ? 'The words of this entry were erased. The chain still holds.' : one.kind === 'failure' || one.kind === 'refused' ? one.words : `“${one.words}”`}</p> : null}
        {(one.notes ?? []).map((note) => (
          <p class="c-wait" key={note}>
            {note}
          </p>
        ))}
        {facts.length ? <p class="meta">{facts.join(' · ')}</p> : null}
      </div>
      <span class="row">
        {chosen ? (
          <Button small icon="link" onClick={() => void copyText(location.origin + href, 'Link copied')}>
            Copy link
          </Button>
        ) : null}
        <a class="n" href={href} title={entries < 2 ? `Entry ${one.first}` : `Entries ${one.first} to ${one.last}`}>
          #{entries < 2 ? one.first : `${one.first}–${one.last}`}
        </a>
      </span>
    </article>
  );
}

const BAD = /failed|refused|lost|uncertain/;

function EntryLine({ run, event, rows, chosen }: { run: string; event: EventView; rows: readonly Row[]; chosen: boolean }): JSX.Element {
  const tone = BAD.test(event.kind) ? 'bad' : /undo|compensat/.test(event.kind) ? 'undo' : event.kind.startsWith('approval') ? 'wait' : event.kind === 'step_completed' ? 'ok' : '2';
  const icon = isPerson(event.actor) ? 'person' : isAgent(event.actor) ? 'robot' : tone === 'bad' ? 'failed' : tone === 'undo' ? 'undo' : tone === 'ok' ? 'completed' : 'dot';
  const data = (event.data ?? {}) as Record<string, unknown>;
  const words = data.message ?? data.reason ?? data.text ?? data.decision ?? data.description ?? '';
  const title = event.step && (rows.find((row) => row.step.id === event.step)?.title ?? event.step);
  return (
    <article class="entry" aria-current={chosen ? 'true' : undefined} tabIndex={-1}>
      <span class="at">{clock(event.at)}</span>
      <Icon name={icon} tone={tone} size={icon === 'dot' ? 10 : 16} />
      <div class="words">
        <p>
          <b>{spaced(event.kind)}</b> {title} {event.attempt && event.attempt > 1 ? `, try ${event.attempt}` : ''} <span class="c-3">{actor(event.actor)}</span> {words ? <span class="c-2">{String(words).slice(0, 300)}</span> : null}
        </p>
      </div>
      <a class="n" href={`/runs/${enc(run)}/journal/${event.n}${location.search}`}>
        #{event.n}
      </a>
    </article>
  );
}

function Side({ run, story, show, find, chosen }: { run: string; story: RunStory; show: string; find: string; chosen: number }): JSX.Element {
  const about = story.subjects ?? {};
  const list: readonly (readonly [string, string, number])[] = [
    ['story', 'Story', (story.lines?.length ?? 0) + (story.left_out ?? 0)],
    ['all', 'Every entry', story.n],
    ['decisions', 'Decisions and approvals', about.decisions ?? 0],
    ['failures', 'Failures and retries', about.failures ?? 0],
    ['undo', 'Undo', about.undo ?? 0],
    ...Object.entries(story.actors ?? {})
      .slice(0, 6)
      .map(([one, value]) => [`by:${one}`, `By ${actor(one)}`, value] as const),
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
  if (!data) return <NoAnswer whole={false} {...entry} rows={4} />;
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
