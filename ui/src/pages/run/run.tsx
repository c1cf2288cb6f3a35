/** One run: what it is, why it is where it is, and six ways to look at it. Each tab, step and entry is a URL. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { AsOf, RunView } from '../../core/contract';
import { useKeys } from '../../core/keys';
import { isLive } from '../../core/live';
import { enter } from '../../core/project';
import { enc, go, usePlace, withQuery } from '../../core/router';
import { runName, waitingKind, workflowId } from '../../core/runs';
import { useStore } from '../../core/store';
import { capital, clock, instant, number } from '../../core/words';
import { useCommands } from '../../frame/commands';
import { NoAnswer, Shell } from '../../frame/shell';
import { Icon } from '../../kit/icons';
import { Bones, Button, Empty, Part, copyText } from '../../kit/kit';
import { fetchSoon, late } from '../../kit/late';
import { useNow } from '../../kit/now';
import type { PageProps } from '../../routes';
import { runLook } from '../../states';
import { actionHref, commandsOf } from './actions';
import { Header } from './header';
import { MANY, rowsOf, tabHref, useRun, useSteps, type Row } from './model';
import type { DoProps } from './do';
import { StepPanel } from './panel';
import { StepList } from './steps';

export interface TabProps {
  run: string;
  view: RunView;
  rows: readonly Row[];
  selected: string;
  /** `?at=31` while the run is shown as it was. */
  at: string;
}

const TABS = ['steps', 'graph', 'timeline', 'journal', 'values', 'definition'] as const;
type Tab = (typeof TABS)[number];
const WORDS: Record<Tab, string> = { steps: 'Steps', graph: 'Graph', timeline: 'Timeline', journal: 'Journal', values: 'Values', definition: 'Definition' };
type InTab = TabProps & { entry?: string };
const LATE = {
  graph: late<InTab>(() => import('./graph-view').then((file) => file.Graph)),
  timeline: late<InTab>(() => import('./timeline').then((file) => file.Timeline)),
  journal: late<InTab>(() => import('./journal').then((file) => file.Journal)),
  values: late<InTab>(() => import('./values').then((file) => file.Values)),
  definition: late<InTab>(() => import('./definition').then((file) => file.Definition)),
};
const DoPanel = late<DoProps>(() => import('./do').then((file) => file.DoPanel));
const SubmitPanel = late<DoProps>(() => import('./submit').then((file) => file.SubmitPanel));

export function RunPage({ params }: PageProps): JSX.Element {
  const run = params.run!;
  const { query } = usePlace();
  const at = query.get('at') ?? '';
  const view = useRun(run, at);
  const { steps } = useSteps(run, at);
  const now = useNow();
  const last = useRef<RunView | undefined>(undefined);
  last.current = view.data ?? (view.error ? undefined : last.current);
  const moment = last.current?.as_of ? instant(last.current.as_of.at) : now;
  const rows = useMemo(() => rowsOf(steps ?? [], moment), [steps, moment]);
  const tab = tabOf(params, query.get('tab'));
  const live = useStore(isLive);
  const data = last.current;
  useEffect(() => {
    if (!data?.project?.hint) enter(data?.project?.id);
  }, [data?.project?.id]);
  const tabs = useRef<HTMLElement>(null);
  const actions = data?.actions ?? [];
  /** Step through the run's events; the newest is now. */
  const scrub = (by: number): void => {
    const newest = data?.as_of?.of ?? data?.n ?? 0;
    const next = (Number(at) || newest) + by;
    if (newest && next > 0 && view.data) go(withQuery({ at: next < newest ? String(next) : undefined }), true);
  };
  const may = (action: string): boolean => live && actions.some((one) => one.action === action);
  const open = (action: string) => () => {
    if (may(action)) go(actionHref(run, action, actions.find((one) => one.action === action)?.step));
  };
  useKeys({
    ...Object.fromEntries(TABS.map((name, index) => [String(index + 1), () => go(tabHref(run, name))])),
    r: open('retry'),
    u: open('compensate'),
    p: () => (may('pause') ? open('pause')() : open('resume')()),
    e: () => {
      const asked = data?.waiting_for?.find((one) => one.kind === 'approval' || one.kind === 'confirmation');
      if (asked) go(`/approvals/${enc(run)}/${enc(asked.step)}`);
    },
    y: () => void copyText(location.origin + location.pathname, 'Link copied'),
    ',': () => scrub(-1),
    ';': () => scrub(1),
    Escape: () => {
      if (params.step || params.action) go(tabHref(run, tab));
      else if (at) go(withQuery({ at: undefined }), true);
    },
  });
  useCommands(data ? commandsOf(run, actions, runName(data)) : []);

  // On a phone the last ones are beside the screen.
  useEffect(() => {
    const bar = tabs.current;
    const here = bar?.querySelector<HTMLElement>('[aria-current]');
    if (bar && here) bar.scrollLeft = here.offsetLeft + here.offsetWidth - bar.clientWidth + 24;
  }, [tab, !data]);
  useEffect(() => fetchSoon([LATE.graph, LATE.timeline, LATE.journal, DoPanel]), []);
  const name = data ? runName(data) : run;
  const crumbs = [{ word: 'Runs', href: '/runs' }, ...(data ? [{ word: data.name || data.workflow, href: `/runs?workflow=${encodeURIComponent(workflowId(data.workflow))}` }] : []), { word: data?.label || run }];
  if (!data) {
    return (
      <Shell crumbs={crumbs} title={run}>
        {view.error?.status === 404 && !at ? <NoRun run={run} hint={view.error.problem.hint} /> : <NoAnswer {...view} rows={8} />}
      </Shell>
    );
  }
  const Decide = params.action === 'submit' ? SubmitPanel : DoPanel;
  const panel = params.action ? (
    <Decide run={run} view={data} rows={rows} action={params.action} step={query.get('step') ?? ''} tab={tab} />
  ) : params.step ? (
    <StepPanel key={params.step} run={run} step={params.step} rows={rows} tab={tab} />
  ) : null;
  return (
    <Shell crumbs={crumbs} title={`${name}: ${runLook(data.status, waitingKind(data)).word}`} flush>
      {data.as_of ? <Moment moment={data.as_of} scrub={scrub} /> : null}
      <Header run={run} view={data} rows={rows} name={name} tab={tab} />
      <nav class="tabs" aria-label="Of this run" ref={tabs}>
        {TABS.map((one) => (
          <a key={one} href={tabHref(run, one)} aria-current={one === tab ? 'page' : undefined}>
            {WORDS[one]}
            {one === 'steps' && rows.length ? <span>{number(rows.length)}</span> : null}
            {one === 'journal' && data.n ? <span>{number(data.n)}</span> : null}
          </a>
        ))}
      </nav>
      {panel ? <h1 class="sr phone">{name}</h1> : null}
      <div class={`run-body${panel ? ' with-panel' : ''}`}>
        <div class="run-tab">
          <Part key={tab}>
            {!steps ? <Bones rows={10} what={data.n ? `${number(data.n)} entries` : ''} /> : <TabBody tab={tab} run={run} view={data} rows={rows} selected={params.step ?? ''} entry={params.entry} at={at && `?at=${at}`} />}
          </Part>
        </div>
        {panel ? (
          <aside class="panel" aria-label={params.action ? 'Decide' : 'Step'}>
            <Part key={params.action ?? params.step}>{panel}</Part>
          </aside>
        ) : null}
      </div>
    </Shell>
  );
}

function TabBody(props: TabProps & { tab: Tab; entry?: string }): JSX.Element {
  const { tab, ...rest } = props;
  if (tab === 'steps') return <StepList {...rest} many={props.rows.length > MANY} />;
  const Shown = LATE[tab];
  return <Shown {...rest} />;
}

function tabOf(params: Record<string, string>, asked: string | null): Tab {
  if (params.entry) return 'journal';
  if (params.other) return 'values';
  const wanted = params.tab ?? asked ?? 'steps';
  return (TABS as readonly string[]).includes(wanted) ? (wanted as Tab) : 'steps';
}

/** The run is shown as it was: of when, and the way back. */
function Moment({ moment, scrub }: { moment: AsOf; scrub: (by: number) => void }): JSX.Element {
  return (
    <div class="banner moment" role="status">
      <Icon name="clock" />
      <p class="grow">
        <b>
          As of entry {number(moment.n)} of {number(moment.of)}, {clock(moment.at)}
        </b>{' '}
        <span class="c-2">{moment.text}</span>
      </p>
      <Button small kbd="," disabled={moment.n < 2} onClick={() => scrub(-1)}>
        Back
      </Button>
      <Button small kbd=";" onClick={() => scrub(1)}>
        Forward
      </Button>
      <Button small kind="primary" kbd="esc" onClick={() => go(withQuery({ at: undefined }), true)}>
        Back to now
      </Button>
    </div>
  );
}

function NoRun({ run, hint }: { run: string; hint?: string }): JSX.Element {
  // Only one that is nearly the same: any other would be a guess.
  const near = /^did you mean .*?(run_[a-z0-9]+)/.exec(hint ?? '')?.[1];
  return (
    <Empty
      whole
      title={`No run ${run}`}
      actions={
        <>
          {near ? (
            <Button kind="primary" href={`/runs/${near}`}>
              Open {near}
            </Button>
          ) : null}
          <Button href="/runs">All runs</Button>
        </>
      }
    >
      {near ? capital(hint!) : 'It is not in the journal of this server.'}
    </Empty>
  );
}
