"""Checks without a sandbox: other states of the project are tried in a copy, also where it is installed as a link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.engine.checking.rule import Baselines, Setting
from handrail.rules.files.baseline import observed
from handrail.rules.function_rule import FunctionRule
from handrail.rules.tests_notice import tests_notice
from handrail.rules.tests_pass import tests_kept
from handrail.rules.tests_prove import tests_prove
from handrail.tools.sandbox.unconfined import CAVEAT, Unconfined
from rules.on_project import committed, setting_of, write
from rules.toolchain.environments import PYTEST, VERSION, environment
from rules.toolchain.workshop import judged

if os.name != "posix":
    pytest.skip("these commands are for POSIX", allow_module_level=True)

CODE, SOURCE, TESTS = "def add(a, b):\n    return a - b\n", "src/calc/__init__.py", "tests/test_calc.py"
FIXED = CODE.replace("-", "+")
TEST = "from calc import add\n\n\ndef test_nothing():\n    assert add(2, 0) == 2\n"
MORE = f"{TEST}\n\ndef test_adds():\n    assert add(2, 2) == 4\n"
ADDS, NOTHING = f"{TESTS}::test_adds", f"{TESTS}::test_nothing"
FILES = {"pyproject.toml": "", ".gitignore": ".venv/\n", SOURCE: CODE, TESTS: TEST}


def as_line(project: Path) -> dict[str, str]:
    """As most installers link a project to an environment."""
    return {"_calc.pth": f"{project}/src\n"}


def as_finder(project: Path) -> dict[str, str]:
    """As setuptools does."""
    finder = f"""import sys, importlib.util
MAPPING: dict[str, str] = {{'calc': '{project}/src/calc'}}
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            return importlib.util.spec_from_file_location(name, MAPPING[name] + "/__init__.py")
def install():
    sys.meta_path.append(Finder)
"""
    start = "import __editable___calc_1_finder; __editable___calc_1_finder.install()\n"
    return {"__editable___calc_1_finder.py": finder, "__editable__.calc-1.pth": start}


@pytest.fixture
async def run(request: pytest.FixtureRequest, tmp_path: Path) -> Setting:
    project = committed(tmp_path / "project", FILES)
    packages = environment(project / ".venv", PYTEST) / "lib" / VERSION / "site-packages"
    write(packages, getattr(request, "param", as_line)(project))
    setting = replace(setting_of(project), sandbox=Unconfined(project))
    return replace(setting, baselines=Baselines(run=await observed(project)))


async def said(rule: FunctionRule, run: Setting, **parameters: Any) -> list[str]:
    outcome = await judged(rule, run, **parameters)
    assert outcome.evidence is not None, outcome
    assert outcome.evidence.caveat == CAVEAT
    return [found.message for found in outcome.findings]


@pytest.mark.parametrize("run", [as_line, as_finder], indirect=True)
async def test_a_change_is_proven_in_a_copy(run: Setting) -> None:
    write(run.project, {SOURCE: FIXED, TESTS: MORE})
    assert await said(tests_prove, run, tests=[ADDS]) == []
    [green] = await said(tests_prove, run, tests=[ADDS, NOTHING])
    assert green == f"{NOTHING} also passes without the change, so it does not prove it"
    broken = {"test": ADDS, "file": SOURCE, "old": "a + b", "new": "a * b"}
    [unnoticed] = await said(tests_notice, run, breaks=[broken])
    assert "is passed" in unnoticed
    assert await said(tests_notice, run, breaks=[{**broken, "new": "a - b"}]) == []
    assert (run.project / SOURCE).read_text() == FIXED


async def test_a_test_of_the_start_that_is_gone_is_missed(run: Setting) -> None:
    write(run.project, {SOURCE: FIXED, TESTS: MORE.replace("def test_nothing():\n    assert add(2, 0) == 2\n", "")})
    [lost] = await said(tests_kept, run)
    assert lost == f"{NOTHING} ran when the step was given out, and is not among the tests any more"


async def test_tests_that_need_the_place_of_the_project_can_prove_nothing_in_a_copy(run: Setting) -> None:
    bound = MORE.replace("assert add(2, 2) == 4", f"assert __file__.startswith({str(run.project)!r})")
    write(run.project, {SOURCE: FIXED, TESTS: bound})
    [found] = (await judged(tests_prove, run, tests=[ADDS])).findings
    assert found.unapplied
    assert "not in a copy of it" in found.message
