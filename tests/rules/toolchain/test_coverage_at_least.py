"""`coverage_at_least`: measured by real tools, or read from a report that is newer than the code."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from handrail.rules.coverage_at_least import coverage_at_least
from handrail.tools.sandbox.unconfined import Unconfined
from outside.toolchains import toolchains
from rules.on_project import setting_of
from rules.toolchain.projects import SAMPLES, equip
from rules.toolchain.test_readings import COBERTURA
from rules.toolchain.workshop import PYTHON_HOME, Scripted, judged, made, places, program, ran, scripted

HALF = "\n\ndef half(a):\n    if a:\n        return 1\n    return 2\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{PYTHON_HOME / 'bin'}:/usr/bin:/bin")
    return made(tmp_path / "project", SAMPLES["python"].good)


async def test_python_is_measured_and_the_least_covered_files_are_named(project: Path) -> None:
    setting = scripted(project, Unconfined(project))
    good = await judged(coverage_at_least, setting, percent=100)
    assert good.findings == ()
    assert good.evidence is not None
    counts = good.evidence.counts
    assert (counts["files"], counts["lines"], counts["covered"]) == (1, 2, 2)
    made(project, {"noxfile.py": HALF, "docs/conf.py": HALF, "setup.py": HALF})
    assert await places(coverage_at_least, setting, percent=100) == [], "no test runs them"
    made(project, {"half.py": HALF, "calc.py": "import half\n" + SAMPLES["python"].good["calc.py"]})
    found = await places(coverage_at_least, setting, percent=90)
    assert found == [
        ("checks", "57.1 % is covered, 90 % is needed"),
        ("half.py", "25.0 % of it is covered: 1 of 4 lines"),
    ]


async def test_tests_that_fail_measure_nothing(project: Path) -> None:
    made(project, SAMPLES["python"].failing)
    found = await places(coverage_at_least, scripted(project, Unconfined(project)), percent=10)
    assert [where for where, _ in found] == ["test_calc.py:5"]


@pytest.mark.parametrize("language", ["javascript", "go"])
async def test_other_languages_are_measured_by_their_own_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    chains = toolchains()
    if language == "javascript" and shutil.which("node") is None:
        pytest.skip("not tried: there is no node here")
    monkeypatch.setenv("PATH", f"{chains.go / 'bin'}:{os.environ['PATH']}")
    project = made(tmp_path / "project", SAMPLES[language].good)
    parameters = equip(project, language, chains)
    outcome = await judged(coverage_at_least, scripted(project, Unconfined(project)), percent=100, **parameters)
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.counts["files"] == 1


async def test_jest_and_c8_are_asked_for_lcov(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("node", "npm", "jest", "c8"):
        program(tmp_path / "bin", name)
    lcov = "SF:a.js\nDA:1,1\nDA:2,0\nend_of_record\n"
    for package, first in (('{"devDependencies": {"jest": "1"}}', "jest"), ('{"scripts": {"test": "ava"}}', "c8")):
        project = made(tmp_path / first, {"package.json": package})
        sandbox = Scripted(ran(lcov))
        found = await places(coverage_at_least, scripted(project, sandbox), percent=60)
        assert Path(sandbox.jobs[0].argv[0]).name == first
        assert found == [
            ("checks", "50.0 % is covered, 60 % is needed"),
            ("a.js", "50.0 % of it is covered: 1 of 2 lines"),
        ]
        assert await places(coverage_at_least, scripted(project, Scripted(ran("?"))), percent=60) == [
            ("checks", f"{first} ended with exit 0, but its results are incomplete")
        ]


@pytest.mark.parametrize("language", ["java", "c", "rust", "python", "javascript", "go"])
async def test_what_can_not_measure_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    project = made(tmp_path / "project", SAMPLES[language].good)
    outcome = await judged(coverage_at_least, setting_of(project), percent=1)
    assert [one.where for one in outcome.findings] == ["checks"]
    assert outcome.findings[0].fix


async def test_a_report_is_read_if_it_is_newer_than_the_code(project: Path) -> None:
    made(project, {"sub/more.py": "x = 1\n", "coverage.xml": COBERTURA})
    past = (project / "coverage.xml").stat().st_mtime_ns - 10**10
    for name in ("calc.py", "test_calc.py", "sub/more.py"):
        os.utime(project / name, ns=(past, past))
    setting = setting_of(project)
    assert await places(coverage_at_least, setting, percent=60, report="coverage.xml") == []
    found = await places(coverage_at_least, setting, percent=70, report="coverage.xml")
    assert found == [
        ("checks", "66.7 % is covered, 70 % is needed"),
        ("calc.py", "50.0 % of it is covered: 1 of 2 lines"),
    ]
    os.utime(project / "calc.py", ns=(past + 10**11, past + 10**11))
    assert await places(coverage_at_least, setting, percent=1, report="coverage.xml") == [
        ("coverage.xml", "the report is older than calc.py")
    ]
    assert await coverage_at_least.inputs({"percent": 1, "report": "coverage.xml"}, setting) == ""
    assert await coverage_at_least.inputs({"percent": 1}, setting)


@pytest.mark.parametrize(
    ("report", "words"), [("gone.xml", "can't be read"), ("calc.py", "is neither"), ("../x", "leads out")]
)
async def test_a_report_that_is_none_is_a_finding(project: Path, report: str, words: str) -> None:
    [(where, message)] = await places(coverage_at_least, setting_of(project), percent=1, report=report)
    assert where == "checks"
    assert words in message


async def test_a_report_about_nothing_of_the_project_is_no_pass(project: Path) -> None:
    made(project, {"lcov.info": "SF:/elsewhere/a.js\nDA:1,1\nend_of_record\nSF:tests/a.py\nDA:1,1\nend_of_record\n"})
    os.utime(project / "lcov.info", ns=(2 * 10**18, 2 * 10**18))
    found = await places(coverage_at_least, setting_of(project), percent=0, report="lcov.info")
    assert found == [("checks", "no lines of the project were measured")]
