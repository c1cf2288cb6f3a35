"""`only: changed`: linters and coverage judge what the run changed, and a project without a linter is a note."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.domain.checks.finding import Severity
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import Baselines, Setting
from handrail.rules.coverage_at_least import coverage_at_least
from handrail.rules.files.baseline import observed
from handrail.rules.files.changed_lines import changed_for
from handrail.rules.function_rule import FunctionRule
from handrail.rules.lint_clean import lint_clean
from outside.nodejs import installed
from outside.toolchains import toolchains
from rules.on_project import committed, git, setting_of, write
from rules.toolchain.projects import equip
from rules.toolchain.workshop import PYTHON_HOME, Scripted, in_sandbox, judged, made, program, ran, scripted

if not sys.platform.startswith("linux"):
    pytest.skip("not tried: the sandbox needs Linux", allow_module_level=True)

OLD = "import os\nimport sys\n\n\ndef old():\n    return 1\n"
NEW = OLD + "\n\ndef new():\n    import json\n    return 2\n"
JS = "const unused = 1;\nmodule.exports = { old: () => 1 };\n"
GO_MOD = "module example.com/calc\n\ngo 1.20\n"
ESLINT = "module.exports = [{ rules: { 'no-unused-vars': 'error' } }];\n"


async def started(setting: Setting) -> Setting:
    return replace(setting, baselines=Baselines(run=await observed(setting.project)))


async def run_in(folder: Path, files: dict[str, str], *read: Path) -> Setting:
    return await started(in_sandbox(committed(folder, files), PYTHON_HOME, *read))


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{PYTHON_HOME / 'bin'}:/usr/bin:/bin")
    return tmp_path / "project"


async def places(rule: FunctionRule, setting: Setting, **parameters: Any) -> list[str]:
    return [one.where for one in (await judged(rule, setting, **parameters)).findings]


def is_note(outcome: CheckOutcome) -> bool:
    """Whether it blocks nothing and proves nothing."""
    weights = {one.severity for one in outcome.findings}
    return outcome.is_not_run and not outcome.passed and weights == {Severity.MINOR} and outcome.evidence is None


async def test_lines_are_those_of_the_run_committed_or_not(tmp_path: Path) -> None:
    numbers = "".join(f"{number}\n" for number in range(1, 11))
    files = {"a.txt": numbers, "b.txt": numbers, "c.txt": "c\n", "sub/d.txt": numbers, "gone.txt": "x\n"}
    project = committed(tmp_path / "project", files)
    write(project, {"mine.txt": "not of the run\n"})
    run = await started(setting_of(project))
    write(project, {"a.txt": numbers.replace("3\n", "three\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n")})
    git(project, "commit", "-qam", "work")
    write(project, {"b.txt": f"zero\n{numbers}", "new.txt": "n\n", "sub/d.txt": numbers.replace("5\n", "")})
    (project / "gone.txt").unlink()
    changed = await changed_for({}, run)
    assert changed is not None
    assert changed.files == {
        "a.txt": frozenset({3, 4, 5, 6}),
        "b.txt": frozenset({1}),
        "new.txt": None,
        "sub/d.txt": frozenset(),
        "gone.txt": frozenset(),
    }
    assert changed.has("a.txt", 4)
    assert not changed.has("a.txt", 7)
    assert changed.has("new.txt", 99)
    assert changed.has("a.txt", 0), "what is said of a whole file counts, if it has changed"
    assert not changed.has("c.txt", 0)
    only_b = await changed_for({"only": "changed", "since": "HEAD"}, run)
    assert only_b is not None
    assert "a.txt" not in only_b.files
    assert await changed_for({"only": "all"}, run) is None
    assert await changed_for({}, setting_of(project)) is None, "without a run everything is judged"
    assert await changed_for({"command": ["make", "lint"]}, run) is None


async def test_only_what_the_run_wrote_is_linted(python: Path) -> None:
    run = await run_in(python, {"pyproject.toml": "[tool.ruff]\nfix = true\n", "a.py": OLD, "b.py": OLD})
    assert is_note(await judged(lint_clean, run)), "nothing has changed"
    write(python, {"a.py": OLD.replace("1", "3")})
    outcome = await judged(lint_clean, run)
    assert outcome.passed
    assert outcome.evidence is not None
    assert {"problems": 0, "problems_elsewhere": 2, "changed_files": 1, "changed_lines": 1}.items() <= (
        outcome.evidence.counts.items()
    )
    write(python, {"a.py": NEW})
    git(python, "commit", "-qam", "work")
    assert await places(lint_clean, run) == ["a.py:10:12"]
    write(python, {"c.py": OLD})
    assert await places(lint_clean, run) == ["a.py:10:12", "c.py:1:8", "c.py:2:8"]
    assert len(await places(lint_clean, run, only="all")) == 7
    assert await places(lint_clean, run, since="HEAD") == ["c.py:1:8", "c.py:2:8"]
    assert await lint_clean.inputs({}, run) != await lint_clean.inputs({"only": "all"}, run)


async def test_a_linter_that_breaks_has_not_passed_although_its_findings_are_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{program(tmp_path / 'bin', 'flake8').parent}:/usr/bin:/bin")
    project = committed(tmp_path / "project", {"a.py": OLD, ".flake8": "[flake8]\n"})
    baseline = Baselines(run=await observed(project))
    write(project, {"a.py": OLD.replace("1", "3")})
    for code, is_good in ((1, True), (2, False)):
        said = ran("./a.py:1:1: F401 'os' imported but unused\n", code=code)
        outcome = await judged(lint_clean, replace(scripted(project, Scripted(said)), baselines=baseline))
        assert outcome.passed is is_good, outcome


async def test_a_project_without_a_linter_is_a_note_and_one_whose_linter_is_missing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{program(tmp_path / 'bin', 'node').parent}")
    monkeypatch.setenv("HOME", str(tmp_path))
    for files, configured in (
        ({"a.py": ""}, {"setup.cfg": "[flake8]\n"}),
        ({"a.py": "", "pyproject.toml": ""}, {"pyproject.toml": "[tool.pylint.main]\n"}),
        ({"package.json": "{}", "a.js": ""}, {"biome.json": "{}"}),
        ({"package.json": "{}", "a.js": ""}, {"package.json": '{"eslintConfig": {}}'}),
    ):
        shutil.rmtree(tmp_path / "project", ignore_errors=True)
        setting = setting_of(made(tmp_path / "project", files))
        outcome = await judged(lint_clean, setting)
        assert is_note(outcome), outcome
        write(setting.project, configured)
        [found] = (await judged(lint_clean, setting)).findings
        assert found.unapplied
        assert "not installed here" in found.message


async def test_the_linter_that_the_project_configures_is_used_and_one_of_pre_commit_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bin"
    for name in ("ruff", "pylint"):
        program(bare, name)
    monkeypatch.setenv("PATH", f"{bare}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PRE_COMMIT_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    project = committed(tmp_path / "project", {"a.py": "", ".pylintrc": ""})
    said = '[{"path": "a.py", "line": 3, "column": 0, "symbol": "unused-import", "message": "Unused import os"}]'
    sandbox = Scripted(ran(said, code=4))
    outcome = await judged(lint_clean, scripted(project, sandbox))
    assert sandbox.jobs[0].argv[0] == str(bare / "pylint")
    assert [(one.where, one.message) for one in outcome.findings] == [("a.py:3:1", "unused-import: Unused import os")]
    write(project, {".flake8": "", ".pre-commit-config.yaml": ""})
    (project / ".pylintrc").unlink()
    flake8 = program(tmp_path / "home/.cache/pre-commit/repo1/py_env-python3/bin", "flake8")
    outcome = await judged(lint_clean, scripted(project, Scripted(ran())))
    assert outcome.evidence is not None
    assert outcome.evidence.chosen["flake8"] == f"{flake8} (pre-commit has installed it)"


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"eslint.config.js": ESLINT}, "a.js:4:7"),
        ({"biome.json": "{}"}, "a.js:4:7"),
    ],
    ids=["eslint", "biome"],
)
async def test_a_javascript_project_is_linted_by_its_own_linter_where_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], place: str
) -> None:
    chains, node = toolchains(), installed("linters of JavaScript")
    monkeypatch.setenv("PATH", f"{node.program.parent}:/usr/bin:/bin")
    code = f"{JS}debugger;\n"
    project = {"package.json": "{}", "a.js": code, ".gitignore": "node_modules\n", **files}
    run = await run_in(tmp_path / "project", project, chains.folder, node.folder)
    (run.project / "node_modules").symlink_to(chains.node_modules)
    write(run.project, {"a.js": code.replace("old: () => 1", "old: () => 3")})
    outcome = await judged(lint_clean, run)
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.counts["problems_elsewhere"] >= 1
    write(run.project, {"a.js": f"{code}const later = 2;\n"})
    assert await places(lint_clean, run) == [place]
    write(run.project, {"a.js": f"const = ;\n{code}"})
    git(run.project, "commit", "-qam", "broken before")
    later = await started(run)
    write(run.project, {"a.js": f"const = ;\n{code}// more\n"})
    assert await places(lint_clean, later) != [], "a file that can't be read is not clean, wherever it is broken"


async def test_go_is_vetted_and_formatted_where_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chains = toolchains()
    monkeypatch.setenv("PATH", f"{chains.go / 'bin'}:/usr/bin:/bin")
    untidy = 'package calc\n\nimport "fmt"\n\nfunc Old() { fmt.Printf("%d\\n", "x") }\nvar A   = 1\n'
    run = await run_in(tmp_path / "project", {"go.mod": GO_MOD, "a.go": untidy, ".gitignore": ".cache\n"})
    env = equip(run.project, "go", chains)["env"]
    run = replace(run, sandbox=in_sandbox(run.project, chains.folder).sandbox)
    write(run.project, {"a.go": f"{untidy}\nfunc New() int {{ return 1 }}\n"})
    outcome = await judged(lint_clean, run, env=env)
    assert outcome.findings == (), "what was untidy before is not the run's"
    write(run.project, {"a.go": f'{untidy}\nfunc New() {{ fmt.Printf("%d\\n", "y") }}\nvar  B = 2\n'})
    found = await places(lint_clean, run, env=env)
    assert [place.rpartition(":")[0] for place in found] == ["a.go:8", "a.go:9"]
    assert len(await places(lint_clean, run, env=env, only="all")) > 2
    broken = untidy.replace('"fmt"', '"fnt"')
    write(run.project, {"a.go": f"{broken}\nfunc New() int {{ return 1 }}\n"})
    git(run.project, "commit", "-qam", "broken before")
    later = await started(run)
    write(run.project, {"a.go": f"{broken}\nfunc New() int {{ return 2 }}\n"})
    assert "a.go:3:8" in await places(lint_clean, later, env=env), "what can't be vetted is not clean"


CALC = "def old():\n    return 1\n"
TESTED = "from calc import old\n\n\ndef test_old():\n    assert old() == 1\n"


async def test_coverage_is_that_of_the_changed_lines(python: Path) -> None:
    never = "def never():\n" + "    print()\n" * 20
    run = await run_in(python, {"pyproject.toml": "", "calc.py": CALC, "legacy.py": never, "test_calc.py": TESTED})
    assert is_note(await judged(coverage_at_least, run, percent=80)), "no code has changed"
    write(python, {"test_calc.py": f"{TESTED}\n"})
    assert is_note(await judged(coverage_at_least, run, percent=80)), "tests are no code of the project"
    write(python, {"calc.py": f"# only a remark\n{CALC}"})
    assert is_note(await judged(coverage_at_least, run, percent=80)), "no line with code has changed"
    write(python, {"calc.py": f"{CALC}\n\ndef new(x):\n    if x:\n        return 3\n    return 4\n"})
    outcome = await judged(coverage_at_least, run, percent=80)
    assert [(one.where, one.message) for one in outcome.findings] == [
        ("checks", "25.0 % of the 4 lines that changed since the start of the run are covered, 80 % is needed"),
        ("calc.py", "no test runs the changed lines 6-8"),
    ]
    assert outcome.evidence is not None
    assert {"changed_lines": 4, "changed_covered": 1}.items() <= outcome.evidence.counts.items()
    git(python, "add", "-A")
    git(python, "commit", "-qm", "work")
    more = "\n\ndef test_new():\n    assert (new(0), new(1)) == (4, 3)\n"
    write(python, {"test_calc.py": TESTED.replace("import old", "import new, old") + more})
    outcome = await judged(coverage_at_least, run, percent=100)
    assert outcome.passed
    assert outcome.evidence is not None
    assert {"changed_lines": 4, "changed_covered": 4}.items() <= outcome.evidence.counts.items()
    assert (await judged(coverage_at_least, run, percent=80, only="all")).findings != ()


async def test_a_changed_file_that_no_test_imports_is_not_covered_unless_the_settings_leave_it_out(
    python: Path,
) -> None:
    files = {"pyproject.toml": "", "calc.py": CALC, "test_calc.py": TESTED}
    narrow = {"pyproject.toml": "[tool.coverage.run]\nsource = ['calc']\n"}
    new = {"tools/new.py": '"""New."""\nimport os\n\n\ndef new():\n    return os\n'}
    run = await run_in(python, files)
    write(python, new)
    assert await places(coverage_at_least, run, percent=50) == ["checks", "tools/new.py"]
    write(python, narrow)
    found = await judged(coverage_at_least, run, percent=50)
    assert not is_note(found), "settings that the run itself made milder excuse nothing"
    assert found.findings
    other = await run_in(python.with_name("other"), {**files, **narrow})
    write(other.project, new)
    assert is_note(await judged(coverage_at_least, other, percent=50))


async def test_lines_of_every_kind_of_report_are_compared(tmp_path: Path) -> None:
    reports = {
        "lcov.info": "SF:src/a.c\nDA:2,1\nDA:3,0\nend_of_record\n",
        "cobertura.xml": '<coverage><class filename="src/a.c"><line number="2" hits="1"/><line number="3" hits="0"/>'
        "</class></coverage>",
        "jacoco.xml": '<report name="x"><package name="src"><sourcefile name="a.c"><line nr="2" ci="1"/>'
        '<line nr="3" ci="0"/><counter type="LINE" missed="1" covered="1"/></sourcefile></package></report>',
        "go.out": "mode: set\nexample.com/m/src/a.c:2.1,2.9 1 1\nexample.com/m/src/a.c:3.1,4.2 1 0\n",
    }
    project = committed(tmp_path / "project", {"src/a.c": "int a;\n"})
    run = await started(setting_of(project))
    write(project, {"src/a.c": "int a;\nint b = 1;\nint c = 2;\n}\n"})
    for name, text in reports.items():
        write(project, {name: text})
        os.utime(project / "src/a.c", (1, 1))
        for percent, is_good in ((50, True), (51, False)):
            outcome = await judged(coverage_at_least, run, percent=percent, report=name)
            assert outcome.passed is is_good, (name, outcome)
        assert outcome.evidence is not None
        assert {"changed_lines": 2, "changed_covered": 1}.items() <= outcome.evidence.counts.items(), name
