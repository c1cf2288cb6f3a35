import { defineConfig } from 'vite';

/* Names carry no hash: the files are committed, and a diff should say which one changed. The server sends an ETag.
 * `npm run dev` shows the pages over a running `handrail serve`. */
export default defineConfig({
  base: '/',
  publicDir: 'public',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
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
        chunkFileNames: (chunk) => (chunk.facadeModuleId?.includes('/pages/') ? 'app/pages/[name].js' : 'app/[name].js'),
        assetFileNames: (file) => (file.names.some((name) => name.endsWith('.css')) ? 'app/app.css' : 'app/[name][extname]'),
      },
    },
  },
});
