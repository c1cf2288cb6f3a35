"""`workflow_list`: finds what there is to start from: workflows, saved plans, and the tools that plans can call.

Nothing is started for a look: what a server has is known from the last time it was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.assembly.opening import Assembly
from handrail.domain.errors import Invalid
from handrail.domain.instant import instant_text
from handrail.domain.journal.projection import PlanRow
from handrail.domain.trust.decision import COMMAND
from handrail.engine.tool import ToolSpec
from handrail.interfaces.mcp.surface.answering import compact, reply
from handrail.interfaces.mcp.surface.caller import Caller, ToolReply
from handrail.interfaces.mcp.surface.handlers import arguments as args
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.paging import page_of
from handrail.library.shelf.search_words import matching
from handrail.library.shelf.workflow_entry import WorkflowEntry

PLANS_MAX: Final = 1_000
"""How many plans are searched."""
FIELDS_MAX: Final = 40
"""How many arguments of a tool, or fields of its output, are shown."""
ENUM_MAX: Final = 12


async def workflow_list(lazy: LazyProgram, _: Caller, given: args.WorkflowListArguments) -> ToolReply:
    """What matches, best match first."""
    program = await lazy.open()
    if given.of != "workflows" and (given.category or given.tags):
        raise Invalid(f"{given.of} have no category and no tags", hint="leave them out, and use `query`")
    match given.of:
        case "plans":
            return await _plans(program, given)
        case "tools":
            return _tools(program, given)
        case _:
            return _workflows(program, given)


# --- workflows ------------------------------------------------------------------------------------


def _workflows(program: Assembly, given: args.WorkflowListArguments) -> ToolReply:
    entries = program.library.search(given.query, category=given.category, tags=given.tags)
    shown, cursor = page_of(entries, given.limit, given.cursor, show=_workflow)
    lines = [f"{entry.id}: {compact(entry.description or entry.name, 160)} ({entry.steps} steps)" for entry in shown]
    return _page("workflow", [_workflow(entry) for entry in shown], lines, total=len(entries), cursor=cursor)


def _workflow(entry: WorkflowEntry) -> dict[str, Any]:
    shown = {
        "id": entry.id,
        "name": entry.name,
        "version": entry.version,
        "description": compact(entry.description, 300),
        "category": entry.category,
        "tags": list(entry.tags),
        "steps": entry.steps,
        "shadows": list(entry.shadows),
    }
    return {key: value for key, value in shown.items() if value not in ("", [])}


# --- plans ----------------------------------------------------------------------------------------


async def _plans(program: Assembly, given: args.WorkflowListArguments) -> ToolReply:
    reader = program.writer.reader
    rows = await reader.store.plans(limit=PLANS_MAX, project=reader.project.id)
    offered = [row for row in rows if row.retired is None]
    found = matching(given.query, offered, heading=lambda row: row.id, text=lambda row: row.name)
    shown, cursor = page_of(found, given.limit, given.cursor, show=_plan)
    data = [{**_plan(row), **await _inputs(program, row)} for row in shown]
    lines = [f"{row.id} version {row.version}: {compact(row.name, 160)} ({row.steps} steps)" for row in shown]
    lines += ['run one: execute_plan {"plan": ".."}'] if shown else []
    return _page("plan", data, lines, total=len(found), cursor=cursor)


def _plan(row: PlanRow) -> dict[str, Any]:
    shown = {"id": row.id, "name": compact(row.name, 300), "version": row.version, "steps": row.steps}
    return {**shown, "saved": instant_text(row.saved)}


async def _inputs(program: Assembly, row: PlanRow) -> dict[str, Any]:
    """The inputs that a plan takes, in brief."""
    plan = await program.writer.plans.get(row.id)
    inputs = (await program.writer.plans.definition(plan.newest)).inputs
    required = [name for name, schema in inputs.items() if not (isinstance(schema, Mapping) and "default" in schema)]
    return {"inputs": _fields(inputs, required)} if inputs else {}


# --- tools ----------------------------------------------------------------------------------------


def _tools(program: Assembly, given: args.WorkflowListArguments) -> ToolReply:
    known = program.toolbox.overview()
    found = matching(given.query, known.specs, heading=lambda spec: spec.name, text=lambda spec: spec.description)
    shown, cursor = page_of(found, given.limit, given.cursor, show=_tool)
    data = [_tool(spec) for spec in shown]
    lines = [_tool_line(one) for one in data]
    more: dict[str, Any] = {}
    if known.unasked:
        more["unasked"] = sorted(known.unasked)
        ask = f"`handrail tools check {more['unasked'][0]}`"
        lines.append(f"tools not known yet, of: {', '.join(more['unasked'])}; a person can ask with {ask}")
    if known.off:
        more["untrusted"] = sorted(known.off)
        lines.append(f"off until a person runs `{COMMAND}`: {', '.join(more['untrusted'])}")
    return _page("tool", data, lines, total=len(found), cursor=cursor, **more)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    required = spec.args.get("required")
    shown = {
        "id": spec.name,
        "description": compact(spec.description, 300),
        "args": _fields(spec.args.get("properties"), required if isinstance(required, list) else ()),
        "output": _output(spec.output),
        "effect": spec.effect.value,
        "undo": spec.undo,
        "server": spec.server,
    }
    return {key: value for key, value in shown.items() if value not in ("", None)}


def _output(schema: Any) -> Any:
    """The fields of an output, or its type; None if the tool declares none."""
    if not isinstance(schema, Mapping):
        return None
    fields = schema.get("properties")
    if not isinstance(fields, Mapping):
        return _type_words(schema)
    required = schema.get("required")
    return _fields(fields, required if isinstance(required, list) else ())


def _fields(properties: Any, required: Sequence[Any]) -> dict[str, str]:
    """The fields of an object, each in a few words."""
    if not isinstance(properties, Mapping):
        return {}
    shown = list(properties.items())[:FIELDS_MAX]
    left = {"…": f"{len(properties) - len(shown)} more"} if len(properties) > len(shown) else {}
    return {str(name): _field(schema, is_required=name in required) for name, schema in shown} | left


def _field(schema: Any, *, is_required: bool) -> str:
    words = [_type_words(schema)]
    if isinstance(schema, Mapping):
        words += [f"default {compact(schema['default'], 60)}"] if "default" in schema else []
        words += [compact(schema["description"], 100)] if isinstance(schema.get("description"), str) else []
    if not is_required:
        words.insert(1, "optional")
    return ", ".join(words)


def _type_words(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "anything"
    values = schema.get("enum")
    if isinstance(values, list):
        return " | ".join(compact(value, 60) for value in values[:ENUM_MAX])
    types = schema.get("type")
    named = [types] if isinstance(types, str) else types if isinstance(types, list) else ["anything"]
    of = f" of {_type_words(schema['items'])}" if isinstance(schema.get("items"), Mapping) else ""
    return compact(" or ".join(map(str, named)) + of, 100)


def _tool_line(tool: Mapping[str, Any]) -> str:
    arguments = ", ".join(f"{name}: {words}" for name, words in tool["args"].items())
    output = f" -> {compact(tool['output'])}" if "output" in tool else ""
    undo = f", undo {tool['undo']}" if "undo" in tool else ""
    return f"{tool['id']}({compact(arguments, 600)}){output}: {tool['description']} (effect {tool['effect']}{undo})"


def _page(
    noun: str, shown: list[dict[str, Any]], lines: Sequence[str], *, total: int, cursor: str, **more: Any
) -> ToolReply:
    """One page of a list, as data and as text."""
    data: dict[str, Any] = {f"{noun}s": shown, "total": total, **more}
    if cursor:
        data["cursor"] = cursor
    head = f"1 {noun}" if total == 1 else f"{total} {noun}s"
    return reply(data, "\n".join([head, *lines, *([f"more: cursor {cursor}"] if cursor else [])]))
