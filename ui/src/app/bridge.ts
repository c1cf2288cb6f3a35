/** The connection to the client that shows this page: JSON-RPC by messages to its window (MCP Apps, 2026-01-26).
 * The page has no network; everything it knows and does goes through the client. */

const PROTOCOL = '2026-01-26';
const ANSWER_MS = 60_000;
const NO_METHOD = -32601;

type Params = Record<string, unknown>;
interface Message {
  jsonrpc?: string;
  id?: number | string;
  method?: string;
  params?: Params;
  result?: unknown;
  error?: { code: number; message: string };
}

/** What a tool answered: the run as data, and beside it what is for this page alone. */
export interface ToolResult {
  structuredContent?: Params;
  content?: readonly { type: string; text?: string }[];
  isError?: boolean;
  _meta?: Params;
}

export interface HostContext {
  theme?: string;
}

export interface Host {
  /** Whether this page may call the server's tools. */
  calls: boolean;
  opensLinks: boolean;
  context: HostContext;
}

/** What the client says to the page. */
export interface Listener {
  input(params: { arguments?: Params }): void;
  result(result: ToolResult): void;
  cancelled(): void;
  context(context: HostContext): void;
  closing(): void;
}

const waiting = new Map<number, { done: (result: unknown) => void; failed: (error: Error) => void }>();
let last = 0;

const post = (message: Message): void => window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
export const tell = (method: string, params: Params = {}): void => post({ method, params });

function ask<T>(method: string, params: Params): Promise<T> {
  const id = ++last;
  return new Promise<T>((done, failed) => {
    const timer = setTimeout(() => {
      waiting.delete(id);
      failed(new Error('The client did not answer.'));
    }, ANSWER_MS);
    const ended = <V>(how: (value: V) => void) => (value: V): void => {
      clearTimeout(timer);
      how(value);
    };
    waiting.set(id, { done: ended(done as (result: unknown) => void), failed: ended(failed) });
    post({ id, method, params });
  });
}

export const callTool = (name: string, given: Params): Promise<ToolResult> => ask('tools/call', { name, arguments: given });
export const openLink = (url: string): Promise<unknown> => ask('ui/open-link', { url });

/** Shake hands with the client. It sends nothing before `initialized`; what it says from then on goes to the listener. */
export async function connect(listener: Listener): Promise<Host> {
  addEventListener('message', (event: MessageEvent<Message>) => {
    if (event.source !== window.parent || event.data?.jsonrpc !== '2.0') return; // not from the client
    take(event.data, listener);
  });
  const answer = await ask<{ hostCapabilities?: Params; hostContext?: HostContext }>('ui/initialize', {
    appInfo: { name: 'handrail', version: '1.0.0' },
    appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
    protocolVersion: PROTOCOL,
  });
  tell('ui/notifications/initialized');
  const can = answer.hostCapabilities ?? {};
  return { calls: !!can.serverTools, opensLinks: !!can.openLinks, context: answer.hostContext ?? {} };
}

function take(message: Message, listener: Listener): void {
  if (!message.method) {
    const asked = waiting.get(Number(message.id));
    waiting.delete(Number(message.id));
    if (message.error) asked?.failed(new Error(message.error.message));
    else asked?.done(message.result);
    return;
  }
  const params = message.params ?? {};
  switch (message.method) {
    case 'ui/notifications/tool-input':
      return listener.input(params);
    case 'ui/notifications/tool-result':
      return listener.result(params as ToolResult);
    case 'ui/notifications/tool-cancelled':
      return listener.cancelled();
    case 'ui/notifications/host-context-changed':
      return listener.context(params as HostContext);
    case 'ui/resource-teardown':
      listener.closing();
      return post({ id: message.id, result: {} });
    case 'ping':
      return post({ id: message.id, result: {} });
    default:
      if (message.id !== undefined) post({ id: message.id, error: { code: NO_METHOD, message: 'this page has no such method' } });
  }
}

/** Tell the client how high the page is, whenever that changes. */
export function reportSize(): void {
  let known = '';
  const page = document.getElementById('app')!;
  const report = (): void => {
    const box = page.getBoundingClientRect();
    const size = { width: Math.ceil(box.width), height: Math.ceil(box.height) };
    if (known === `${size.width} ${size.height}`) return;
    known = `${size.width} ${size.height}`;
    tell('ui/notifications/size-changed', size);
  };
  new ResizeObserver(report).observe(page);
  report();
}
