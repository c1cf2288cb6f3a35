/** Submit a step by hand: what was asked, a form for what is to come back, the same checks as for an agent, and the receipt. */
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { newKey, Refused, useRead, write } from '../../core/api';
import type { Finding, Guided, StepDetail } from '../../core/contract';
import { mod, useKeys } from '../../core/keys';
import { isLive } from '../../core/live';
import { enc, go } from '../../core/router';
import { useStore } from '../../core/store';
import { count, listed, number } from '../../core/words';
import { NoAnswer } from '../../frame/shell';
import { Fields, filled, type Schema } from '../../kit/form';
import { Icon } from '../../kit/icons';
import { Button, toast } from '../../kit/kit';
import { NotDone, type DoProps } from './do';
import { runPath, tabHref } from './model';

export function SubmitPanel({ run, rows, step, tab }: DoProps): JSX.Element {
  const detail = useRead<StepDetail>(runPath(run, `/steps/${enc(step)}`), { run });
  const [values, setValues] = useState<Record<string, unknown>>({});
  const [note, setNote] = useState('');
  const [busy, setBusy] = useState(false);
  const [findings, setFindings] = useState<readonly Finding[]>([]);
  const [refused, setRefused] = useState<Refused | null>(null);
  const key = useRef({ of: '', key: '' });
  const live = useStore(isLive);
  const asked = (detail.data?.definition ?? {}) as { prompt?: string; output?: Schema; confirm?: unknown; checks?: readonly { rule: string }[] };
  // What has no names of its own is typed as one value.
  const schema: Schema = asked.output?.properties ? asked.output : { properties: { output: asked.output ?? { type: 'object' } }, required: asked.output ? ['output'] : [] };
  const given = filled(schema, values);
  const missing = (schema.required ?? []).filter((name) => given[name] === undefined);
  const isReady = live && !busy && !!detail.data && !missing.length && (!asked.confirm || !!note.trim());
  const send = async (): Promise<void> => {
    if (!isReady) return;
    const body = { step, output: asked.output?.properties ? given : given.output ?? {}, note: note.trim(), confirmed: !!asked.confirm };
    const same = JSON.stringify(body);
    if (key.current.of !== same) key.current = { of: same, key: newKey() };
    setBusy(true);
    setRefused(null);
    try {
      const done = await write<Guided>(runPath(run, '/submit'), body, key.current.key);
      setFindings(done.accepted ? [] : (done.findings ?? []));
      if (!done.accepted) key.current = { of: '', key: '' };
      const entry = Number((done.receipt ?? '').split(':')[0]);
      toast({ text: done.accepted ? 'Accepted.' : 'Not accepted.', bad: !done.accepted, href: entry ? `/runs/${enc(run)}/journal/${entry}` : undefined, link: `Entry ${number(entry)}` });
      if (done.accepted) go(tabHref(run, tab));
    } catch (error) {
      setRefused(error instanceof Refused ? error : new Refused({ detail: String(error) }));
    }
    setBusy(false);
  };
  useKeys({ 'mod+Enter': () => void send() });
  return (
    <>
      <header>
        <div class="grow">
          <h2>Submit “{rows.find((row) => row.step.id === step)?.title ?? step}”</h2>
          <p class="meta">What you submit is checked like an agent’s{asked.checks?.length ? `, by ${listed(asked.checks.map((one) => one.rule))}` : ''}, and goes into the journal.</p>
        </div>
        <Button kind="quiet" small icon="close" label="Not now" href={tabHref(run, tab)} />
      </header>
      {detail.data ? <p class="box">{typeof detail.data.input === 'string' ? detail.data.input : asked.prompt}</p> : <NoAnswer whole={false} {...detail} rows={4} />}
      <form
        style={{ marginTop: '16px' }}
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Fields schema={schema} values={values} onChange={setValues} />
        <div class="field">
          <label for="note">
            Note <span>{asked.confirm ? '(required: this step wants a person to agree)' : '(optional)'}</span>
          </label>
          <textarea id="note" rows={2} maxLength={2000} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
        </div>
        {findings.length ? (
          <div class="said-no" role="alert">
            <Icon name="failed" tone="bad" />
            <div class="grow">
              <b>Not accepted: {count(findings.length, 'finding')}.</b>
              {findings.slice(0, 20).map((one) => (
                <p key={one.where + one.message}>
                  {one.rule}: {one.message} {one.fix}
                </p>
              ))}
            </div>
          </div>
        ) : null}
        {refused ? <NotDone refused={refused} word="Submitting" run={run} /> : null}
        <div class="acts">
          <Button type="submit" kind="primary" kbd={`${mod} ↵`} disabled={!isReady}>
            {busy ? 'Sending…' : 'Submit'}
          </Button>
          <Button href={tabHref(run, tab)}>Not now</Button>
        </div>
      </form>
    </>
  );
}
