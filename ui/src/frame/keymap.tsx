/** The map of keys, as it is shown. */
import type { JSX } from 'preact';
import { mod } from '../core/keys';
import { Dialog, Kbd } from '../kit/kit';
import { PLACES } from './places';
import { overlay } from './shell';

const LISTS: readonly (readonly [string, readonly string[]])[] = [
  ['Next, previous', ['j', 'k']],
  ['Open', ['↵']],
  ['Close the panel', ['esc']],
  ['Next that failed or waits', ['⇧ j']],
  ['Previous that failed or waits', ['⇧ k']],
  ['Picture or table', ['t']],
  ['Fit, fold, worst first', ['f', 'c', 'w']],
];
const RUN: readonly (readonly [string, readonly string[]])[] = [
  ['Steps, graph, timeline …', ['1', '…', '6']],
  ['Approve…', ['e']],
  ['Retry…', ['r']],
  ['Undo…', ['u']],
  ['Pause or resume…', ['p']],
  ['Previous, next try', ['[', ']']],
  ['Back, forward in time', [',', ';']],
  ['Copy link to this step or entry', ['y']],
];

export function KeysDialog(): JSX.Element {
  return (
    <Dialog label="Keys" onClose={() => overlay.set('')}>
      <div class="keys">
        <div class="row">
          <h1 class="grow">Keys</h1>
          <Kbd>?</Kbd>
        </div>
        <div class="cols">
          <div>
            <h2>Anywhere</h2>
            <ul>
              <Line word="Search, go, do" keys={[`${mod} K`]} />
              {PLACES.map((place) => (
                <Line key={place.at} word={place.word} keys={['g', place.key]} />
              ))}
              <Line word="Start a workflow" keys={['s']} />
              <Line word="Filter this page" keys={['/']} />
              <Line word="Light or dark" keys={['.']} />
            </ul>
          </div>
          <div>
            <h2>Lists and graphs</h2>
            <ul>
              {LISTS.map(([word, keys]) => (
                <Line key={word} word={word} keys={keys} />
              ))}
            </ul>
            <h2>Run</h2>
            <ul>
              {RUN.map(([word, keys]) => (
                <Line key={word} word={word} keys={keys} />
              ))}
            </ul>
          </div>
        </div>
        <p class="meta" style={{ marginTop: '12px' }}>
          Nothing that changes a run happens on one key: a key opens the preview, <Kbd>{`${mod} ↵`}</Kbd> confirms it. Keys can be switched
          off in{' '}
          <a class="link" href="/settings/keyboard" onClick={() => overlay.set('')}>
            Settings
          </a>
          .
        </p>
      </div>
    </Dialog>
  );
}

const Line = ({ word, keys }: { word: string; keys: readonly string[] }): JSX.Element => (
  <li>
    <span>{word}</span>
    {keys.map((key) => (
      <Kbd key={key}>{key}</Kbd>
    ))}
  </li>
);
