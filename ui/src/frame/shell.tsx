/** The frame around every page: what it is called, where it stands, and what may be done from there. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { store, useStore } from '../core/store';
import { capital, clock } from '../core/words';
import { heardAt, isLive, tryNow } from '../core/live';
import { opened, project } from '../core/project';
import { isOut, Refused, useRead } from '../core/api';
import type { AboutServer } from '../core/contract';
import { Button, Bones, Empty } from '../kit/kit';
import { Icon } from '../kit/icons';

/** How many things wait for the person who looks: shown in the title and the icon of the tab. */
export const waitingForMe = store(0);
/** Opened from anywhere: the palette and the map of keys. */
export const overlay = store<'' | 'palette' | 'keys'>('');

interface ShellProps {
  /** The path to this page; the last one is where the reader is. */
  crumbs: readonly { word: string; href?: string }[];
  title: string;
  actions?: ComponentChildren;
  /** Its `.json` twin, if that is not the address itself. */
  json?: string | false;
  flush?: boolean;
  children: ComponentChildren;
}

export function Shell({ crumbs, title, actions, json, flush, children }: ShellProps): JSX.Element {
  const waiting = useStore(waitingForMe);
  const live = useStore(isLive);
  const projects = useStore(opened);
  const out = useStore(isOut);
  useTitle(title, waiting);
  const twin = json ?? twinOf(location.pathname, location.search);
  return (
    <div class="main">
      <header class="top">
        <nav aria-label="Path" class="grow">
          <ol class="crumbs">
            {crumbs.map((one, index) => (
              <li key={one.word + index}>
                {one.href && index < crumbs.length - 1 ? (
                  <a href={one.href} class="cut">
                    {one.word}
                  </a>
                ) : (
                  <span class="cut" aria-current={index === crumbs.length - 1 ? 'page' : undefined}>
                    {one.word}
                  </span>
                )}
              </li>
            ))}
          </ol>
        </nav>
        {actions}
        {projects.length > 1 ? <span class="phone cut">{projects.find((one) => one.id === project.value)?.name}</span> : null}
        <span class={`phone c-${live ? 'ok' : 'wait'}`}>
          <Icon name={live ? 'dot' : 'warning'} size={live ? 10 : 14} />
          {live ? 'Live' : 'Not live'}
        </span>
        {twin ? (
          <a class="btn quiet small json" href={twin} target="_blank" rel="noreferrer">
            {'{ } JSON'}
          </a>
        ) : null}
      </header>
      {live || out ? null : <NotLive />}
      {out ? null : <Restart />}
      <main class={`page${flush ? ' flush' : ''}`} id="page" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

/** Names in the address that only say how a page shows its answer. */
const SHOWN_ONLY = ['view', 'show', 'find', 'tab', 'only', 'try', 'like'];

/** The address of the answer that a page shows: its own, with `.json`. */
function twinOf(path: string, search: string): string {
  const query = new URLSearchParams(search);
  for (const name of SHOWN_ONLY) query.delete(name);
  if (/^\/(library|plans)\/./.test(path)) query.delete('q');
  if (/\/values$/.test(path) && !query.get('a')) return '';
  if (/\/(journal|values|definition|compare|do)\b/.test(path)) query.delete('at');
  const text = query.toString();
  return `${path === '/' ? '/index' : path.replace(/\/start$/, '')}.json${text ? `?${text}` : ''}`;
}

function NotLive(): JSX.Element {
  const at = useStore(heardAt);
  return (
    <div class="banner" role="status">
      <Icon name="warning" tone="wait" />
      <p class="grow">
        <b>Not live.</b> handrail at {location.host} does not answer. What you see is from {clock(new Date(at).toISOString())}. Runs may go
        on. Actions are back when the page is live.
      </p>
      <Button small onClick={tryNow}>
        Try now
      </Button>
    </div>
  );
}

/** That this server works with a configuration that has changed since; looked at again when the reader comes back. */
function Restart(): JSX.Element | null {
  const about = useRead<AboutServer>('/about');
  useEffect(() => {
    addEventListener('focus', about.again);
    return () => removeEventListener('focus', about.again);
  }, []);
  const words = about.data?.restart;
  return words ? (
    <div class="banner" role="status">
      <Icon name="warning" tone="wait" />
      <p class="grow">{capital(words)}.</p>
    </div>
  ) : null;
}

function useTitle(title: string, waiting: number): void {
  const drawn = useRef(-1);
  useEffect(() => {
    document.title = `${waiting ? `(${waiting}) ` : ''}${title === 'Home' ? '' : `${title} · `}handrail`;
    const dotted = waiting ? 1 : 0;
    if (drawn.current === dotted) return;
    drawn.current = dotted;
    document.querySelector('link[rel=icon]')?.setAttribute('href', dotted ? '/app/icon-waiting.svg' : '/app/icon.svg');
  }, [title, waiting]);
}

interface AnswerProps {
  loading: boolean;
  error: Refused | undefined;
  again?: () => void;
  rows?: number;
  /** Whether it stands for the whole page; a part of a page has no title of its own. */
  whole?: boolean;
}

/** What to show instead of an answer: grey rows, or why there is none. */
export function NoAnswer({ loading, error, again, rows, whole = true }: AnswerProps): JSX.Element | null {
  if (loading) return <Bones rows={rows} />;
  if (!error) return null;
  if (error.status === 401) {
    return (
      <Empty whole icon="lock" title="This page needs its key">
        Open the link that <code>handrail serve</code> printed; it carries the key to this page. It works once: <code>handrail open</code> gives a new one.
      </Empty>
    );
  }
  const isGone = error.status === 404;
  return (
    <Empty
      whole={whole}
      icon={isGone ? 'search' : 'warning'}
      tone={isGone ? '3' : 'wait'}
      title={error.message}
      actions={
        <>
          {again ? <Button onClick={again}>Try again</Button> : null}
          <Button href="/">Home</Button>
        </>
      }
    >
      {error.problem.hint}
    </Empty>
  );
}

/** A line for screen readers when something new waits; at most one in 5 seconds. */
export function Announcer(): JSX.Element {
  const waiting = useStore(waitingForMe);
  const region = useRef<HTMLDivElement>(null);
  const before = useRef(waiting);
  const timer = useRef(0);
  useEffect(() => {
    if (waiting <= before.current) {
      before.current = waiting;
      return;
    }
    before.current = waiting;
    if (timer.current) return;
    timer.current = window.setTimeout(() => {
      timer.current = 0;
      const now = waitingForMe.value;
      if (region.current) region.current.textContent = now === 1 ? '1 thing waits for you' : `${now} things wait for you`;
    }, 5_000);
  }, [waiting]);
  return <div class="sr" role="status" ref={region} />;
}
