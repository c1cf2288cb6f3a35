/** The console: reads the address, draws the page for it, and keeps one live connection. */
import './style/tokens.css';
import './style/base.css';
import './style/kit.css';
import './style/frame.css';
import './style/run.css';
import './style/pages.css';
import { render, type JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { takeKey, takeState } from './core/api';
import { holdTyping, listenForKeys, typedAhead, useKeys } from './core/keys';
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
    'mod+k': () => {
      if (overlay.value) typedAhead();
      else holdTyping();
      overlay.set(overlay.value === 'palette' ? '' : 'palette');
    },
    '?': () => overlay.set('keys'),
    '.': toggleTheme,
    s: () => go('/library'),
    '/': () => document.querySelector<HTMLInputElement>('main input[type=search]')?.focus(),
    ...Object.fromEntries(PLACES.map((place) => [`g ${place.key}`, () => go(place.href)])),
  }, true);
  useEffect(() => fetchSoon([Palette, KeysDialog]), []);
  return (
    <div class="frame">
      <a class="btn skip" href="#page" onClick={skip}>
        Skip to the page
      </a>
      <Sidebar at={found?.route.at} counts={counts} />
      <Part key={found && `${found.route.at} ${found.params.run ?? ''}`}>{found ? <found.route.page params={found.params} /> : <Nowhere path={path} />}</Part>
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
  const isLink = path === '/enter';
  const word = isLink ? 'Sign in' : 'Not found';
  return (
    <Shell crumbs={[{ word }]} title={word} json={false}>
      <Empty whole title={isLink ? 'This link was used, or is too old' : 'There is no such page'} actions={<Button href="/">Home</Button>}>
        {isLink ? 'It works once, for two minutes. Say “handrail open” in a terminal: it gives a new one.' : `Nothing is at ${path}.`}
      </Empty>
    </Shell>
  );
}

takeKey();
takeState();
followLinks();
listenForKeys();
startLive();
render(<App />, document.getElementById('app')!);
