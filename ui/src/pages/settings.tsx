import type { JSX } from 'preact';
import { Shell } from '../frame/shell';
import type { PageProps } from '../routes';

export function SettingsPage(_props: PageProps): JSX.Element {
  return (
    <Shell crumbs={[{ word: 'Settings' }]} title="Settings">
      <h1>Settings</h1>
    </Shell>
  );
}
