"""Four real packages of Node's registry, each with another test runner and tests of our own around it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from outside.corpus.packages import packages
from outside.corpus.yard import Yard, clean_shell, copied
from outside.nodejs import installed
from outside.toolchains import toolchains


@dataclass(frozen=True)
class JavaScript:
    """A package with its runner: how its tests start, what they check, and what breaks it."""

    name: str
    runner: str
    script: str
    head: str
    """How a test file starts."""
    checks: tuple[str, str, str]
    """Three assertions; the first fails if the package is broken."""
    breaking: str
    """What to add to the package."""
    type: str = "commonjs"
    tests: str = "test/first.test.js"
    others: str = "test/second.test.js"

    @property
    def is_module(self) -> bool:
        return self.type == "module"

    def test(self, name: str, check: str) -> str:
        word = "test" if self.runner in {"node", "vitest"} else "it"
        return f"  {word}('{name}', () => {{\n    {check}\n  }});\n"

    def file(self, group: str, *tests: str) -> str:
        return f"{self.head}\ndescribe('{group}', () => {{\n{''.join(tests)}}});\n"


JAVASCRIPTS = {
    one.name: one
    for one in (
        JavaScript(
            "ms",
            "node",
            "node --test",
            "const { describe, test } = require('node:test');\nconst assert = require('node:assert');\n"
            "const it = require('../index.js');\n",
            (
                "assert.strictEqual(it('2 days'), 172800000);",
                "assert.strictEqual(typeof it, 'function');",
                "assert.throws(() => it(''));",
            ),
            "\nmodule.exports = function (value) { if (!value) throw new Error('no'); return 0; };\n",
        ),
        JavaScript(
            "escape-string-regexp",
            "vitest",
            "vitest run",
            "import { describe, expect, test } from 'vitest';\nimport it from '../index.js';\n",
            (
                "expect(it('a.b')).toBe('a\\\\.b');",
                "expect(typeof it).toBe('function');",
                "expect(() => it(1)).toThrow();",
            ),
            "",
            type="module",
        ),
        JavaScript(
            "fast-deep-equal",
            "jest",
            "jest",
            "const equal = require('../index.js');\n",
            (
                "expect(equal({ a: [1] }, { a: [2] })).toBe(false);",
                "expect(equal(1, 1)).toBe(true);",
                "expect(typeof equal).toBe('function');",
            ),
            "\nmodule.exports = function () { return true; };\n",
        ),
        JavaScript(
            "minimist",
            "mocha",
            "mocha",
            "const assert = require('node:assert');\nconst parse = require('../index.js');\n",
            (
                "assert.deepStrictEqual(parse(['--a', '1']).a, 1);",
                "assert.strictEqual(typeof parse, 'function');",
                "assert.ok(parse([])._);",
            ),
            "\nmodule.exports = function () { return { _: [] }; };\n",
        ),
    )
}
SOURCES = ("index.js", "index.mjs", "index.d.ts", "license", "LICENSE", "license.md", "readme.md", "README.md")


def laid(project: JavaScript, home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """The project with its packages, and the shell of its developer."""
    node = installed("the corpus")
    bins = home / "node" / "bin"
    bins.mkdir(parents=True)
    for name, target in (("node", node.program), ("npm", Path(node.npm[1]))):
        (bins / name).symlink_to(target)
    clean_shell(monkeypatch, home, bins)
    yard = Yard(home, project.name)
    found = packages() / "node_modules"
    for name in SOURCES:
        if (found / project.name / name).is_file():
            shutil.copy2(found / project.name / name, yard.root)
    copied(found, yard.root / "node_modules")
    for name in ("typescript", "@typescript"):
        copied(toolchains().node_modules / name, yard.root / "node_modules" / name)
    (yard.root / "node_modules" / ".bin" / "tsc").symlink_to("../typescript/bin/tsc")
    package = {
        "name": f"around-{project.name}",
        "version": "1.0.0",
        "type": project.type,
        "scripts": {"test": project.script},
        "devDependencies": {} if project.runner == "node" else {project.runner: "*"},
    }
    first, second, third = project.checks
    yard.write(
        {
            "package.json": json.dumps(package, indent=2) + "\n",
            project.tests: project.file("first", project.test("counts", first), project.test("is there", second)),
            project.others: project.file("second", project.test("refuses", third), project.test("still", second)),
            "docs.md": "# Docs\n",
        }
    )
    if project.runner == "jest":
        yard.write({"jest.config.js": "module.exports = { testEnvironment: 'node' };\n"})
    return yard


def broken(yard: Yard, project: JavaScript) -> None:
    """The package does something else."""
    if project.breaking:
        yard.append("index.js", project.breaking)
    else:
        yard.edit("index.js", ".replace(", ".slice(0).concat('!').replace(")
