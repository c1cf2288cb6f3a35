/** Every page: its pattern, its place in the sidebar and the file that draws it. A page that is not needed at once is loaded late. */
import type { ComponentType } from 'preact';
import { late } from './kit/late';
import { HomePage } from './pages/home';
import { RunPage } from './pages/run/run';

export interface PageProps {
  params: Record<string, string>;
}
export type Place = 'home' | 'runs' | 'approvals' | 'library' | 'plans' | 'tools' | 'insight' | 'proof' | 'settings';
export interface Route {
  pattern: string;
  at: Place;
  page: ComponentType<PageProps>;
}

const runs = late<PageProps>(() => import('./pages/runs').then((file) => file.RunsPage));
const approvals = late<PageProps>(() => import('./pages/approvals').then((file) => file.ApprovalsPage));
const library = late<PageProps>(() => import('./pages/library').then((file) => file.LibraryPage));
const plans = late<PageProps>(() => import('./pages/plans').then((file) => file.PlansPage));
const tools = late<PageProps>(() => import('./pages/tools').then((file) => file.ToolsPage));
const insight = late<PageProps>(() => import('./pages/insight').then((file) => file.InsightPage));
const proof = late<PageProps>(() => import('./pages/proof').then((file) => file.ProofPage));
const settings = late<PageProps>(() => import('./pages/settings').then((file) => file.SettingsPage));

export const ROUTES: readonly Route[] = [
  { pattern: '/', at: 'home', page: HomePage },
  { pattern: '/runs', at: 'runs', page: runs },
  { pattern: '/runs/:run', at: 'runs', page: RunPage },
  { pattern: '/runs/:run/compare/:other', at: 'runs', page: RunPage },
  { pattern: '/runs/:run/steps/*step', at: 'runs', page: RunPage },
  { pattern: '/runs/:run/journal/:entry', at: 'runs', page: RunPage },
  { pattern: '/runs/:run/do/:action', at: 'runs', page: RunPage },
  { pattern: '/runs/:run/:tab', at: 'runs', page: RunPage },
  { pattern: '/approvals', at: 'approvals', page: approvals },
  { pattern: '/approvals/:run/*step', at: 'approvals', page: approvals },
  { pattern: '/library', at: 'library', page: library },
  { pattern: '/library/*workflow', at: 'library', page: library },
  { pattern: '/plans', at: 'plans', page: plans },
  { pattern: '/plans/:plan', at: 'plans', page: plans },
  { pattern: '/tools', at: 'tools', page: tools },
  { pattern: '/tools/:server', at: 'tools', page: tools },
  { pattern: '/insight', at: 'insight', page: insight },
  { pattern: '/proof', at: 'proof', page: proof },
  { pattern: '/proof/:run', at: 'proof', page: proof },
  { pattern: '/settings', at: 'settings', page: settings },
  { pattern: '/settings/:part', at: 'settings', page: settings },
];
