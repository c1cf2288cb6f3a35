import type { JSX } from 'preact';
import { Shell } from '../frame/shell';
import type { PageProps } from '../routes';

export function ToolsPage(_props: PageProps): JSX.Element {
  return (
    <Shell crumbs={[{ word: 'Tools' }]} title="Tools">
      <h1>Tools</h1>
    </Shell>
  );
}
