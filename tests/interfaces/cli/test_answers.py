"""The command line as a person or a script meets it: words, JSON, exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.interfaces.cli.program import COMMANDS
from interfaces.shell import Shell

SOUND = """\
id: ship
name: Ship it
steps:
  - {id: notes, prompt: Write the notes.}
  - {id: tag, tool: value.set, args: {value: 1}}
"""
BROKEN = """\
id: ship
steps:
  - {id: notes, prompt: 'Write for {{ inputs.nobody }}.'}
  - {id: tag, tool: value.set, timeot: 3s, after: [nots]}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_valid_plan_is_checked_with_its_waves(shell: Shell) -> None:
    file = shell.write(SOUND)
    reply = shell.json("plan", "check", file)
    assert (reply["valid"], reply["id"], reply["waves"]) == (True, "ship", [["notes"], ["tag"]])
    result = shell.run("plan", "check", file)
    assert (result.exit_code, "valid, 2 steps in 2 waves, 0 warnings" in result.stdout) == (0, True)
    assert not shell.home.exists(), "checking writes nothing"


def test_a_broken_plan_is_refused_with_every_place_and_fix_at_once(shell: Shell) -> None:
    file = shell.write(BROKEN)
    reply = shell.json("plan", "check", file, code=5)
    assert reply["valid"] is False
    rules = {finding["rule"] for finding in reply["findings"]}
    assert len(rules) >= 3, rules
    result = shell.run("workflow", "validate", file)
    assert result.exit_code == 5
    assert f"{file}:3:" in result.stdout
    assert "did you mean `timeout`?" in result.stdout
    assert f"{file}:4:" in result.stdout


def test_several_files_are_validated_in_one_go(shell: Shell) -> None:
    good, bad = shell.write(SOUND, "good.yaml"), shell.write("id: [", "bad.yaml")
    reply = shell.json("workflow", "validate", good, bad, code=5)
    assert [one["valid"] for one in reply["files"]] == [True, False]
    assert reply["total"] == 2


def test_a_plan_may_come_from_stdin_as_json(shell: Shell) -> None:
    text = json.dumps({"name": "Say hello", "steps": ["wave", "smile"]})
    result = shell.run("plan", "check", "-", "--json", stdin=text)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["id"] == "say-hello"


def test_a_plan_is_saved_listed_shown_and_retired(shell: Shell) -> None:
    file = shell.write(SOUND)
    first = shell.json("plan", "save", file, "--note", "first")
    assert (first["plan"], first["version"]) == ("ship", 1)
    assert first["hash"].startswith("sha256:")
    assert first["receipt"].startswith("1:")
    assert shell.json("plan", "save", file)["version"] == 1, "the same text twice is one version"
    shell.write(SOUND.replace("Ship it", "Ship it well"))
    assert shell.json("plan", "save", file)["version"] == 2
    (row,) = shell.json("plan", "list")["plans"]
    assert (row["plan"], row["name"], row["version"], row["retired"]) == ("ship", "Ship it well", 2, None)
    shown = shell.json("plan", "show", "ship", "--version", "1")
    assert shown["definition"]["name"] == "Ship it"
    assert [one["note"] for one in shown["versions"]] == ["first", ""]
    words = shell.run("plan", "show", "ship").stdout
    assert "prompt: Write the notes." in words
    assert shell.json("plan", "retire", "ship", "--reason", "replaced")["retired"]
    assert "retired" in shell.run("plan", "list").stdout
    assert "saved ship as version 3" in shell.run("plan", "save", file).stdout


def test_what_is_shown_can_be_saved_again_unchanged(shell: Shell) -> None:
    saved = shell.json("plan", "save", shell.write(SOUND))
    definition = shell.json("plan", "show", "ship")["definition"]
    again = shell.json("plan", "save", shell.write(json.dumps(definition), "again.json"))
    assert (again["version"], again["hash"]) == (saved["version"], saved["hash"])


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("plan", "show", "nowhere"), 3, "not_found"),
        (("plan", "check", "nowhere.yaml"), 3, "not_found"),
        (("plan", "check", "."), 3, "not_found"),
        (("plan", "retire", "nowhere", "--reason", "x"), 3, "not_found"),
        (("journal", "show", "run_nowhere"), 3, "not_found"),
        (("journal", "export", "run_nowhere"), 3, "not_found"),
        (("journal", "erase", "run_nowhere", "1", "--reason", "x"), 3, "not_found"),
    ],
)
def test_errors_have_their_exit_code_their_name_and_a_way_out(
    shell: Shell, words: tuple[str, ...], code: int, name: str
) -> None:
    error = shell.json(*words, code=code)["error"]
    assert error["name"] == name
    assert error["hint"]
    result = shell.run(*words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert "what to do: " in result.stderr


def test_a_second_retirement_is_a_conflict(shell: Shell) -> None:
    shell.run("plan", "save", shell.write(SOUND))
    shell.run("plan", "retire", "ship", "--reason", "x")
    assert shell.json("plan", "retire", "ship", "--reason", "x", code=6)["error"]["name"] == "conflict"


def test_a_misspelled_plan_is_answered_with_the_nearest_name(shell: Shell) -> None:
    shell.run("plan", "save", shell.write(SOUND))
    assert shell.json("plan", "show", "shp", code=3)["error"]["hint"] == "did you mean `ship`?"


def test_tables_are_never_cut_where_there_is_no_terminal(shell: Shell) -> None:
    note = "because " * 40
    shell.run("plan", "save", shell.write(SOUND), "--note", note)
    assert note.strip() in shell.run("plan", "show", "ship").stdout


def test_an_unfit_plan_is_not_saved(shell: Shell) -> None:
    error = shell.json("plan", "save", shell.write(BROKEN), code=5)["error"]
    assert error["findings"]
    assert not shell.home.exists()
    assert re.search(r"plan\S* has \d errors?\b", shell.run("plan", "save", shell.write(BROKEN)).stderr)


def test_a_plan_with_an_unknown_tool_or_rule_is_not_saved(shell: Shell) -> None:
    steps = "[{id: a, tool: file.raed, args: {path: x}}, {id: b, prompt: B., checks: [{rule: lenght, min: 1}]}]"
    file = shell.write(f"id: ship\nsteps: {steps}\n")
    error = shell.json("plan", "save", file, code=5)["error"]
    assert {finding["rule"] for finding in error["findings"]} >= {"unknown_tool", "unknown_rule"}
    assert error["findings"] == shell.json("plan", "check", file, code=5)["findings"]
    assert not shell.home.exists()


@pytest.mark.parametrize("words", [("plan",), ("nonsense",), ("plan", "save"), ("journal", "checkpoint", "--accept")])
def test_misuse_ends_with_2(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell.run(*words).exit_code == 2


def test_a_receipt_needs_its_run(shell: Shell) -> None:
    assert shell.run("journal", "verify", "--receipt", "1:00").exit_code == 2


def test_the_journal_is_shown_and_exported_with_all_that_proves_it(shell: Shell, tmp_path: Path) -> None:
    shell.run("plan", "save", shell.write(SOUND))
    events = shell.json("journal", "show")["events"]
    assert [event["kind"] for event in events] == ["store_created", "plan_saved"]
    (own,) = shell.json("journal", "show", "plan/ship")["events"]
    assert (own["n"], own["data"]["version"]) == (1, 1)
    assert own["run"] == f"plan/{own['data']['project']}/ship"
    assert "plan_saved" in shell.run("journal", "show", "plan/ship").stdout
    lines = [json.loads(line) for line in shell.run("journal", "export").stdout.splitlines() if line.startswith("{")]
    assert [line["seq"] for line in lines] == [1, 2]
    assert {"prev", "salt", "body", "hash", "at_ms"} <= lines[0].keys()
    target = tmp_path / "out.jsonl"
    assert shell.run("journal", "export", "plan/ship", "-o", str(target)).exit_code == 0
    assert json.loads(target.read_text())["hash"] == own["hash"]


def test_an_untouched_journal_is_proved(shell: Shell) -> None:
    receipt = shell.json("plan", "save", shell.write(SOUND))["receipt"]
    reply = shell.json("journal", "verify", "--replay")
    assert (reply["ok"], reply["events"], reply["signed_events"]) == (True, 2, 2)
    assert shell.json("journal", "verify", "plan/ship", "--receipt", receipt)["ok"]
    assert "journal verified: " in shell.run("journal", "verify").stdout
    wrong = shell.json("journal", "verify", "plan/ship", "--receipt", "1:" + "0" * 16, code=7)
    assert wrong["ok"] is False


def test_a_changed_journal_is_found_named_and_refused_until_an_operator_accepts_it(shell: Shell) -> None:
    file = shell.write(SOUND)
    shell.run("plan", "save", file)
    shell.execute("update event set body = cast(replace(cast(body as text), 'Ship', 'Sink') as blob) where n = 1")
    reply = shell.json("journal", "verify", code=7)
    (plan,) = [event["run"] for event in shell.json("journal", "show")["events"] if event["kind"] == "plan_saved"]
    assert (reply["first_bad"]["stream"], reply["first_bad"]["n"]) == (plan, 1)
    assert "INTEGRITY BROKEN" in shell.run("journal", "verify").stdout
    shell.write(SOUND.replace("Write", "Draft"))
    refused = shell.json("plan", "save", file, code=7)["error"]
    assert "journal checkpoint --accept" in refused["hint"]
    assert shell.json("journal", "checkpoint", "--accept", "--reason", "known damage")["checkpoint"]
    assert shell.json("plan", "save", file)["version"] == 2
    kinds = [event["kind"] for event in shell.json("journal", "show", "store")["events"]]
    assert "journal_accepted" in kinds


def test_a_cut_journal_is_refused(shell: Shell) -> None:
    file = shell.write(SOUND)
    shell.run("plan", "save", file)
    shell.execute("delete from event where kind = 'plan_saved'; delete from plan;")
    assert shell.json("plan", "save", file, code=7)["error"]["message"]
    assert shell.json("journal", "verify", code=7)["ok"] is False


def test_checkpoints_that_are_gone_are_reported(shell: Shell) -> None:
    file = shell.write(SOUND)
    assert "no checkpoint" not in shell.run("plan", "save", file).stderr
    shell.write(SOUND.replace("Write", "Draft"))
    (shell.home / "checkpoints").rename(shell.folder / "taken-away")
    reply = shell.run("plan", "save", file)
    assert reply.exit_code == 0
    assert "the journal has 2 events and no checkpoint" in reply.stderr


def test_a_damaged_projection_is_fixed_from_the_events(shell: Shell) -> None:
    shell.run("plan", "save", shell.write(SOUND))
    shell.execute("update plan set name = 'Sink it'")
    assert shell.json("journal", "verify", "--replay", code=7)["ok"] is False
    reply = shell.json("journal", "verify", "--rebuild")
    assert (reply["ok"], reply["rebuilt"]) == (True, 1)
    assert shell.json("plan", "list")["plans"][0]["name"] == "Ship it"
    assert "rebuilt" not in shell.run("journal", "verify", "--rebuild").stdout


def test_words_are_erased_permanently_and_the_chain_still_holds(shell: Shell) -> None:
    shell.run("plan", "save", shell.write(SOUND), "--note", "by Ada Lovelace")
    assert shell.json("journal", "erase", "plan/ship", "1", "--reason", "a name", "--dry-run")["would_erase"]
    assert "Lovelace" in json.dumps(shell.json("journal", "show"))
    assert shell.json("journal", "erase", "plan/ship", "1", "--reason", "a name", "--yes")["erased"]
    assert "Lovelace" not in json.dumps(shell.json("journal", "show"))
    assert b"Lovelace" not in b"".join(file.read_bytes() for file in shell.home.rglob("*") if file.is_file())
    assert shell.json("journal", "verify", "--replay")["ok"]


def test_a_checkpoint_is_written_once_for_the_same_state(shell: Shell) -> None:
    shell.run("plan", "save", shell.write(SOUND))
    reply = shell.json("journal", "checkpoint")
    assert (reply["new"], reply["checkpoint"]["events"]) == (False, 2)
    assert "no new events" in shell.run("journal", "checkpoint").stdout


def test_keys_and_journal_are_private(shell: Shell) -> None:
    shell.run("plan", "save", shell.write(SOUND))
    if os.name == "posix":
        assert (shell.home / "keys" / "journal.key").stat().st_mode & 0o077 == 0
        assert (shell.home / "journal.db").stat().st_mode & 0o077 == 0


def test_reading_an_empty_home_makes_nothing(shell: Shell) -> None:
    assert shell.json("plan", "list") == {"plans": []}
    assert "no saved plans" in shell.run("plan", "list").stderr
    assert shell.json("journal", "show") == {"events": []}
    assert shell.json("journal", "verify")["ok"]
    assert not shell.home.exists()


@pytest.mark.parametrize(("flag", "start"), [("--mermaid", "flowchart"), ("--svg", "<svg"), ("--ascii", "")])
def test_a_workflow_is_drawn_in_the_form_that_was_asked_for(shell: Shell, flag: str, start: str) -> None:
    file = shell.write(SOUND)
    result = shell.run("workflow", "graph", file, flag)
    assert result.exit_code == 0
    assert start in result.stdout
    assert "notes" in result.stdout
    assert shell.json("workflow", "graph", file, flag)["picture"].startswith(result.stdout[:20])


def test_what_can_not_be_read_can_not_be_drawn(shell: Shell) -> None:
    assert shell.json("workflow", "graph", shell.write("steps: ["), code=5)["error"]["findings"]


def test_the_schema_is_printed(shell: Shell) -> None:
    schema = json.loads(shell.run("schema").stdout)
    assert schema["$schema"].startswith("http://json-schema.org/draft-07")


def test_settings_are_shown_with_their_origin(shell: Shell) -> None:
    rows = {row["setting"]: row for row in shell.json("config", "show")["settings"]}
    assert (rows["home"]["value"], rows["home"]["from"]) == (str(shell.home), "HANDRAIL_HOME")
    assert "log_days" in shell.run("config", "show").stdout


def test_no_address_among_the_settings_is_shown_with_what_opens_it(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "config.toml").write_text(
        'trace_endpoint = "https://ann:swordfish@127.0.0.1:4318"\n[witnesses]\n'
        'targets = ["file:/audit/x", "https://w.example/in?Sig=swordfish&a=1"]\n'
    )
    rows = {row["setting"]: row["value"] for row in shell.json("config", "show")["settings"]}
    assert rows["trace_endpoint"] == "https://ann:***@127.0.0.1:4318"
    assert rows["[witnesses] targets"] == ["file:/audit/x", "https://w.example/in?Sig=***&a=1"]


def test_a_wrong_setting_is_reported_before_anything_happens(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "config.toml").write_text("log_days = 0")
    result = shell.run("config", "show")
    assert result.exit_code == 5
    assert "log_days" in result.stderr


def test_a_store_that_does_not_answer_is_unavailable_and_its_password_is_not_shown(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_STORE", "postgresql://ann:swordfish@127.0.0.1:1/books")
    error = shell.json("plan", "list", code=8)["error"]
    assert error["name"] == "unavailable"
    assert "swordfish" not in str(error)
    monkeypatch.setenv("HANDRAIL_STORE", "postgresql://nowhere")
    assert shell.json("plan", "list", code=5)["error"]["name"] == "invalid"


def test_help_names_every_command(shell: Shell) -> None:
    reply = shell.run("--help").output
    assert all(name in reply for name in COMMANDS)


def test_the_installed_program_keeps_stdout_for_data(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(SOUND)
    environment = {**os.environ, "HANDRAIL_HOME": str(tmp_path / "home"), "HANDRAIL_LOG_LEVEL": "debug"}
    command = [sys.executable, "-m", "handrail", "plan", "save", "plan.yaml", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["plan"] == "ship"


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such mode there")
@pytest.mark.parametrize("words", [("workflow", "list"), ("config", "show"), ("run", "list"), ("plan", "list")])
def test_the_home_that_a_command_makes_is_its_owners_alone(shell: Shell, words: tuple[str, ...]) -> None:
    shell.run(*words)
    made = [folder for folder in (shell.home, *shell.home.rglob("*")) if folder.is_dir()]
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in made if folder.exists())
