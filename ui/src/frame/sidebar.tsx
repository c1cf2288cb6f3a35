/** The sidebar: search, places, open runs with their live state, and three lines of trust. On a phone: the bar at the bottom. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { useRead } from '../core/api';
import type { AboutServer, ClientList, Home, ProjectList } from '../core/contract';
import { mod } from '../core/keys';
import { isLive } from '../core/live';
import { opened, project } from '../core/project';
import { go } from '../core/router';
import { lookOf, runHref, runName } from '../core/runs';
import { useStore } from '../core/store';
import { toggleTheme } from '../core/theme';
import { actor, count, number } from '../core/words';
import { Icon, Mark } from '../kit/icons';
import { Menu, StateIcon, Time } from '../kit/kit';
import type { Place } from '../routes';
import { PLACES } from './places';
import { overlay, waitingForMe } from './shell';

const OPEN_MAX = 12;

export function useCounts(): { home: number; elsewhere: number; approvals: number } {
  const home = useRead<Home>('/home', { all: true }).data;
  const mine = home?.waiting_for_me ?? [];
  const elsewhere = home?.elsewhere ?? 0;
  useEffect(() => waitingForMe.set(mine.length + elsewhere), [mine.length, elsewhere]);
  return { home: mine.length, elsewhere, approvals: mine.filter((one) => one.kind === 'approval').length };
}

export function Sidebar({ at, counts }: { at: Place | undefined; counts: Record<string, number> }): JSX.Element {
  const open = (useRead<Home>('/home', { all: true }).data?.open ?? []).slice(0, OPEN_MAX);
  const about = useRead<AboutServer>('/about', { all: true }).data;
  return (
    <aside class="side" aria-label="Sidebar">
      <a class="brand" href="/">
        <Mark />
        <b>handrail</b>
      </a>
      <ProjectSwitch waiting={counts.elsewhere ?? 0} />
      <button class="find" type="button" title="Search or go to…" onClick={() => overlay.set('palette')}>
        <Icon name="search" />
        <span class="cut">Search or go to…</span>
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

/** Which project this is; with several open, the way to the others. */
function ProjectSwitch({ waiting }: { waiting: number }): JSX.Element | null {
  const list = useRead<ProjectList>('/projects');
  const here = useStore(project);
  const open = list.data?.projects.filter((one) => one.is_open || one.id === here) ?? [];
  useEffect(() => {
    opened.set(open);
    if (open.length > 1) go(location.href, true); // the address now says which one it is
  }, [list.data, here]);
  useEffect(() => {
    addEventListener('focus', list.again); // another one may have been opened meanwhile
    return () => removeEventListener('focus', list.again);
  }, []);
  const current = open.find((one) => one.id === here);
  if (!current) return null;
  const named = (one: (typeof open)[number]): string => (open.some((other) => other.name === one.name && other !== one) ? `${one.name}, ${one.folder ?? ''}` : one.name);
  return (
    <div class="project" title={current.folder}>
      <Icon name="project" />
      {open.length < 2 ? (
        <span class="cut">{current.name}</span>
      ) : (
        <select aria-label="Project" value={here} onChange={(event) => go(`/?project=${event.currentTarget.value}`)}>
          {open.map((one) => (
            <option key={one.id} value={one.id}>
              {named(one)}
            </option>
          ))}
        </select>
      )}
      {waiting ? <Badge value={waiting} title="Waiting for you in other projects" /> : null}
    </div>
  );
}

const progressOf = (run: { done: number; total?: number }): string => (run.total ? `${number(run.done)}/${number(run.total)}` : number(run.done));

const Badge = ({ value, title }: { value: number; title?: string }): JSX.Element => (
  <span class="badge" title={title}>
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
        <span class="num">{agent?.connected ? 'connected' : agent?.heard ? <Time at={agent.heard} /> : ''}</span>
      </a>
      <a href="/proof">
        <Icon name="shield" tone="2" />
        <span>Journal</span>
        <span class="num">{events === undefined ? '' : count(events, 'event')}</span>
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
