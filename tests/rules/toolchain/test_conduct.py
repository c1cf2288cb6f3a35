"""How commands of tool chains are run: bounds, ends, what the sandbox hides, and what is left in the evidence."""

from __future__ import annotations

import json
import os
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.domain.checks.finding import FixedBy
from handrail.domain.definition.model import Category
from handrail.engine.sandbox import Job, Ran
from handrail.engine.tool import Progress, ToolFailed, silent
from handrail.rules.command_succeeds import command_succeeds
from handrail.rules.compiles import compiles
from handrail.rules.lint_clean import lint_clean
from handrail.rules.tests_pass import tests_pass
from handrail.rules.toolchain.probe import SEAL
from handrail.tools.sandbox.unconfined import Unconfined
from rules.on_project import setting_of
from rules.toolchain.workshop import PYTHON_HOME, Scripted, in_sandbox, judged, made, places, program, ran, scripted

TESTS = {"pyproject.toml": "", "test_a.py": "def test_a():\n    pass\n"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{PYTHON_HOME / 'bin'}:/usr/bin:/bin")
    return made(tmp_path / "project", TESTS)


def unconfined(project: Path) -> Any:
    return scripted(project, Unconfined(project))


class Failing:
    caveat = ""

    def __init__(self, error: ToolFailed) -> None:
        self.error = error

    async def run(self, job: Job, *, progress: Progress = silent) -> Ran:
        raise self.error

    async def trial(self) -> str:
        return ""


class Unusable(Failing):
    async def trial(self) -> str:
        return "there is no bubblewrap here; install bubblewrap"


async def test_without_a_sandbox_nothing_runs_and_the_finding_says_how_to_get_one(project: Path) -> None:
    sandbox = Unusable(ToolFailed(Category.PERMISSION, "never"))
    for rule, parameters in ((tests_pass, {}), (command_succeeds, {"argv": ["true"]})):
        outcome = await judged(rule, scripted(project, sandbox), **parameters)
        assert [one.message for one in outcome.findings] == [
            "commands can't be run here: there is no bubblewrap here; install bubblewrap"
        ]
        assert "`handrail doctor`" in outcome.findings[0].fix


async def test_a_program_that_the_sandbox_hides_says_which_folder_to_show(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("the sandbox needs Linux")
    monkeypatch.setenv("HOME", str(project.parent))
    own = program(project.parent / ".config" / "chain" / "bin", "ruff")
    setting = in_sandbox(project)
    monkeypatch.setenv("PATH", str(own.parent))
    outcome = await judged(lint_clean, setting)
    assert [one.where for one in outcome.findings] == ["checks"]
    assert "in the sandbox" in outcome.findings[0].message
    assert f"let the sandbox read {own.parent.parent.resolve()}" in outcome.findings[0].fix


async def test_a_command_that_can_not_be_started_is_a_finding(project: Path) -> None:
    sandbox = Failing(ToolFailed(Category.PERMISSION, "the sandbox could not be made: oh"))
    assert await places(tests_pass, scripted(project, sandbox)) == [("checks", "the sandbox could not be made: oh")]


def sealed(*facts: dict[str, Any]) -> str:
    """What our probe prints."""
    return "\n".join(json.dumps({"seal": SEAL, **fact}) for fact in facts)


async def test_no_tests_is_no_pass(project: Path) -> None:
    (project / "test_a.py").write_text("x = 1\n", encoding="utf-8")
    found = await places(tests_pass, unconfined(project))
    assert found == [("checks", "python3 ended with exit 5")]
    sandbox = Scripted(ran(sealed({"done": 0, "collected": 0})))
    assert await places(tests_pass, scripted(project, sandbox)) == [("checks", "no tests ran")]


async def test_a_runner_that_is_ended_from_inside_has_not_passed(project: Path) -> None:
    (project / "test_a.py").write_text("import os\n\ndef test_a():\n    os._exit(0)\n", encoding="utf-8")
    [(where, message)] = await places(tests_pass, unconfined(project))
    assert where == "checks"
    assert message == "python3 ended with exit 0, but its results are incomplete"


async def test_a_test_that_hangs_is_stopped_and_reported(project: Path) -> None:
    (project / "test_a.py").write_text("import time\n\ndef test_a():\n    time.sleep(60)\n", encoding="utf-8")
    outcome = await judged(tests_pass, unconfined(project), timeout="2s")
    assert outcome.findings[0].message.startswith("python3 was stopped after ")
    assert "`timeout`" in outcome.findings[0].fix
    assert outcome.evidence is not None
    assert not outcome.evidence.is_settled


async def test_a_command_beyond_another_bound_says_which(project: Path) -> None:
    sandbox = Scripted(replace(ran(code=137), stopped="memory"))
    assert await places(tests_pass, scripted(project, sandbox)) == [
        ("checks", "python3 was stopped: it exceeded its limit of memory")
    ]


async def test_a_hundred_failures_are_reported_in_twenty_and_a_sum(project: Path) -> None:
    flaw = {"outcome": "failed", "file": "a.py", "message": "no"}
    facts = [{"test": f"t{n}", "line": n, **flaw} for n in range(1, 101)]
    sandbox = Scripted(ran(sealed(*facts, {"done": 1}), code=1))
    outcome = await judged(tests_pass, scripted(project, sandbox))
    assert len(outcome.findings) == 21
    assert outcome.findings[0].where == "a.py:1"
    assert "80 more" in outcome.findings[-1].message
    assert outcome.evidence is not None
    assert outcome.evidence.counts["failed"] == 100
    assert outcome.evidence.is_settled


async def test_unittest_is_run_where_there_is_no_pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "project" / ".venv", symlinks=True)
    monkeypatch.setenv("PATH", f"{program(tmp_path / 'bin', 'pytest').parent}:{os.environ['PATH']}")
    code = (
        "import unittest\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 2)\n"
        "    def test_b(self):\n        pass\n    @unittest.skip('x')\n    def test_c(self):\n        pass\n"
        "    @unittest.expectedFailure\n    def test_d(self):\n        pass\n"
        "    def test_e(self):\n        with self.subTest(n=1):\n            self.fail('sub')\n"
        "    def test_f(self):\n        raise ValueError('oh')\n"
    )
    project = made(tmp_path / "project", {"setup.py": "", "test_a.py": code})
    outcome = await judged(tests_pass, unconfined(project))
    assert outcome.evidence is not None
    assert outcome.evidence.counts == {"tests": 6, "passed": 1, "failed": 3, "errors": 1, "skipped": 1}
    found = {one.where: one.message for one in outcome.findings}
    assert found["test_a.py:5"] == "test_a.T.test_a fails: AssertionError: 1 != 2"
    assert found["test_a.py:16"].endswith("fails: AssertionError: sub")
    assert found["test_a.py:18"] == "test_a.T.test_f fails: ValueError: oh"
    assert found["checks"].endswith("it passes, and was expected to fail")


async def test_a_test_file_that_can_not_be_imported_says_why_and_where(project: Path) -> None:
    (project / "test_b.py").write_text("import sys\nimport not_there\n", encoding="utf-8")
    (project / "test_c.py").write_text("def test_c(nothing):\n    pass\n", encoding="utf-8")
    found = await places(tests_pass, unconfined(project), paths=["test_b.py"])
    assert found == [("test_b.py:2", "test_b.py fails: ModuleNotFoundError: No module named 'not_there'")]
    [(where, message)] = await places(tests_pass, unconfined(project), paths=["test_c.py"])
    assert where == "test_c.py:1"
    assert "fixture 'nothing' not found" in message


async def test_files_that_are_no_python_are_reported_each(project: Path) -> None:
    (project / "bad.py").write_bytes(b"x = '\xff'\n")
    (project / "nul.py").write_bytes(b"x = 1\0\n")
    found = await places(compiles, unconfined(project))
    assert [where.split(":")[0] for where, _ in found] == ["bad.py", "nul.py"]
    assert not list(project.rglob("__pycache__"))


async def test_a_command_succeeds_or_says_what_it_said(project: Path) -> None:
    setting = unconfined(project)
    ok = await judged(command_succeeds, setting, argv=["sh", "-c", "echo done"], stdout_contains="done")
    assert ok.findings == ()
    assert ok.evidence is not None
    assert (ok.evidence.exit, ok.evidence.excerpt) == (0, "done")
    assert await places(command_succeeds, setting, argv=["sh", "-c", "exit 3"], expect=[0, 3]) == []
    assert await places(command_succeeds, setting, argv=["sh", "-c", "echo a.c:3:1: no; exit 1"]) == [("a.c:3:1", "no")]
    bad = await judged(command_succeeds, setting, argv=["sh", "-c", "echo oh >&2; exit 4"])
    assert [(one.message, one.excerpt) for one in bad.findings] == [("sh ended with exit 4", "oh")]
    unsaid = await places(command_succeeds, setting, argv=["echo", "x"], stdout_contains="done")
    assert unsaid == [("checks", "`done` is not in its standard output")]
    assert await places(command_succeeds, setting, argv=["no-such-program"]) == [
        ("checks", "there is no program no-such-program here")
    ]
    assert (await places(command_succeeds, setting, argv=["true"], cwd=".."))[0][1] == ".. leads out of the project"
    assert await command_succeeds.inputs({"argv": ["true"]}, setting_of(project)) == ""


async def test_a_command_is_stopped_in_its_time(project: Path) -> None:
    found = await places(command_succeeds, unconfined(project), argv=["sleep", "60"], timeout="300ms")
    assert found[0][1].startswith("sleep was stopped after")


@pytest.mark.parametrize("said", ["sh: {}: No such file or directory", "there is no {}", "{}", "\n".join("{}x" * 9)])
@pytest.mark.parametrize("code", [0, 1, 2, 127])
async def test_nothing_that_a_command_prints_is_in_what_to_do_or_says_who_has_to(
    said: str, code: int, project: Path
) -> None:
    """What it prints is the project's choice; a hint that a person should open a folder must never be."""
    secret = project.parent / "home" / "config.toml"
    secret.parent.mkdir()
    secret.write_text("")
    text = said.replace("{}", str(secret)) + "\n"
    for rule, more in ((tests_pass, {}), (command_succeeds, {"argv": ["true"], "stdout_contains": "never"})):
        for output in ({"stderr": text}, {"stdout": text}, {"stderr": text + "more\n" * 40}):
            outcome = await judged(rule, scripted(project, Scripted(ran(**output, code=code))), **more)
            assert outcome.findings
            assert {one.fixed_by for one in outcome.findings} == {FixedBy.AGENT}
            assert not any("config.toml" in one.fix or str(secret.parent) in one.fix for one in outcome.findings)


async def test_a_file_that_only_the_sandbox_hides_is_named_and_no_excerpt_is_promised_in_vain(project: Path) -> None:
    hidden = Scripted(ran(stderr=f"sh: {project}/test_a.py: No such file or directory", code=1))
    outcome = await judged(tests_pass, scripted(project, hidden))
    assert "if it lacks a file that only the sandbox hides, ask a person" in outcome.findings[0].fix
    assert f"{project}/test_a.py" in outcome.findings[0].excerpt
    quiet = await judged(tests_pass, scripted(project, Scripted(ran(code=1))))
    assert quiet.findings[0].fix.startswith("it printed nothing: run the command of the excerpt yourself")
    assert " -B - " in quiet.findings[0].excerpt
    absent = await judged(tests_pass, scripted(project, Scripted(ran(stderr="x: /nowhere/a: not found", code=1))))
    assert absent.findings[0].fix.startswith("look at the excerpt")
