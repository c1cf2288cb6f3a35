import type { JSX } from 'preact';
import { Shell } from '../frame/shell';
import type { PageProps } from '../routes';

export function LibraryPage(_props: PageProps): JSX.Element {
  return (
    <Shell crumbs={[{ word: 'Library' }]} title="Library">
      <h1>Library</h1>
    </Shell>
  );
}
