/** The live feed. One EventSource for all tabs of a browser: the tab that holds a lock reads it and tells the others.
 *
 * An event says that something changed; what is shown then is read again from the server, bursts once a frame.
 * So the page can't fold an event differently from the engine. */
import { store } from './store';

/** What a reader wants to hear of: some runs, some kinds, or everything. */
export interface Wanted {
  run?: string;
  all?: boolean;
}

const FEED = '/api/v1/events';
const SILENT_MS = 30_000;
/** How long the first read may take before the feed starts without it. */
const FIRST_READ_MS = 1_500;
const BACKOFF_S = [1, 2, 5, 10];
/** More missed events than this, and everything is read again. */
const MISSED_MAX = 5_000;
const CHANNEL = 'handrail.live';

export const isLive = store(true);
/** When the feed was last heard. */
export const heardAt = store(Date.now());

/** Lists of the whole store follow a burst more slowly than the run that is looked at, and after it. */
const GAP_MS = { all: 500, run: 50 };
const AFTER_MS = 120;
interface Reader {
  wanted: Wanted;
  changed: () => void;
  last: number;
  timer: number;
}
const readers = new Set<Reader>();
/** What the feed brought since the readers were last called, as it came: hundreds of events can come in one piece. */
let waiting: string[] = [];
let flushing = 0;

export function watchEvents(wanted: Wanted, changed: () => void): () => void {
  const reader = { wanted, changed, last: 0, timer: 0 };
  readers.add(reader);
  return () => {
    clearTimeout(reader.timer);
    readers.delete(reader);
  };
}

/** Gather what comes in one piece; readers are called once for all of it. */
function tell(data: string): void {
  waiting.push(data);
  flushing ||= window.setTimeout(flush);
}

function flush(): void {
  flushing = 0;
  alive();
  const runs = runsOf(waiting);
  waiting = [];
  if (!runs.size) return;
  if (leads) channel?.postMessage({ heard: [...runs], id: lastId } satisfies Message);
  call(runs);
}

/** The runs that events are about; '' for what is about none. */
function runsOf(events: readonly string[]): Set<string> {
  const runs = new Set<string>();
  for (const data of events) {
    try {
      const event = JSON.parse(data) as { run?: string; kind?: string };
      if (event.kind) runs.add(event.run ?? '');
    } catch {
      continue; // not an event of ours
    }
  }
  return runs;
}

function call(runs: ReadonlySet<string>): void {
  const looked = [...readers].some((reader) => runs.has(reader.wanted.run ?? '?'));
  for (const reader of [...readers]) {
    if (reader.wanted.all) notify(reader, looked ? AFTER_MS : 0);
    else if (runs.has(reader.wanted.run ?? '?')) notify(reader);
  }
}

function notify(reader: Reader, after = 0): void {
  if (reader.timer) return;
  const due = reader.last + (reader.wanted.all ? GAP_MS.all : GAP_MS.run) - performance.now();
  const fire = (): void => {
    reader.timer = 0;
    reader.last = performance.now();
    reader.changed();
  };
  if (due <= 0 && !after) fire();
  else reader.timer = window.setTimeout(fire, Math.max(due, after));
}

type Message = { heard: string[]; id: string } | { live: boolean } | { beat: true } | { retry: true };

let channel: BroadcastChannel | null = null;
let source: EventSource | null = null;
let lastId = '';
let failures = 0;
let retryTimer = 0;
let silence = 0;
let leads = false;

export function startLive(): void {
  channel = 'BroadcastChannel' in window ? new BroadcastChannel(CHANNEL) : null;
  channel?.addEventListener('message', (event: MessageEvent<Message>) => take(event.data));
  watchSilence();
  // What the page brought is as old as the page; another tab's feed may have reported to the others what happened since.
  setTimeout(() => leads || [...readers].forEach((reader) => notify(reader)), FIRST_READ_MS);
  if (channel && navigator.locks) {
    // The lock is held until the tab is closed; then the next tab in line leads.
    void navigator.locks.request(CHANNEL, () => {
      lead();
      return new Promise<void>(() => undefined);
    });
  } else {
    lead();
  }
}

function take(message: Message): void {
  if ('retry' in message) {
    if (leads) tryNow();
    return;
  }
  alive();
  if ('heard' in message) {
    lastId = message.id;
    call(new Set(message.heard));
  } else if ('live' in message) {
    isLive.set(message.live);
  }
}

function lead(): void {
  leads = true;
  if (lastId) connect();
  else retryTimer = window.setTimeout(connect, FIRST_READ_MS);
}

/** The place in the store that the first answer is from: the feed goes on from there, so that nothing falls between them. */
export function startFrom(at: string): void {
  if (lastId || !at) return;
  lastId = at;
  if (leads) connect();
}

function connect(): void {
  clearTimeout(retryTimer);
  source?.close();
  const from = lastId ? `?from=${encodeURIComponent(lastId)}` : '';
  source = new EventSource(FEED + from, { withCredentials: true });
  source.onopen = () => {
    failures = 0;
    mark(true);
  };
  source.onmessage = hear;
  source.addEventListener('beat', beat);
  source.onerror = () => {
    source?.close();
    mark(false);
    retryTimer = window.setTimeout(connect, BACKOFF_S[Math.min(failures++, BACKOFF_S.length - 1)]! * 1_000);
  };
}

function hear(event: MessageEvent<string>): void {
  if (event.lastEventId) lastId = event.lastEventId;
  tell(event.data);
}

function beat(event: MessageEvent<string>): void {
  const missed = Number(event.lastEventId) - Number(lastId);
  if (lastId && missed > MISSED_MAX) {
    // Reading again what there is now is cheaper than hearing what happened since.
    lastId = event.lastEventId;
    mark(false);
    connect();
    return;
  }
  mark(true);
}

function mark(live: boolean): void {
  if (live) alive();
  isLive.set(live);
  channel?.postMessage({ live } satisfies Message);
}

function alive(): void {
  heardAt.set(Date.now());
  watchSilence();
}

function watchSilence(): void {
  clearTimeout(silence);
  silence = window.setTimeout(() => {
    isLive.set(false);
    if (leads) tryNow();
  }, SILENT_MS);
}

/** Ask at once instead of waiting for the next try. */
export function tryNow(): void {
  if (!leads) {
    channel?.postMessage({ retry: true } satisfies Message);
    return;
  }
  failures = 0;
  connect();
}
