"""Projects of Node as developers have them: what tests run is built first, each package of a workspace is tested."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from handrail.rules.tests_pass import tests_pass
from outside.nodejs import installed
from rules.on_project import committed, write
from rules.toolchain.workshop import judged

if not sys.platform.startswith("linux"):
    pytest.skip("projects of Node were not tried: the sandbox needs Linux", allow_module_level=True)

from rules.toolchain.environments import by_default

CALC = {
    "src/calc.js": "exports.add = (a, b) => a + b;\n",
    "src/calc.test.js": (
        "const { test } = require('node:test');\nconst assert = require('node:assert');\n"
        "test('adds', () => { assert.strictEqual(require('./calc.js').add(1, 2), 3); });\n"
    ),
    "build.js": "require('node:fs').cpSync('src', 'dist', { recursive: true });\n",
    ".gitignore": "dist/\n",
}
STALE = {name.replace("src/", "dist/"): text for name, text in CALC.items() if name.startswith("src/")}
BUILT = {
    "before": {"build": "node build.js", "test": "npm run build && node --test dist/*.test.js"},
    "pretest": {"pretest": "eslint . && node build.js", "test": "node --test dist/*.test.js"},
    "by hand": {"build": "node build.js", "test": "node --test dist/calc.test.js"},
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home folder, with Node on PATH."""
    node, folder = installed("workspaces"), tmp_path / "home"
    (folder / "bin").mkdir(parents=True)
    for name, target in (("node", node.program), ("npm", Path(node.npm[1]))):
        (folder / "bin" / name).symlink_to(target)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    return folder


@pytest.mark.parametrize("how", BUILT)
async def test_what_tests_run_is_built_from_the_sources_of_now(tmp_path: Path, how: str) -> None:
    package = json.dumps({"scripts": BUILT[how]})
    project = committed(tmp_path / "work", {**CALC, "package.json": package})
    write(project, STALE)
    setting = by_default(project)
    assert (await judged(tests_pass, setting)).findings == ()
    write(project, {"src/calc.js": "exports.add = (a, b) => a - b;\n"})
    [found] = (await judged(tests_pass, setting)).findings
    assert found.message.startswith("adds fails")
    # The tests of the commit are built, too.
    write(
        project, {"src/calc.js": CALC["src/calc.js"], "src/calc.test.js": "require('node:test').test('b', () => {});\n"}
    )
    [found] = (await judged(tests_pass, setting, since="HEAD")).findings
    assert found.message == "adds ran when the step was given out, and is not among the tests any more"


async def test_each_package_of_a_workspace_is_tested_as_its_own_script_says(tmp_path: Path) -> None:
    top = {"workspaces": ["packages/*"], "scripts": {"test": "npm test --workspaces --if-present"}}
    test = "const { test } = require('node:test');\ntest('adds', () => {});\n"
    files = {"package.json": json.dumps(top), "packages/b/b.test.js": test, "packages/a/t/a.test.js": test}
    scripts = {"a": "cd t && node --test", "b": "node --test", "c": "echo 1 passed"}
    for name, script in scripts.items():
        files[f"packages/{name}/package.json"] = json.dumps({"name": name, "scripts": {"test": script}})
    project = committed(tmp_path / "work", files)
    outcome = await judged(tests_pass, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.counts["passed"] == 3
    write(project, {"packages/b/b.test.js": test.replace("adds", "subtracts").replace("{}", "{ throw 1; }")})
    [found] = (await judged(tests_pass, by_default(project))).findings
    assert found.where.startswith("packages/b/b.test.js:2")
    write(project, {"packages/b/b.test.js": test.replace("adds", "subtracts")})
    [found] = (await judged(tests_pass, by_default(project), since="HEAD")).findings
    assert found.where == "packages/b::adds"
