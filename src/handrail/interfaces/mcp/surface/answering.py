"""Builds the answers of tools: the data, and the same as text, both within their size limits.

Pure. Texts that belong to one tool are in its handler."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from shlex import quote
from typing import Any, Final

import msgspec

from handrail.domain.plural import counted_steps
from handrail.domain.project import PROGRAM, program_in
from handrail.domain.run.approval_words import effect_lines
from handrail.engine.guiding.guide_view import Guided
from handrail.engine.reading.run_view import RecoveryOption, Remedy, Status, WaitingFor, WaitingKind, failure_kind
from handrail.interfaces.mcp.surface.caller import ToolReply
from handrail.interfaces.mcp.surface.fitting import excerpt_of, fitted, fitted_text

LINE_MAX: Final = 300
EFFECTS_SHOWN: Final = 3
EFFECT_LENGTH_MAX: Final = 120
"""How many effects that follow an approval an agent is shown, and how much of each: the person sees all of them."""
CONTROL: Final = "control"
REMEDIES: Final[Mapping[Remedy, tuple[str, Mapping[str, Any]]]] = {
    Remedy.RECORD: ("record_compensation", {}),
    Remedy.REPORT: ("record_action", {"outcome": "done"}),
}
"""The tool that each remedy is, and further arguments."""


def reply(data: Any, text: str) -> ToolReply:
    """An answer: a value as data, and the same as text."""
    plain = data if isinstance(data, dict) else msgspec.to_builtins(data)
    return ToolReply(text=fitted_text(text), data=fitted(plain))


def compact(value: Any, length: int = LINE_MAX) -> str:
    """A value as one line of text."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return excerpt_of(" ".join(text.split()), length)


def status_data(seen: Status | Guided) -> dict[str, Any]:
    """The status of a run as data; each option includes the call that chooses it.

    A run of another project has none: every call would be refused. What a person can type names that project."""
    data: dict[str, Any] = msgspec.to_builtins(seen)
    project = seen.project if isinstance(seen, Status) else None
    if seen.waiting_for:
        program = program_in(project.folder if project is not None else "")
        data["waiting_for"] = [waiting_data(seen.run, one, program) for one in seen.waiting_for]
        if isinstance(seen, Guided):  # who gets a step knows since when: now
            _drop_since(data["waiting_for"])
    if project is not None:
        for holder in (data, data.get("failure", {})):
            holder.pop("options", None)
        return data
    if seen.options:
        data["options"] = [_option_data(seen.run, option) for option in seen.options]
    if seen.failure is not None and seen.failure.options:
        data["failure"]["options"] = [_option_data(seen.run, option) for option in seen.failure.options]
    return data


def _drop_since(waiting: list[dict[str, Any]]) -> None:
    for one in waiting:
        if one["kind"] == WaitingKind.AGENT.value:
            one.pop("since", None)


def only_offered(data: dict[str, Any], tools: Collection[str]) -> None:
    """Leave out the options whose tool the caller does not have."""
    for holder in (data, data.get("failure", {})):
        if "options" in holder:
            holder["options"] = [one for one in holder["options"] if "next" not in one or one["next"]["tool"] in tools]


def waiting_data(run: str, one: WaitingFor, program: str = PROGRAM) -> dict[str, Any]:
    """What a run waits for as data; an approval with a few of the effects that follow, and the command for a person."""
    data: dict[str, Any] = msgspec.to_builtins(one)
    data.pop("unshown", None)
    if one.effects:
        lines = effect_lines(one.effects, one.unshown, at_most=EFFECTS_SHOWN)
        data["effects"] = [compact(line, EFFECT_LENGTH_MAX) for line in lines]
    if one.kind is WaitingKind.APPROVAL:
        data["command"] = f"{program} approve {run} {quote(one.step)}"
    return data


def _option_data(run: str, option: RecoveryOption) -> dict[str, Any]:
    on_step = {"step": option.step} if option.step else {}
    if isinstance(option.action, Remedy):
        tool, more = REMEDIES[option.action]
        call = {"tool": tool, "arguments": {"run": run, **on_step, "description": "...", **more}}
        return {"action": tool, "means": option.means, "next": call}
    shown = {"action": option.action.value, "means": option.means}
    if option.by:  # the agent would be refused: it can only ask the user
        return {**shown, "by": option.by, "command": _command(run, option)}
    arguments = {"run": run, "action": option.action.value, **on_step, "reason": "..."}
    return {**shown, "next": {"tool": CONTROL, "arguments": arguments}}


def _command(run: str, option: RecoveryOption) -> str:
    return " ".join(["handrail", "run", option.action.value, run, *([quote(option.step)] if option.step else [])])


def status_words(status: Mapping[str, Any]) -> str:
    """The status of a run as a few lines of text."""
    lines = [f"{head_words(status)} {status.get('workflow', '')}".rstrip()]
    if status.get("repeated"):
        lines[0] += " · repeated: this was done before, nothing new happened"
    lines += project_words(status.get("project"))
    lines += [f"warning: {text}" for text in status.get("warnings", ())]
    if status.get("reason"):
        lines.append(f"reason: {compact(status['reason'])}")
    lines += [waiting_words(one) for one in status.get("waiting_for", ())]
    lines += failure_words(status.get("failure"))
    lines += [option_words(option) for option in status.get("options", ())]
    lines += not_undone_words(status)
    lines += exception_words(status)
    if status.get("outputs"):
        lines.append(f"outputs: {compact(status['outputs'])}")
    lines += [step_words(step) for step in status.get("steps", ())]
    if status.get("receipt"):
        lines.append(f"receipt {status['receipt']}")
    return "\n".join(lines)


def project_words(project: Mapping[str, Any] | None) -> list[str]:
    """The project of a run that is another's, in one line."""
    if not project:
        return []
    where = f"in {project['folder']}" if project.get("folder") else project.get("hint", "")
    return [f"project {project['name']}: {where}; it can only be read here"]


def head_words(status: Mapping[str, Any]) -> str:
    """The first line: run, status and progress."""
    progress = status["progress"]
    rounds = "".join(f", {loop}: round {words}" for loop, words in progress.get("rounds", {}).items())
    counted = counted_steps(progress["done"], progress["total"], progress.get("skipped", 0))
    return f"{status['run']} {status['status']}, {counted}{rounds}"


def not_undone_words(status: Mapping[str, Any]) -> list[str]:
    """The steps that could not be undone, in one line."""
    left = status.get("not_compensated")
    return [f"NOT undone: {', '.join(left)}"] if left else []


def exception_words(status: Mapping[str, Any]) -> list[str]:
    """What somebody left out or went past, a line each."""
    return [
        f"{one['kind'].replace('_', ' ')}: {one['step']} by {one['by']}: {compact(one['reason'])}"
        for one in status.get("exceptions", ())
    ]


def waiting_words(one: Mapping[str, Any]) -> str:
    """What a run waits for, in one line."""
    waited_for = {
        "agent": "an agent",
        "approval": "an approval",
        "confirmation": "the user's confirmation",
        "decision": "a decision",
    }
    # What a person is asked comes first and is never cut: the agent shows it to them.
    is_asked = one["kind"] == WaitingKind.APPROVAL.value
    text = f": {one['text'] if is_asked else compact(one['text'])}" if one.get("text") else ""
    form = f"; the answer (output) must match {compact(one['schema'], 1_000)}" if one.get("schema") is not None else ""
    effects = f"; then: {'; '.join(one['effects'])}" if one.get("effects") else ""
    command = f"; a person answers with: {one['command']}" if one.get("command") else ""
    return f"waits for {waited_for[one['kind']]} on {one['step']}{text}{command}{form}{effects}"


def failure_words(failure: Mapping[str, Any] | None) -> list[str]:
    """What failed, and the options, each with its call."""
    if not failure:
        return []
    verdict = "failed" if failure.get("category") else "uncertain"
    category = failure_kind(failure["category"], failure.get("tool", "")) if failure.get("category") else ""
    where = f" by {failure['tool']}" if failure.get("tool") else ""
    message = compact(failure["message"])
    head = f"{verdict}: {failure['step']}{where}{category}: {message}; attempts {failure['attempts']}"
    tries = [
        f"- try {one['attempt']} at {one['at']}: {one['category']}: {compact(one['message'])}"
        for one in failure.get("tries", ())
        if failure["attempts"] > 1  # a single try says no more than the line above
    ]
    return [head, *tries, *map(option_words, failure.get("options", ()))]


def option_words(option: Mapping[str, Any]) -> str:
    """An option in one line."""
    if "next" not in option:
        return f"- {option['action']}: {option['means']}: only a person may: `{option['command']}`"
    call = msgspec.json.encode(option["next"]["arguments"]).decode()
    return f"- {option['action']}: {option['means']}: {option['next']['tool']} {call}"


def step_words(step: Mapping[str, Any]) -> str:
    """One step in one line."""
    text = f": {compact(step['text'])}" if step.get("text") else ""
    more = [f"{key} {step[key]}" for key in ("attempts", "proof", "compensation", "says", "message") if step.get(key)]
    return f"- {step['id']} {step['status']}" + (f" ({compact(', '.join(more))})" if more else "") + text
