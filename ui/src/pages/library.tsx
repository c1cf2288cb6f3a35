/** The library: what each workflow is for, its steps, how well it goes, and a form to start it. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { newKey, Refused, useRead, write } from '../core/api';
import type { Done, LibraryPage as Library, RunLine, WorkflowSummary, WorkflowView } from '../core/contract';
import { mod, useKeys } from '../core/keys';
import { isLive } from '../core/live';
import { enc, go, usePlace, withQuery } from '../core/router';
import { lookOf, runHref, runName } from '../core/runs';
import { useStore } from '../core/store';
import { count, duration, instant, number, shell } from '../core/words';
import { NoAnswer, Shell } from '../frame/shell';
import { Flow } from '../kit/flow';
import { Fields, filled, type Schema } from '../kit/form';
import { Icon } from '../kit/icons';
import { Bar, Button, Empty, Find, StateIcon, Time, Twin, copyText, toast } from '../kit/kit';
import { Value } from '../kit/value';
import type { PageProps } from '../routes';
import { useStepsOf } from './run/model';

/** What people wrote for this project and what was run here come before what is built in. */
const ownFirst = (list: readonly WorkflowSummary[]): readonly WorkflowSummary[] => {
  const rank = (one: WorkflowSummary): number => (one.source === 'project' ? 0 : one.runs ? 1 : 2);
  return [...list].sort((a, b) => rank(a) - rank(b));
};

const hrefOf = (id: string): string => `/library/${enc(id)}`;

export function LibraryPage({ params }: PageProps): JSX.Element {
  const { query } = usePlace();
  const find = query.get('q') ?? '';
  const all = useRead<Library>('/library');
  const found = useRead<Library>(find ? `/library?limit=50&q=${encodeURIComponent(find)}` : null);
  const list = find ? (found.data ?? all.data)?.workflows ?? [] : ownFirst(all.data?.workflows ?? []);
  const chosen = (params.workflow ?? '').replace(/\/start$/, '');
  const starts = (params.workflow ?? '').endsWith('/start');
  const first = list[0]?.id;
  useEffect(() => {
    if (!chosen && first && innerWidth > 900) go(hrefOf(first) + location.search, true);
  }, [chosen, first]);
  const move = (by: number): void => {
    const at = list.findIndex((one) => one.id === chosen.replace(/@.*/, ''));
    const next = list[Math.max(0, Math.min(list.length - 1, at + by))];
    if (next) go(hrefOf(next.id) + location.search, true);
  };
  useKeys({ j: () => move(1), k: () => move(-1), s: () => document.querySelector<HTMLElement>('.start-form input, .start-form textarea, .start-form button')?.focus() });
  const name = all.data?.workflows?.find((one) => one.id === chosen.replace(/@.*/, ''))?.name ?? chosen;
  return (
    <Shell crumbs={chosen ? [{ word: 'Library', href: '/library' }, { word: name }] : [{ word: 'Library' }]} title={chosen ? `${name}, a workflow` : 'Library'} actions={<span class="meta">{all.data?.total ? count(all.data.total, 'workflow') : ''}</span>} flush>
      <div class={`split${chosen ? ' chosen' : ''}`}>
        <div class="split-list">
          {chosen ? null : <h1 class="sr">Library</h1>}
          <Find value={find} label="Find a workflow" onInput={(text) => go(withQuery({ q: text }), true)} />
          {all.data ? null : <NoAnswer whole={false} {...all} rows={10} />}
          <nav aria-label="Workflows">
            {list.map((one) => (
              <Pick key={one.id} one={one} chosen={one.id === chosen.replace(/@.*/, '')} />
            ))}
          </nav>
          {all.data && !list.length ? <Empty title="No workflow matches">{find}</Empty> : null}
          {(all.data?.broken ?? []).map((one) => (
            <p class="pick" key={one.file}>
              <Icon name="warning" tone="wait" />
              <span class="grow meta">
                {one.file} can’t be read: {one.message}
              </span>
            </p>
          ))}
        </div>
        <div class="split-main">{chosen ? <Workflow key={chosen} id={chosen} starts={starts} /> : <Empty icon="library" title="Choose a workflow">What it is for, its steps and a form to start it stand here.</Empty>}</div>
      </div>
    </Shell>
  );
}

/** Rates of few runs are counts. */
const rate = (good: number, all: number): string => (all < 5 ? `${number(good)} of ${number(all)}` : `${Math.round((good / all) * 100)}%`);

function Pick({ one, chosen }: { one: WorkflowSummary; chosen: boolean }): JSX.Element {
  const runs = one.runs ?? 0;
  const ended = one.ended ?? 0;
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (chosen) link.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <a class="pick" ref={link} href={hrefOf(one.id) + location.search} aria-current={chosen ? 'true' : undefined}>
      <div class="grow">
        <p class="title">{one.name}</p>
        <p class="meta">
          {one.category ? `${one.category} · ` : ''}
          {count(one.steps, 'step')}
        </p>
      </div>
      <p class="meta num">
        {runs ? (
          <>
            {count(runs, 'run')}
            <br />
            {ended ? `${rate(one.completed ?? 0, ended)} completed` : 'none ended'}
          </>
        ) : (
          'not run yet'
        )}
      </p>
    </a>
  );
}

function Workflow({ id, starts }: { id: string; starts: boolean }): JSX.Element {
  const given = useRead<WorkflowView>(`/library/${enc(id)}`);
  const [source, setSource] = useState(false);
  const data = given.data;
  if (!data) return <NoAnswer {...given} rows={8} />;
  const stops = (data.findings ?? []).filter((one) => one.severity === 'critical' || one.severity === 'major');
  return (
    <article>
      <div class="row wrap">
        <h1 class="grow">{data.name}</h1>
        <Button small onClick={() => setSource(!source)}>
          {source ? 'Hide source' : 'View source'}
        </Button>
      </div>
      <p class="meta">
        {[data.id, data.version, data.source, data.license].filter(Boolean).join(' · ')}
        {data.file ? <span class="mono"> · {data.file}</span> : null}
      </p>
      <p style={{ margin: '6px 0 14px', maxWidth: '80ch' }}>{data.description}</p>
      {data.graph?.nodes?.length ? <Flow graph={data.graph} /> : null}
      {source ? (
        <div style={{ marginTop: '14px' }}>
          <Value value={data.definition} />
        </div>
      ) : null}
      <div class="two" style={{ marginTop: '4px' }}>
        <Start key={data.id} data={data} focus={starts} blocked={stops.map((one) => one.message)} />
        <aside>
          <Figures data={data} />
        </aside>
      </div>
    </article>
  );
}

const schemaOf = (inputs: Record<string, Schema>): Schema => ({ type: 'object', properties: inputs, required: Object.keys(inputs).filter((name) => inputs[name]!.default === undefined) });

function Start({ data, focus, blocked }: { data: WorkflowView; focus: boolean; blocked: readonly string[] }): JSX.Element {
  const schema = schemaOf((data.inputs ?? {}) as Record<string, Schema>);
  const [values, setValues] = useState<Record<string, unknown>>({});
  const [goal, setGoal] = useState('');
  const [state, setState] = useState<'' | 'sending' | 'late'>('');
  const [refused, setRefused] = useState<Refused | null>(null);
  const key = useRef({ of: '', key: '' });
  const form = useRef<HTMLFormElement>(null);
  const live = useStore(isLive);
  useEffect(() => {
    if (focus) form.current?.querySelector<HTMLElement>('input, textarea, button')?.focus();
  }, [focus]);
  const inputs = filled(schema, values);
  const missing = (schema.required ?? []).filter((name) => inputs[name] === undefined);
  const isReady = live && !missing.length && !state;
  const send = async (): Promise<void> => {
    if (!isReady) return;
    const body = { workflow: data.id, inputs, ...(goal ? { goal } : {}) };
    const same = JSON.stringify(body);
    if (key.current.of !== same) key.current = { of: same, key: newKey() };
    setState('sending');
    setRefused(null);
    try {
      const done = await write<Done>('/runs', body, key.current.key, () => setState('late'));
      toast({ text: `Started ${data.name}.` });
      go(runHref(done.run));
    } catch (error) {
      setState('');
      setRefused(error instanceof Refused ? error : new Refused({ detail: String(error) }));
    }
  };
  useKeys({ 'mod+Enter': () => void send() });
  const words = Object.entries(inputs).map(([name, value]) => `-i ${shell(`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)}`);
  const command = ['handrail run start', shell(data.id), ...(words.length ? words : missing.map((name) => `-i ${name}=…`)), ...(goal ? ['--goal', shell(goal)] : [])].join(' ');
  return (
    <form
      class="start-form"
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <h2>Start it</h2>
      {data.preconditions?.length ? <p class="meta" style={{ marginBottom: '8px' }}>Before you start: {data.preconditions.join(' ')}</p> : null}
      <Fields schema={schema} values={values} onChange={setValues} />
      <div class="field" style={{ marginBottom: '12px' }}>
        <label for="goal">
          What it is for <span>goal, optional</span>
        </label>
        <input id="goal" type="text" maxLength={300} value={goal} onInput={(event) => setGoal(event.currentTarget.value)} />
      </div>
      {refused ? (
        <div class="said-no" role="alert">
          <Icon name="failed" tone="bad" />
          <div class="grow">
            <p>
              <b>It was not started.</b> {refused.message} {refused.problem.hint}
            </p>
            {(refused.problem.findings ?? []).slice(0, 8).map((one) => (
              <p class="meta" key={one.where + one.message}>
                {one.where}: {one.message} {one.fix}
              </p>
            ))}
          </div>
        </div>
      ) : null}
      {blocked.length ? <p class="meta c-wait">Stands in the way here: {blocked.slice(0, 3).join('; ')}</p> : null}
      <div class="row wrap" style={{ margin: '12px 0' }}>
        <Button type="submit" kind="primary" icon="play" kbd={`${mod} ↵`} disabled={!isReady}>
          {state ? 'Sending…' : 'Start'}
        </Button>
        <Button onClick={() => void copyText(`Use handrail to run the workflow ${data.id}.`, 'Copied: paste it into your agent')}>Copy line for your agent</Button>
        <span class="meta">{missing.length ? `${count(missing.length, 'input')} missing: ${missing.join(', ')}` : state === 'late' ? 'handrail has not answered yet; it is safe to wait.' : live ? '' : 'Actions are back when the page is live.'}</span>
      </div>
      <Twin command={command} label="Copy as CLI" />
    </form>
  );
}

const PROOFS = [
  ['verified', 'ok'],
  ['checked', 'wait'],
  ['claimed', 'off'],
] as const;
const COMPARED = 8;

/** By step that an agent does: how its results are known, in the latest runs. */
function Known({ runs }: { runs: readonly RunLine[] }): JSX.Element | null {
  const latest = useMemo(() => runs.slice(0, COMPARED), [runs]);
  const steps = useStepsOf(latest);
  const by = new Map<string, string[]>();
  for (const step of [...steps.values()].flat()) {
    if (step.kind !== 'prompt' || step.status !== 'completed' || !step.proof) continue;
    const name = (step.title || step.id).replace(/\[\d+\]/g, '');
    by.set(name, [...(by.get(name) ?? []), step.proof]);
  }
  if (!by.size) return null;
  return (
    <>
      <h2>How it is known</h2>
      {[...by].slice(0, 20).map(([name, proofs]) => {
        const parts = PROOFS.map(([proof, tone]) => ({ proof, tone, held: proofs.filter((one) => one === proof).length })).filter((one) => one.held);
        const words = parts.map((one) => `${number(one.held)} ${one.proof}`).join(', ');
        return (
          <div class="hbar" key={name} style={{ gridTemplateColumns: 'minmax(0, 1fr) 40px 76px' }}>
            <span class="cut" title={name}>
              {name}
            </span>
            <Bar label={words} parts={parts.map((one) => ({ tone: one.tone, share: one.held / proofs.length }))} />
            <span class="meta">{words}</span>
          </div>
        );
      })}
      <p class="meta">verified: handrail looked at the world · checked: only at its form · claimed: not looked at</p>
    </>
  );
}

function Figures({ data }: { data: WorkflowView }): JSX.Element {
  const runs = data.runs ?? [];
  const over = runs.filter((run) => run.ended);
  const good = data.completed ?? 0;
  const ended = data.ended ?? 0;
  const times = over.map((run) => instant(run.ended) - instant(run.started)).sort((a, b) => a - b);
  return (
    <>
      <h2>How well it goes</h2>
      {runs.length ? (
        <>
          {ended ? (
            <p class="row">
              <span style={{ flex: 1 }}>
                <Bar label={`${good} of ${ended} completed`} parts={[{ tone: 'ok', share: good / ended }]} />
              </span>
              <span class="num">
                {number(good)} of {number(ended)} completed
              </span>
            </p>
          ) : null}
          {times.length ? <p class="c-2">Half take up to {duration(times[Math.floor((times.length - 1) / 2)])}.</p> : null}
          <ul style={{ marginTop: '8px' }}>
            {runs.slice(0, 8).map((run) => (
              <li class="row" key={run.run} style={{ minHeight: '28px' }}>
                <StateIcon look={lookOf(run)} named size={14} />
                <a class="cut grow" href={runHref(run.run)}>
                  {runName(run)}
                </a>
                <span class="meta">
                  <Time at={run.started} />
                </span>
              </li>
            ))}
          </ul>
          <Known runs={runs} />
          <p style={{ marginTop: '6px' }}>
            <a class="link" href={`/runs?workflow=${encodeURIComponent(data.id)}&view=grid`}>
              Compare them in the grid
            </a>
          </p>
        </>
      ) : (
        <p class="meta">It has not been run here yet.</p>
      )}
      {data.guidance?.length ? (
        <>
          <h2>Rules for the whole run</h2>
          <ul class="c-2 rules">
            {data.guidance.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </>
      ) : null}
    </>
  );
}
