/** The places of the sidebar, in order, with the letter that follows `g`. */
import type { IconName } from '../kit/icons';
import type { Place } from '../routes';

export interface PlaceEntry {
  at: Place;
  word: string;
  href: string;
  icon: IconName;
  key: string;
}

export const PLACES: readonly PlaceEntry[] = [
  { at: 'home', word: 'Home', href: '/', icon: 'home', key: 'h' },
  { at: 'runs', word: 'Runs', href: '/runs', icon: 'runs', key: 'r' },
  { at: 'approvals', word: 'Approvals', href: '/approvals', icon: 'approvals', key: 'a' },
  { at: 'library', word: 'Library', href: '/library', icon: 'library', key: 'l' },
  { at: 'plans', word: 'Plans', href: '/plans', icon: 'plans', key: 'n' },
  { at: 'tools', word: 'Tools', href: '/tools', icon: 'tools', key: 't' },
  { at: 'insight', word: 'Insight', href: '/insight', icon: 'insight', key: 'i' },
  { at: 'proof', word: 'Proof', href: '/proof', icon: 'shield', key: 'p' },
  { at: 'settings', word: 'Settings', href: '/settings/doctor', icon: 'settings', key: 's' },
];
