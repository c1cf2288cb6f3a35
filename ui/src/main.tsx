/** The console: reads the address, draws the page for it, and keeps one live connection. */
import './style/tokens.css';
import './style/base.css';
import './style/kit.css';
import './style/frame.css';
import './style/run.css';
import './style/pages.css';
import { render, type JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { takeKey } from './core/api';
import { inField, listenForKeys, useKeys } from './core/keys';
import { startLive } from './core/live';
import { followLinks, go, match, usePlace } from './core/router';
import { useStore } from './core/store';
import { toggleTheme } from './core/theme';
import { PLACES } from './frame/places';
import { Announcer, Shell, overlay } from './frame/shell';
import { BottomBar, Sidebar, useCounts } from './frame/sidebar';
import { Button, Empty, Part, Toasts } from './kit/kit';
import { fetchSoon, late } from './kit/late';
import { ROUTES, type Route } from './routes';

const Palette = late<object>(() => import('./frame/palette').then((file) => file.Palette), 0);
const KeysDialog = late<object>(() => import('./frame/keymap').then((file) => file.KeysDialog), 0);

function App(): JSX.Element {
  const { path } = usePlace();
  const shown = useStore(overlay);
  const counts = useCounts();
  const found = findRoute(path);
  useKeys({
    'mod+k': () => overlay.set(overlay.value === 'palette' ? '' : 'palette'),
    '?': () => overlay.set('keys'),
    '.': toggleTheme,
    s: () => go('/library'),
    '/': () => document.querySelector<HTMLInputElement>('main input[type=search]')?.focus(),
    Escape: (event) => {
      if (inField(event.target)) (event.target as HTMLElement).blur();
    },
    ...Object.fromEntries(PLACES.map((place) => [`g ${place.key}`, () => go(place.href)])),
  });
  useEffect(() => fetchSoon([Palette, KeysDialog]), []);
  return (
    <div class="frame">
      <a class="btn skip" href="#page" onClick={skip}>
        Skip to the page
      </a>
      <Sidebar at={found?.route.at} counts={counts} />
      <Part key={found?.route.pattern}>{found ? <found.route.page params={found.params} /> : <Nowhere path={path} />}</Part>
      <BottomBar at={found?.route.at} counts={counts} />
      {shown === 'palette' ? <Palette /> : null}
      {shown === 'keys' ? <KeysDialog /> : null}
      <Toasts />
      <Announcer />
    </div>
  );
}

const skip = (event: MouseEvent): void => {
  event.preventDefault();
  document.getElementById('page')?.focus();
};

function findRoute(path: string): { route: Route; params: Record<string, string> } | undefined {
  for (const route of ROUTES) {
    const params = match(route.pattern, path);
    if (params) return { route, params };
  }
  return undefined;
}

function Nowhere({ path }: { path: string }): JSX.Element {
  return (
    <Shell crumbs={[{ word: 'Not found' }]} title="Not found" json={false}>
      <Empty title="There is no such page" actions={<Button href="/">Home</Button>}>
        Nothing is at {path}.
      </Empty>
    </Shell>
  );
}

takeKey();
followLinks();
listenForKeys();
startLive();
render(<App />, document.getElementById('app')!);
