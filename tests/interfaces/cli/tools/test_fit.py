"""What tools.json says of a server's tools, against the tools that the server has."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.interfaces.cli.tools.fit import left_out, misfits
from handrail.tools.mcp.declaration import Declared, ToolRule, UndoRule

SCHEMAS: dict[str, dict[str, Any]] = {
    "create_branch": {"properties": {"name": {}, "base": {}}, "required": ["name"]},
    "delete_branch": {"properties": {"name": {}, "force": {}}, "required": ["name"], "additionalProperties": False},
    "push": {"additionalProperties": True},
}


def declared(**keys: Any) -> Declared:
    return Declared(name="git", origin="tools.json", command="git-server", **keys)


def undone_by(tool: str, **args: Any) -> Declared:
    return declared(tools={"create_branch": ToolRule(undo=UndoRule(tool=tool, args=args))})


def test_allow_and_deny_leave_tools_out() -> None:
    assert left_out(declared(), SCHEMAS) == []
    assert left_out(declared(allow=("*_branch",), deny=("delete_*",)), SCHEMAS) == ["delete_branch", "push"]


def test_what_fits_is_not_spoken_of() -> None:
    said = undone_by("delete_branch", name="{{ args.name }}", force=True)
    assert misfits(said, SCHEMAS) == []
    assert misfits(declared(allow=("*",), deny=("push",), tools={"push": ToolRule(timeout="3s")}), SCHEMAS) == []


@pytest.mark.parametrize(
    ("said", "sign"),
    [
        (declared(allow=("puhs",)), "allow: `puhs` matches no tool; did you mean `push`?"),
        (declared(deny=("nothing_*",)), "deny: `nothing_*` matches no tool"),
        (declared(tools={"create_brunch": ToolRule()}), "there is no such tool; did you mean `create_branch`?"),
        (undone_by("remove_branch"), "undo: there is no tool `remove_branch`; did you mean `create_branch`?"),
        (undone_by("delete_branch"), "`delete_branch` needs the argument `name`; add it to args"),
        (undone_by("delete_branch", name="x", forse=1), "has no argument `forse`; did you mean `force`?"),
        (undone_by("delete_branch", name="{{ args.nmae }}"), "refer to `args.nmae`, but `create_branch` has no such"),
        (undone_by("delete_branch", name=["x", {"y": "{{ args.nmae | upper }}"}]), "did you mean `name`?"),
    ],
)
def test_what_can_not_work_is_reported_with_the_nearest_name(said: Declared, sign: str) -> None:
    (reply,) = misfits(said, SCHEMAS)
    assert sign in reply


def test_an_undo_may_mention_anything_where_the_schema_is_open() -> None:
    said = declared(tools={"push": ToolRule(undo=UndoRule(tool="push", args={"a": "{{ args.any }} args.other"}))})
    assert misfits(said, SCHEMAS) == []


def test_an_undo_of_a_tool_that_is_not_there_is_reported_once() -> None:
    said = declared(tools={"gone": ToolRule(undo=UndoRule(tool="gone-too"))})
    assert len(misfits(said, SCHEMAS)) == 1


@pytest.mark.parametrize("schema", [{"properties": [], "required": 7}, {"properties": None, "required": [1, None]}])
def test_a_hostile_schema_stops_nobody(schema: dict[str, Any]) -> None:
    said = undone_by("delete_branch", name="{{ args.name }}")
    assert misfits(said, {"create_branch": schema, "delete_branch": schema}) == []


def test_a_server_without_tools_has_no_names_to_suggest() -> None:
    assert misfits(declared(allow=("x",)), {}) == ["allow: `x` matches no tool"]
