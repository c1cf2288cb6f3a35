/** The frame around every page: what it is called, where it stands, and what may be done from there. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { store, useStore } from '../core/store';
import { clock } from '../core/words';
import { heardAt, isLive, tryNow } from '../core/live';
import { Refused } from '../core/api';
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
  useTitle(title, waiting);
  const twin = json ?? `${location.pathname === '/' ? '/index' : location.pathname}.json${location.search}`;
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
      {live ? null : <NotLive />}
      <main class={`page${flush ? ' flush' : ''}`} id="page" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
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
  children?: ComponentChildren;
}

/** What to show instead of an answer: grey rows, or why there is none. */
export function NoAnswer({ loading, error, again, rows }: AnswerProps): JSX.Element | null {
  if (loading) return <Bones rows={rows} />;
  if (!error) return null;
  if (error.status === 401) {
    return (
      <Empty icon="lock" title="This page needs its key">
        Open the link that <code>handrail serve</code> printed; it carries the key to this page.
      </Empty>
    );
  }
  const isGone = error.status === 404;
  return (
    <Empty
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
