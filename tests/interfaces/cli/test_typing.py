"""Help while typing: reasons asked for at a terminal, mistyped words, ids for files, and shell completion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from handrail.interfaces.cli.program import COMMANDS, program
from interfaces.shell import Shell

ASKING = """\
id: asking
steps:
  - {id: go, approve: 'Go on?'}
  - {id: stay, approve: 'Or stay?', after: []}
"""
FAILING = """\
id: failing
steps:
  - {id: read, tool: file.read, args: {path: missing.txt}}
  - {id: last, tool: value.set, args: {value: 1}}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def started(shell: Shell, text: str) -> str:
    return str(shell.json("run", "start", shell.write(text), code=4)["run"])


# --- reasons ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (("approve", "RUN", "go"), "waiting"),
        (("reject", "RUN", "go"), "waiting"),
        (("run", "pause", "RUN"), "paused"),
        (("run", "cancel", "RUN"), "cancelled"),
    ],
)
def test_a_reason_is_asked_for_at_a_terminal(shell: Shell, words: tuple[str, ...], end: str) -> None:
    run = started(shell, ASKING)
    sure = "y\n" if words[0] in ("approve", "reject") else ""
    shown = shell.terminal(*[run if word == "RUN" else word for word in words], typed=f"{sure}\nbecause I say so\n")
    assert "Reason: " in shown
    assert shell.json("run", "show", run)["status"] == end
    assert "because I say so" in json.dumps(shell.json("journal", "show", run))


@pytest.mark.parametrize(
    "words",
    [
        ("approve", "run_x"),
        ("reject", "run_x"),
        *(("run", action, "run_x") for action in ("pause", "cancel", "retry", "skip", "accept", "compensate")),
        ("run", "fork", "run_x", "go"),
        ("plan", "retire", "ship"),
    ],
)
def test_without_a_terminal_a_missing_reason_is_a_usage_error_that_says_so(
    shell: Shell, words: tuple[str, ...]
) -> None:
    result = shell.run(*words)
    assert result.exit_code == 2
    assert "Missing option '--reason'" in result.stderr
    assert "no terminal" in result.stderr
    assert not (shell.home / "journal.db").exists()


def test_to_resume_needs_no_reason(shell: Shell) -> None:
    run = started(shell, ASKING)
    shell.run("run", "pause", run, "--reason", "lunch")
    assert shell.json("run", "resume", run, code=4)["status"] == "waiting"


# --- mistyped words ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("wrokflow",), "workflow"),
        (("runs", "list"), "run"),
        (("jornal", "show"), "journal"),
        (("workflow", "lst"), "list"),
        (("run", "submti", "x"), "submit"),
        (("plan", "chek", "x"), "check"),
        (("--porject", ".", "run"), "--project"),
        (("workflow", "list", "--jsn"), "--json"),
        (("run", "submit", "x", "--ouput", "1"), "--output"),
    ],
)
def test_a_mistyped_word_is_answered_with_what_was_probably_meant(
    shell: Shell, words: tuple[str, ...], meant: str
) -> None:
    result = CliRunner().invoke(program, list(words), prog_name="handrail")
    assert result.exit_code == 2
    assert f"'{meant}'" in result.stderr.partition("Did you mean")[2]


def test_a_word_that_is_like_nothing_gets_no_suggestion() -> None:
    result = CliRunner().invoke(program, ["xyzzy"], prog_name="handrail")
    assert (result.exit_code, "Did you mean" in result.stderr) == (2, False)


# --- ids and files ----------------------------------------------------------------------------------


def test_a_workflow_is_drawn_and_validated_by_its_id_as_by_its_file(shell: Shell) -> None:
    file = shell.write(
        "id: tea\nversion: 1.0.0\nsteps: [{id: boil, prompt: Boil water.}]\n", ".handrail/workflows/t.yaml"
    )
    by_id = shell.json("workflow", "graph", "tea", "--mermaid")["picture"]
    assert by_id == shell.json("workflow", "graph", file, "--mermaid")["picture"]
    assert "boil" in by_id
    assert shell.run("workflow", "graph", "tea@1").exit_code == 0
    assert shell.json("workflow", "validate", "tea")["id"] == "tea"
    assert shell.json("plan", "check", "tea")["file"] == file
    assert shell.json("workflow", "validate", str(Path(file).parent))["valid"]
    assert shell.json("workflow", "graph", "te", code=3)["error"]["hint"].startswith("did you mean `tea`?")


def test_check_and_validate_say_that_they_are_one(shell: Shell) -> None:
    assert "handrail plan check" in shell.run("workflow", "validate", "--help").stdout
    assert "handrail workflow validate" in shell.run("plan", "check", "--help").stdout


# --- completion -------------------------------------------------------------------------------------


def complete(shell: Shell, *words: str, home: Path | None = None) -> Result:
    """What bash is offered for the last of the words."""
    typed = ["handrail", "--home", str(home or shell.home), "--project", str(shell.folder), *words]
    environment = {
        "_HANDRAIL_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(typed),
        "COMP_CWORD": str(len(typed) - 1),
    }
    return CliRunner().invoke(program, [], env=environment, prog_name="handrail")


def offered(shell: Shell, *words: str) -> list[str]:
    result = complete(shell, *words)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.split()


def test_commands_and_options_are_completed(shell: Shell) -> None:
    assert offered(shell, "wor") == ["plain,worker", "plain,workflow"]
    assert set(offered(shell, "")) == {f"plain,{name}" for name in COMMANDS}
    assert offered(shell, "run", "sub") == ["plain,submit"]
    assert "plain,--output" in offered(shell, "run", "submit", "--o")
    assert offered(shell, "--lo") == ["plain,--log-level"]


def test_ids_of_runs_workflows_and_plans_are_completed(shell: Shell) -> None:
    run = started(shell, ASKING)
    shell.run("plan", "save", shell.write("id: ship-it\nsteps: [{id: a, prompt: A.}]\n"))
    shell.write("id: shine\nsteps: [{id: a, prompt: A.}]\n", ".handrail/workflows/shine.yaml")
    for words in (("run", "show"), ("run", "watch"), ("run", "cancel"), ("approve",), ("run", "submit")):
        assert offered(shell, *words, "run_") == [f"plain,{run}"], words
    for words in (("journal", "show"), ("journal", "export"), ("journal", "erase")):
        assert offered(shell, *words, "run_") == [f"plain,{run}"], words
    assert offered(shell, "journal", "verify", "run_") == ["file,run_", f"plain,{run}"]
    assert offered(shell, "run", "show", "nothing") == []
    assert offered(shell, "plan", "show", "sh") == ["plain,ship-it"]
    assert offered(shell, "workflow", "graph", "sh") == ["file,sh", "plain,shine"]
    assert offered(shell, "run", "start", "sh") == ["file,sh", "plain,shine", "plain,ship-it"]
    assert "plain,code-review" in offered(shell, "workflow", "show", "code")
    assert offered(shell, "workflow", "validate", "./sh") == ["file,./sh"]


def test_steps_are_completed_as_the_command_needs_them(shell: Shell) -> None:
    asking, failing = started(shell, ASKING), started(shell, FAILING)
    guided = started(shell, "id: g\nsteps: [{id: done, tool: value.set, args: {value: 1}}, {id: think, prompt: T.}]\n")
    assert offered(shell, "approve", asking, "") == ["plain,go", "plain,stay"]
    assert offered(shell, "run", "retry", failing, "") == ["plain,read"]
    assert offered(shell, "run", "fork", failing, "") == ["plain,read", "plain,last"]
    assert offered(shell, "run", "submit", guided, "") == ["plain,think"]
    assert offered(shell, "run", "skip", "run_nowhere", "") == []


def test_completion_makes_no_home_and_is_silent_on_any_error(shell: Shell) -> None:
    for words in (("run", "show", ""), ("plan", "show", ""), ("run", "skip", "run_x", "")):
        assert offered(shell, *words) == []
    assert "plain,code-review" in offered(shell, "workflow", "graph", "code")
    assert not shell.home.exists()
    broken = shell.folder / "broken"
    broken.mkdir()
    (broken / "journal.db").write_bytes(b"not a database at all" * 100)
    (broken / "config.toml").write_text("[", encoding="utf-8")
    for home in (broken, shell.folder / "plan.yaml" / "home"):
        result = complete(shell, "run", "show", "", home=home)
        assert (result.exit_code, result.stdout.strip(), result.stderr) == (0, "", "")
    (broken / "config.toml").unlink()
    result = complete(shell, "run", "show", "", home=broken)
    assert (result.exit_code, result.stdout.strip(), result.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_script_and_the_help_says_how(shell: Shell, name: str) -> None:
    environment = {"_HANDRAIL_COMPLETE": f"{name}_source"}
    result = CliRunner().invoke(program, [], env=environment, prog_name="handrail")
    assert (result.exit_code, "_handrail_completion" in result.stdout) == (0, True)
    assert f"{name}_source" in shell.run("--help").stdout
