/** A run in a client's window: what waits for a person first, then why it is where it is, then its steps. */
import type { JSX } from 'preact';
import { runName } from '../core/runs';
import { useStore } from '../core/store';
import { count, number, said, spaced } from '../core/words';
import { Icon } from '../kit/icons';
import { Button, Empty, Part, Pill, Time, Toasts, Twin, toast } from '../kit/kit';
import { useNow } from '../kit/now';
import { Segments } from '../pages/run/header';
import { rowsOf, type Row, type Step } from '../pages/run/model';
import { Rows } from '../pages/run/steps';
import { runLook } from '../states';
import { openLink } from './bridge';
import { Question } from './card';
import { isFollowing, read, shown, type AppRun, type Shown } from './follow';

const isApproval = document.documentElement.dataset.view === 'approval';

/** Open a page of the console, which is another program: the client asks its user first. */
function openPage(run: AppRun | undefined, path: string): void {
  if (!run?.console) return toast({ text: 'No console is up. Start one with: handrail open' });
  openLink(new URL(path, run.console).href).catch(() => toast({ text: `The client did not open it: ${run.console}`, bad: true }));
}

export function App(): JSX.Element {
  const seen = useStore(shown);
  const open = (path: string): void => openPage(seen.run, path);
  const follow = (event: MouseEvent): void => {
    const path = (event.target as Element | null)?.closest?.('a')?.getAttribute('href');
    if (!path) return;
    event.preventDefault(); // this window has no other pages
    open(path);
  };
  return (
    <main class="app" onClick={follow}>
      <Part>
        <Content seen={seen} open={open} />
      </Part>
      <Toasts />
    </main>
  );
}

function Content({ seen, open }: { seen: Shown; open: (path: string) => void }): JSX.Element {
  if (seen.run) return <Run run={seen.run} seen={seen} open={open} />;
  if (seen.runs) return <Runs seen={seen} />;
  if (seen.problem) {
    return (
      <Empty icon="warning" tone="wait" title="The run can't be shown">
        {seen.problem}
      </Empty>
    );
  }
  return seen.words ? <pre class="words">{seen.words}</pre> : <p class="meta">Waiting for the answer…</p>;
}

function Run({ run, seen, open }: { run: AppRun; seen: Shown; open: (path: string) => void }): JSX.Element {
  const now = useNow();
  const steps = (run.steps ?? []).filter((one): one is Step => typeof one === 'object'); // a long list ends with a note
  const rows = rowsOf(steps, now);
  const hidden = Math.max(0, run.progress.total - steps.length);
  const cards = seen.cards ?? [];
  return (
    <>
      <header class="run-head">
        <div class="row wrap">
          <h1>{runName(run)}</h1>
          <Pill look={runLook(run.status, run.waiting_for?.[0]?.kind)} />
          <div class="grow" />
          {run.console ? (
            <Button small icon="link" onClick={() => open(`/runs/${encodeURIComponent(run.run)}`)}>
              Console
            </Button>
          ) : null}
          <Button small kind="quiet" onClick={() => void read(run.run, true)}>
            Read again
          </Button>
        </div>
        <p class="run-meta">
          <code>{run.run}</code> <span>{run.workflow}</span> {run.started ? <span>started <Time at={run.started} /></span> : null}
        </p>
        {rows.length ? <Segments rows={rows} /> : null}
        <Why run={run} rows={rows} />
        {seen.problem ? <p class="meta c-wait">Not followed any more: {seen.problem}</p> : null}
      </header>
      {cards.map((card) => (
        <Question key={card.step} run={run} card={card} open={open} />
      ))}
      {rows.length && !(isApproval && cards.length) ? <Rows run={run.run} rows={rows} all={rows} selected="" /> : null}
      {hidden && rows.length ? <p class="meta">and {count(hidden, 'more step')}</p> : null}
      {run.console ? null : <Twin command={`handrail open ${run.run}`} />}
      <Live />
    </>
  );
}

const Live = (): JSX.Element | null => (useStore(isFollowing) ? <p class="meta">Read again every few seconds.</p> : null);

const UNDONE = new Set(['compensating', 'compensated', 'compensation_failed']);

interface Failed {
  step: string;
  category?: string | null;
  message?: string;
  attempts?: number;
}

/** What failed: what the run is stuck on, or, once it has ended, the step that failed. */
function failedIn(run: AppRun, rows: readonly Row[]): Failed | undefined {
  const row = rows.find((one) => one.step.status === 'failed');
  return run.failure ?? (row && { ...row.step, step: row.title });
}

function Why({ run, rows }: { run: AppRun; rows: readonly Row[] }): JSX.Element | null {
  const failure = failedIn(run, rows);
  const waits = (run.waiting_for ?? []).filter((one) => one.kind === 'agent' || one.kind === 'confirmation');
  const isUndone = UNDONE.has(run.status) && !!run.reason;
  if (!failure && !waits.length && !isUndone && !run.not_compensated?.length) return null;
  return (
    <div class="why">
      {failure ? (
        <div class="why-line">
          <Icon name={failure.category ? 'failed' : 'uncertain'} tone={failure.category ? 'bad' : 'unc'} />
          <p class="grow">
            <b>“{failure.step}” {failure.category ? 'failed permanently:' : 'may or may not have happened:'}</b> {said(failure.message).text}{' '}
            <span class="c-3">· {[failure.category && spaced(failure.category), (failure.attempts ?? 1) > 1 ? `tried ${number(failure.attempts!)} times` : 'not retried'].filter(Boolean).join(', ')}</span>
          </p>
        </div>
      ) : null}
      {waits.map((one) => (
        <div class="why-line" key={one.step}>
          <Icon name={one.kind === 'agent' ? 'robot' : 'person'} tone="wait" />
          <p class="grow">
            <b>{one.kind === 'agent' ? 'An agent is to submit' : 'A person is to confirm'} “{one.step}”.</b>
          </p>
        </div>
      ))}
      {isUndone ? (
        <div class="why-line">
          <Icon name={run.status === 'compensating' ? 'undoing' : 'undone'} tone="undo" />
          <p class="grow">
            <b>{run.status === 'compensating' ? 'Undoing:' : 'Undone:'}</b> {run.reason}
          </p>
        </div>
      ) : null}
      {run.not_compensated?.length ? (
        <div class="why-line">
          <Icon name="warning" tone="bad" />
          <p class="grow">
            <b>Not undone:</b> {run.not_compensated.join(', ')}
          </p>
        </div>
      ) : null}
    </div>
  );
}

function Runs({ seen }: { seen: Shown }): JSX.Element {
  const runs = (seen.runs ?? []).filter((one) => typeof one === 'object');
  if (!runs.length) return <Empty icon="completed" tone="ok" title="No open runs" />;
  return (
    <>
      <h1>{count(runs.length, 'open run')}</h1>
      <div class="card">
        {runs.map((one) => (
          <button type="button" class="line pick" key={one.run} onClick={() => void read(one.run, true)}>
            <Pill look={runLook(one.status, one.waiting_for?.[0]?.kind)} />
            <span class="grow cut">{runName(one)}</span>
            <code class="c-3">{one.run}</code>
          </button>
        ))}
      </div>
    </>
  );
}
