"""The registry: all tools that plans can call, built in or brought by plugins, as a person configured them.

What each tool does is told in its own file; when it is called, the engine decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from handrail.domain.definition import Effect
from handrail.domain.effect import BUILT_IN_EFFECTS
from handrail.domain.errors import NotFound
from handrail.domain.suggestion import did_you_mean
from handrail.engine.tool import Tool, ToolSpec
from handrail.tools.configuration import ToolConfiguration, configured
from handrail.tools.file import file_tools
from handrail.tools.function_tool import FunctionTool
from handrail.tools.http import HttpTools
from handrail.tools.kept import Kept
from handrail.tools.plugin import Plugins, discover
from handrail.tools.python_tool import built
from handrail.tools.rooted import Root
from handrail.tools.sdk import PythonTool
from handrail.tools.value import value_tools
from handrail.tools.wait import wait_tools


class Registry:
    """The toolbox of a project."""

    def __init__(
        self,
        *,
        project: Path,
        kept: Path,
        private: Sequence[Path] = (),
        configuration: ToolConfiguration | None = None,
        own: Sequence[PythonTool] = (),
        discovering: Callable[[Collection[str]], Plugins] = discover,
    ) -> None:
        """`kept` is where contents wait for an undo; `private` are folders that no plan may read or change; `own` are
        tools that a program brings along."""
        self._configuration = configuration or ToolConfiguration()
        self._discovering = discovering
        self._kept = Kept(kept)
        self._http = HttpTools(self._configuration.allow)
        root = Root(project, private=(*private, kept))
        families = (file_tools(root, self._kept), self._http.tools(), wait_tools(), value_tools(), map(built, own))
        self._built_in = self._named(tool for family in families for tool in family)

    def find(self, name: str) -> Tool:
        """The tool of that name; NotFound with the nearest names."""
        # Built-in tools first: plugins are looked for only when somebody asks for what is not built in.
        found = self._built_in.get(name) or self._tools.get(name)
        if found is None:
            raise NotFound(f"there is no tool `{name}`", hint=did_you_mean(name, sorted(self._tools)))
        return found

    def specs(self) -> Sequence[ToolSpec]:
        """What all tools say of themselves, by name."""
        return [self._tools[name].spec for name in sorted(self._tools)]

    def effects(self) -> Mapping[str, Effect]:
        """What the calls of each tool do to the world, at most."""
        return {spec.name: spec.effect for spec in self.specs()}

    @property
    def broken(self) -> Mapping[str, str]:
        """The plugins that can't be used, each with the reason."""
        return self._plugins.broken

    async def forget(self, run: str) -> None:
        """Let go of everything kept for undoing this run."""
        if self._kept.has(run):  # a thread is dear, and most runs keep nothing
            await asyncio.to_thread(self._kept.forget, run)

    async def close(self) -> None:
        """Close what tools hold open between calls."""
        await self._http.close()

    @cached_property
    def _plugins(self) -> Plugins:
        return self._discovering(frozenset(BUILT_IN_EFFECTS))

    @cached_property
    def _tools(self) -> Mapping[str, FunctionTool]:
        return {**self._named(self._plugins.tools.values()), **self._built_in}

    def _named(self, tools: Iterable[FunctionTool]) -> dict[str, FunctionTool]:
        specs = ((tool, configured(tool.spec, self._configuration)) for tool in tools)
        return {spec.name: tool if spec is tool.spec else replace(tool, spec=spec) for tool, spec in specs}
