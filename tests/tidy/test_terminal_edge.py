"""No command prints around the edge to the terminal: what strangers write must be made visible first."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from handrail.interfaces.cli.program import COMMANDS
from tidy.yardstick import SOURCE

EDGES = {"interfaces/cli/words/terminal_edge.py", "interfaces/cli/words/live_console.py"}
ROOMS = ("interfaces/cli", "interfaces/pictures", "interfaces/clients")
CLICK = {
    "echo",
    "secho",
    "style",
    "prompt",
    "confirm",
    "echo_via_pager",
    "progressbar",
    "get_text_stream",
    "get_binary_stream",
    "getchar",
    "pause",
    "clear",
}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
STREAM_METHODS = {"write", "writelines", "buffer"}
PRINTERS = {"print", "pprint", "Console", "print_exc", "print_exception", "print_stack"}


def prints(source: str) -> list[str]:
    """The places in a module that print by themselves."""
    return [found for node in ast.walk(ast.parse(source)) if (found := _way_around(node))]


def _way_around(node: ast.AST) -> str:
    match node:
        case ast.Attribute(value=ast.Name(id="click" | "termui" | "utils"), attr=name) if name in CLICK:
            return f"{node.lineno}: click.{name}"
        case ast.ImportFrom(module="click" | "rich", names=names) if {one.name for one in names} & (CLICK | PRINTERS):
            return f"{node.lineno}: import of {names[0].name}"
        case ast.Attribute(value=ast.Attribute(attr=stream) | ast.Name(id=stream), attr=name) if (
            stream in STREAMS and name in STREAM_METHODS
        ):
            return f"{node.lineno}: {stream}.{name}"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in PRINTERS:
            return f"{node.lineno}: {name}()"
        case _:
            return ""


def modules() -> list[Path]:
    return [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_a_module_prints_through_the_edge(path: Path) -> None:
    if path.relative_to(SOURCE).as_posix() in EDGES:
        return
    assert prints(path.read_text(encoding="utf-8")) == [], "use interfaces/cli/words/terminal_edge.py"


@pytest.mark.parametrize(
    "code",
    [
        "click.echo('a')",
        "click.secho('a', fg='red')",
        "click.confirm('a')",
        "from click import echo",
        "from rich import print",
        "print('a')",
        "sys.stdout.write('a')",
        "sys.stderr.buffer.write(b'a')",
        "from sys import stdout\nstdout.write('a')",
        "rich.console.Console().print('a')",
        "Console(stderr=True)",
        "traceback.print_exc()",
    ],
)
def test_every_way_around_is_seen(code: str) -> None:
    assert prints(code)


def test_what_prints_nothing_is_not_taken_for_it() -> None:
    assert prints("say('a')\nsys.stdout.isatty()\nfile.write('a')\nclick.option('--a')\nprint_table([], [])") == []


TYPED = re.compile(rf"(?<!\w)handrail (?:{'|'.join(sorted(COMMANDS))})\b")
WITHOUT_A_PROJECT = {"interfaces/cli/demo/group.py", "interfaces/cli/journal/bundle.py"}
"""What the tour prints is for a project of one's own; a bundle is verified anywhere."""


def said_directly(source: str) -> list[str]:
    """The commands in the texts of calls of `say` that no function has completed."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say":
            texts = [part for arg in node.args for part in _written(arg)]
            found += [f"{node.lineno}: {text}" for text in texts if TYPED.search(text)]
    return found


def _written(node: ast.AST) -> list[str]:
    """The literal texts of an argument; what a function is called with is its business."""
    if isinstance(node, ast.Call):
        return []
    own = [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
    return own + [text for child in ast.iter_child_nodes(node) for text in _written(child)]


def test_a_command_to_type_next_is_made_where_the_folder_is_known() -> None:
    """It must work as it stands, also after --project: words/own_command.py completes it."""
    for path in sorted((SOURCE / "interfaces" / "cli").rglob("*.py")):
        if path.relative_to(SOURCE).as_posix() not in WITHOUT_A_PROJECT:
            assert said_directly(path.read_text(encoding="utf-8")) == [], path.name
    assert said_directly('say(f"now: `handrail run show {x}`")'), "the test can fail"
