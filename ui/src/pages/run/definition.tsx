/** What the run is pinned to: its inputs, the text with line numbers, its hash, and whether the library has another one by now. */
import type { JSX } from 'preact';
import { useRead } from '../../core/api';
import type { DefinitionView } from '../../core/contract';
import { enc } from '../../core/router';
import { short } from '../../core/words';
import { NoAnswer } from '../../frame/shell';
import { Button, Copy, copyText } from '../../kit/kit';
import { Source, yaml } from '../../kit/source';
import { Value } from '../../kit/value';
import { runPath } from './model';
import type { TabProps } from './run';

export function Definition({ run }: TabProps): JSX.Element {
  const given = useRead<DefinitionView>(runPath(run, '/definition'));
  const data = given.data;
  if (!data) return <NoAnswer whole={false} {...given} rows={10} />;
  const text = yaml(data.definition ?? {});
  return (
    <div class="picture" style={{ paddingTop: '16px' }}>
      <div class="row wrap">
        <p class="grow">
          <b>{data.name}</b> {data.version ? `${data.version} ` : ''}
          <span class="c-2">
            · pinned by its content, <code title={data.hash}>{short(data.hash, 16)}</code>
          </span>
          {data.hash ? <Copy text={data.hash} label="Copy the whole hash" /> : null}
        </p>
        <Button small onClick={() => void copyText(text, 'Definition copied')}>
          Copy the text
        </Button>
        <Button small href={`/library/${enc(data.id)}`}>
          In the library
        </Button>
      </div>
      {data.differs ? (
        <p class="meta">
          The library has another text under this name{data.newest ? ` (version ${data.newest})` : ''}. This run keeps the one below.
        </p>
      ) : null}
      <h2 style={{ margin: '16px 0 8px' }}>Inputs</h2>
      <Value value={data.inputs} empty="It was started without inputs." />
      <h2 style={{ margin: '16px 0 8px' }}>Definition</h2>
      <Source text={text} />
    </div>
  );
}
