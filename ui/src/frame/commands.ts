/** What can be done from where the reader is: pages put their actions here, the palette offers them first. */
import { useEffect } from 'preact/hooks';
import type { IconName } from '../kit/icons';

export interface Command {
  word: string;
  note?: string;
  icon: IconName;
  tone?: string;
  key?: string;
  href?: string;
  act?: () => void;
}

const offered: { current: readonly Command[] }[] = [];
const ALWAYS: readonly Command[] = [{ word: 'Start a workflow', icon: 'play', key: 's', href: '/library' }];

export const commands = (): readonly Command[] => [...offered.flatMap((one) => one.current), ...ALWAYS];

export function useCommands(list: readonly Command[]): void {
  useEffect(() => {
    const mine = { current: list };
    offered.unshift(mine);
    return () => {
      offered.splice(offered.indexOf(mine), 1);
    };
  });
}
