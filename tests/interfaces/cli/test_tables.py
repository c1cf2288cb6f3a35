"""What people see in real terminals of 80 and 60 columns, with ids as long as authors write them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from rich.cells import cell_len

from handrail.domain.instant import instant_text
from handrail.interfaces.cli.words.table import Column, elided, line_text, placed
from handrail.interfaces.cli.words.times import TimeFormat
from interfaces.shell import Shell

LONG = "reconcile-the-quarterly-ledger-of-payments"
STEP = "ask-the-controller-for-the-final-release"
PLAN = f"""\
id: {LONG}
name: Reconcile the quarterly ledger of payments with the bank's own statement of accounts
steps:
  - {{id: collect-statements, tool: value.set, args: {{value: {"x" * 300}}}}}
  - {{id: {STEP}, approve: '{"Is this right? " * 20}', by: [controller], expires: 2h}}
"""
needs_pty = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def shown(shell: Shell, columns: int, *words: str, **environment: str) -> list[str]:
    """The lines of a command in a terminal of so many columns, without colours."""
    text = shell.terminal(*words, COLUMNS=str(columns), **environment)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "").splitlines()


# --- laying out, without a terminal ---------------------------------------------------------------------

COLUMNS = (Column("run"), Column("started", 1), Column("by", 2), Column("workflow"), Column("what"))
ROWS = [
    ("run_aaaaaaaa", "3 min ago", "person:ann", LONG, "waiting for approval " * 5),
    ("run_bbbbbbbb", "now", "-", "tiny", ""),
]


def laid_out(width: int, *, unicode: bool = True) -> list[str]:
    return [line_text(line) for lines in placed(COLUMNS, ROWS, width=width, unicode=unicode) for line in lines]


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60, 50])
def test_no_line_is_wider_than_the_terminal_and_no_id_is_cut(width: int) -> None:
    lines = laid_out(width)
    assert all(cell_len(line) <= width for line in lines)
    assert all(any(one in line for line in lines) for one in ("run_aaaaaaaa", "run_bbbbbbbb", LONG))


def test_columns_go_by_rank_before_the_last_one_moves_to_its_own_line() -> None:
    assert laid_out(120)[0].split() == ["run", "started", "by", "workflow", "what"]
    assert laid_out(90)[0].split() == ["run", "started", "workflow", "what"]
    assert laid_out(80)[0].split() == ["run", "workflow", "what"]
    assert laid_out(60)[:2] == ["run           workflow", "    what"]
    assert laid_out(60)[3].startswith("    waiting for approval")
    assert laid_out(70)[:2] == ["run           started    workflow", "    what"], "that line has room again"


def test_a_column_without_anything_in_it_goes_first() -> None:
    rows = [("run_a", "", "ann", "w", "x" * 40)]
    (head,), _ = placed(COLUMNS, rows, width=50)
    assert [cell.column for cell in head] == [0, 2, 3, 4]


def test_the_last_column_ends_with_an_ellipsis_that_the_terminal_can_show() -> None:
    assert laid_out(100)[1].endswith("…")
    assert laid_out(100, unicode=False)[1].endswith("...")


def test_wide_characters_take_the_room_they_take() -> None:
    assert cell_len(elided("漢字" * 20, 15)) <= 15
    rows = [("漢字", "", "", "", "y" * 90), ("ab", "", "", "", "z")]
    lines = [line_text(line) for (line,) in placed(COLUMNS, rows, width=60)]
    assert all(cell_len(line) <= 60 for line in lines)
    assert cell_len(lines[1].partition("y")[0]) == cell_len(lines[2].partition("z")[0])


# --- times ----------------------------------------------------------------------------------------------

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
HERE = TimeFormat(now=int(NOW.timestamp() * 1_000), zone=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("away", "words"),
    [
        (timedelta(0), "now"),
        (timedelta(seconds=-12), "12 s ago"),
        (timedelta(minutes=-3), "3 min ago"),
        (timedelta(hours=2, seconds=-1), "in 2 h"),
        (timedelta(minutes=59, seconds=50), "in 1 h"),
        (timedelta(hours=-47), "47 h ago"),
        (timedelta(days=-3), "3 days ago"),
        (timedelta(days=-40), "Oct 8 14:00"),
        (timedelta(days=-400), "2025-10-13"),
    ],
)
def test_instants_are_shown_by_how_far_away_they_are(away: timedelta, words: str) -> None:
    instant = int((NOW + away).timestamp() * 1_000)
    assert (HERE.ago(instant), HERE.ago(instant_text(instant))) == (words, words)


def test_a_short_time_is_local_and_has_a_date_only_if_it_is_not_today() -> None:
    assert HERE.at("2026-11-17T12:03:00Z") == "14:03"
    assert HERE.at("2026-11-16T22:30:00Z") == "00:30", "it is after midnight here"
    assert HERE.at("2026-11-12T12:03:00Z") == "Nov 12 14:03"
    assert (HERE.at(""), HERE.ago("")) == ("", "")


def test_with_utc_instants_are_exact() -> None:
    exact = TimeFormat(now=HERE.now, is_utc=True)
    assert exact.at(1_250) == exact.ago(1_250) == "1970-01-01T00:00:01.250Z"
    assert exact.ago("2026-11-12T12:03:00Z") == "2026-11-12T12:03:00Z"


# --- every list, in a real terminal ---------------------------------------------------------------------


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """A project with a waiting run, a plan and a workflow of long names."""
    shell.write(PLAN, f".handrail/workflows/{LONG}.yaml")
    shell.write('secrets_in = "file"\n', "home/config.toml")
    assert shell.run("run", "start", LONG).exit_code == 4
    shell.run("plan", "save", shell.write(PLAN))
    shell.run("secrets", "set", "QUARTERLY_LEDGER_TOKEN", "--for", "git.*", stdin="a-value-that-is-long")
    return shell


@needs_pty
@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (("run", "list"), ("RUN", LONG)),
        (("run", "show", "RUN", "--full"), (STEP, "collect-statements")),
        (("approvals",), ("RUN", STEP)),
        (("journal", "show", "RUN"), ("run_started", "approval_requested", STEP, "collect-statements")),
        (("journal", "show"), ("RUN", "approval_requested", STEP)),
        (("plan", "list"), (LONG,)),
        (("workflow", "list", "ledger"), (LONG,)),
        (("secrets", "list"), ("QUARTERLY_LEDGER_TOKEN",)),
        (("tools", "list", "--built-in"), ("http.request", "file.append")),
        (("tools", "stats"), ("value.set",)),
        (("rules", "list"), ("coverage_at_least",)),
    ],
    ids=lambda one: "-".join(one) if isinstance(one, tuple) else None,
)
def test_a_list_fits_the_terminal_and_cuts_no_id(
    filled: Shell, words: tuple[str, ...], ids: tuple[str, ...], columns: int
) -> None:
    run = filled.json("run", "list")["runs"][0]["run"]
    lines = shown(filled, columns, *(run if word == "RUN" else word for word in words))
    sentences = ("to answer:", "    handrail ", "  waiting for", f"{run}  {LONG}  waiting  1 of 2")
    table = [line for line in lines if not line.startswith(sentences)]
    assert max(map(cell_len, table)) <= columns, "\n".join(table)
    for one in ids:
        assert any((run if one == "RUN" else one) in line for line in table), (one, table)


@needs_pty
def test_the_journal_keeps_the_number_and_what_happened_at_any_width(filled: Shell) -> None:
    run = filled.json("run", "list")["runs"][0]["run"]
    events = filled.json("journal", "show", run)["events"]
    for columns in (200, 80, 60, 40):
        text = "\n".join(shown(filled, columns, "journal", "show", run))
        for event in events:
            assert re.search(rf"^{event['n']} .*{event['kind']}", text, re.MULTILINE | re.DOTALL), (columns, text)
        assert "text=Is th" in text


@needs_pty
def test_times_are_relative_or_local_and_exact_with_utc(filled: Shell) -> None:
    row = filled.json("run", "list")["runs"][0]
    assert re.search(r"waiting +\d+ +(now|\d+ s ago|1 min ago) ", "\n".join(shown(filled, 120, "run", "list")))
    assert row["started"] in "\n".join(shown(filled, 200, "run", "list", "--utc"))
    assert "in 2 h" in "\n".join(shown(filled, 140, "approvals"))
    assert "(expires in 2 h)" in "\n".join(shown(filled, 140, "run", "show", row["run"]))
    at = datetime.fromisoformat(row["started"]).astimezone(timezone(timedelta(hours=-9)))
    local = shown(filled, 160, "journal", "show", row["run"], TZ="XXX+9")
    assert any(re.search(rf"^1 +(\w+ \d+ )?{at:%H:%M} ", line) for line in local), local


def test_a_pipe_gets_every_column_and_every_character(filled: Shell) -> None:
    text = filled.run("approvals").stdout
    assert text.splitlines()[0].split() == ["run", "step", "by", "since", "expires", "question"]
    assert "Is this right? " * 15 in text
    assert "…" not in filled.run("run", "list").stdout


@needs_pty
def test_cells_can_not_act_on_the_terminal(shell: Shell) -> None:
    shell.write('[tools."file.read"]\n', ".handrail/config.toml")
    shell.run("plan", "save", shell.write("id: p\nname: p\nsteps: [wave]"), "--note", "red \x1b[31m\x07 alert\nline")
    text = shell.terminal("plan", "show", "p", COLUMNS="80")
    assert "red" in text
    assert "\x1b[31m" not in text
    assert "\x07" not in text


# --- lists as data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "noun"),
    [
        (("run", "list"), "runs"),
        (("approvals",), "approvals"),
        (("journal", "show"), "events"),
        (("plan", "list"), "plans"),
        (("workflow", "list"), "workflows"),
        (("secrets", "list"), "secrets"),
        (("tools", "list", "--built-in"), "tools"),
        (("tools", "stats"), "tools"),
        (("rules", "list"), "rules"),
        (("rules", "cache"), "results"),
        (("config", "show"), "settings"),
    ],
    ids=lambda one: "-".join(one) if isinstance(one, tuple) else one,
)
def test_every_list_has_one_shape(filled: Shell, words: tuple[str, ...], noun: str) -> None:
    data = filled.json(*words)
    assert next(iter(data)) == noun
    assert isinstance(data[noun], list)
    assert data.get("total", len(data[noun])) == len(data[noun])


def test_a_list_that_comes_in_pages_has_a_cursor_until_its_end(filled: Shell) -> None:
    run = filled.json("run", "list")["runs"][0]["run"]
    numbers: list[int] = []
    page = {"cursor": 0}
    while "cursor" in page:
        page = filled.json("journal", "show", run, "--limit", "2", "--after", str(page["cursor"]))
        numbers += [event["n"] for event in page["events"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert "total" not in page
    assert filled.json("plan", "list", "--limit", "1")["cursor"] == LONG


# --- the live view --------------------------------------------------------------------------------------

FAILING = f"""\
id: {LONG}
on_failure: stop
steps:
  - {{id: collect-statements, tool: value.set, args: {{value: 1}}}}
  - {{id: {STEP}, tool: file.read, args: {{path: '{"no-such-folder/" * 20}statement.txt'}}}}
"""


@needs_pty
@pytest.mark.parametrize("columns", [100, 80, 60])
def test_a_step_that_fails_does_not_push_names_and_states_out_of_the_live_view(shell: Shell, columns: int) -> None:
    lines = shown(shell, columns, "run", "start", shell.write(FAILING), "--watch")
    start = max(index for index, line in enumerate(lines) if line.startswith("✔ collect-statements"))
    ended, failed = lines[start : start + 2]
    assert "completed" in ended
    assert re.match(rf"✘ {STEP} +failed", failed)
    assert max(cell_len(line) for line in lines[start : start + 4]) <= columns
    room = columns - len(f"✘ {STEP}  completed  ")
    assert failed.endswith("…") is (room >= 20), "the note takes the room that is left"


@needs_pty
def test_a_name_that_is_wider_than_the_terminal_is_shown_whole(shell: Shell) -> None:
    lines = shown(shell, 30, "run", "start", shell.write(FAILING), "--watch")
    text = "".join(line.strip() for line in lines)
    assert STEP in text
    assert max(cell_len(line) for line in lines if line.startswith(("✘", "✔"))) <= 30


# --- erasing --------------------------------------------------------------------------------------------


@pytest.fixture
def saved(shell: Shell) -> Shell:
    shell.run("plan", "save", shell.write(PLAN), "--note", "for Ada Lovelace")
    return shell


def note_of(shell: Shell) -> str:
    return str(shell.json("journal", "show", f"plan/{LONG}")["events"][0]["data"]["note"])


ERASE = ("journal", "erase", f"plan/{LONG}", "1")


def test_a_dry_run_shows_the_event_and_the_fields_and_changes_nothing(saved: Shell) -> None:
    result = saved.run(*ERASE, "--dry-run")
    assert result.exit_code == 0, result.output
    assert f"/{LONG} #1  plan_saved" in result.stdout
    assert 'erases note: "for Ada Lovelace"' in result.stdout
    data = saved.json(*ERASE, "--dry-run")
    assert (data["fields"], data["would_erase"][0]["kind"]) == (["note"], "plan_saved")
    assert note_of(saved) == "for Ada Lovelace"


def test_without_a_terminal_nothing_is_erased_without_a_yes(saved: Shell) -> None:
    assert saved.json(*ERASE, "--reason", "privacy", code=1)["error"]["hint"] == "add --yes to continue"
    assert note_of(saved) == "for Ada Lovelace"
    assert saved.run(*ERASE, "--yes").exit_code == 2, "a reason is needed, too"
    assert saved.json(*ERASE, "--reason", "privacy", "--yes")["fields"] == ["note"]
    assert note_of(saved) == "[erased]"
    assert saved.json(*ERASE, "--dry-run", code=6)["error"]["name"] == "conflict"
    assert saved.json("journal", "erase", f"plan/{LONG}", "99", "--dry-run", code=3)["error"]["name"] == "not_found"
    assert saved.json("journal", "erase", "store", "1", "--dry-run", code=1)["error"]["name"] == "forbidden"


@needs_pty
def test_at_a_terminal_an_erasure_is_shown_and_asked_for(saved: Shell) -> None:
    refused = saved.terminal(*ERASE, "--reason", "privacy", typed="n\n")
    assert refused.index("for Ada Lovelace") < refused.index("Erase this permanently? [y/N]")
    assert note_of(saved) == "for Ada Lovelace"
    agreed = saved.terminal(*ERASE, typed="y\nprivacy\n")
    assert "Reason" in agreed
    assert note_of(saved) == "[erased]"
    assert saved.json("journal", "show", "store")["events"][-1]["data"]["reason"] == "privacy"


# --- `handrail mcp` at a terminal -----------------------------------------------------------------------


@needs_pty
def test_mcp_at_a_terminal_says_what_it_is_and_how_to_leave(shell: Shell) -> None:
    text = shell.terminal("mcp", typed="\x04", COLUMNS="80")
    for sign in ("is an MCP server", "handrail init", "Ctrl-D"):
        assert sign in text, sign


def test_mcp_started_by_a_client_says_nothing_of_the_kind(shell: Shell) -> None:
    command = [sys.executable, "-m", "handrail", "--home", str(shell.home), "mcp"]
    ended = subprocess.run(command, input="", capture_output=True, text=True, check=False, cwd=shell.folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_what_an_open_run_still_needs_is_erased_only_by_force_or_after_its_end(shell: Shell) -> None:
    steps = [{"id": "go", "approve": "Write {{ inputs.name }}?"}, {"id": "p", "prompt": "Greet {{ inputs.name }}."}]
    plan = {"id": "greet", "inputs": {"name": {"type": "string"}}, "steps": steps}
    file = shell.write(json.dumps(plan))
    run, other = (shell.json("run", "start", file, "-i", "name=Ada", code=4)["run"] for _ in range(2))
    numbers = {one["kind"]: one["n"] for one in shell.json("journal", "show", run)["events"]}
    for kind, what in (("run_started", "inputs"), ("approval_requested", "text")):
        words = ("journal", "erase", run, str(numbers[kind]), "--reason", "a name")
        for more in ("--dry-run", "--yes"):
            error = shell.json(*words, more, code=6)["error"]
            assert what in error["message"]
            assert "--force" in error["hint"]
    assert shell.json("run", "show", run)["waiting_for"][0]["text"] == "Write Ada?"
    shell.run("run", "pause", run, "--reason", "Ada asked")
    (paused,) = [one["n"] for one in shell.json("journal", "show", run)["events"] if one["kind"] == "run_paused"]
    assert shell.json("journal", "erase", run, str(paused), "--reason", "a name", "--yes")["erased"], "no step needs it"
    shell.run("run", "cancel", run, "--reason", "x")
    assert shell.json("journal", "erase", run, "1", "--reason", "a name", "--yes")["erased"]
    assert shell.json("journal", "erase", other, "1", "--reason", "a name", "--yes", "--force")["erased"]
