"""Calls for tests: what a conductor does around a tool, and what tests expect of its failures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.definition.model import Category
from handrail.engine.tool import PlanTool, ToolCall, ToolFailed
from handrail.tools.registry import Registry


def registry(folder: Path, **options: Any) -> Registry:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    return Registry(project=project, kept=folder / "home" / "kept", private=[folder / "home"], **options)


def call_of(tool: str, args: Mapping[str, Any], *, capture: Any = None, step: str = "a-step", **more: Any) -> ToolCall:
    return ToolCall(tool=tool, args=args, key="key-1", run="run_22222222", step=step, capture=capture, **more)


async def captured(tool: PlanTool, args: Mapping[str, Any], *, step: str = "a-step") -> ToolCall:
    """A call with its capture, which has been through the journal."""
    call = call_of(tool.spec.name, args, step=step)
    capture = msgspec.json.decode(msgspec.json.encode(await tool.capture(call)))
    return msgspec.structs.replace(call, capture=capture)


class Fails:
    """`with Fails(category, "words")`: the block fails in that category, with those words in its message."""

    def __init__(self, category: Category, words: str = "") -> None:
        self._category, self._words = category, words
        self._raises = pytest.raises(ToolFailed)

    def __enter__(self) -> Fails:
        self._info = self._raises.__enter__()
        return self

    def __exit__(self, *error: Any) -> bool:
        done = bool(self._raises.__exit__(*error))
        failed = self._info.value
        assert (failed.category, self._words in failed.message) == (self._category, True), failed
        self.failed = failed
        return done
