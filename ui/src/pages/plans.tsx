import type { JSX } from 'preact';
import { Shell } from '../frame/shell';
import type { PageProps } from '../routes';

export function PlansPage(_props: PageProps): JSX.Element {
  return (
    <Shell crumbs={[{ word: 'Plans' }]} title="Plans">
      <h1>Plans</h1>
    </Shell>
  );
}
