/** What a yes lets happen: each call with all of its arguments, and whether it can be undone. Nothing of it may need a
 * pointer to be seen: who answers is bound to it. */
import type { JSX } from 'preact';
import type { CallAhead, EffectAhead } from '../core/contract';
import { count } from '../core/words';
import { Icon } from '../kit/icons';

/** From how many characters or lines on an argument is folded. */
const LONG = 600;
const LINES = 12;

interface Asked {
  ahead?: readonly CallAhead[];
  ahead_unshown?: number;
  effects?: readonly EffectAhead[];
  unshown?: number;
}

/** The calls in full; if the server gave none (a question of another project), the shortened effects of the journal. */
function callsOf(asked: Asked): { calls: readonly CallAhead[]; unshown: number } {
  if (asked.ahead?.length) return { calls: asked.ahead.filter((one) => one.tool || (one.effect ?? 'none') !== 'none'), unshown: asked.ahead_unshown ?? 0 };
  return { calls: (asked.effects ?? []).map((one, order) => ({ ...one, order, by: 'handrail', can_be_undone: one.has_undo })), unshown: asked.unshown ?? 0 };
}

export function Effects({ asked }: { asked: Asked }): JSX.Element {
  const { calls, unshown } = callsOf(asked);
  if (!calls.length && !unshown) return <p class="c-2">No step with an effect follows it directly.</p>;
  return (
    <div class="card">
      {calls.map((one) => {
        const isSafe = one.effect === 'none';
        const isFinal = one.effect === 'irreversible' || !(isSafe || one.can_be_undone || one.effect === 'reversible');
        return (
          <div class="line effect-row" key={one.step}>
            <Icon name={isFinal ? 'warning' : isSafe ? 'dot' : 'undo'} tone={isFinal ? 'bad' : isSafe ? 'off' : 'undo'} size={isSafe ? 10 : 16} />
            <div>
              <p class="title">{one.title || one.step}</p>
              <Call call={one} />
              {one.when ? <p class="meta">only if {one.when}</p> : null}
            </div>
            <span class={isFinal ? 'c-bad' : isSafe ? 'c-3' : 'c-undo'}>{isFinal ? 'Cannot be undone' : isSafe ? 'No effect' : 'Can be undone'}</span>
          </div>
        );
      })}
      {unshown ? <p class="line meta pad">and {count(unshown, 'more step', 'more steps')}</p> : null}
    </div>
  );
}

/** A call: where it goes in one line, then every other argument. */
function Call({ call }: { call: CallAhead }): JSX.Element {
  const args = read(call.args);
  const { method, url, path, ...rest } = args;
  const where = typeof url === 'string' ? [method ?? 'GET', url] : [url, path].filter((one) => one !== undefined);
  return (
    <>
      <code class="c-2">{[call.tool || 'the agent', ...where].map(words).join(' ')}</code>
      {Object.entries(typeof url === 'string' && path !== undefined ? { path, ...rest } : rest).map(([name, value]) => (
        <Argument key={name} name={name} value={words(value)} />
      ))}
    </>
  );
}

function Argument({ name, value }: { name: string; value: string }): JSX.Element {
  if (value.length <= LONG && value.split('\n').length <= LINES) {
    return (
      <div class="argument">
        <span class="meta">{name}</span>
        <pre>{value}</pre>
      </div>
    );
  }
  return (
    <details class="argument">
      <summary class="meta">
        {name}: show {count(value.length, 'character')}
      </summary>
      <pre>{value}</pre>
    </details>
  );
}

const words = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

/** The arguments by name; text that is no JSON any more, because it was shortened, is one of its own. */
function read(args: unknown): Record<string, unknown> {
  if (args && typeof args === 'object') return args as Record<string, unknown>;
  try {
    return args ? read(JSON.parse(String(args))) : {};
  } catch {
    return { arguments: args };
  }
}
