"""Hostile projects: what their tests, builds and commands write is gone when the check has ended.

Each writes wherever a person or a tool would run it later: git hooks and settings, configuration of clients, installed
packages, handrail's own folder, sources. Afterwards every file of the project is as it was, `.git` included."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.engine.checking.rule import Rule
from handrail.rules.command_succeeds import command_succeeds
from handrail.rules.compiles import compiles
from handrail.rules.coverage_at_least import coverage_at_least
from handrail.rules.lint_clean import lint_clean
from handrail.rules.plugins.plugin_rule import PluginSandbox
from handrail.rules.tests_pass import tests_pass
from handrail.tools.sandbox.unconfined import Unconfined
from handrail.tools.shell import shell_configuration, shell_tools
from outside.debian import bubblewrap
from rules.guests import cell, guest, setting
from rules.on_project import committed, git, write
from rules.toolchain.test_readings import COBERTURA
from rules.toolchain.workshop import PYTHON_HOME, in_sandbox, judged, places, scripted
from tools.calls import call_of
from tools.sandbox.tree_state import tree_state

if not sys.platform.startswith("linux"):
    pytest.skip("hostile projects were not tried: the sandbox needs Linux", allow_module_level=True)

TARGETS = (
    *(".git/hooks/pre-commit", ".git/hooks/post-checkout", ".git/info/attributes", ".git/HEAD", ".gitattributes"),
    *(".mcp.json", ".cursor/mcp.json", ".vscode/tasks.json", ".vscode/mcp.json", ".claude/settings.json", "CLAUDE.md"),
    *(".handrail/config.toml", ".handrail/tools.json", ".handrail/workflows/new.yaml", ".envrc", ".husky/pre-push"),
    *(".venv/bin/python", ".venv/lib/evil.pth", "node_modules/.bin/eslint", "node_modules/left/index.js"),
    *("Makefile", "package.json", "conftest.py", "src/new.c", "AGENTS.md"),
)
EVIL = "git config core.fsmonitor ./evil.sh && echo wrote core.fsmonitor\n" + "".join(
    f"mkdir -p {Path(name).parent} && echo evil > {name} && chmod 755 {name} && echo wrote {name}\n" for name in TARGETS
)
EVIL += "mv .venv/lib/one.py . && rm -rf node_modules/left && mkdir node_modules/left\nln -s /etc link-out\n"
PYTHON_EVIL = "import subprocess\nsubprocess.run(['sh', './evil.sh'], check=True)\n"
MAKEFILE = "all:\n\tsh ./evil.sh\ntest:\n\tsh ./evil.sh\n"
FILES = {
    "evil.sh": EVIL,
    "Makefile": MAKEFILE,
    "conftest.py": PYTHON_EVIL,
    "test_it.py": "def test_it():\n    pass\n",
    "package.json": '{"scripts": {"test": "sh ./evil.sh"}}',
    ".handrail/config.toml": "",
    ".mcp.json": "{}",
    "CLAUDE.md": "be kind",
    ".gitignore": ".venv\nnode_modules\n",
    ".venv/pyvenv.cfg": "home = /nowhere\n",
    ".venv/lib/one.py": "",
    "node_modules/left/index.js": "",
    "main.c": "int main(void) { return 0; }\n",
}
COMMAND = ["sh", "./evil.sh"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{PYTHON_HOME / 'bin'}:/usr/bin:/bin")
    project = committed(tmp_path / "project", FILES)
    git(project, "tag", "v1")
    return project


def test_the_attack_bites_where_nothing_is_thrown_away(project: Path) -> None:
    subprocess.run(["sh", "./evil.sh"], cwd=project, check=True, capture_output=True)
    left = {name for name in TARGETS if "evil" in _text(project / name)}
    assert left == {*TARGETS} - {"node_modules/left/index.js"}
    assert "fsmonitor" in (project / ".git" / "config").read_text()


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize(
    ("rule", "parameters"),
    [
        (tests_pass, {"language": "python"}),
        (tests_pass, {"language": "c"}),
        (tests_pass, {"language": "javascript"}),
        (tests_pass, {"command": COMMAND}),
        (compiles, {"language": "c"}),
        (compiles, {"command": ["make"]}),
        (lint_clean, {"command": ["make", "test"]}),
        (command_succeeds, {"argv": COMMAND, "stdout_contains": "wrote core.fsmonitor"}),
        (coverage_at_least, {"percent": 0, "command": COMMAND, "report": "coverage.xml"}),
    ],
)
async def test_a_check_leaves_the_project_as_it_was(rule: Rule, parameters: dict[str, Any], project: Path) -> None:
    if parameters.get("language") == "javascript" and shutil.which("npm") is None:
        pytest.skip("not tried: there is no npm here")
    write(project, {"report.txt": COBERTURA, "evil.sh": EVIL + "cp report.txt coverage.xml\n"})
    before = tree_state(project)
    outcome = await judged(rule, in_sandbox(project, PYTHON_HOME), **parameters)
    assert [found for found in outcome.findings if found.unapplied] == []
    if rule is not coverage_at_least:  # the report names files that this project does not have
        assert outcome.findings == ()
    assert tree_state(project) == before


async def test_a_rule_of_a_package_leaves_the_project_as_it_was(project: Path) -> None:
    sandbox = cell(project)
    before = tree_state(project)
    for target in (project, project / ".git" / "hooks"):
        await guest("writes", PluginSandbox(sandbox)).apply({"target": str(target)}, setting(project, sandbox))
    assert tree_state(project) == before


async def test_a_command_of_a_plan_that_may_not_write_leaves_the_project_as_it_was(project: Path) -> None:
    table = {"allow": True, "write": False, "bubblewrap": str(bubblewrap())}
    (tool,) = shell_tools(project, shell_configuration({"shell": table}), private=[])
    before = tree_state(project)
    output = await tool.call(call_of("shell.run", {"argv": COMMAND}))
    assert "wrote .git/hooks/pre-commit" in output["stdout"]
    assert tree_state(project) == before
    (tool,) = shell_tools(project, shell_configuration({"shell": {**table, "write": True}}), private=[])
    await tool.call(call_of("shell.run", {"argv": ["touch", "kept"]}))
    assert (project / "kept").exists()


async def test_a_report_is_read_from_what_the_command_wrote(project: Path) -> None:
    where = in_sandbox(project)
    write(project, {"report.txt": COBERTURA.replace("calc.py", "main.py"), "main.py": "a = 1\nb = 2\n"})
    command = ["cp", "report.txt", "coverage.xml"]
    found = await places(coverage_at_least, where, percent=100, command=command, report="coverage.xml")
    assert found[0][0] == "checks"
    assert "is covered, 100 % is needed" in found[0][1]
    assert not (project / "coverage.xml").exists()
    outcome = await judged(coverage_at_least, where, percent=10, command=command, report="coverage.xml")
    assert outcome.findings == ()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["true"], "the command did not write old.xml: it was there before"),
        (["rm", "old.xml"], "the command left no report old.xml"),
        (["ln", "-sf", "/etc/passwd", "old.xml"], "the command left no report old.xml"),
        (["sh", "-c", "echo nothing > old.xml"], "old.xml is neither Cobertura"),
        (["false"], "exit 1"),
    ],
)
async def test_a_report_that_the_command_did_not_write_is_no_pass(
    command: list[str], words: str, project: Path
) -> None:
    write(project, {"old.xml": COBERTURA.replace("calc.py", "main.py"), "main.py": "a = 1\nb = 2\n"})
    later = (project / "main.py").stat().st_mtime_ns + 10**9
    os.utime(project / "old.xml", ns=(later, later))  # newer than the code: anybody can set that
    found = await places(coverage_at_least, in_sandbox(project), percent=0, command=command, report="old.xml")
    assert words in found[0][1]


async def test_a_report_that_is_written_again_with_the_same_content_counts(project: Path) -> None:
    write(project, {"old.xml": COBERTURA.replace("calc.py", "main.py"), "main.py": "a = 1\nb = 2\n"})
    again = ["sh", "-c", "cat old.xml > new && cat new > old.xml"]
    for where in (in_sandbox(project), scripted(project, Unconfined(project))):
        assert await places(coverage_at_least, where, percent=10, command=again, report="old.xml") == []
        found = await places(coverage_at_least, where, percent=10, command=["true"], report="old.xml")
        assert found == [("checks", "the command did not write old.xml: it was there before")]


async def test_a_command_without_a_report_can_not_be_read(project: Path) -> None:
    found = await places(coverage_at_least, in_sandbox(project), percent=0, command=["true"])
    assert found == [("checks", "`command` is given without `report`")]
