"""Findings as a person sees them: what is wrong, where, the source line with carets, and the fix."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from handrail.domain.checks.finding import Finding, Position, Severity
from handrail.interfaces.cli.words.excerpt import Excerpt, excerpt_of
from handrail.interfaces.cli.words.finding_view import print_findings
from interfaces.shell import Shell
from tidy.yardstick import ROOT

WRONG = """\
id: ship
steps:
  - {id: tag, tool: value.set, args: {value: 1}, timeot: 3s}
"""
SHOWN = """\
error[unknown_key]: `timeot` is not a key of a step
  --> {file}:3:50
   |
 3 |   - {{id: tag, tool: value.set, args: {{value: 1}}, timeot: 3s}}
   |                                                  ^^^^^^ steps[0].timeot
help: did you mean `timeout`?

{file}: 1 error, 0 warnings
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def under_carets(excerpt: Excerpt) -> str:
    """What stands above the carets, cell by cell."""
    start, end = excerpt.carets.index("^"), len(excerpt.carets)
    cells = "".join(char + "\0" * (cell_len(char) - 1) for char in excerpt.line)
    return cells[start:end].replace("\0", "")


@pytest.mark.parametrize("words", [("workflow", "validate"), ("plan", "check")])
def test_a_finding_is_shown_with_its_source_line_and_its_fix(shell: Shell, words: tuple[str, ...]) -> None:
    file = shell.write(WRONG)
    result = shell.run(*words, file)
    assert (result.exit_code, result.stdout) == (5, SHOWN.format(file=file))


def test_a_finding_in_json_text_is_shown_the_same_way(shell: Shell) -> None:
    file = shell.write(
        '{"id": "ship",\n "steps": [{"id": "tag", "tool": "value.set", "timeot": "3s",\n "args": {"value": 1}}]}',
        "plan.json",
    )
    lines = shell.run("plan", "check", file).stdout.splitlines()
    assert lines[1] == f"  --> {file}:2:47"
    assert lines[3].startswith(' 2 |  "steps": [{"id": "tag"')
    caret = lines[4].index("^")
    assert lines[3][caret:].startswith('"timeot": ')
    assert lines[4].split()[1] == "^" * len('"timeot"')


def test_what_came_from_stdin_is_shown_too_also_when_it_is_refused(shell: Shell) -> None:
    checked = shell.run("workflow", "validate", "-", stdin=WRONG)
    assert "  --> <stdin>:3:50" in checked.stdout
    assert "timeot: 3s}\n" in checked.stdout
    refused = shell.run("run", "start", "-", stdin=WRONG)
    assert (refused.exit_code, "timeot: 3s}\n" in refused.stderr) == (5, True)
    unknown = shell.run("run", "start", "-", stdin="id: x\nsteps: [{id: a, tool: value.sett}]\n")
    assert (unknown.exit_code, "  --> <stdin>:2:23" in unknown.stderr) == (5, True)


def test_json_has_the_findings_and_no_excerpts(shell: Shell) -> None:
    (finding,) = shell.json("plan", "check", shell.write(WRONG), code=5)["findings"]
    assert finding["where"] == "steps[0].timeot"
    assert finding["at"] == {"file": str(shell.folder / "plan.yaml"), "line": 3, "column": 50}
    assert finding.keys() == {"rule", "severity", "where", "message", "fix", "at"}


def test_colours_are_for_terminals_only(shell: Shell) -> None:
    file = shell.write(WRONG)
    assert "\x1b" not in shell.run("plan", "check", file).output
    assert "\x1b[31m\x1b[1merror[unknown_key]" in shell.terminal("plan", "check", file)
    assert "\x1b" not in shell.terminal("plan", "check", file, NO_COLOR="1").replace("\x1b[?25h", "")


def test_real_plurals_are_counted(shell: Shell) -> None:
    file = shell.write(WRONG.replace("3s}", "3s, aftr: []}"))
    assert shell.run("plan", "check", file).stdout.endswith(f"{file}: 2 errors, 0 warnings\n")


def test_in_a_terminal_a_long_line_is_cut_around_the_value(shell: Shell) -> None:
    steps = ", ".join(f"{{id: s{n}, tool: value.set, args: {{value: 1}}}}" for n in range(40))
    file = shell.write(
        f"id: ship\nsteps: [{steps}, {{id: x, tool: value.set, timeot: 1}}, {steps.replace('s', 't')}]\n"
    )
    shown = re.sub(r"\x1b\[[0-9;]*m", "", shell.terminal("plan", "check", file, COLUMNS="80", NO_COLOR="1"))
    source, carets = re.search(r"(?m)^( 2 \| .*)\r?\n(.*\^.*)$", shown).groups()  # type: ignore[union-attr]
    assert len(source.rstrip()) <= 80
    assert source[carets.index("^") :].startswith("timeot")
    assert " ..." in source[:10]
    assert source.rstrip().endswith("...")


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        ("  after: [nots, b]", 11, "nots"),
        ("\tkey:\twert", 7, "wert"),
        ("name: 日本語 の値: x", 15, "x"),
        ("名前: 'it''s 値'", 5, "'it''s 値'"),
        ('"a\\"b": 1', 1, '"a\\"b"'),
        ("a: e\u0301tude", 4, "e"),
        ("x: [", 4, "["),
    ],
)
def test_carets_stand_under_the_value_whatever_stands_before_it(line: str, column: int, value: str) -> None:
    assert under_carets(excerpt_of(line, column, width=60)).startswith(value)


@pytest.mark.parametrize("column", [0, 5, 6, 900])
def test_a_column_beyond_the_line_is_shown_at_its_end(column: int) -> None:
    excerpt = excerpt_of("abcd", column, width=40)
    assert (excerpt.line, excerpt.carets.count("^") >= 1, len(excerpt.carets) <= 6) == ("abcd", True, True)


@pytest.mark.parametrize("column", [1, 50_000, 1_000_000, 2_000_000])
@pytest.mark.parametrize("char", ["a", "値", "\u0301", "\x1b", "\t"])
def test_an_excerpt_never_grows_wider_than_asked_for(char: str, column: int) -> None:
    excerpt = excerpt_of(char * 2_000_000, column, width=60)
    assert cell_len(excerpt.line) <= 60
    assert len(excerpt.carets) <= 61


def test_a_hostile_file_can_not_act_on_the_terminal(shell: Shell) -> None:
    hostile = '{"id": "ship", "steps": [{"id": "a", "prompt": "\\u001b[2J", "t\u202eimeot": "\x7f\u009b31m"}]}'
    shell.write(hostile, "\x1b[31m\aplan.json")
    result = shell.run("plan", "check", str(shell.folder / "\x1b[31m\aplan.json"))
    assert result.exit_code == 5
    assert "timeot" in result.stdout.replace("\N{REPLACEMENT CHARACTER}", "")
    assert not [char for char in result.stdout if char != "\n" and not char.isprintable()]
    json.loads(shell.run("plan", "check", str(shell.folder / "\x1b[31m\aplan.json"), "--json").stdout)


def test_what_an_encoding_lacks_is_replaced(shell: Shell) -> None:
    assert excerpt_of("naïve: 値", 8, width=40, encoding="ascii") == Excerpt("na?ve: ?", "       ^")
    file = shell.write("id: ship\nsteps: [{id: tag, tool: value.set, args: {value: 1}, größe: 値}]\n")
    assert "gr??e: ?" in shell.terminal("plan", "check", file, PYTHONUTF8="0", PYTHONIOENCODING="ascii", NO_COLOR="1")


@pytest.mark.parametrize("source", ["gone.yaml", "short.yaml", "folder", "pipe", "bad\0name", ""])
def test_a_finding_whose_source_can_not_be_read_again_keeps_its_place(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short.yaml").write_text("id: ship\n", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    file = str(tmp_path / source)
    at = Position(file, 3, 50)
    print_findings([Finding(rule="r", severity=Severity.MINOR, where="steps[0]", message="odd", fix="even", at=at)])
    place = f"{file}:3:50 (steps[0])".replace("\0", "\N{REPLACEMENT CHARACTER}")
    assert capsys.readouterr().out == f"warning[r]: odd\n  --> {place}\nhelp: even\n"


def test_the_example_of_the_guide_is_what_is_shown(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (ROOT / "docs" / "guides" / "command-line.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"\$ handrail workflow validate release.yaml\n(.*?)```", guide, re.DOTALL)
    shell.write(WRONG, "release.yaml")
    monkeypatch.chdir(shell.folder)
    assert shell.run("workflow", "validate", "release.yaml").stdout == shown
