import type { JSX } from 'preact';
import { Shell } from '../frame/shell';
import type { PageProps } from '../routes';

export function ProofPage(_props: PageProps): JSX.Element {
  return (
    <Shell crumbs={[{ word: 'Proof' }]} title="Proof">
      <h1>Proof</h1>
    </Shell>
  );
}
