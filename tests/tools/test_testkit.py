"""The kit for testing tools: it finds broken promises, and the guide's own example keeps all of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.definition.model import Effect
from handrail.engine.tool import PlanTool, ToolSpec
from handrail.tools.arguments import closed
from handrail.tools.python.function_tool import FunctionTool
from handrail.tools.sdk import PythonTool, tool
from handrail.tools.testkit import check
from tidy.yardstick import ROOT
from tools.calls import registry

WORLD: list[str] = []


@pytest.fixture(autouse=True)
def empty_world() -> None:
    WORLD.clear()


@tool("liar.quiet", effect="none")
def quiet() -> None:
    WORLD.append("x")


@tool("liar.once", effect="compensatable", idempotent=True)
def once() -> None:
    WORLD.append("x")


@tool("liar.back", effect="reversible")
def back() -> None:
    WORLD.append("x")


@back.undo
def not_really() -> None:
    WORLD.append("y")


@tool("liar.twice", effect="reversible")
def twice() -> None:
    WORLD.append("x")


@twice.undo
def too_often() -> None:
    if WORLD:
        WORLD.pop()
    else:
        WORLD.append("y")


@tool("liar.fails", effect="none")
def fails() -> None:
    raise ValueError("no")


@pytest.mark.parametrize(
    ("liar", "words"),
    [
        (quiet, "it declares `effect: none` but has an effect"),
        (once, "it declares `idempotent` but has its effect twice"),
        (back, "its undo does not restore the state from before"),
        (twice, "its undo has another result if it is done twice"),
        (fails, "it fails: invalid_input: ValueError: no"),
    ],
)
async def test_a_broken_promise_is_found(liar: PythonTool, words: str) -> None:
    assert await check(liar, {}, snapshot=lambda: list(WORLD)) == [words]


async def test_schemas_and_outputs_are_judged_too() -> None:
    async def do(_: Any) -> Any:
        return {"set"}

    async def loose(_: Any) -> Any:
        return object()

    def made(args: Any, deed: Any = do) -> FunctionTool:
        return FunctionTool(spec=ToolSpec(name="a.b", description="", effect=Effect.NONE, args=args), do=deed)

    assert "additionalProperties false" in (await check(made({}), {}))[0]
    assert await check(made(closed({})), {}) == ["its output is not plain JSON"]
    assert await check(made(closed({}), loose), {}) == ["its output is not plain JSON"]
    assert "don't fit" in (await check(made(closed({})), {"x": 1}))[0]
    sloppy = {**closed({}), "patternProperties": {" ": {}}}
    assert await check(made(sloppy), {}) == ["it accepts unknown arguments"]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("file.write", {"path": "there.txt", "text": "new"}),
        ("file.append", {"path": "there.txt", "text": "new"}),
        ("file.move", {"source": "there.txt", "target": "moved.txt"}),
        ("file.delete", {"path": "there.txt"}),
        ("file.mkdir", {"path": "a/b"}),
        ("file.read", {"path": "there.txt"}),
        ("value.set", {"value": 1}),
        ("wait.for", {"duration": "1s"}),
    ],
)
async def test_the_built_in_tools_keep_their_promises(name: str, args: dict[str, Any], tmp_path: Path) -> None:
    whole: PlanTool = registry(tmp_path).find(name)
    project = tmp_path / "project"
    (project / "there.txt").write_text("old")

    def world() -> dict[str, Any]:
        return {str(path): path.read_bytes() if path.is_file() else None for path in project.rglob("*")}

    assert await check(whole, args, snapshot=world) == []


async def test_the_guides_example_keeps_its_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "guides" / "writing-a-tool.md").read_text(encoding="utf-8")
    example, its_test = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "shelf.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "shelf", raising=False)
    names: dict[str, Any] = {}
    exec(compile(its_test, "writing-a-tool.md", "exec"), names)
    await names["test_it_keeps_its_promises"]()
    put = sys.modules["shelf"].put
    assert msgspec.json.encode(put.spec.args["properties"]) == b'{"word":{"type":"string"}}'
    assert await check(put, {"word": ""}) == ["it fails: invalid_input: an empty word; give one with letters"]
