/** Light, dark or as the system says; kept in this browser. theme.js sets it before the first paint. */
import { kept, store } from './store';

const root = document.documentElement;
const system = matchMedia('(prefers-color-scheme: dark)');
export const theme = kept('theme', '');
export const density = kept('density', 'normal');
export const isDark = store(root.dataset.theme === 'dark');

function apply(): void {
  const dark = theme.value ? theme.value === 'dark' : system.matches;
  root.dataset.theme = dark ? 'dark' : 'light';
  isDark.set(dark);
  if (density.value === 'compact') root.dataset.density = 'compact';
  else delete root.dataset.density;
}

system.addEventListener('change', apply);
// Paper is light.
addEventListener('beforeprint', () => (root.dataset.theme = 'light'));
addEventListener('afterprint', apply);
theme.watch(apply);
density.watch(apply);

export const toggleTheme = (): void => theme.keep(isDark.value ? 'light' : 'dark');
