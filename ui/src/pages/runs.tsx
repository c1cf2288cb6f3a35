import type { JSX } from 'preact';
import { Shell } from '../frame/shell';
import type { PageProps } from '../routes';

export function RunsPage(_props: PageProps): JSX.Element {
  return (
    <Shell crumbs={[{ word: 'Runs' }]} title="Runs">
      <h1>Runs</h1>
    </Shell>
  );
}
