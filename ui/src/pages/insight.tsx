import type { JSX } from 'preact';
import { Shell } from '../frame/shell';
import type { PageProps } from '../routes';

export function InsightPage(_props: PageProps): JSX.Element {
  return (
    <Shell crumbs={[{ word: 'Insight' }]} title="Insight">
      <h1>Insight</h1>
    </Shell>
  );
}
