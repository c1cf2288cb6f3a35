"""Handrail's own surface: the tools, resources and prompts of the product, bound to a desk.

Every call is checked here, and every error becomes an answer here: once."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from handrail.domain.check import finding_without_text
from handrail.domain.errors import HandrailError, Invalid
from handrail.interfaces.mcp.surface import guide_tools, journal_tools, run_tools
from handrail.interfaces.mcp.surface.arguments import Arguments
from handrail.interfaces.mcp.surface.caller import AskFirst, Caller, Reply, TaskView, unknown
from handrail.interfaces.mcp.surface.catalog import ARGUMENTS, INSTRUCTIONS, TOOLS
from handrail.interfaces.mcp.surface.desk import Desk
from handrail.interfaces.mcp.surface.offer import Content, Prompt, Resource, ResourceTemplate, Tool, Toolset
from handrail.interfaces.mcp.surface.prompts import Prompts
from handrail.interfaces.mcp.surface.refusal import refusal
from handrail.interfaces.mcp.surface.resources import Resources
from handrail.interfaces.mcp.surface.run_feed import RunFeed
from handrail.interfaces.mcp.surface.run_tasks import RunTasks
from handrail.interfaces.mcp.surface.schema import strict_schema
from handrail.interfaces.mcp.surface.shown import About, Feed, TaskBook
from handrail.library.structure import check_against

log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Desk, Caller, Any], Awaitable[Reply | TaskView]]

HANDLERS: Final[Mapping[str, Handler]] = {
    "workflow_list": guide_tools.workflow_list,
    "workflow_get": guide_tools.workflow_get,
    "workflow_next": guide_tools.workflow_next,
    "workflow_validate": guide_tools.workflow_validate,
    "save_plan": run_tools.save_plan,
    "execute_plan": run_tools.execute_plan,
    "status": run_tools.status,
    "control": run_tools.control,
    "record_compensation": run_tools.record_compensation,
    "record_plan": journal_tools.record_plan,
    "record_execution_start": journal_tools.record_execution_start,
    "record_decision": journal_tools.record_decision,
    "record_action": journal_tools.record_action,
    "query_ledger": journal_tools.query_ledger,
}


@dataclass(frozen=True)
class HandrailSurface:
    """What `handrail mcp` and `handrail serve` show."""

    desk: Desk
    version: str
    toolsets: Collection[Toolset]
    feed: Feed

    @property
    def about(self) -> About:
        """Whose server it is."""
        return About(
            name="handrail",
            title="handrail",
            version=self.version,
            instructions=INSTRUCTIONS,
            description="What AI agents hold on to while they climb a long task.",
        )

    @property
    def tasks(self) -> TaskBook:
        """Runs, as tasks."""
        return RunTasks(self.desk)

    def tools(self) -> Sequence[Tool]:
        """The tools of the chosen toolsets."""
        return [tool for tool in TOOLS if tool.toolset in self.toolsets]

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> Reply | TaskView:
        """Call a tool; whatever goes wrong that the caller can act on is an answer."""
        offered = self.desk.offered
        if name not in offered:
            unknown("tool", name)
        began = time.perf_counter()
        try:
            return await HANDLERS[name](self.desk, caller, checked(name, arguments))
        except HandrailError as error:
            log.debug("%s: %s: %s", name, error.name, error)
            return refusal(error, name, arguments, offered)
        except AskFirst:
            raise
        except Exception:  # a mistake of ours must not look like the caller's, nor end the server
            log.exception("%s broke", name)
            broken = HandrailError(f"{name} broke inside handrail", hint="see the log under HANDRAIL_HOME/logs")
            return refusal(broken, name, arguments, offered)
        finally:
            took_ms = round(1_000 * (time.perf_counter() - began), 1)
            log.debug("tool %s", name, extra={"duration_ms": took_ms, "run": arguments.get("run", "")})

    async def resources(self) -> Sequence[Resource]:
        """What can be read."""
        return await Resources(self.desk).listed()

    def templates(self) -> Sequence[ResourceTemplate]:
        """Patterns of addresses that can be read."""
        return Resources(self.desk).templates()

    async def read(self, uri: str, caller: Caller) -> Content:
        """What stands at an address."""
        return await Resources(self.desk).read(uri)

    async def prompts(self) -> Sequence[Prompt]:
        """The prompts."""
        return await Prompts(self.desk).listed()

    async def prompt(self, name: str, arguments: Mapping[str, str], caller: Caller) -> str:
        """A prompt with its blanks filled in."""
        return await Prompts(self.desk).filled(name, arguments)

    async def complete(self, about: str, argument: str, value: str) -> Sequence[str]:
        """What a half-typed value may become."""
        return await Prompts(self.desk).completed(about, argument, value)


def surface_of(desk: Desk, *, version: str, toolsets: Collection[Toolset]) -> HandrailSurface:
    """Handrail's surface over a desk."""
    desk.offered = frozenset(tool.name for tool in TOOLS if tool.toolset in toolsets)
    return HandrailSurface(desk, version, frozenset(toolsets), RunFeed(desk))


def checked(name: str, arguments: Mapping[str, Any]) -> Arguments:
    """A tool's arguments as values; Invalid with all that is wrong with them."""
    kind = ARGUMENTS[name]
    flaws = check_against(strict_schema(kind), dict(arguments))
    if flaws:
        raise Invalid(f"the arguments of {name} do not fit", findings=[finding_without_text(flaw) for flaw in flaws])
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise Invalid(f"the arguments of {name} do not fit: {error}") from error
