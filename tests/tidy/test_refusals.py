"""Refusals never name the line that would switch a guard off: agents read them, and can edit files.

Errors about a config file that is wrong may name its keys; they are for its author. They are in the functions listed
here, and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tidy.yardstick import ROOT

LINE = re.compile(
    r"\[(approvals|checks|groups|http|policy|secrets|shell)\]|\ballow = |\bsandbox = |agents_may_approve in|"
    r"allow it in .*config|set more in .*config|--keep |--for |--allow-host|console-key"
)
ROOMS = (
    "assembly",
    "domain",
    "engine",
    "interfaces/http",
    "interfaces/mcp",
    "interfaces/web",
    "rules",
    "runs.py",
    "tools",
)
READERS = {
    "assembly/secrets.py": {"allowed_env"},
    "assembly/people.py": {"_groups", "policy_of", "answer_rules"},
    "domain/policy/answering.py": {"_not_asked", "_no_channel"},
    "tools/configuration.py": {"tool_configuration", "_allowed_hosts"},
    "tools/shell.py": {"shell_configuration"},
    "domain/trust/reach.py": {"name"},
    "interfaces/http/contract/openapi.py": {""},
    "interfaces/web/http_server.py": {"_require_hosts", "_require_safe"},
    "domain/secrets/key_files.py": {""},
}
"""The functions that read config files, and report what is wrong in them."""


def texts(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, str, int]]:
    """Every text in code that is no docstring, with the function that it stands in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, inside, node.lineno
        function = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else inside
        yield from texts(node, function)


def test_no_refusal_names_the_line_that_switches_a_guard_off() -> None:
    source = ROOT / "src" / "handrail"
    files = [
        file for room in ROOMS for file in ([source / room] if room.endswith(".py") else (source / room).rglob("*.py"))
    ]
    assert len(files) > 100
    named = [
        f"{file.relative_to(source)}:{line}: {text}"
        for file in files
        for text, inside, line in texts(ast.parse(file.read_text(encoding="utf-8")))
        if LINE.search(text) and not _may_name(file.relative_to(source), inside)
    ]
    assert named == []


def _may_name(file: Path, inside: str) -> bool:
    return inside in READERS.get(file.as_posix(), ())
