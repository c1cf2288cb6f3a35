/** One run: what it is, why it is where it is, and six ways to look at it. Each tab, step and entry is a URL. */
import type { JSX } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { RunView } from '../../core/contract';
import { useKeys } from '../../core/keys';
import { isLive } from '../../core/live';
import { enc, go, usePlace } from '../../core/router';
import { labelOf, runName, titled, waitingKind } from '../../core/runs';
import { useStore } from '../../core/store';
import { number } from '../../core/words';
import { useCommands } from '../../frame/commands';
import { NoAnswer, Shell } from '../../frame/shell';
import { Bones, Button, Empty, Part, copyText } from '../../kit/kit';
import { fetchSoon, late } from '../../kit/late';
import { useNow } from '../../kit/now';
import type { PageProps } from '../../routes';
import { runLook } from '../../states';
import { actionHref, commandsOf } from './actions';
import { Header } from './header';
import { MANY, rowsOf, stepHref, useFacts, useRun, useSteps, type Row } from './model';
import type { DoProps } from './do';
import { StepPanel } from './panel';
import { StepList } from './steps';

export interface TabProps {
  run: string;
  view: RunView;
  rows: readonly Row[];
  selected: string;
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

export function RunPage({ params }: PageProps): JSX.Element {
  const run = params.run!;
  const { query } = usePlace();
  const view = useRun(run);
  const { steps } = useSteps(run);
  const facts = useFacts(run);
  const now = useNow();
  const rows = useMemo(() => rowsOf(steps ?? [], facts, now), [steps, facts, now]);
  const tab = tabOf(params, query.get('tab'));
  const live = useStore(isLive);
  const data = view.data;
  const actions = data?.actions ?? [];
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
    Escape: () => {
      if (params.step || params.action) go(tabHref(run, tab));
    },
  });
  useCommands(data ? commandsOf(run, actions, runName({ ...data, ...titles(data) })) : []);

  useEffect(() => fetchSoon([LATE.graph, LATE.timeline, LATE.journal, DoPanel]), []);
  const name = data ? runName({ ...data, ...titles(data) }) : run;
  const crumbs = [{ word: 'Runs', href: '/runs' }, ...(data ? [{ word: data.name || titled(data.workflow), href: `/runs?workflow=${encodeURIComponent(data.workflow.replace(/@.*/, ''))}` }] : []), { word: labelOf(data) || run }];
  if (!data) {
    return (
      <Shell crumbs={crumbs} title={run}>
        {view.error?.status === 404 ? <NoRun run={run} hint={view.error.problem.hint} /> : <NoAnswer {...view} rows={8} />}
      </Shell>
    );
  }
  const panel = params.action ? (
    <DoPanel run={run} view={data} rows={rows} action={params.action} step={query.get('step') ?? ''} tab={tab} />
  ) : params.step ? (
    <StepPanel key={params.step} run={run} step={params.step} rows={rows} tab={tab} />
  ) : null;
  return (
    <Shell crumbs={crumbs} title={`${name}: ${runLook(data.status, waitingKind(data)).word}`} flush>
      <Header run={run} view={data} rows={rows} name={name} tab={tab} />
      <nav class="tabs" aria-label="Of this run">
        {TABS.map((one) => (
          <a key={one} href={tabHref(run, one)} aria-current={one === tab ? 'page' : undefined}>
            {WORDS[one]}
            {one === 'steps' && rows.length ? <span>{number(rows.length)}</span> : null}
            {one === 'journal' && data.n ? <span>{number(data.n)}</span> : null}
          </a>
        ))}
      </nav>
      <div class={`run-body${panel ? ' with-panel' : ''}`}>
        <div class="run-tab">
          <Part key={tab}>
            {!steps ? <Bones rows={10} what={data.n ? `${number(data.n)} entries` : ''} /> : <TabBody tab={tab} run={run} view={data} rows={rows} selected={params.step ?? ''} entry={params.entry} />}
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

export const tabHref = (run: string, tab: Tab | string): string => `/runs/${enc(run)}${tab === 'steps' ? '' : `/${tab}`}`;
export const openStep = (run: string, step: string, tab: string): void => go(stepHref(run, step, tab === 'steps' ? '' : `?tab=${tab}`));

const titles = (view: RunView): { name?: string; label?: string } => ({ name: view.name || undefined, label: labelOf(view) || undefined });

function NoRun({ run, hint }: { run: string; hint?: string }): JSX.Element {
  const near = /run_[a-z0-9]+/.exec(hint ?? '')?.[0];
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
      {hint}
    </Empty>
  );
}
