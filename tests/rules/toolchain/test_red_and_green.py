"""Red, green and kept tests in other languages than Python: by Node's own runner, Vitest, Jest, Mocha, and Go."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.engine.checking.rule import Baselines, Setting
from handrail.rules.files.baseline import observed
from handrail.rules.function_rule import FunctionRule
from handrail.rules.tests_pass import tests_kept, tests_pass
from handrail.rules.tests_prove import tests_fail, tests_prove
from outside.nodejs import installed
from outside.toolchains import toolchains
from rules.on_project import committed, git, write
from rules.toolchain.projects import equip
from rules.toolchain.workshop import PYTHON_HOME, Scripted, in_sandbox, judged, made, program, ran, scripted

if not sys.platform.startswith("linux"):
    pytest.skip("not tried: the sandbox needs Linux", allow_module_level=True)

CODE, BROKEN, RAISING = (
    "module.exports.add = (a, b) => a + b;\n",
    "module.exports.add = (a, b) => a - b;\n",
    "module.exports.add = (a, b) => a.plus(b);\n",
)
HEADS = {
    "node": "const { test } = require('node:test');\nconst assert = require('node:assert');\n",
    "mocha": "const test = it;\nconst assert = require('node:assert');\n",
    "jest": "",
    "vitest": "import { test, expect } from 'vitest';\n",
}
SCRIPTS = {"node": "node --test", "mocha": "mocha test", "jest": "jest", "vitest": "vitest run"}
GO_TEST = """package calc

import "testing"

func TestAdds(t *testing.T) {
	if Add(2, 2) != 4 {
		t.Fatal("wrong")
	}
}
"""
GO_ADD = "package calc\n\nfunc Add(a, b int) int { return a + b }\n"
GO_MORE = """
func TestIdle(t *testing.T) {
	for _, a := range []int{0, 0} {
		t.Run("zero", func(t *testing.T) {
			if Add(a, 0) != 0 {
				t.Error(a)
			}
		})
	}
}
"""


@dataclass(frozen=True)
class Yard:
    """A project of one runner: its files by what is in them, and the parameters of its checks."""

    setting: Setting
    code: str
    good: str
    broken: str
    raising: str
    test: str
    tests: str
    more: str
    parameters: Mapping[str, Any]

    async def said(self, rule: FunctionRule, **parameters: Any) -> str:
        outcome = await judged(rule, self.setting, **self.parameters, **parameters)
        return " | ".join(one.message for one in outcome.findings)

    def lay(self, code: str, tests: str) -> None:
        write(self.setting.project, {self.code: code, self.test: tests})


async def javascript(folder: Path, runner: str, monkeypatch: pytest.MonkeyPatch) -> Yard:
    chains, node = toolchains(), installed("the test runners of JavaScript")
    monkeypatch.setenv("PATH", f"{node.program.parent}:/usr/bin:/bin")
    check = "expect({}).toBe({});" if runner in {"jest", "vitest"} else "assert.strictEqual({}, {});"
    bring = "import { add } from '../calc.js';\n" if runner == "vitest" else "const { add } = require('../calc.js');\n"
    tests = f"{HEADS[runner]}{bring}test('adds', () => {{ {check.format('add(2, 2)', 4)} }});\n"
    more = f"test('idle', () => {{ {check.format('add(0, 0)', 0)} }});\n"
    package = f'{{"scripts": {{"test": "{SCRIPTS[runner]}"}}}}'
    name = "test/calc.test.mjs" if runner == "vitest" else "test/calc.test.js"
    files = {"package.json": package, "calc.js": BROKEN, name: f"{HEADS[runner]}{bring}{more}"}
    project = committed(folder, {**files, ".gitignore": "node_modules\n"})
    if runner != "node":
        shutil.copytree(chains.node_modules, project / "node_modules", symlinks=True, copy_function=os.link)
    setting = in_sandbox(project, PYTHON_HOME, chains.folder, node.folder)
    started = replace(setting, baselines=Baselines(run=await observed(project)))
    return Yard(started, "calc.js", CODE, BROKEN, RAISING, name, tests, more, {})


async def go(folder: Path, _runner: str, monkeypatch: pytest.MonkeyPatch) -> Yard:
    chains = toolchains()
    monkeypatch.setenv("PATH", f"{chains.go / 'bin'}:/usr/bin:/bin")
    broken = GO_ADD.replace("+", "-")
    module = "module example.com/calc\n\ngo 1.20\n"
    old = f'package calc\n\nimport "testing"\n{GO_MORE}'
    files = {"go.mod": module, "calc.go": broken, "calc_test.go": old, ".gitignore": ".cache\n"}
    project = committed(folder, files)
    parameters = equip(project, "go", chains)
    started = replace(in_sandbox(project, chains.folder), baselines=Baselines(run=await observed(project)))
    raising = GO_ADD.replace("return a + b", "return []int{}[a]")
    return Yard(started, "calc.go", GO_ADD, broken, raising, "calc_test.go", GO_TEST, GO_MORE, parameters)


NAMES = {"go": ("TestAdds", "TestIdle")}


@pytest.mark.parametrize("runner", ["node", "vitest", "jest", "mocha", "go"])
async def test_red_green_and_kept_are_seen_with_every_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    yard = await (go if runner == "go" else javascript)(tmp_path / "project", runner, monkeypatch)
    adds, idle = NAMES.get(runner, ("adds", "idle"))
    yard.lay(yard.broken, yard.tests + yard.more)
    assert await yard.said(tests_fail, tests=[adds]) == "", "it is red at an assertion"
    assert await yard.said(tests_fail, tests=[idle]) == f"{idle} must fail, but is passed"
    assert await yard.said(tests_fail, tests=["nowhere"]) == "there is no test nowhere among those that ran"
    yard.lay(yard.raising, yard.tests + yard.more)
    assert "not at an assertion" in await yard.said(tests_fail, tests=[adds])
    yard.lay(yard.good, yard.tests + yard.more)
    git(yard.setting.project, "add", "-A")
    git(yard.setting.project, "commit", "-qm", "fix")
    assert await yard.said(tests_prove, tests=[adds]) == ""
    assert (
        await yard.said(tests_prove, tests=[idle]) == f"{idle} also passes without the change, so it does not prove it"
    )
    assert await yard.said(tests_kept) == ""
    yard.lay(yard.good, yard.tests)
    assert f"{idle} ran when the step was given out, and is not among the tests any more" in await yard.said(tests_kept)


async def test_a_case_of_a_go_test_is_named_as_go_does_and_a_lost_one_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard = await go(tmp_path / "project", "go", monkeypatch)
    assert await yard.said(tests_fail, tests=["TestIdle/zero"]) == "TestIdle/zero must fail, but is passed"
    write(
        yard.setting.project, {"calc_test.go": f'package calc\n\nimport "testing"\n{GO_MORE.replace("{0, 0}", "{0}")}'}
    )
    assert ".::TestIdle had 2 cases when the step was given out, and 1 of them run now" in await yard.said(tests_kept)


async def test_a_runner_that_names_no_tests_says_so_instead_of_missing_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{program(tmp_path / 'bin', 'make').parent}:/usr/bin:/bin")
    project = made(tmp_path / "project", {"Makefile": "test:\n\ttrue\n", "a.c": ""})
    setting = scripted(project, Scripted(ran("3 passed, 1 failed\n", code=1)))
    [found] = (await judged(tests_fail, setting, tests=["adds"], language="c")).findings
    assert found.unapplied
    assert found.message == "make does not say which tests ran, so single tests can't be judged"
    setting = scripted(project, Scripted(ran("3 passed\n")))
    [found] = (await judged(tests_kept, setting, language="c")).findings
    assert found.unapplied
    assert "which were lost" in found.message
    assert (await judged(tests_pass, scripted(project, Scripted(ran("3 passed\n"))), language="c")).passed
