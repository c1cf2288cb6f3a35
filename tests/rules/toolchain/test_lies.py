"""`tests_pass` against the usual lies: tests that are skipped, expected to fail, forged, hidden or left out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handrail.engine.checking.rule import Setting
from handrail.rules.tests_pass import tests_pass
from rules.toolchain.workshop import PYTHON_HOME, Scripted, in_sandbox, judged, made, program, ran, scripted

if not sys.platform.startswith("linux"):
    pytest.skip("not tried: the sandbox needs Linux", allow_module_level=True)

WRONG = "def test_a():\n    assert 1 == 2\n\n\ndef test_b():\n    assert 2 == 3\n"
RIGHT = "def test_a():\n    assert 1 == 1\n"
SWALLOWING = """
import pytest

@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    outcome = yield
    outcome.force_result(None)
"""
FORGING = """
import pytest

@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call":
        report.outcome, report.longrepr = "{outcome}", {words}
"""
XFAIL_ALL = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xfail)
"""
WRITES_RESULTS = """
import json, os

def test_a():
    facts = ({"test": "test_a.py::test_a", "outcome": "passed"}, {"done": 0, "collected": 1})
    for out in range(1, 20):
        for fact in facts:
            try:
                os.write(out, f"\\n{json.dumps(fact)}\\n".encode())
            except OSError:
                pass
    os._exit(0)
"""
NEVER_RUN = "def pytest_runtest_protocol(item, nextitem):\n    return True\n"
UNITTEST = "import unittest\n\nclass Tests(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 2)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{PYTHON_HOME / 'bin'}:/usr/bin:/bin")
    return made(tmp_path / "project", {"pyproject.toml": "", "test_a.py": WRONG})


def confined(project: Path) -> Setting:
    return in_sandbox(project, PYTHON_HOME)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"test_a.py": f"import pytest\npytestmark = pytest.mark.skip\n{WRONG}"}, "no test passed: 2 skipped"),
        ({"conftest.py": XFAIL_ALL}, "no test passed: 2 expected to fail"),
        ({"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-k nothing'\n"}, "ended with exit 5"),
        ({"conftest.py": SWALLOWING}, "a hook of the project reports it as passed, but AssertionError: assert 1 == 2"),
        ({"conftest.py": FORGING.format(outcome="passed", words=None)}, "a hook of the project reports it as passed"),
        (
            {"conftest.py": FORGING.format(outcome="skipped", words=("a", 1, "b"))},
            "a hook of the project reports it as skipped, but AssertionError",
        ),
        (
            {"conftest.py": FORGING.format(outcome="passed", words=None), "test_a.py": UNITTEST},
            "a hook of the project reports it as passed, but AssertionError: 1 != 2",
        ),
        ({"conftest.py": NEVER_RUN}, "it was not run"),
        ({"test_a.py": WRITES_RESULTS}, "but its results are incomplete"),
    ],
)
async def test_a_suite_that_only_looks_green_does_not_pass(project: Path, files: dict[str, str], message: str) -> None:
    made(project, files)
    outcome = await judged(tests_pass, confined(project))
    assert message in " | ".join(one.message for one in outcome.findings)


async def test_a_suite_that_passes_says_how_many_tests_it_left_out(project: Path) -> None:
    lines = "import pytest\n\n\n@pytest.mark.skip\ndef test_b():\n    assert 0\n\n\n@pytest.mark.xfail\ndef test_c():\n"
    more = "    assert 0\n\n\ndef test_slow():\n    assert 0\n"
    made(project, {"test_a.py": f"{RIGHT}\n\n{lines}{more}"})
    outcome = await judged(tests_pass, confined(project), args=["-k", "not slow"])
    assert outcome.findings == ()
    assert outcome.evidence is not None
    expected = {"tests": 3, "passed": 1, "failed": 0, "errors": 0, "skipped": 1, "xfailed": 1, "deselected": 1}
    assert outcome.evidence.counts == expected


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("it.only('adds', () => {})", True),
        ("  describe.only('all', () => {", True),
        ("test.concurrent.only('adds', async () => {})", True),
        ("fit('adds', () => {})", True),
        ("// it.only('adds')", False),
        ("benefit('x'); limit.only = 3; model.fit(data)", False),
    ],
)
async def test_a_test_file_that_leaves_out_the_others_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, is_found: bool
) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "bin", "node").parent))
    files = {"package.json": '{"scripts": {"test": "node --test"}}', "a.test.js": f"'use strict'\n{line}\n"}
    project = made(tmp_path / "project", files)
    setting = scripted(project, Scripted(ran("TAP version 13\nok 1 - adds\n1..1\n")))
    places = [(one.where, one.message) for one in (await judged(tests_pass, setting)).findings]
    assert bool(places) is is_found
    if is_found:
        assert places[0][0].startswith("a.test.js:2:")
        assert places[0][1].endswith("leaves out the other tests")


SUBTESTS = """import unittest


class Tests(unittest.TestCase):
    def test_parts(self):
        for number in (1, 2):
            with self.subTest(number=number):
                self.assertEqual(number, {expected})


def test_fixture(subtests):
    for number in (1, 2):
        with subtests.test(number=number):
            assert number == {expected}
"""


async def test_parts_of_a_test_are_reported_while_it_runs(project: Path) -> None:
    """Newer versions of pytest report subtests before the test that they belong to has ended."""
    (project / "test_a.py").write_text(SUBTESTS.format(expected="number"), encoding="utf-8")
    outcome = await judged(tests_pass, confined(project))
    assert outcome.findings == ()
    (project / "test_a.py").write_text(SUBTESTS.format(expected="1"), encoding="utf-8")
    messages = [one.message for one in (await judged(tests_pass, confined(project))).findings]
    assert any("test_parts fails: " in one for one in messages), messages
    assert any("test_fixture fails: " in one for one in messages), messages
