"""Every command prints the texts of strangers without letting them near the terminal.

The list of commands is generated from the program: a new one is covered without anybody remembering."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, _NamedTextIOWrapper
from rich.text import Text

from handrail.foundation.visible_text import visible, visible_json, visible_line
from handrail.interfaces.cli.program import COMMANDS, LazyGroup, program
from handrail.interfaces.cli.words import terminal_edge
from handrail.interfaces.cli.words.completion import _shown
from handrail.interfaces.cli.words.live_console import LiveConsole
from interfaces.shell import in_terminal

HIDDEN = "\x1b[8m\x1b[2J\x1b]0;owned\x07\x9b31m\x90\u202egnp\u2066\u200b\ufeff\U000e0041\r\x7f\u3164"
EVIL = f"evil{HIDDEN}owned"
OURS = re.compile(r"\x1b\[(?:0|1|2|3[0-7]|9[0-7]|1;31)m")
"""The colours of handrail. What HIDDEN has is none of them."""
BAD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\U000e0000-\U000e007f]"
)
SERVERS = {"mcp", "serve", "open", "worker", "demo"}
"""They serve until they are stopped; what they print goes through the same edge (tests/tidy/test_terminal_edge.py)."""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such file names")


def leaves() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that is no group, with its words."""
    context = click.Context(program)
    for name in COMMANDS:
        if name not in SERVERS:
            yield from _leaves((name,), program.get_command(context, name), context)


def _leaves(
    words: tuple[str, ...], command: click.Command | None, context: click.Context
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    assert command is not None
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name in command.list_commands(context):
        yield from _leaves((*words, name), command.get_command(context, name), context)


def workflow(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": EVIL,
        "description": EVIL,
        "steps": [
            {"id": "set", "title": EVIL, "tool": "value.set", "args": {"value": EVIL}},
            {"id": "ask", "title": EVIL, "approve": f"May I? {EVIL}", "by": [EVIL]},
            {"id": "do", "prompt": EVIL, "title": EVIL},
        ],
        "outputs": {"said": "steps.set.output"},
    }


class Scene:
    """A project in a hostile folder, with hostile workflows, a run, a plan and a tool server that can't start."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / f"project{HIDDEN}"
        flows = self.project / ".handrail" / "workflows"
        flows.mkdir(parents=True)
        self.file = flows / f"flow{HIDDEN}.json"
        self.file.write_text(json.dumps(workflow("flow")))
        self.broken = flows / f"broken{HIDDEN}.json"
        self.broken.write_text(json.dumps({**workflow("broken"), EVIL: EVIL}))
        servers = {"mcpServers": {"s": {"command": "/no/such/server"}}}
        (self.project / ".handrail" / "tools.json").write_text(json.dumps(servers))
        self.run_id = ""

    def invoke(self, *words: str, stdin: str | None = None) -> str:
        chosen = ("--home", str(self.home), "--project", str(self.project))
        return CliRunner().invoke(program, [*chosen, *words], input=stdin, prog_name="handrail").output


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGNAME", EVIL)
        patch.setenv("HOME", str(folder))
        patch.delenv("NO_COLOR", raising=False)
        # Click removes escape codes where there is no terminal: as if there were one, so that we see them.
        patch.setattr(_NamedTextIOWrapper, "isatty", lambda stream: stream.name in {"<stdout>", "<stderr>"})
        patch.setenv("TERM", "dumb")
        one = Scene(folder)
        one.invoke("plan", "save", str(one.file), "--note", EVIL)
        one.run_id = one.invoke("run", "start", str(one.file), "--goal", EVIL).split()[0]
        assert one.run_id.startswith("run_")
        yield one


def argument_values(scene: Scene, name: str | None) -> tuple[str, ...]:
    """What is tried for an argument: what there is, and what there is not."""
    if name in {"run_id", "stream"}:
        return scene.run_id, EVIL
    if name == "step":
        return "ask", EVIL
    if name == "number":
        return ("1",)
    if name == "plan_id":
        return "flow", EVIL
    return str(scene.file), EVIL, str(scene.broken)


def tries(scene: Scene, command: click.Command) -> Iterator[list[str]]:
    """Several ways to call a command, with a hostile text wherever one fits."""
    options = {name for parameter in command.params for name in parameter.opts}
    more = ["--reason", EVIL] if "--reason" in options else []
    more += ["--yes"] if "--yes" in options else []
    more += ["--dry-run"] if "--dry-run" in options else []
    arguments = [one.name for one in command.params if isinstance(one, click.Argument)]
    rounds = max((len(argument_values(scene, name)) for name in arguments), default=1)
    for number in range(rounds):
        words = [values[number % len(values)] for values in (argument_values(scene, name) for name in arguments)]
        yield [*words, *more]
        if "--json" in options and number == 0 and "--client" not in options:  # those start servers: once is enough
            yield [*words, *more, "--json"]
    yield [EVIL, f"--{EVIL}"]


@pytest.mark.parametrize(("words", "command"), [pytest.param(*one, id=" ".join(one[0])) for one in leaves()])
def test_no_command_lets_a_text_control_the_terminal(
    scene: Scene, words: tuple[str, ...], command: click.Command
) -> None:
    for given in tries(scene, command):
        shown = scene.invoke(*words, *given)
        found = BAD.search(OURS.sub("", shown))
        assert found is None, f"{words} {given[:2]}: {found} in {shown!r}"


def test_what_was_hidden_is_shown(scene: Scene) -> None:
    shown = scene.invoke("approvals") + scene.invoke("run", "show", scene.run_id, "--full")
    assert "owned" in shown
    status = json.loads(scene.invoke("run", "show", scene.run_id, "--json"))
    assert EVIL in _texts(status), "JSON decodes to the same text"


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return [text for one in (value.values() if isinstance(value, dict) else value) for text in _texts(one)]
    return [value] if isinstance(value, str) else []


def test_an_export_to_a_terminal_hides_nothing_and_to_a_file_changes_nothing(scene: Scene, tmp_path: Path) -> None:
    shown = scene.invoke("journal", "export", scene.run_id)
    assert BAD.search(shown) is None
    file = tmp_path / "out.jsonl"
    scene.invoke("journal", "export", scene.run_id, "-o", str(file))
    assert "\u202e" in file.read_text()
    lines = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
    assert lines == [json.loads(line) for line in file.read_text().splitlines()]


def test_a_question_at_a_real_terminal_hides_nothing(scene: Scene) -> None:
    chosen = ["--home", str(scene.home), "--project", str(scene.project)]
    command = [sys.executable, "-m", "handrail", *chosen, "journal", "erase", scene.run_id, "1"]
    shown = in_terminal(command, scene.project, "n\n", {"LOGNAME": "ada"})
    assert "Erase this permanently?" in shown
    assert BAD.search(OURS.sub("", shown).replace("\r\n", "\n")) is None


def test_questions_are_one_visible_line(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(click, "confirm", lambda text, **_: asked.append(text))
    monkeypatch.setattr(click, "prompt", lambda text, **_: asked.append(text))
    terminal_edge.ask_yes(f"{EVIL}\nyes?")
    terminal_edge.ask_text(f"{EVIL}\nyes?")
    assert len(asked) == 2
    for text in asked:
        assert BAD.search(text) is None
        assert "\\nyes?" in text.replace("\\x0a", "\\n")


def test_the_live_view_lets_no_text_through(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="utf-8") as file:
        console = LiveConsole(file=file, force_terminal=True, color_system="standard", width=200)
        console.print(Text(EVIL, style="red"))
    shown = (tmp_path / "out").read_bytes().decode()
    assert shown.count("owned") >= 1
    assert BAD.search(OURS.sub("", shown)) is None


def test_completion_offers_nothing_hidden() -> None:
    item = _shown(click.shell_completion.CompletionItem("a", help=f"{EVIL}\nplain,b"))
    assert BAD.search(str(item.help)) is None
    assert "\n" not in str(item.help)


def test_a_picture_keeps_its_colours_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with click.Context(click.Command("x"), color=True).scope():
        terminal_edge.put_picture("\x1b[1;31mred\x1b[0m \x1b]0;owned\x07\x1b[2J")
    assert capsys.readouterr().out == "\x1b[1;31mred\x1b[0m \\x1b]0;owned\\x07\\x1b[2J\n"


def test_data_goes_into_a_pipe_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    terminal_edge.put("a\u202eb")
    assert capsys.readouterr().out == "a\u202eb\n"


def test_text_that_the_terminal_cannot_encode_does_not_end_the_command() -> None:
    class Narrow:
        encoding = "ascii"

    assert terminal_edge._encodable("Grüße", Narrow()) == "Gr??e"


def test_hidden_characters_are_written_out() -> None:
    assert visible("a\x1b[2J\u202eb\n\tc\U000e0041\udc80") == "a\\x1b[2J\\u202eb\n\tc\\U000e0041\\udc80"
    assert visible_line("a\nb\tc") == "a\\x0ab\\x09c"
    assert visible("plain, Grüße, 日本語, العربية, ⚠\ufe0f, non\xa0breaking") == (
        "plain, Grüße, 日本語, العربية, ⚠\ufe0f, non breaking"
    )
    text = json.dumps({"a": EVIL}, ensure_ascii=False, indent=1)
    assert json.loads(visible_json(text)) == {"a": EVIL}
    assert BAD.search(visible_json(text)) is None
    assert visible_json('{"a": "\x7f"}') == '{"a": "\\u007f"}'


def test_the_tree_of_commands_was_walked() -> None:
    assert {words[0] for words, _ in leaves()} == COMMANDS.keys() - SERVERS
    assert isinstance(program, LazyGroup)
    assert len(list(leaves())) > 40
    assert os.sep not in HIDDEN
