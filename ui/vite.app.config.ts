import { defineConfig, type Plugin } from 'vite';
import { JSX_CALLS } from './vite.jsx';

/* The page for clients' windows: one file, because the window has no network. Built beside the console, by `make ui`. */
const POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

const page = (script: string, style: string): string => `<!doctype html>
<html lang="en" data-view="run">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>handrail</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<script>${script}</script>
</body>
</html>
`;

/** Put script and styles into the page. */
function inOneFile(): Plugin {
  return {
    name: 'in-one-file',
    enforce: 'post',
    generateBundle(_, bundle) {
      let script = '';
      let style = '';
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === 'chunk') script += file.code;
        else style += String(file.source);
        delete bundle[name];
      }
      if (/<\/(script|style)/i.test(script + style)) throw new Error('a closing tag inside would end the script');
      this.emitFile({ type: 'asset', fileName: 'app.html', source: page(script.trim(), style.trim()) });
    },
  };
}

export default defineConfig({
  publicDir: false,
  oxc: JSX_CALLS,
  plugins: [inOneFile()],
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rollupOptions: {
      input: 'src/app/main.tsx',
      output: { format: 'iife', codeSplitting: false },
      // Of the console's files only what is used: a page that is not shown does nothing.
      treeshake: { moduleSideEffects: (id) => id.endsWith('.css') || id.endsWith('/app/main.tsx') },
    },
  },
});
