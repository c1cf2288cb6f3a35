/** What a person is asked. Answered here only where the owner of this handrail lets answers in this window count;
 * otherwise it says where a person answers. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { enc } from '../core/router';
import { actor, count, listed, number, short } from '../core/words';
import { Fields, filled, type Schema } from '../kit/form';
import { Icon } from '../kit/icons';
import { Button, Time, Twin } from '../kit/kit';
import { Effects } from '../pages/effects';
import { answer, type AppRun, type Card } from './follow';

export function Question({ run, card, open }: { run: AppRun; card: Card; open: (path: string) => void }): JSX.Element {
  /** What the reader saw first: if the question changes, the card says so and waits until it was read. */
  const seen = useRef(card.digest);
  const [changed, setChanged] = useState(false);
  useEffect(() => setChanged(seen.current !== card.digest), [card.digest]);
  return (
    <article class="approval">
      <h2 class="question">{card.text || card.step}</h2>
      <p class="meta">
        “{card.step}” asked <Time at={card.since} />
        {card.by?.length ? ` · for ${listed(card.by.map(actor))}` : ''}
        {card.expires ? (
          <>
            {' '}
            · expires <Time at={card.expires} />
          </>
        ) : null}
        {(card.approvals ?? 1) > 1 ? ` · ${number(card.approved_by?.length ?? 0)} of ${count(card.approvals!, 'person', 'people')} said yes` : ''}
      </p>
      <h3>What a yes lets happen</h3>
      <Effects asked={card} />
      <div class="bound">
        <Icon name="lock" />
        <div class="grow">
          <p>
            <b>An answer is bound to exactly this.</b> If the text, inputs or steps change, it does not count.
          </p>
          <code title={card.digest}>{card.digest}</code>
        </div>
      </div>
      {changed ? (
        <div class="said-no" role="alert">
          <Icon name="warning" tone="bad" />
          <p class="grow">
            <b>The question has changed while you looked.</b> It was {short(seen.current)}, it is {short(card.digest)} now. Read it again.
          </p>
          <Button
            small
            onClick={() => {
              seen.current = card.digest;
              setChanged(false);
            }}
          >
            I have read it
          </Button>
        </div>
      ) : null}
      {card.card ? <Answer run={run.run} card={card} blocked={changed} /> : <Elsewhere run={run} card={card} open={open} />}
    </article>
  );
}

function Elsewhere({ run, card, open }: { run: AppRun; card: Card; open: (path: string) => void }): JSX.Element {
  return (
    <div class="reply">
      <div class="bound">
        <Icon name="person" />
        <div class="grow">
          <p>
            <b>A person answers this, but not in this window.</b>
          </p>
          <p class="meta">{card.why_not}</p>
        </div>
      </div>
      <div class="row wrap">
        {run.console ? (
          <Button kind="primary" icon="link" onClick={() => open(`/approvals/${enc(run.run)}/${enc(card.step)}`)}>
            Answer in the console
          </Button>
        ) : null}
        <span class="meta">{run.console ? 'Or at a terminal:' : 'At a terminal:'}</span>
      </div>
      <Twin command={card.command} />
    </div>
  );
}

/** No form element: a window without the right to send forms would stop it. */
function Answer({ run, card, blocked }: { run: string; card: Card; blocked: boolean }): JSX.Element {
  const [reason, setReason] = useState('');
  const [values, setValues] = useState<Record<string, unknown>>({});
  const [sending, setSending] = useState<'' | 'approve' | 'reject'>('');
  const [refused, setRefused] = useState('');
  const schema = card.schema as Schema | undefined;
  const isReady = !blocked && !sending && !!reason.trim();
  const send = async (action: 'approve' | 'reject'): Promise<void> => {
    setSending(action);
    setRefused('');
    setRefused(await answer(run, card, action, reason.trim(), schema && action === 'approve' ? filled(schema, values) : undefined));
    setSending('');
  };
  return (
    <div class="reply">
      {schema?.properties ? <Fields schema={schema} values={values} onChange={setValues} /> : null}
      <div class="field">
        <label for={`reason-${card.step}`}>
          Reason <span>(required, goes into the journal)</span>
        </label>
        <textarea id={`reason-${card.step}`} rows={2} maxLength={2000} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </div>
      {refused ? (
        <div class="said-no" role="alert">
          <Icon name="failed" tone="bad" />
          <p class="grow">
            <b>Your answer does not count.</b> {refused}
          </p>
        </div>
      ) : null}
      <div class="row wrap">
        <Button kind="primary" icon="approvals" disabled={!isReady} onClick={() => void send('approve')}>
          {sending === 'approve' ? 'Sending…' : 'Approve'}
        </Button>
        <Button kind="danger" disabled={!isReady} onClick={() => void send('reject')}>
          {sending === 'reject' ? 'Sending…' : 'Reject'}
        </Button>
        <span class="meta grow">Rejecting undoes nothing by itself.</span>
      </div>
    </div>
  );
}
