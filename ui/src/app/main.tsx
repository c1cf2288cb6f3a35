/** The page that clients show in a window of their own (MCP Apps): one file without network, made of the console's parts. */
import '../style/tokens.css';
import '../style/base.css';
import '../style/kit.css';
import '../style/run.css';
import '../style/pages.css';
import './app.css';
import { render } from 'preact';
import { connect, reportSize, type HostContext } from './bridge';
import { attach, expect, leave, shown, take } from './follow';
import { App } from './view';

const system = matchMedia('(prefers-color-scheme: dark)');
let theme: string | undefined;

function draw(context: HostContext): void {
  theme = context.theme ?? theme;
  document.documentElement.dataset.theme = theme ?? (system.matches ? 'dark' : 'light');
}

draw({});
system.addEventListener('change', () => draw({}));
render(<App />, document.getElementById('app')!);
connect({
  input: (params) => expect(params.arguments?.run),
  result: take,
  cancelled: () => shown.set({ words: 'The call was cancelled.' }),
  context: draw,
  closing: leave,
}).then(
  (host) => {
    draw(host.context);
    attach(host);
    reportSize();
  },
  (error: Error) => shown.set({ problem: error.message }),
);
