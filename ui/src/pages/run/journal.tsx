import type { JSX } from 'preact';
import type { TabProps } from './run';

export function Journal(_props: TabProps & { entry?: string }): JSX.Element {
  return <p>Journal</p>;
}
