import type { JSX } from 'preact';
import type { TabProps } from './run';

export function Values(_props: TabProps & { entry?: string }): JSX.Element {
  return <p>Values</p>;
}
