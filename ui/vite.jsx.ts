/** How both builds write elements: as calls of `h`, which are shorter than those of the automatic runtime. */
export const JSX_CALLS = { jsx: { runtime: 'classic' as const, pragma: 'h', pragmaFrag: 'Fragment' }, jsxInject: "import { h, Fragment } from 'preact';" };
