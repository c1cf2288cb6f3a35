"""JavaScript projects in other layouts: workspaces, scripts that call scripts, other names for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from outside.corpus.layouts import Layout
from outside.corpus.packages import packages
from outside.corpus.yard import copied
from outside.nodejs import installed

COMMONJS = """function total(prices, discount = 0) {
  return Math.round(prices.reduce((sum, one) => sum + one, 0) * (1 - discount) * 100) / 100;
}

function label(amount) {
  return `${amount.toFixed(2)} EUR`;
}

module.exports = { label, total };
"""
MODULE = COMMONJS.replace("module.exports = {", "export {").replace(" };\n", " };\n")
TYPED = MODULE.replace("(prices, discount = 0)", "(prices: number[], discount = 0): number").replace(
    "(amount)", "(amount: number): string"
)
RIGHT = "(1 - discount)"
WRONG = "(1 + discount)"


def expecting(head: str, word: str = "it") -> str:
    """Tests with expect."""
    return (
        f"{head}\ndescribe('total', () => {{\n  {word}('adds', () => {{\n    expect(total([1, 2])).toBe(3);\n  }});\n\n"
        f"  {word}('takes a discount', () => {{\n    expect(total([1, 2], 0.5)).toBe(1.5);\n  }});\n}});\n\n"
        f"{word}('has a label', () => {{\n  expect(label(2)).toBe('2.00 EUR');\n}});\n"
    )


def asserting(head: str, word: str = "it") -> str:
    """The same with assert."""
    text = expecting(head, word)
    for check, wanted in (("total([1, 2])", "3"), ("total([1, 2], 0.5)", "1.5"), ("label(2)", "'2.00 EUR'")):
        text = text.replace(f"expect({check}).toBe({wanted})", f"assert.strictEqual({check}, {wanted})")
    return text


def package(script: str = "", **more: object) -> str:
    """A package.json."""
    scripts = {"scripts": {"test": script}} if script else {}
    return json.dumps({"name": "shop", "version": "1.0.0", **scripts, **more}, indent=2) + "\n"


def _with_packages(links: Mapping[str, str]) -> Callable[[Path, Path, pytest.MonkeyPatch], None]:
    """Node, npm and the packages of the corpus; `links` are the members of the workspace by their names."""

    def made(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        node = installed("the corpus")
        bins = home / "node" / "bin"
        bins.mkdir(parents=True)
        for name, target in (("node", node.program), ("npm", Path(node.npm[1]))):
            (bins / name).symlink_to(target)
        monkeypatch.setenv("PATH", f"{bins}:/usr/local/bin:/usr/bin:/bin")
        copied(packages() / "node_modules", root / "node_modules")
        for name, folder in links.items():
            (root / "node_modules" / name).symlink_to(f"../{folder}")

    return made


def _layout(
    name: str,
    code: str,
    tests: str,
    files: Mapping[str, str],
    links: Mapping[str, str] | None = None,
    *,
    text: str = COMMONJS,
) -> Layout:
    return Layout(name, code, tests, {code: text, **files}, _with_packages(links or {}), RIGHT, WRONG)


JEST_HEAD = "const { label, total } = require('../src/prices');\n"
ASSERT_HEAD = "import assert from 'node:assert';\nimport { label, total } from '../src/prices.mjs';\n"
NODE_HEAD = "import assert from 'node:assert/strict';\nimport { describe, it } from 'node:test';\n"
VITEST_HEAD = "import { describe, expect, it } from 'vitest';\n"
LAYOUTS = {
    one.name: one
    for one in (
        _layout(
            "vitest-workspace",
            "packages/shop/src/prices.ts",
            "packages/shop/src/prices.spec.ts",
            {
                "package.json": package(
                    "vitest run",
                    private=True,
                    type="module",
                    workspaces=["packages/*"],
                    devDependencies={"vitest": "*"},
                ),
                "vitest.config.ts": "import { defineConfig } from 'vitest/config';\n\n"
                "export default defineConfig({ test: { projects: ['packages/*'] } });\n",
                "packages/shop/package.json": package(name="@our/shop", type="module"),
                "packages/shop/src/prices.spec.ts": expecting(
                    f"{VITEST_HEAD}import {{ label, total }} from './prices';\n"
                ),
                "packages/mail/package.json": package(name="@our/mail", type="module"),
                "packages/mail/src/mail.ts": "export const greet = (name: string) => `Dear ${name}`;\n",
                "packages/mail/src/mail.spec.ts": f"{VITEST_HEAD}import {{ greet }} from './mail';\n\n"
                "it('greets', () => {\n  expect(greet('A')).toBe('Dear A');\n});\n",
            },
            text=TYPED,
        ),
        _layout(
            "npm-workspaces",
            "packages/shop/src/prices.js",
            "packages/shop/test/prices.test.js",
            {
                "package.json": package("npm test --workspaces --if-present", private=True, workspaces=["packages/*"]),
                "packages/shop/package.json": package("jest", name="our-shop", main="src/prices.js"),
                "packages/shop/test/prices.test.js": expecting(JEST_HEAD),
                "packages/till/package.json": package("mocha", name="our-till", type="module"),
                "packages/till/index.js": "import shop from 'our-shop';\n\n"
                "export const sum = (...all) => shop.total(all);\n",
                "packages/till/test/till.js": "import assert from 'node:assert';\n"
                "import { sum } from '../index.js';\n\n"
                "it('sums', () => {\n  assert.strictEqual(sum(1, 2), 3);\n});\n",
            },
            {"our-shop": "packages/shop", "our-till": "packages/till"},
        ),
        _layout(
            "jest-projects",
            "src/prices.js",
            "__tests__/prices.js",
            {
                "package.json": package(
                    "npm run check && npm run unit --",
                    jest={"testEnvironment": "node", "projects": ["<rootDir>", "<rootDir>/more"]},
                    scripts={
                        "check": "node --check src/prices.js",
                        "unit": "jest --coverage=false",
                        "test": "npm run check && npm run unit --",
                    },
                ),
                "__tests__/prices.js": expecting(JEST_HEAD),
                "__tests__/shape.js": "const { total } = require('../src/prices');\n\n"
                "test('its receipt', () => {\n  expect({ total: total([4]) }).toMatchSnapshot();\n});\n",
                "__tests__/__snapshots__/shape.js.snap": "// Jest Snapshot v1, https://jestjs.io/docs/snapshot-testing\n\n"
                'exports[`its receipt 1`] = `\n{\n  "total": 4,\n}\n`;\n',
                "more/package.json": package(name="more"),
                "more/jest.config.js": "module.exports = { displayName: 'more' };\n",
                "more/one.test.js": "test('one', () => {\n  expect(1 + 1).toBe(2);\n});\n",
            },
        ),
        _layout(
            "mocha-spec",
            "src/prices.mjs",
            "spec/prices.spec.mjs",
            {
                "package.json": package("NODE_ENV=test mocha", devDependencies={"mocha": "*"}),
                ".mocharc.json": '{"spec": ["spec/**/*.spec.mjs"], "timeout": 5000, "reporter": "dot"}\n',
                "spec/prices.spec.mjs": asserting(ASSERT_HEAD),
                "spec/deep/more.spec.mjs": "import assert from 'node:assert';\n"
                "import { label } from '../../src/prices.mjs';\n\n"
                "describe('more', () => {\n  it('is there', () => {\n"
                "    assert.strictEqual(label(1), '1.00 EUR');\n  });\n});\n",
            },
            text=MODULE,
        ),
        _layout(
            "node-own",
            "lib/prices.mjs",
            "test/unit/prices.test.mjs",
            {
                "package.json": package("node --test", type="module"),
                "test/unit/prices.test.mjs": asserting(
                    f"{NODE_HEAD}import {{ label, total }} from '../../lib/prices.mjs';\n"
                ),
                "test/unit/steps.test.mjs": f"{NODE_HEAD}import {{ label }} from '../../lib/prices.mjs';\n\n"
                "it('goes step by step', async (t) => {\n"
                "  await t.test('one', () => assert.equal(label(1), '1.00 EUR'));\n"
                "  await t.test('two', () => assert.equal(label(2), '2.00 EUR'));\n});\n",
            },
            text=MODULE,
        ),
        _layout(
            "plain-script",
            "index.js",
            "test.js",
            {
                "package.json": package("node test.js"),
                "test.js": "const assert = require('assert');\nconst { label, total } = require('./index');\n\n"
                "assert.strictEqual(total([1, 2]), 3);\nassert.strictEqual(total([1, 2], 0.5), 1.5);\n"
                "assert.strictEqual(label(2), '2.00 EUR');\nconsole.log('ok');\n",
            },
        ),
        _layout(
            "vitest-browserless",
            "src/prices.js",
            "tests/prices.test.js",
            {
                "package.json": package("vitest", type="module", devDependencies={"vitest": "*"}),
                "vite.config.js": "import { defineConfig } from 'vite';\n\nexport default defineConfig({\n"
                "  test: { globals: true, setupFiles: ['./tests/setup.js'], include: ['tests/**/*.test.js'] },\n});\n",
                "tests/setup.js": "import { beforeEach } from 'vitest';\n\nbeforeEach(() => {\n"
                "  globalThis.started = true;\n});\n",
                "tests/prices.test.js": expecting("import { label, total } from '../src/prices.js';\n"),
                "tests/tables.test.js": "import { total } from '../src/prices.js';\n\n"
                "it.each([\n  [[1], 0, 1],\n  [[2, 2], 0.5, 2],\n"
                "])('total of %j less %d', (prices, discount, wanted) => {\n"
                "  expect(total(prices, discount)).toBe(wanted);\n});\n",
            },
            text=MODULE,
        ),
    )
}
