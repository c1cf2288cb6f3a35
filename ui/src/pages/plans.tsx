/** Plans: what agents and people have written down for one task, version by version; what would stand in the way; start one. */
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { newKey, Refused, useRead, write } from '../core/api';
import type { Checked, Done, PlanPage, PlanView } from '../core/contract';
import { isLive } from '../core/live';
import { enc, go, usePlace, withQuery } from '../core/router';
import { runHref } from '../core/runs';
import { useStore } from '../core/store';
import { actor, count, number, shell, short } from '../core/words';
import { NoAnswer, Shell } from '../frame/shell';
import { Icon } from '../kit/icons';
import { Button, Empty, Find, Time, Twin, toast } from '../kit/kit';
import { Source, yaml } from '../kit/source';
import type { PageProps } from '../routes';

export function PlansPage({ params }: PageProps): JSX.Element {
  const { query } = usePlace();
  const find = query.get('q') ?? '';
  const retired = query.get('retired') === '1';
  const asked = new URLSearchParams({ ...(find ? { q: find } : {}), ...(retired ? { retired: '1' } : {}) });
  const list = useRead<PlanPage>(asked.size ? `/plans?${asked}` : '/plans', { all: true });
  const plans = list.data?.plans ?? [];
  const chosen = params.plan ?? '';
  return (
    <Shell crumbs={chosen ? [{ word: 'Plans', href: '/plans' }, { word: chosen }] : [{ word: 'Plans' }]} title={chosen || 'Plans'} actions={<span class="meta">{list.data ? count(list.data.total ?? plans.length, 'plan') : ''}</span>} flush>
      <div class={`split${chosen ? ' chosen' : ''}`}>
        <div class="split-list">
          {chosen ? null : <h1 class="sr">Plans</h1>}
          <Find value={find} label="Find a plan" onInput={(text) => go(withQuery({ q: text }), true)} />
          {list.data ? null : <NoAnswer whole={false} {...list} />}
          <nav aria-label="Plans">
            {plans.map((one) => (
              <a class="pick" key={one.id} href={`/plans/${enc(one.id)}`} aria-current={one.id === chosen ? 'true' : undefined}>
                <Icon name="plans" tone="2" />
                <div class="grow">
                  <p class="title">{one.name}</p>
                  <p class="meta">
                    version {number(one.version)} · {count(one.steps, 'step')} · <Time at={one.saved} />
                  </p>
                  {one.retired ? <p class="meta c-wait">no longer offered: {one.retired}</p> : null}
                </div>
              </a>
            ))}
          </nav>
          <p style={{ padding: '8px 10px' }}>
            <a class="link" href={withQuery({ retired: retired ? undefined : '1' })}>
              {retired ? 'Only plans that are offered' : 'Also plans no longer offered'}
            </a>
          </p>
        </div>
        <div class="split-main">
          {chosen ? (
            <Plan key={chosen} id={chosen} version={query.get('version') ?? ''} />
          ) : (
            <Empty icon="plans" title={list.data && !plans.length ? 'No plans yet' : 'Choose a plan'}>
              An agent saves a plan when it writes down what it is about to do; handrail checks it first. On the command line: handrail plan save FILE.
            </Empty>
          )}
        </div>
      </div>
    </Shell>
  );
}

function Plan({ id, version }: { id: string; version: string }): JSX.Element {
  const given = useRead<PlanView>(`/plans/${enc(id)}${version ? `?version=${version}` : ''}`, { all: true });
  const data = given.data;
  const [checked, setChecked] = useState<Checked | null>(null);
  const [state, setState] = useState('');
  const [refused, setRefused] = useState<Refused | null>(null);
  const key = useRef(newKey());
  const live = useStore(isLive);
  if (!data) return <NoAnswer {...given} rows={8} />;
  const attempt = async (word: string, work: () => Promise<void>): Promise<void> => {
    setState(word);
    setRefused(null);
    try {
      await work();
    } catch (error) {
      setRefused(error instanceof Refused ? error : new Refused({ detail: String(error) }));
    }
    setState('');
  };
  const start = (): Promise<void> =>
    attempt('start', async () => {
      const done = await write<Done>('/runs', { plan: data.id }, key.current);
      toast({ text: 'Started.' });
      go(runHref(done.run));
    });
  const check = (): Promise<void> => attempt('check', async () => setChecked(await write<Checked>('/plans/check', { definition: data.definition }, newKey())));
  const name = String(data.definition.name ?? data.id);
  const titles = new Map(((data.definition.steps ?? []) as { id: string; title?: string }[]).map((one) => [one.id, one.title ?? '']));
  return (
    <article>
      <div class="row wrap">
        <h1 class="grow">{name}</h1>
        <Button small onClick={() => void check()} disabled={!!state}>
          {state === 'check' ? 'Checking…' : 'Check it'}
        </Button>
        <Button small kind="primary" icon="play" onClick={() => void start()} disabled={!live || !!state || !!data.retired}>
          {state === 'start' ? 'Sending…' : 'Start'}
        </Button>
      </div>
      <p class="meta">
        {data.id} · version {number(data.version)}
        {data.versions.length > 1 ? ` of ${number(data.versions.length)}` : ''}
        {data.retired ? ` · no longer offered: ${data.retired}` : ''}
      </p>
      {refused ? (
        <div class="said-no" role="alert">
          <Icon name="failed" tone="bad" />
          <p class="grow">
            <b>That did not happen.</b> {refused.message} {refused.problem.hint}
          </p>
        </div>
      ) : null}
      {checked ? (
        <div class="card" style={{ margin: '12px 0' }}>
          <p class="pad labelled">
            <Icon name={checked.valid ? 'completed' : 'failed'} tone={checked.valid ? 'ok' : 'bad'} />
            <b>{checked.valid ? 'It can be run' : 'It cannot be run yet'}</b>
          </p>
          {(checked.findings ?? []).map((one) => (
            <p class="line pad" key={one.where + one.message}>
              <b>{one.severity}</b> {one.where}: {one.message} <span class="c-2">{one.fix}</span>
            </p>
          ))}
        </div>
      ) : null}
      <h2>Steps, in waves</h2>
      <div class="card">
        {(data.waves ?? []).map((wave, index) => (
          <p class="line wave row" key={index}>
            <span class="c-3 num">{number(index + 1)}</span>
            <span class="row wrap">
              {wave.map((step) => (
                <span key={step}>
                  {titles.get(step)} <code class="c-3">{step}</code>
                </span>
              ))}
            </span>
          </p>
        ))}
      </div>
      <h2>Versions</h2>
      <div class="card grid-wrap">
        <table class="table">
          <thead>
            <tr>
              <th>Version</th>
              <th>Saved</th>
              <th>By</th>
              <th class="num">Steps</th>
              <th>Note</th>
              <th>Content</th>
            </tr>
          </thead>
          <tbody>
            {data.versions.map((one) => (
              <tr key={one.number}>
                <td>
                  <a href={withQuery({ version: String(one.number) })} aria-current={one.number === data.version ? 'true' : undefined}>
                    {number(one.number)}
                    {one.number === data.version ? ' (shown)' : ''}
                  </a>
                </td>
                <td>
                  <Time at={one.saved} />
                </td>
                <td>{actor(one.by)}</td>
                <td class="num">{one.steps ?? ''}</td>
                <td>{one.note}</td>
                <td>
                  <code>{short(one.hash, 16)}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Definition</h2>
      <Source text={yaml(data.definition)} />
      <div style={{ marginTop: '12px' }}>
        <Twin command={`handrail run start ${shell(data.id)}`} label="Copy as CLI" />
      </div>
    </article>
  );
}
