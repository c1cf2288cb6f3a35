/** Proof: is this journal intact? The verdict, the chain of checkpoints, who else keeps them, and what this cannot show. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { newKey, Refused, read, useRead, write } from '../core/api';
import type { Account, CheckpointMade, CheckpointView, JournalProof, Verified } from '../core/contract';
import { useKeys } from '../core/keys';
import { isLive } from '../core/live';
import { enc } from '../core/router';
import { useStore } from '../core/store';
import { clock, count, day, duration, number, short } from '../core/words';
import { NoAnswer, Shell } from '../frame/shell';
import { Icon } from '../kit/icons';
import { Bones, Button, Copy, Pill, copyText, toast } from '../kit/kit';
import type { PageProps } from '../routes';
import { RUN, type Look } from '../states';

const INTACT: Look = { word: 'Intact', icon: 'shield', tone: 'ok' };

export function ProofPage({ params }: PageProps): JSX.Element {
  const run = params.run ?? '';
  const path = run ? `/proof/${enc(run)}` : '/journal/verify';
  const verdict = useRead<Verified>(path);
  const proof = useRead<JournalProof>('/proof', { all: true });
  const [busy, setBusy] = useState(false);
  const verify = (): void => {
    setBusy(true);
    read(path).then(
      () => verdict.again(),
      () => verdict.again(),
    ).finally(() => setBusy(false));
  };
  useKeys({ v: verify });
  const data = verdict.data;
  const title = !data ? (verdict.error ? 'The journal could not be checked' : 'Checking the journal') : data.ok ? (run ? `The journal of ${run} is intact` : 'The journal is intact') : 'The journal was changed';
  return (
    <Shell crumbs={run ? [{ word: 'Proof', href: '/proof' }, { word: run }] : [{ word: 'Proof' }]} title={title}>
      <div class="verdict">
        <span class={`mark ${data && !data.ok ? 't-bad c-bad' : data ? 't-ok c-ok' : 't-off c-off'}`}>
          <Icon name={data && !data.ok ? 'failed' : 'shield'} size={22} />
        </span>
        <div class="grow">
          <h1>{title}</h1>
          <p class="c-2">{data ? `${count(data.events, 'event')} in ${count(data.streams, 'stream')}, ${number(data.signed_events)} under ${count(data.checkpoints, 'signed checkpoint')}. Checked ${clock(data.at)}${data.took_ms ? `, took ${duration(data.took_ms)}` : ''}.` : verdict.error ? verdict.error.message : 'Following the chain of every stream, and comparing it with what was signed.'}</p>
          {(data?.notes ?? []).map((note) => (
            <p class="meta" key={note}>
              {note}
            </p>
          ))}
        </div>
        <Button kind="primary" kbd="V" onClick={verify} disabled={busy}>
          {busy ? 'Checking…' : 'Verify again'}
        </Button>
        {run ? (
          <Button href={`/api/v1/journal/bundle/${enc(run)}`} download>
            Export proof
          </Button>
        ) : (
          <Button href="/api/v1/journal/export" download>
            Export journal
          </Button>
        )}
      </div>
      {data && !data.ok ? <Broken data={data} /> : null}
      {run ? (
        <p>
          <a class="link" href={`/runs/${enc(run)}/journal`}>
            Read its journal
          </a>
        </p>
      ) : proof.data ? (
        <Whole proof={proof.data} verdict={data} again={proof.again} />
      ) : (
        <NoAnswer whole={false} {...proof} />
      )}
    </Shell>
  );
}

function Broken({ data }: { data: Verified }): JSX.Element {
  const first = data.first_bad ?? data.breaks?.[0];
  return (
    <div class="card" style={{ marginBottom: '16px' }}>
      <div class="banner bad">
        <Icon name="failed" tone="bad" />
        <p>
          <b>The journal was changed.</b> {first ? `Entry ${first.n} of ${first.stream}: ${first.reason}.` : ''} What it says can’t be relied on until an operator has decided.
        </p>
      </div>
      <div class="pad">
        {(data.breaks ?? []).slice(0, 20).map((one) => (
          <p key={`${one.stream} ${one.n}`}>
            <code>
              {one.stream} {one.n}
            </code>{' '}
            {one.reason}
          </p>
        ))}
        <p class="meta" style={{ marginTop: '8px' }}>
          What to do: keep a copy of HANDRAIL_HOME as it is, compare with a witness, and only then decide with <code>handrail journal verify</code>.
        </p>
      </div>
    </div>
  );
}

const CHANGED: Look = { word: 'Changed', icon: 'failed', tone: 'bad' };

/** Of a journal that was changed, only the streams that are named are known to be so. */
function stateOf(stream: string, verdict: Verified | undefined): JSX.Element | string {
  if (verdict?.ok) return <Pill look={INTACT} />;
  return verdict?.breaks?.some((one) => one.stream === stream) ? <Pill look={CHANGED} /> : '–';
}

function Whole({ proof, verdict, again }: { proof: JournalProof; verdict: Verified | undefined; again: () => void }): JSX.Element {
  const points = [...(proof.checkpoints ?? [])].sort((a, b) => a.number - b.number);
  const newest = points[points.length - 1];
  const live = useStore(isLive);
  const sign = async (): Promise<void> => {
    try {
      const made = await write<CheckpointMade>('/journal/checkpoint', {}, newKey());
      toast({ text: made.new ? `Checkpoint ${made.checkpoint?.number ?? ''} signed.` : 'Everything is signed already.' });
      again();
    } catch (error) {
      toast({ text: error instanceof Refused ? error.message : String(error), bad: true });
    }
  };
  return (
    <>
      <section class="card pad">
        <div class="row wrap">
          <h2 class="grow">Checkpoints</h2>
          <span class="meta">each signs everything before it, and is kept outside the database</span>
          <Button small onClick={() => void sign()} disabled={!live}>
            Sign now
          </Button>
        </div>
        {points.length ? (
          <ol class="chain">
            {points.slice(-26).map((one) => (
              <Link key={one.number} one={one} />
            ))}
          </ol>
        ) : (
          <p class="meta">None yet. One is signed at the end of a run, and every so many events.</p>
        )}
        <dl class="facts">
          <dt>Signed by</dt>
          <dd>
            <code>ed25519 {short(proof.key, 16)}</code>
            {proof.key ? <Copy text={proof.key} label="Copy the fingerprint" /> : null}
          </dd>
          {newest ? (
            <>
              <dt>Newest</dt>
              <dd>
                {number(newest.number)}, {day(newest.at)}, {count(newest.events, 'event')}
              </dd>
              <dt>Digest</dt>
              <dd>
                <code title={newest.digest}>{short(newest.digest, 32)}</code>
              </dd>
            </>
          ) : null}
          <dt>Not signed yet</dt>
          <dd>{count(Math.max(0, proof.events - (proof.signed_events ?? 0)), 'event')}</dd>
        </dl>
      </section>
      <div class="two" style={{ marginTop: '16px' }}>
        <section class="card grid-wrap">
          <table class="table">
            <thead>
              <tr>
                <th>Stream</th>
                <th class="num">Events</th>
                <th>Head</th>
                <th>State</th>
                <th>
                  <span class="sr">Export</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {(proof.streams ?? []).map((one) => {
                const isRun = one.stream.startsWith('run_');
                return (
                  <tr key={one.stream}>
                    <td>
                      {isRun ? (
                        <a href={`/runs/${enc(one.stream)}`}>
                          {[one.name, one.label].filter(Boolean).join(' ')} <code class="c-3">{one.stream}</code>
                        </a>
                      ) : (
                        one.stream
                      )}
                    </td>
                    <td class="num">{number(one.n)}</td>
                    <td>
                      <code title={one.hash}>{short(one.hash, 16)}</code>
                    </td>
                    <td>{stateOf(one.stream, verdict)}</td>
                    <td class="num">
                      {isRun ? (
                        <Button small href={`/api/v1/journal/bundle/${enc(one.stream)}`} download label={`Export proof of ${one.stream}`}>
                          Export proof
                        </Button>
                      ) : null}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </section>
        <div class="stack" style={{ gap: '16px' }}>
          <Check />
          <section class="card pad">
            <h2>Witnesses</h2>
            {proof.witnesses?.length ? (
              proof.witnesses.map((one) => (
                <p key={one.name} class="labelled">
                  <Icon name={one.failed_at ? 'warning' : 'completed'} tone={one.failed_at ? 'wait' : 'ok'} size={14} />
                  <span>
                    {one.name}: {one.failed_at ? `failed ${day(one.failed_at)}, ${one.reason}` : `has checkpoint ${number(one.number ?? 0)}`}
                  </span>
                </p>
              ))
            ) : (
              <p class="meta">None. A witness keeps copies of the checkpoints outside of HANDRAIL_HOME.</p>
            )}
          </section>
          <section class="card pad">
            <h2>What this cannot show</h2>
            <p class="c-2" style={{ margin: '4px 0 10px' }}>
              A person who has the private key could sign another story. Give the fingerprint, or a checkpoint, to somebody else.
            </p>
            <div class="row wrap">
              <Button small disabled={!proof.key} onClick={() => void copyText(proof.key ?? '', 'Fingerprint copied')}>
                Copy fingerprint
              </Button>
              <Button small disabled={!newest} onClick={() => void copyText(JSON.stringify(newest), 'Checkpoint copied')}>
                Copy checkpoint
              </Button>
            </div>
          </section>
        </div>
      </div>
    </>
  );
}

const Link = ({ one }: { one: CheckpointView }): JSX.Element => (
  <li title={`${day(one.at)}, ${count(one.events, 'event')}`}>
    <span class="link-box">
      <Icon name={one.is_restart ? 'warning' : 'tick'} size={14} label={`Checkpoint ${one.number}`} />
    </span>
    {number(one.number)}
  </li>
);

/** Check a receipt, or a bundle that somebody sent. */
function Check(): JSX.Element {
  const [receipt, setReceipt] = useState('');
  const [answer, setAnswer] = useState<{ ok: boolean; text: string } | null>(null);
  const [account, setAccount] = useState<Account | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    setAnswer(null);
    const asked = receipt.trim();
    if (!/^\d+:[0-9a-f]{8,}$/.test(asked)) return undefined;
    const timer = setTimeout(() => {
      read<Verified>(`/journal/verify?receipt=${encodeURIComponent(asked)}`).then(
        (found) => setAnswer({ ok: found.ok, text: found.ok ? `Entry ${asked.split(':')[0]} is what it was.` : found.first_bad?.reason ?? found.breaks?.[0]?.reason ?? 'Nothing in this journal has this receipt.' }),
        (error: Refused) => setAnswer({ ok: false, text: error.message }),
      );
    }, 300);
    return () => clearTimeout(timer);
  }, [receipt]);
  const take = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    setBusy(true);
    setAccount(null);
    setAnswer(null);
    try {
      setAccount(await write<Account>('/journal/bundle/verify', file, newKey()));
    } catch (error) {
      setAnswer({ ok: false, text: error instanceof Refused ? error.message : String(error) });
    }
    setBusy(false);
  };
  return (
    <section
      class="card pad"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void take(event.dataTransfer?.files[0]);
      }}
    >
      <h2>Check a receipt or a bundle</h2>
      <div class="field" style={{ margin: '8px 0' }}>
        <label for="receipt">
          Receipt <span>as 12:f0f8119968e5e267</span>
        </label>
        <input id="receipt" type="text" class="mono" value={receipt} onInput={(event) => setReceipt(event.currentTarget.value)} />
      </div>
      {answer ? (
        <p class={`labelled ${answer.ok ? 'c-ok' : 'c-bad'}`} role="status">
          <Icon name={answer.ok ? 'completed' : 'failed'} size={14} />
          <span>{answer.text}</span>
        </p>
      ) : null}
      <label class="meta" for="bundle">
        Or drop a proof bundle here. It is checked on this machine.
      </label>
      <input id="bundle" type="file" style={{ marginTop: '6px', maxWidth: '100%' }} onChange={(event) => void take(event.currentTarget.files?.[0])} />
      {busy ? <Bones rows={2} /> : null}
      {account ? (
        <div style={{ marginTop: '10px' }} role="status">
          <Pill look={INTACT} /> <Pill look={RUN[account.status]!} />
          <p style={{ marginTop: '6px' }}>
            {account.run}, {account.workflow}: {count(account.events, 'event')}, {count(account.steps?.length ?? 0, 'step')}, {count(account.approvals?.length ?? 0, 'approval')}.
          </p>
          <p class="meta">
            Signed with {short(account.key, 16)}, made {day(account.made)}.
          </p>
        </div>
      ) : null}
    </section>
  );
}
