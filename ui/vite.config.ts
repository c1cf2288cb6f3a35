import { defineConfig } from 'vite';
import { JSX_CALLS } from './vite.jsx';

/* Names carry no hash: the files are committed, and a diff should say which one changed. The server sends an ETag.
 * `npm run dev` shows the pages over a running `handrail serve`.
 *
 * Few files: what is alike is compressed together, and a page asks for one file more at most. What the first page needs is
 * `kit.js`; the tabs of a run come together, because people who look at a run open several of them. */
const TOGETHER = [
  { name: 'kit', test: /preact|src.(core|states|routes|frame.(shell|sidebar|places|commands)|kit.(?!form|layout|flow)|pages.(home|effects)|pages.run.(run|header|steps|panel|model|actions)\.)/ },
  { name: 'over', test: /frame.(palette|keymap)/ },
  { name: 'tabs', test: /pages.run[/\\]|kit.(layout|form|flow)/ },
  { name: 'operate', test: /pages.(settings|proof|insight|tools)\./ },
  { name: 'plans', test: /pages.(plans|library)\./ },
];

export default defineConfig({
  base: '/',
  publicDir: 'public',
  oxc: JSX_CALLS,
  server: { proxy: { '/api': 'http://127.0.0.1:7420', '/enter': 'http://127.0.0.1:7420' } },
  build: {
    outDir: '../src/handrail/interfaces/http/static',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rollupOptions: {
      output: {
        entryFileNames: 'app/app.js',
        chunkFileNames: 'app/[name].js',
        assetFileNames: (file) => (file.names.some((name) => name.endsWith('.css')) ? 'app/app.css' : 'app/[name][extname]'),
        codeSplitting: { includeDependenciesRecursively: false, groups: TOGETHER },
      },
    },
  },
});
