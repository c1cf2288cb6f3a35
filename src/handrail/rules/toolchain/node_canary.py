"""Tests of JavaScript that must fail, one for each runner and each of the usual ways to assert. Pure, but for reading
the test that they are put beside."""

from __future__ import annotations

import re
from typing import Final

from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import Canary

NAME: Final = "handrail canary"
SUFFIXES: Final = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
CHECKS: Final = {
    "jest": ("expect(1).toBe(2)",),
    "vitest": ("expect(1).toBe(2)",),
    "mocha": ("assert.strictEqual(1, 2)", "assert.deepStrictEqual([1], [2])", "assert.ok(false)", "assert(false)"),
    "node": ("assert.strictEqual(1, 2)", "assert.deepStrictEqual([1], [2])", "assert.ok(false)", "assert(false)"),
}
OWN_MAX: Final = 20
OF_CHAI: Final = "expect(1).to.equal(2)"
GIVEN: Final = {"node": "node:test", "vitest": "vitest"}
"""Where runners have `test` that do not give it to every file."""

_test = re.compile(r"[._-](?:tests?|spec)\.[cm]?[jt]sx?$")
_in_folder = re.compile(r"(?:^|/)(?:tests?|spec|specs|__tests__)/[^/]+\.[cm]?[jt]sx?$")
_own = re.compile(r"(?:\bfrom\s*|\bimport\s*|\brequire\(\s*)['\"](\.[\w./@-]{1,200})['\"]")
_imports = re.compile(r"^\s*import\b", re.MULTILINE)


def canary_of(site: Site, runner: str) -> Canary | None:
    """The canary to put beside the project's tests; None if there are none."""
    names = [name for name in site.sources(*SUFFIXES) if _test.search(name) or _in_folder.search(name)]
    beside = min(names, key=lambda name: (not _test.search(name), name), default="")
    if not beside:
        return None
    folder, _, file = beside.rpartition("/")
    named = _test.search(file)
    ending = named[0] if named else file[file.rindex(".") :]
    path = f"{folder}/handrail-canary{ending}".lstrip("/")
    return Canary(path=path, text=_text(runner, site.text(beside)))


def _text(runner: str, beside: str) -> str:
    """Written with `import` if the test beside it is."""
    is_module = bool(_imports.search(beside))
    lines = [_needed("assert", "node:assert", is_module=is_module)]
    names = "{ test, expect }" if runner == "vitest" else "{ test }"
    if runner in GIVEN:
        lines.append(_needed(names, GIVEN[runner], is_module=is_module))
    else:
        lines.append("const handrailTest = typeof it === 'function' ? it : test;")
    # What the tests load may replace their assertions.
    own = list(dict.fromkeys(_own.findall(beside)))[:OWN_MAX]
    lines += [f"import '{path}';" if is_module else f"require('{path}');" for path in own]
    checks = list(CHECKS[runner])
    if runner == "mocha" and re.search(r"['\"]chai['\"]", beside):
        lines.append(_needed("{ expect }", "chai", is_module=is_module))
        checks.append(OF_CHAI)
    call = "test" if runner in GIVEN else "handrailTest"
    lines += [f"{call}('{NAME} {number}', () => {{ {check}; }});" for number, check in enumerate(checks)]
    return "\n".join(lines) + "\n"


def _needed(names: str, module: str, *, is_module: bool) -> str:
    return f"import {names} from '{module}';" if is_module else f"const {names} = require('{module}');"
