import type { JSX } from 'preact';
import { Shell } from '../frame/shell';
import type { PageProps } from '../routes';

export function ApprovalsPage(_props: PageProps): JSX.Element {
  return (
    <Shell crumbs={[{ word: 'Approvals' }]} title="Approvals">
      <h1>Approvals</h1>
    </Shell>
  );
}
