"""Builds the answers of tools: the data, and the same as text, both within their size limits.

Pure. Texts that belong to one tool are in its handler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from handrail.engine.guiding.guide_view import Guided
from handrail.engine.reading.run_view import RecoveryOption, Status
from handrail.interfaces.mcp.surface.caller import ToolReply
from handrail.interfaces.mcp.surface.fitting import excerpt_of, fitted, fitted_text

LINE_MAX: Final = 300
CONTROL: Final = "control"


def reply(data: Any, text: str) -> ToolReply:
    """An answer: a value as data, and the same as text."""
    plain = data if isinstance(data, dict) else msgspec.to_builtins(data)
    return ToolReply(text=fitted_text(text), data=fitted(plain))


def compact(value: Any, length: int = LINE_MAX) -> str:
    """A value as one line of text."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return excerpt_of(" ".join(text.split()), length)


def status_data(seen: Status | Guided) -> dict[str, Any]:
    """The status of a run as data; each option includes the call that chooses it."""
    data: dict[str, Any] = msgspec.to_builtins(seen)
    if seen.options:
        data["options"] = [_option_data(seen.run, option) for option in seen.options]
    if seen.failure is not None and seen.failure.options:
        data["failure"]["options"] = [_option_data(seen.run, option) for option in seen.failure.options]
    return data


def _option_data(run: str, option: RecoveryOption) -> dict[str, Any]:
    on_step = {"step": option.step} if option.step else {}
    arguments = {"run": run, "action": option.action.value, **on_step, "reason": "..."}
    call = {"tool": CONTROL, "arguments": arguments}
    return {"action": option.action.value, "means": option.means, "next": call}


def status_words(status: Mapping[str, Any]) -> str:
    """The status of a run as a few lines of text."""
    lines = [f"{head_words(status)} {status.get('workflow', '')}".rstrip()]
    if status.get("reason"):
        lines.append(f"reason: {compact(status['reason'])}")
    lines += [waiting_words(one) for one in status.get("waiting_for", ())]
    lines += failure_words(status.get("failure"))
    lines += [option_words(option) for option in status.get("options", ())]
    lines += not_undone_words(status)
    if status.get("outputs"):
        lines.append(f"outputs: {compact(status['outputs'])}")
    lines += [step_words(step) for step in status.get("steps", ())]
    if status.get("receipt"):
        lines.append(f"receipt {status['receipt']}")
    return "\n".join(lines)


def head_words(status: Mapping[str, Any]) -> str:
    """The first line: run, status and progress."""
    progress = status["progress"]
    skipped = f" ({progress['skipped']} skipped)" if progress.get("skipped") else ""
    return f"{status['run']} {status['status']} {progress['done']}/{progress['total']}{skipped}"


def not_undone_words(status: Mapping[str, Any]) -> list[str]:
    """The steps that could not be undone, in one line."""
    left = status.get("not_compensated")
    return [f"NOT undone: {', '.join(left)}"] if left else []


def waiting_words(one: Mapping[str, Any]) -> str:
    """What a run waits for, in one line."""
    waited_for = {
        "agent": "an agent",
        "approval": "an approval",
        "confirmation": "the user's confirmation",
        "decision": "a decision",
    }
    text = f": {compact(one['text'])}" if one.get("text") else ""
    form = f"; the answer (output) must match {compact(one['schema'], 1_000)}" if one.get("schema") is not None else ""
    return f"waits for {waited_for[one['kind']]} on {one['step']}{text}{form}"


def failure_words(failure: Mapping[str, Any] | None) -> list[str]:
    """What failed, and the options, each with its call."""
    if not failure:
        return []
    category = f" ({failure['category']})" if failure.get("category") else ""
    where = f" by {failure['tool']}" if failure.get("tool") else ""
    head = f"failed: {failure['step']}{where}{category}: {compact(failure['message'])}; attempts {failure['attempts']}"
    tries = [
        f"- try {one['attempt']} at {one['at']}: {one['category']}: {compact(one['message'])}"
        for one in failure.get("tries", ())
        if failure["attempts"] > 1  # a single try says no more than the line above
    ]
    return [head, *tries, *map(option_words, failure.get("options", ()))]


def option_words(option: Mapping[str, Any]) -> str:
    """An option in one line."""
    call = msgspec.json.encode(option["next"]["arguments"]).decode()
    return f"- {option['action']}: {option['means']}: {option['next']['tool']} {call}"


def step_words(step: Mapping[str, Any]) -> str:
    """One step in one line."""
    more = [f"{key} {step[key]}" for key in ("attempts", "proof", "compensation", "says", "message") if step.get(key)]
    return f"- {step['id']} {step['status']}" + (f" ({compact(', '.join(more))})" if more else "")
