"""Tests of JavaScript whose outcome is known: one that must pass, and one that must fail for each of the usual ways to
assert. Pure, but for reading the test that they are put beside."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from secrets import token_hex
from typing import Final

from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import GOOD, Canary

TOKEN: Final = f"c{token_hex(6)}"
"""In the names of these tests: a test can not know it beforehand."""
SUFFIXES: Final = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
CHECKS: Final = {
    "jest": ("expect(1).toBe(2)",),
    "vitest": ("expect(1).toBe(2)",),
    "mocha": ("assert.strictEqual(1, 2)", "assert.deepStrictEqual([1], [2])", "assert.ok(false)", "assert(false)"),
    "node": ("assert.strictEqual(1, 2)", "assert.deepStrictEqual([1], [2])", "assert.ok(false)", "assert(false)"),
}
RIGHT: Final = {
    "jest": "expect(1).toBe(1)",
    "vitest": "expect(1).toBe(1)",
    "mocha": "assert.strictEqual(1, 1)",
    "node": "assert.strictEqual(1, 1)",
}
OWN_MAX: Final = 20
OF_CHAI: Final = "expect(1).to.equal(2)"
GIVEN: Final = {"node": "node:test", "vitest": "vitest"}
"""Where runners have `test` that do not give it to every file."""

_test = re.compile(r"[._-](?:tests?|spec)\.[cm]?[jt]sx?$")
_in_folder = re.compile(r"(?:^|/)(?:tests?|spec|specs|__tests__)/[^/]+\.[cm]?[jt]sx?$")
_own = re.compile(r"(?:\bfrom\s*|\bimport\s*|\brequire\(\s*)['\"](\.[\w./@-]{1,200})['\"]")
_chai = re.compile(r"['\"]chai['\"]")
_imports = re.compile(r"^\s*import\b", re.MULTILINE)


def canary_of(site: Site, runner: str) -> Canary | None:
    """The canary to put beside the project's tests; None if there are none, or none can be written for the runner."""
    if runner not in CHECKS:
        return None
    names = [name for name in site.sources(*SUFFIXES) if _test.search(name) or _in_folder.search(name)]
    beside = min(names, key=lambda name: (not _test.search(name), name), default="")
    if not beside:
        return None
    folder, _, file = beside.rpartition("/")
    named = _test.search(file)
    ending = named[0] if named else file[file.rindex(".") :]
    path = f"{folder}/{TOKEN}{ending}".lstrip("/")
    return Canary(token=TOKEN, path=path, text=_text(runner, site.text(beside)))


def _text(runner: str, beside: str) -> str:
    """Written with `import` if the test beside it is."""
    needed = partial(_needed, is_module=bool(_imports.search(beside)))
    has_chai = runner == "mocha" and _chai.search(beside) is not None
    lines = [
        needed("assert", "node:assert"),
        *_given(runner, needed),
        *([needed("{ expect }", "chai")] if has_chai else []),
    ]
    # What the tests load may replace their assertions.
    lines += [needed("", path) for path in list(dict.fromkeys(_own.findall(beside)))[:OWN_MAX]]
    checks = [*CHECKS[runner], *([OF_CHAI] if has_chai else [])]
    call = "test" if runner in GIVEN else f"{TOKEN}Test"
    lines += [f"{call}('{TOKEN} {number}', () => {{ {check}; }});" for number, check in enumerate(checks)]
    lines.append(f"{call}('{TOKEN} {GOOD}', () => {{ {RIGHT[runner]}; }});")
    return "\n".join(lines) + "\n"


def _given(runner: str, needed: Callable[[str, str], str]) -> list[str]:
    """How a file gets `test`."""
    if runner not in GIVEN:
        return ["const XTest = typeof it === 'function' ? it : test;".replace("X", TOKEN)]
    return [needed("{ test, expect }" if runner == "vitest" else "{ test }", GIVEN[runner])]


def _needed(names: str, module: str, *, is_module: bool) -> str:
    if not names:
        return f"import '{module}';" if is_module else f"require('{module}');"
    return f"import {names} from '{module}';" if is_module else f"const {names} = require('{module}');"
