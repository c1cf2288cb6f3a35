/** The live feed. One EventSource for all tabs of a browser: the tab that holds a lock reads it and tells the others.
 *
 * An event says that something changed; what is shown then is read again from the server, bursts once a frame.
 * So the page can't fold an event differently from the engine. */
import { store } from './store';

export interface Heard {
  id: string;
  run: string;
  kind: string;
}
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
export const lastEvent = store<Heard | null>(null);

/** Lists of the whole store follow a burst more slowly than the run that is looked at. */
const GAP_MS = { all: 500, run: 50 };
interface Reader {
  wanted: Wanted;
  changed: () => void;
  last: number;
  timer: number;
}
const readers = new Set<Reader>();
let waiting: Heard[] = [];
let frame = 0;

export function watchEvents(wanted: Wanted, changed: () => void): () => void {
  const reader = { wanted, changed, last: 0, timer: 0 };
  readers.add(reader);
  return () => {
    clearTimeout(reader.timer);
    readers.delete(reader);
  };
}

function tell(heard: Heard): void {
  waiting.push(heard);
  lastEvent.set(heard);
  // A hidden page draws no frames, but its title counts what waits.
  if (!frame) frame = document.hidden ? window.setTimeout(flush, 250) : requestAnimationFrame(flush);
}

function flush(): void {
  frame = 0;
  const burst = waiting;
  waiting = [];
  for (const reader of [...readers]) {
    const concerns = reader.wanted.all || burst.some((one) => one.run === reader.wanted.run);
    if (concerns) notify(reader);
  }
}

function notify(reader: Reader): void {
  if (reader.timer) return;
  const due = reader.last + (reader.wanted.all ? GAP_MS.all : GAP_MS.run) - performance.now();
  const fire = (): void => {
    reader.timer = 0;
    reader.last = performance.now();
    reader.changed();
  };
  if (due <= 0) fire();
  else reader.timer = window.setTimeout(fire, due);
}

type Message = { heard: Heard } | { live: boolean } | { beat: true } | { retry: true };

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
    lastId = message.heard.id;
    tell(message.heard);
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
  alive();
  if (event.lastEventId) lastId = event.lastEventId;
  let data: Partial<Heard> = {};
  try {
    data = JSON.parse(event.data) as Partial<Heard>;
  } catch {
    return; // not an event of ours
  }
  if (!data.kind) return;
  const heard = { id: lastId, run: data.run ?? '', kind: data.kind };
  channel?.postMessage({ heard } satisfies Message);
  tell(heard);
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
