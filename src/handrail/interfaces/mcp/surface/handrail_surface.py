"""Handrail's surface: its tools, resources and prompts, connected to the program.

The arguments of every call are checked here, and errors are turned into answers here."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from handrail.domain.checks.finding import finding_without_text
from handrail.domain.errors import Forbidden, HandrailError, Invalid
from handrail.interfaces.mcp.surface.answering import CONTROL
from handrail.interfaces.mcp.surface.caller import AskFirst, Caller, TaskView, ToolReply, unknown
from handrail.interfaces.mcp.surface.clean_answers import CleanCaller, clean_reply, clean_task
from handrail.interfaces.mcp.surface.handlers import guide_tools, journal_tools, list_tools, run_tools
from handrail.interfaces.mcp.surface.handlers.arguments import ToolArguments
from handrail.interfaces.mcp.surface.handlers.catalog import ARGUMENTS, INSTRUCTIONS, TOOLS
from handrail.interfaces.mcp.surface.handlers.schema import strict_schema
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.offer import Content, PromptOffer, Resource, ResourceTemplate, ToolOffer, Toolset
from handrail.interfaces.mcp.surface.prompts import Prompts
from handrail.interfaces.mcp.surface.refusal import refusal
from handrail.interfaces.mcp.surface.resources import Resources
from handrail.interfaces.mcp.surface.runs.run_feed import RunFeed
from handrail.interfaces.mcp.surface.runs.run_tasks import RunTasks
from handrail.interfaces.mcp.surface.surface_protocol import Feed, ServerInfo, TaskBook
from handrail.interfaces.mcp.surface.views.app_page import PAGES, page_of
from handrail.interfaces.mcp.surface.views.cards import with_cards
from handrail.interfaces.mcp.surface.views.console_link import with_console
from handrail.library.schemas.structure import check_against

DEFINITIONS: Final = frozenset({"definition", "plan"})
"""The arguments that are stored as they are, under the hash of their content."""
ABOUT_A_RUN: Final = frozenset({"workflow_next", "execute_plan", "status", "control"})
"""The tools whose answers show a run: they carry the link to its page."""

log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[LazyProgram, Caller, Any], Awaitable[ToolReply | TaskView]]

HANDLERS: Final[Mapping[str, Handler]] = {
    "workflow_list": list_tools.workflow_list,
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
    """What `handrail mcp` and `handrail serve` offer."""

    lazy: LazyProgram
    version: str
    toolsets: Collection[Toolset]
    feed: Feed

    @property
    def about(self) -> ServerInfo:
        """The name, version and instructions of the server."""
        return ServerInfo(
            name="handrail",
            title="handrail",
            version=self.version,
            instructions=INSTRUCTIONS,
            description="What AI agents hold on to while they climb a long task.",
        )

    @property
    def tasks(self) -> TaskBook:
        """Runs as tasks."""
        return RunTasks(self.lazy)

    def tools(self) -> Sequence[ToolOffer]:
        """The tools of the chosen toolsets."""
        return [tool for tool in TOOLS if tool.toolset in self.toolsets]

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> ToolReply | TaskView:
        """Call a tool; an error that the caller can act on is an answer, not an exception."""
        offered = self.lazy.offered
        if name not in offered:
            unknown("tool", name)
        started_s = time.perf_counter()
        try:
            arguments = self._without_secrets(arguments)
            clean = CleanCaller(caller, self.lazy.secrets().scrubber)
            answer = await HANDLERS[name](self.lazy, clean, checked(name, arguments))
            answer = await self._for_people(name, answer, clean)
            return self._clean(_with_note(answer, self.lazy.watch.news(caller.actor)))
        except HandrailError as error:
            log.debug("%s: %s: %s", name, error.name, error)
            return await self._refused(error, name, arguments)
        except AskFirst:  # not an error: the shell asks the user
            raise
        except Exception:  # a bug of ours must not look like the caller's mistake, nor stop the server
            log.exception("%s failed", name)
            internal = HandrailError(f"{name} failed inside handrail", hint="see the log under HANDRAIL_HOME/logs")
            return refusal(internal, name, arguments, offered)
        finally:
            took_ms = round(1_000 * (time.perf_counter() - started_s), 1)
            log.debug("tool %s", name, extra={"duration_ms": took_ms, "run": arguments.get("run", "")})

    async def _for_people(self, name: str, answer: ToolReply | TaskView, caller: Caller) -> ToolReply | TaskView:
        """The answer with the link to the console, if one is up, and with cards, if the client shows pages."""
        run = answer.data.get("run") if isinstance(answer, ToolReply) and answer.data else None
        if not run or name not in ABOUT_A_RUN or not isinstance(answer, ToolReply):
            return answer
        linked = with_console(answer, await self.lazy.console.of(run))
        return await with_cards(self.lazy, linked, caller)

    def _without_secrets(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a caller says, without secrets: so no message can quote a part of one. A definition is refused."""
        scrubber = self.lazy.secrets().scrubber()
        if not scrubber:
            return arguments
        for key in DEFINITIONS & arguments.keys():
            self.lazy.secrets().require_absent(msgspec.json.encode(arguments[key]), f"`{key}`")
        clean: Mapping[str, Any] = scrubber.value(arguments)
        return clean

    async def _refused(self, error: HandrailError, name: str, arguments: Mapping[str, Any]) -> ToolReply:
        log.info("tool %s refused: %s", name, error.name, extra={"run": arguments.get("run", "")})
        try:
            # A setting that was changed and is not read yet may be why; other errors have nothing to do with it.
            if isinstance(error, Forbidden) and (note := self.lazy.watch.note()):
                error.hint = f"{error.hint}; {note}".removeprefix("; ")
            if isinstance(error, Forbidden) and name == CONTROL and (link := await self._page_of(arguments)):
                error.hint = f"{error.hint}; or in the console: {link}".removeprefix("; or ")
            return clean_reply(refusal(error, name, arguments, self.lazy.offered), self.lazy.secrets().scrubber())
        except HandrailError as unreadable:  # the secrets: what an error quotes is then not shown
            return refusal(unreadable, name, {}, ())

    async def _page_of(self, arguments: Mapping[str, Any]) -> str:
        """The page where a person can do what an agent may not; empty if no console is up."""
        run = arguments.get("run")
        return await self.lazy.console.of(run) if isinstance(run, str) else ""

    def _clean(self, answer: ToolReply | TaskView) -> ToolReply | TaskView:
        scrubber = self.lazy.secrets().scrubber()
        return clean_reply(answer, scrubber) if isinstance(answer, ToolReply) else clean_task(answer, scrubber)

    async def resources(self, caller: Caller) -> Sequence[Resource]:
        """The resources that can be listed; pages only for a client that shows them."""
        listed = await Resources(self.lazy).listed()
        return [*listed, *PAGES] if caller.shows_apps else listed

    def templates(self) -> Sequence[ResourceTemplate]:
        """The URI templates of resources."""
        return Resources(self.lazy).templates()

    async def read(self, uri: str, caller: Caller) -> Content:
        """The content of a resource."""
        return page_of(uri) or await Resources(self.lazy).read(uri)

    async def prompts(self) -> Sequence[PromptOffer]:
        """The prompts."""
        return await Prompts(self.lazy).listed()

    async def prompt(self, name: str, arguments: Mapping[str, str], caller: Caller) -> str:
        """A prompt with its arguments filled in."""
        return await Prompts(self.lazy).filled(name, arguments)

    async def complete(self, about: str, argument: str, value: str) -> Sequence[str]:
        """Completions for a partly typed argument."""
        return await Prompts(self.lazy).completed(about, argument, value)


def _with_note(answer: ToolReply | TaskView, note: str) -> ToolReply | TaskView:
    """The answer, with a note on the server itself."""
    if not note or not isinstance(answer, ToolReply):
        return answer
    return msgspec.structs.replace(answer, text=f"{answer.text}\n{note}", data={**(answer.data or {}), "restart": note})


def surface_of(lazy: LazyProgram, *, version: str, toolsets: Collection[Toolset]) -> HandrailSurface:
    """Handrail's surface with these toolsets."""
    lazy.offered = frozenset(tool.name for tool in TOOLS if tool.toolset in toolsets)
    return HandrailSurface(lazy, version, frozenset(toolsets), RunFeed(lazy))


def checked(name: str, arguments: Mapping[str, Any]) -> ToolArguments:
    """The validated arguments of a tool; Invalid with all findings at once."""
    kind = ARGUMENTS[name]
    # The schema first: it reports every error at once and where it is; msgspec stops at the first.
    errors = check_against(strict_schema(kind), dict(arguments))
    if errors:
        raise Invalid(f"invalid arguments of {name}", findings=[finding_without_text(error) for error in errors])
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise Invalid(f"invalid arguments of {name}: {error}") from error
