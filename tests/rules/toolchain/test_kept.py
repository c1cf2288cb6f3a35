"""Tests that were there are still there and still run; red and green are seen by handrail itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.engine.checking.rule import Baselines, Setting
from handrail.rules.files.baseline import observed
from handrail.rules.function_rule import FunctionRule
from handrail.rules.tests_notice import tests_notice
from handrail.rules.tests_pass import tests_kept, tests_pass
from handrail.rules.tests_prove import tests_fail, tests_prove
from rules.on_project import committed, git, write
from rules.toolchain.workshop import PYTHON_HOME, in_sandbox, judged

if not sys.platform.startswith("linux"):
    pytest.skip("not tried: the sandbox needs Linux", allow_module_level=True)

CODE = "def add(a, b):\n    return a + b\n"
BROKEN = "def add(a, b):\n    return a - b\n"
TESTS = """import pytest
from calc import add


def test_adds():
    assert add(2, 2) == 4


@pytest.mark.parametrize("a", [1, 2, 3])
def test_cases(a):
    assert add(a, 0) == a


def test_skips_itself():
    if add(1, 1) == 2:
        pytest.skip("not here")


class TestMore:
    def test_more(self):
        assert add(0, 0) == 0
"""
CONFIG = "[tool.pytest.ini_options]\naddopts = '{}'\n"
FILES = {"pyproject.toml": "", "calc.py": CODE, "tests/test_calc.py": TESTS, "conftest.py": ""}
ADDS = "tests/test_calc.py::test_adds"


async def started(folder: Path, files: dict[str, str]) -> Setting:
    project = committed(folder, files)
    return replace(in_sandbox(project, PYTHON_HOME), baselines=Baselines(run=await observed(project)))


@pytest.fixture
async def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setenv("PATH", f"{PYTHON_HOME / 'bin'}:/usr/bin:/bin")
    return await started(tmp_path / "project", FILES)


async def said(rule: FunctionRule, setting: Setting, **parameters: Any) -> list[str]:
    return [one.message for one in (await judged(rule, setting, **parameters)).findings]


LYING = """import pytest
from calc import add


def check_adds():
    assert add(2, 2) == 4


@pytest.mark.parametrize("a", [1, 2])
def test_cases(a):
    assert add(a, 0) == a


@pytest.mark.skip
def test_b():
    assert add(1, 0) == 1


@pytest.mark.xfail
def test_c():
    assert add(2, 0) == 2


def test_d():
    pytest.skip("not now")


def test_e():
    pass


def test_f():
    assert True


def test_skips_itself():
    if add(1, 1) == 2:
        pytest.skip("not here")


class TestMore:
    def test_more(self):
        assert add(0, 0) == 0
"""
MORE = "".join(f"\n\ndef test_{name}():\n    assert add(0, 0) == 0\n" for name in "bcdef")


def commit(run: Setting, files: dict[str, str | bytes]) -> None:
    write(run.project, files)
    git(run.project, "add", "-A")
    git(run.project, "commit", "-q", "-m", "all green")


async def test_a_suite_that_is_green_because_tests_were_lost_does_not_pass(run: Setting) -> None:
    commit(run, {"tests/test_calc.py": TESTS + MORE})
    run = replace(run, baselines=replace(run.baselines, step=await observed(run.project)))
    commit(run, {"tests/test_calc.py": LYING})
    outcome = await judged(tests_pass, run)
    assert {one.rule for one in outcome.findings} == {"tests_kept"}
    ran = "ran when the step was given out, and is"
    assert sorted(one.message.replace("tests/test_calc.py::", "") for one in outcome.findings) == [
        f"test_adds {ran} not among the tests any more",
        f"test_b {ran} skipped now",
        f"test_c {ran} expected to fail now",
        "test_cases had 3 cases when the step was given out, and 2 of them run now",
        f"test_d {ran} skipped now",
        "test_e checks nothing any more",
        "test_f checks nothing any more",
    ]
    assert await said(tests_pass, run, kept=False) == []
    assert await said(tests_pass, replace(run, baselines=Baselines())) == [], (
        "without a run there is nothing to compare"
    )


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": CONFIG.format('-k "not adds"')},
        {"conftest.py": "collect_ignore = ['tests']\n", "test_b.py": "def test_b():\n    assert 1 + 1\n"},
    ],
)
async def test_tests_that_the_configuration_leaves_out_are_lost(run: Setting, files: dict[str, str | bytes]) -> None:
    commit(run, files)
    messages = await said(tests_kept, run)
    assert f"{ADDS} ran when the step was given out, and is not among the tests any more" in messages


async def test_an_honest_change_of_tests_passes(run: Setting) -> None:
    reworded = TESTS.replace("[1, 2, 3]", "[4, 5, 6, 7]").replace("add(2, 2) == 4", "4 == add(2, 2)")
    renamed = reworded.replace("add(", "plus(").replace("import add", "import plus")
    files = {"calc.py": CODE.replace("add", "plus"), "tests/test_moved.py": renamed, "tests/test_calc.py": ""}
    write(run.project, {**files, "pyproject.toml": CONFIG.format("-ra")})
    assert await said(tests_pass, run) == []


async def test_the_project_is_never_changed_for_a_comparison(run: Setting) -> None:
    other = TESTS.replace("def test_adds():\n    assert add(2, 2) == 4", "def test_other():\n    assert add(3, 0) == 3")
    write(run.project, {"tests/test_calc.py": other, "new.py": "x\n"})
    before = {path: path.read_bytes() for path in run.project.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert len(await said(tests_pass, run)) == 1
    after = {path: path.read_bytes() for path in run.project.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert after == before


async def test_a_red_test_must_be_red_at_an_assertion(run: Setting) -> None:
    assert await said(tests_fail, run, tests=[ADDS]) == [f"{ADDS} must fail, but is passed"]
    write(run.project, {"calc.py": BROKEN})
    assert await said(tests_fail, run, tests=[ADDS]) == []
    assert await said(tests_fail, run, tests=["test_adds", f"{ADDS}x"]) == [
        f"there is no test {ADDS}x among those that ran"
    ]
    write(run.project, {"calc.py": "def add(a, b):\n    return a.plus(b)\n"})
    assert await said(tests_fail, run, tests=[ADDS]) == [f"{ADDS} fails with AttributeError, not at an assertion"]
    assert await said(tests_fail, run, tests=[ADDS], raises=["KeyError"]) != []
    assert await said(tests_fail, run, tests=[ADDS], raises=["builtins.AttributeError"]) == [], "the report is a crash"
    write(run.project, {"calc.py": "def add(a, b):\n    import nowhere\n"})
    [found] = await said(tests_fail, run, tests=[ADDS], raises=["ModuleNotFoundError"])
    assert "ModuleNotFoundError" in found, "a module that is missing is never what was reported"
    write(
        run.project,
        {"calc.py": CODE, "tests/test_new.py": "from calc import new\n\n\ndef test_new():\n    assert new()\n"},
    )
    [not_yet] = (await judged(tests_fail, run, tests=["tests/test_new.py::test_new"])).findings
    assert "cannot import name 'new'" in not_yet.message, "the test is there, and what it needs is named"
    assert "if it tests new code, write that first" in not_yet.fix
    write(
        run.project,
        {"tests/test_new.py": "from calc import add\n\n\ndef test_new():\n    add(1, 1)\n    assert False\n"},
    )
    [found] = await said(tests_fail, run, tests=["tests/test_new.py::test_new"])
    assert "fails whatever the code does: it ends in a failure that depends on nothing" in found


async def test_a_test_proves_a_change_if_it_is_red_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{PYTHON_HOME / 'bin'}:/usr/bin:/bin")
    run = await started(
        tmp_path / "project", {**FILES, "calc.py": BROKEN, "tests/test_calc.py": "def test_one():\n    assert 1\n"}
    )
    [nothing] = await said(tests_prove, run, tests=["tests/test_calc.py::test_one"])
    assert nothing.startswith("nothing but tests has changed")
    write(
        run.project,
        {"calc.py": CODE, "tests/test_calc.py": f"{TESTS}\n\ndef test_idle():\n    assert add(0, 0) == 0\n"},
    )
    git(run.project, "add", "-A")
    git(run.project, "commit", "-q", "-m", "fix")
    assert await said(tests_prove, run, tests=[ADDS]) == []
    idle = "tests/test_calc.py::test_idle"
    assert await said(tests_prove, run, tests=[idle]) == [
        f"{idle} also passes without the change, so it does not prove it"
    ]
    write(run.project, {"calc.py": BROKEN + "\n"})
    assert await said(tests_prove, run, tests=[ADDS]) == [f"{ADDS} must pass now, but is failed"]


async def test_a_test_of_something_new_can_not_even_be_imported_without_it(run: Setting) -> None:
    test = "from calc import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n"
    write(run.project, {"calc.py": f"{CODE}\n\ndef twice(a):\n    return a + a\n", "tests/test_twice.py": test})
    assert await said(tests_prove, run, tests=["tests/test_twice.py::test_twice"]) == []


def broken(old: str = "a + b", new: str = "a - b", *, test: str = ADDS, file: str = "calc.py") -> dict[str, str]:
    return {"test": test, "file": file, "old": old, "new": new}


async def test_a_test_notices_a_break_if_handrail_sees_it_red_there(run: Setting) -> None:
    before = (run.project / "calc.py").read_bytes()
    assert await said(tests_notice, run, breaks=[broken(), broken(new="b + 7")]) == []
    [found] = await said(tests_notice, run, breaks=[broken(), broken(new="b + a")])
    assert found == f"with 'b + a' instead of 'a + b' in calc.py: {ADDS} must fail, but is passed"
    [found] = await said(tests_notice, run, breaks=[broken(new="a.plus(b)")])
    assert found.endswith("fails with AttributeError, not at an assertion")
    [found] = await said(tests_notice, run, breaks=[broken(new="(")])
    assert found.endswith(f"there is no test {ADDS} among those that ran"), "what can't be imported notices nothing"
    assert (run.project / "calc.py").read_bytes() == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (broken(file="tests/test_calc.py", old="== 4", new="== 5"), "tests/test_calc.py belongs to the tests"),
        (broken(old="nothing"), "'nothing' is 0 times in calc.py, not once"),
        (broken(old="a"), "'a' is 3 times in calc.py, not once"),
        (broken(new="a  + b"), "are the same"),
        (broken(file="../calc.py"), "../calc.py"),
        (broken(test="tests/test_calc.py::test_none"), "there is no test tests/test_calc.py::test_none"),
    ],
)
async def test_a_break_that_is_none_is_refused(run: Setting, wrong: dict[str, str], message: str) -> None:
    [found] = await said(tests_notice, run, breaks=[wrong])
    assert message in found
