import type { JSX } from 'preact';
import type { TabProps } from './run';

export function Definition(_props: TabProps & { entry?: string }): JSX.Element {
  return <p>Definition</p>;
}
