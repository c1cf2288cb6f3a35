"""The kit for testing rules, and the guide that tells how to write one: its examples are run here."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handrail.rules.sdk import Context, Finding, rule
from handrail.rules.testkit import check
from tidy.yardstick import ROOT

GUIDE = ROOT / "docs" / "guides" / "writing-a-rule.md"


@rule("same_words", version="1.0.0", reads="project")
async def same_words(context: Context, *, path: str) -> AsyncIterator[Finding]:
    """The output is what the file says."""
    if context.output != context.read_text(path):
        yield Finding("it is something else", where=path)


@rule("no_words", version="1.0.0")
async def no_words(context: Context) -> list[Finding]:
    """The output is empty."""
    return [Finding("it is not empty")] if context.output else []


async def test_given_files_and_an_output_the_findings_are_reported() -> None:
    files = {"docs/a.txt": "hello"}
    assert await check(same_words, {"path": "docs/a.txt"}, output="hello", files=files) == []
    found = await check(same_words, {"path": "docs/a.txt"}, output="bye", files=files)
    assert found == [Finding("it is something else", where="docs/a.txt")]
    assert (await check(same_words, {"path": "b.txt"}, files=files))[0].message == "b.txt does not exist"
    assert await check(no_words) == []
    assert await check(no_words, output=["a"]) == [Finding("it is not empty")]


async def test_what_a_rule_raises_comes_out_as_it_is() -> None:
    @rule("raises", version="1.0.0")
    def raises(context: Context) -> list[Finding]:
        raise KeyError(context.output)

    with pytest.raises(KeyError, match="words"):
        await check(raises, output="words")


async def test_files_stay_inside_the_project() -> None:
    with pytest.raises(ValueError, match="not a path below"):
        await check(same_words, {"path": "a"}, files={"../a": "b"})


async def test_the_guide_tells_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    module, its_test = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:2]
    (tmp_path / "house_rules.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {}
    exec(compile(its_test, "writing-a-rule.md", "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    for one in tests:
        await one()
    points = tomllib.loads(re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0])
    entry = points["project"]["entry-points"]["handrail.rules"]
    for name, value in entry.items():
        assert getattr(sys.modules["house_rules"], value.partition(":")[2]).card.name == name
    monkeypatch.delitem(sys.modules, "house_rules")
