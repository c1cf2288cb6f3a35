/** Settings: what is wrong with this installation and the command that fixes it; who takes part; what is set; how it looks. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { newKey, Refused, useRead, write } from '../core/api';
import type { AboutServer, ClientList, DoctorReport, NodesView, ProjectList, SecretList, SettingList } from '../core/contract';
import { keysOn, useKeys } from '../core/keys';
import { project } from '../core/project';
import { go } from '../core/router';
import { useStore } from '../core/store';
import { density, theme } from '../core/theme';
import { capital, clock, count, number } from '../core/words';
import { PLACES } from '../frame/places';
import { NoAnswer, Shell, overlay } from '../frame/shell';
import { Icon } from '../kit/icons';
import { Button, Copy, Empty, Time, Twin, toast } from '../kit/kit';
import { text } from '../kit/value';
import type { PageProps } from '../routes';

const PARTS: readonly (readonly [string, string])[] = [
  ['doctor', 'Doctor'],
  ['clients', 'Clients'],
  ['workers', 'Workers'],
  ['projects', 'Projects'],
  ['secrets', 'Secrets'],
  ['configuration', 'Configuration'],
  ['look', 'Look'],
  ['keyboard', 'Keyboard'],
  ['about', 'About'],
];
/** What only this browser keeps, and the list of the other pages. */
const WITHOUT_JSON = new Set(['look', 'keyboard', '']);

export function SettingsPage({ params }: PageProps): JSX.Element {
  const part = params.part ?? '';
  useEffect(() => {
    if (!part && innerWidth > 900) go('/settings/doctor', true); // the list of places is for a phone, which has no sidebar
  }, [part]);
  const word = PARTS.find(([key]) => key === part)?.[1];
  return (
    <Shell crumbs={word ? [{ word: 'Settings', href: '/settings' }, { word }] : [{ word: 'Settings' }]} title={word ?? 'Settings'} json={WITHOUT_JSON.has(part) ? false : undefined} flush>
      <div class="split settings-split">
        <nav class="split-list settings-nav" aria-label="Settings" style={{ height: part ? undefined : 'auto' }}>
          {PARTS.map(([key, name]) => (
            <a key={key} href={`/settings/${key}`} aria-current={key === part ? 'page' : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <div class="split-main">{part ? <Part part={part} /> : <More />}</div>
      </div>
    </Shell>
  );
}

function Part({ part }: { part: string }): JSX.Element {
  switch (part) {
    case 'doctor':
      return <Doctor />;
    case 'clients':
      return <Clients />;
    case 'workers':
      return <Workers />;
    case 'projects':
      return <Projects />;
    case 'secrets':
      return <Secrets />;
    case 'configuration':
      return <Configuration />;
    case 'look':
      return <LookPart />;
    case 'keyboard':
      return <Keyboard />;
    case 'about':
      return <AboutPart />;
    default:
      return <Empty title="There is no such page" actions={<Button href="/settings/doctor">Doctor</Button>} />;
  }
}

/** On a phone: the places that the bar has no room for. */
function More(): JSX.Element {
  return (
    <>
      <h1>More</h1>
      <div class="card" style={{ marginTop: '12px' }}>
        {PLACES.slice(4).map((place) => (
          <a class="line doctor-row" key={place.at} href={place.href}>
            <Icon name={place.icon} />
            <b>{place.word}</b>
          </a>
        ))}
      </div>
    </>
  );
}

function Row({ icon, tone, name, children, action }: { icon: 'completed' | 'warning' | 'failed' | 'robot' | 'person' | 'bolt' | 'project'; tone: string; name: string; children: ComponentChildren; action?: ComponentChildren }): JSX.Element {
  return (
    <div class="line doctor-row">
      <Icon name={icon} tone={tone} />
      <b>{name}</b>
      <p class="c-2">{children}</p>
      {action ? <div class="row">{action}</div> : null}
    </div>
  );
}

/** Commands stand between backquotes. */
const coded = (words: string): ComponentChildren => words.split('`').map((part, index) => (index % 2 ? <code class="tag">{part}</code> : part));
const commandIn = (fix = ''): string => (fix.startsWith('handrail ') ? fix : /`(handrail [^`]+)`/.exec(fix)?.[1] ?? '');

function Doctor(): JSX.Element {
  const report = useRead<DoctorReport>('/doctor');
  const data = report.data;
  useKeys({ c: () => report.again() });
  const checks = data?.checks ?? [];
  const wrong = checks.filter((one) => one.level !== 'ok');
  return (
    <>
      <div class="row wrap" style={{ marginBottom: '14px' }}>
        <div class="grow">
          <h1>{!data ? 'Checking this installation' : wrong.length ? `${wrong.length} ${wrong.length === 1 ? 'thing' : 'things'} to fix` : 'Everything works'}</h1>
          <p class="c-2">{data?.at ? `Checked ${clock(data.at)}. ` : ''}{data?.ok ? 'Nothing here stops your runs.' : ''}</p>
        </div>
        <Button kbd="C" onClick={report.again}>
          Check again
        </Button>
      </div>
      {data ? (
        <div class="card">
          {[...wrong, ...checks.filter((one) => one.level === 'ok')].map((one) => (
            <Row key={one.name} icon={one.level === 'ok' ? 'completed' : one.level === 'warn' ? 'warning' : 'failed'} tone={one.level === 'ok' ? 'ok' : one.level === 'warn' ? 'wait' : 'bad'} name={capital(one.name)} action={commandIn(one.fix) ? <Copy text={commandIn(one.fix)} label={`Copy the command for ${one.name}`} /> : null}>
              {/^[a-z]+[ :,]/.test(one.message) ? capital(one.message) : one.message}
              {!one.fix ? null : one.fix.startsWith('handrail ') ? (
                <code class="tag fix">{one.fix}</code>
              ) : (
                <span class="fix">
                  <b>To fix:</b> {coded(one.fix)}
                </span>
              )}
            </Row>
          ))}
        </div>
      ) : (
        <NoAnswer whole={false} {...report} rows={8} />
      )}
      <Footer />
    </>
  );
}

function Footer(): JSX.Element | null {
  const about = useRead<AboutServer>('/about').data;
  if (!about) return null;
  return (
    <p class="meta row wrap" style={{ marginTop: '16px', gap: '4px 20px' }}>
      <span>handrail {about.version}</span>
      <span>
        HANDRAIL_HOME <code>{about.home}</code>
      </span>
      {about.journal_bytes ? <span>journal {number(Math.round(about.journal_bytes / 1000))} kB</span> : null}
    </p>
  );
}

function Clients(): JSX.Element {
  const list = useRead<ClientList>('/clients', { all: true });
  const shown = (list.data?.clients ?? []).filter((one) => one.kind === 'agent' || one.kind === 'person');
  return (
    <>
      <h1>Who takes part</h1>
      <p class="c-2" style={{ margin: '2px 0 14px' }}>
        Agents and people: connected to this server now, or last heard in the journal.
      </p>
      {!list.data ? (
        <NoAnswer whole={false} {...list} />
      ) : shown.length ? (
        <div class="card">
          {shown.map((one) => (
            <Row key={one.name + one.kind} icon={one.kind === 'agent' ? 'robot' : 'person'} tone={one.connected ? 'ok' : '3'} name={one.name.replace(/^\w+:/, '')} action={one.connected ? <span class="c-ok">Connected</span> : null}>
              {one.run ? <a class="link" href={`/runs/${one.run}`}>{one.run}</a> : capital(one.kind)} {one.heard ? (
                <>
                  · last heard <Time at={one.heard} />
                </>
              ) : null}
            </Row>
          ))}
        </div>
      ) : (
        <div class="card">
          <Empty icon="robot" title="No agent has been heard of">
            Set up a client, then ask it to use handrail.
          </Empty>
        </div>
      )}
      <Command text="handrail init" />
    </>
  );
}

function Workers(): JSX.Element {
  const list = useRead<NodesView>('/nodes', { all: true });
  const nodes = list.data?.nodes ?? [];
  const waiting = list.data?.waiting;
  return (
    <>
      <h1>Workers</h1>
      <p class="c-2" style={{ margin: '2px 0 14px' }}>
        Processes that execute runs, this server among them. {waiting ? `${count(waiting, 'run')} waiting for one.` : ''}
      </p>
      {list.data ? (
        <div class="card">
          {nodes.length ? (
            nodes.map((one) => (
              <Row key={one.id} icon="bolt" tone={one.state === 'up' ? 'ok' : 'wait'} name={one.name} action={<span class={one.state === 'up' ? 'c-ok' : 'c-wait'}>{capital(one.state)}</span>}>
                {[one.kind, count(one.used ?? 0, 'run'), ...one.labels].join(' · ')}
              </Row>
            ))
          ) : (
            <Empty icon="bolt" title="No process executes runs">
              A run goes on as soon as a worker starts.
            </Empty>
          )}
        </div>
      ) : (
        <NoAnswer whole={false} {...list} />
      )}
      <Command text="handrail worker" />
    </>
  );
}

const Command = ({ text }: { text: string }): JSX.Element => (
  <div style={{ marginTop: '16px', maxWidth: '460px' }}>
    <Twin command={text} />
  </div>
);

function Projects(): JSX.Element {
  const list = useRead<ProjectList>('/projects', { all: true });
  const here = useStore(project);
  return (
    <>
      <h1>Projects</h1>
      <p class="c-2" style={{ margin: '2px 0 14px' }}>
        Every run belongs to the folder it was started in; only processes of that project execute it. <code>handrail open</code> in a folder opens it here.
      </p>
      {!list.data ? (
        <NoAnswer whole={false} {...list} />
      ) : (
        <div class="card">
          {(list.data.projects ?? []).map((one) => (
            <Row key={one.id} icon="project" tone={one.exists === false ? 'wait' : '2'} name={one.name} action={one.id === here ? <span class="c-ok">This one</span> : one.is_open ? <a class="link" href={`/?project=${one.id}`}>Go there</a> : one.command ? <Copy text={one.command} label="Copy the command that opens it" /> : null}>
              <code>{one.folder}</code> {one.exists === false ? <span class="c-wait">· the folder is gone</span> : null} · {count(one.runs ?? 0, 'run')}, {number(one.open ?? 0)} open
            </Row>
          ))}
        </div>
      )}
    </>
  );
}

function Secrets(): JSX.Element {
  const list = useRead<SecretList>('/secrets');
  const data = list.data;
  return (
    <>
      <h1>Secrets</h1>
      <p class="c-2" style={{ margin: '2px 0 14px', maxWidth: '70ch' }}>
        handrail fills a secret in at the call and removes it from results, before anything is written. No page shows a secret, and none can be set here: a browser is no place for them.
      </p>
      {!data ? (
        <NoAnswer whole={false} {...list} rows={3} />
      ) : data.secrets?.length ? (
        <div class="card grid-wrap" role="region" aria-label="Secrets" tabIndex={0} style={{ marginBottom: '16px' }}>
          <table class="table">
            <thead>
              <tr>
                <th>Secret</th>
                <th>Tools that may get it</th>
                <th>Stored in</th>
                <th>Set</th>
              </tr>
            </thead>
            <tbody>
              {data.secrets.map((one) => (
                <tr key={one.name}>
                  <td>
                    <code>{one.name}</code>
                  </td>
                  <td>{one.given_to?.length ? <code>{one.given_to.join(', ')}</code> : <span class="c-wait">none yet</span>}</td>
                  <td class="c-2">{one.stored_in === 'keyring' ? 'the keyring' : 'a private file'}</td>
                  <td class="c-2">
                    <Time at={one.set} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <p style={{ marginBottom: '12px' }}>No secrets are stored.</p>
      )}
      <div class="stack" style={{ maxWidth: '460px' }}>
        <Twin command="handrail secrets list" />
        <Twin command="handrail secrets set NAME" />
        <Twin command="handrail secrets remove NAME" />
      </div>
    </>
  );
}

function Configuration(): JSX.Element {
  const list = useRead<SettingList>('/settings');
  const data = list.data;
  return (
    <>
      <h1>Configuration</h1>
      <p class="c-2" style={{ margin: '2px 0 14px' }}>
        The settings in effect, and where each comes from. {[data?.trust, data?.hint].map((one) => capital(one ?? '')).join(' ')}
      </p>
      {!data ? (
        <NoAnswer whole={false} {...list} rows={10} />
      ) : (
        <div class="card grid-wrap" role="region" aria-label="Settings" tabIndex={0}>
          <table class="table">
            <thead>
              <tr>
                <th>Setting</th>
                <th>Value</th>
                <th>From</th>
              </tr>
            </thead>
            <tbody>
              {(data.settings ?? []).map((one) => (
                <tr key={one.setting + one.origin}>
                  <td>
                    <code>{one.setting}</code>
                  </td>
                  <td>
                    <code>{text(one.value)}</code>
                    {one.is_off ? <span class="c-wait"> does not count until a person has trusted this project</span> : null}
                  </td>
                  <td class="c-2">{one.origin}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Choice({ label, value, options, onChange }: { label: string; value: string; options: readonly (readonly [string, string])[]; onChange: (value: string) => void }): JSX.Element {
  return (
    <div class="row wrap" style={{ marginTop: '12px' }}>
      <span style={{ width: '130px' }}>{label}</span>
      <div class="seg" role="group" aria-label={label}>
        {options.map(([key, word]) => (
          <button key={key} type="button" aria-pressed={key === value} onClick={() => onChange(key)}>
            {word}
          </button>
        ))}
      </div>
    </div>
  );
}

function LookPart(): JSX.Element {
  const colour = useStore(theme);
  const rows = useStore(density);
  const [note, setNote] = useState(() => (localStorage.getItem('handrail.notify') === 'on' ? 'on' : 'off'));
  const setNotify = async (value: string): Promise<void> => {
    if (value === 'on' && (await Notification.requestPermission()) !== 'granted') {
      toast({ text: 'The browser does not allow notifications from this page.', bad: true });
      return;
    }
    localStorage.setItem('handrail.notify', value);
    setNote(value);
  };
  return (
    <>
      <h1>Look</h1>
      <p class="c-2">Kept in this browser.</p>
      <Choice label="Colours" value={colour} options={[['', 'As the system'], ['light', 'Light'], ['dark', 'Dark']]} onChange={(value) => theme.keep(value)} />
      <Choice label="Rows" value={rows} options={[['normal', 'Normal'], ['compact', 'Compact']]} onChange={(value) => density.keep(value)} />
      <Choice label="Notifications" value={note} options={[['off', 'Off'], ['on', 'When something waits for me']]} onChange={(value) => void setNotify(value)} />
    </>
  );
}

function Keyboard(): JSX.Element {
  const on = useStore(keysOn);
  return (
    <>
      <h1>Keyboard</h1>
      <p class="c-2">Single keys work anywhere but in fields. Nothing that changes a run happens on one key.</p>
      <Choice label="Single keys" value={on} options={[['on', 'On'], ['off', 'Off']]} onChange={(value) => keysOn.keep(value)} />
      <p style={{ marginTop: '16px' }}>
        <Button onClick={() => overlay.set('keys')} kbd="?">
          All keys
        </Button>
      </p>
    </>
  );
}

function AboutPart(): JSX.Element {
  const given = useRead<AboutServer>('/about');
  const data = given.data;
  if (!data) return <NoAnswer {...given} />;
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['Version', data.version],
    ['Python', data.python],
    ['Address', data.url],
    ['Up since', <Time at={data.started} />],
    ['Home', <code>{data.home}</code>],
    ['Project', `${data.project.name}, ${data.project.folder}`],
    ['You are', data.person],
    ['Journal', `${count(data.events ?? 0, 'event')}, ${number(Math.round((data.journal_bytes ?? 0) / 1000))} kB`],
    ['Pages open', number(data.readers ?? 0)],
    ['Answers count by', (data.channels ?? []).join(', ') || 'any way'],
    ['Passphrase', data.needs_passphrase ? 'needed for approvals' : 'not needed'],
  ];
  const leave = async (): Promise<void> => {
    try {
      await write('/logout', {}, newKey());
      location.assign('/');
    } catch (error) {
      toast({ text: error instanceof Refused ? error.message : String(error), bad: true });
    }
  };
  return (
    <>
      <h1>About this server</h1>
      <p class="c-2" style={{ margin: '2px 0 14px', maxWidth: '76ch' }}>
        {capital(data.note ?? '') || 'There is no login on one machine: a program that runs as you could act as you. The link that opened this page carried its key; only this browser has it.'}
      </p>
      <dl class="facts">
        {facts.map(([word, value]) => (
          <>
            <dt>{word}</dt>
            <dd>{value}</dd>
          </>
        ))}
      </dl>
      <p class="row wrap" style={{ marginTop: '20px' }}>
        <a class="link" href="/api/v1/openapi.json" target="_blank" rel="noreferrer">
          The API’s description
        </a>
        <Button onClick={() => void leave()}>Sign out of this browser</Button>
      </p>
    </>
  );
}
