/** The sidebar: search, places, open runs with their live state, and three lines of trust. On a phone: the bar at the bottom. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { useRead } from '../core/api';
import type { AboutServer, ApprovalPage, ClientList, Home, LibraryPage, RunPage } from '../core/contract';
import { mod } from '../core/keys';
import { isLive } from '../core/live';
import { lookOf, runHref, runName, workflowNames } from '../core/runs';
import { useStore } from '../core/store';
import { toggleTheme } from '../core/theme';
import { actor, number } from '../core/words';
import { Icon, Mark } from '../kit/icons';
import { Menu, StateIcon } from '../kit/kit';
import type { Place } from '../routes';
import { PLACES } from './places';
import { overlay, waitingForMe } from './shell';

const OPEN = '/runs?state=running&state=waiting&state=paused&state=compensating&limit=12';

const LIBRARY = '/library?limit=100';

export function useCounts(): { home: number; approvals: number } {
  const home = useRead<Home>('/home', { all: true }).data;
  const approvals = useRead<ApprovalPage>('/approvals', { all: true }).data;
  const waiting = home?.waiting_for_me?.length ?? 0;
  useEffect(() => waitingForMe.set(waiting), [waiting]);
  return { home: waiting, approvals: approvals?.approvals?.filter((one) => one.may_answer).length ?? 0 };
}

export function Sidebar({ at, counts }: { at: Place | undefined; counts: Record<string, number> }): JSX.Element {
  const open = useRead<RunPage>(OPEN, { all: true }).data?.runs ?? [];
  const about = useRead<AboutServer>('/about').data;
  for (const flow of useRead<LibraryPage>(LIBRARY).data?.workflows ?? []) workflowNames.set(flow.id, flow.name);
  return (
    <aside class="side" aria-label="Sidebar">
      <a class="brand" href="/">
        <Mark />
        <b>handrail</b>
        {about?.project?.name ? (
          <span class="project cut" title={about.project.folder}>
            {about.project.name}
          </span>
        ) : null}
      </a>
      <button class="find" type="button" title="Search or go to…" onClick={() => overlay.set('palette')}>
        <Icon name="search" />
        <span>Search or go to…</span>
        <kbd aria-hidden>{mod === '⌘' ? '⌘K' : 'Ctrl K'}</kbd>
      </button>
      <nav aria-label="Places">
        {PLACES.map((place) => (
          <a key={place.at} href={place.href} aria-current={place.at === at ? 'page' : undefined} title={`${place.word} (g ${place.key})`}>
            <Icon name={place.icon} />
            <span>{place.word}</span>
            {counts[place.at] ? <Badge value={counts[place.at]!} /> : null}
          </a>
        ))}
      </nav>
      {open.length ? (
        <section class="open" aria-label="Open runs">
          <h2>Open runs</h2>
          {open.map((run) => (
            <a key={run.run} href={runHref(run.run)} title={`${runName(run)}: ${lookOf(run).word}`}>
              <StateIcon look={lookOf(run)} named />
              <span class="cut grow">{runName(run)}</span>
              <span class="num">{progressOf(run)}</span>
            </a>
          ))}
        </section>
      ) : null}
      <Trust about={about} />
    </aside>
  );
}

function progressOf(run: { done: number; total?: number; progress?: { done: number; total: number; known_total?: number } }): string {
  const total = run.progress?.known_total ?? run.progress?.total ?? run.total;
  return total ? `${number(run.progress?.done ?? run.done)}/${number(total)}` : number(run.done);
}

const Badge = ({ value }: { value: number }): JSX.Element => (
  <span class="badge">
    {number(value)}
    <span class="sr"> waiting</span>
  </span>
);

function Trust({ about }: { about: AboutServer | undefined }): JSX.Element {
  const live = useStore(isLive);
  const clients = useRead<ClientList>('/clients', { all: true }).data?.clients ?? [];
  const agent = clients.find((one) => one.kind === 'agent' && one.connected) ?? clients.find((one) => one.kind === 'agent');
  const events = about?.events;
  return (
    <div class="trust">
      <a href="/settings/about">
        <Icon name={live ? 'dot' : 'warning'} tone={live ? 'ok' : 'wait'} size={14} />
        <span>{live ? 'Live' : 'Not live'}</span>
        <span class="num">{location.host}</span>
      </a>
      <a href="/settings/clients">
        <Icon name="robot" tone={agent?.connected ? 'ok' : '3'} />
        <span class="cut">{agent ? actor(agent.name) : 'No agent'}</span>
        <span class="num">{agent?.connected ? 'connected' : agent ? 'not connected' : ''}</span>
      </a>
      <a href="/proof">
        <Icon name="shield" tone="2" />
        <span>Journal</span>
        <span class="num">{events === undefined ? '' : `${number(events)} events`}</span>
      </a>
      <div>
        <span class="avatar" aria-hidden>
          {(actor(about?.person) || '?').charAt(0).toUpperCase()}
        </span>
        <span class="cut grow">{actor(about?.person) || 'you'}</span>
        <UserMenu />
      </div>
    </div>
  );
}

function UserMenu(): JSX.Element {
  return (
    <div class="user-menu">
      <Menu label="Your menu">
        <li>
          <button type="button" onClick={toggleTheme}>
            Light or dark <kbd>.</kbd>
          </button>
        </li>
        <li>
          <button type="button" onClick={() => overlay.set('keys')}>
            Keys <kbd>?</kbd>
          </button>
        </li>
        <li>
          <a href="/settings/look">Look and notifications</a>
        </li>
        <li>
          <a href="/settings/about">About this server</a>
        </li>
      </Menu>
    </div>
  );
}

const ON_PHONE: readonly Place[] = ['home', 'runs', 'approvals', 'library'];

export function BottomBar({ at, counts }: { at: Place | undefined; counts: Record<string, number> }): JSX.Element {
  const shown = PLACES.filter((place) => ON_PHONE.includes(place.at));
  return (
    <nav class="bottom" aria-label="Places on a phone">
      {shown.map((place) => (
        <a key={place.at} href={place.href} aria-current={place.at === at ? 'page' : undefined}>
          <Icon name={place.icon} size={18} />
          {place.word}
          {counts[place.at] ? <Badge value={counts[place.at]!} /> : null}
        </a>
      ))}
      <a href="/settings" aria-current={at && !ON_PHONE.includes(at) ? 'page' : undefined}>
        <Icon name="more" size={18} />
        More
      </a>
    </nav>
  );
}
