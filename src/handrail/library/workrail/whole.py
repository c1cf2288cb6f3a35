"""Converts a whole WorkRail document, with notes on everything that changes.

The result has the origin of each part, so that later findings point to the original."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from handrail.domain.checks.finding import Path
from handrail.library.documents.document import Document
from handrail.library.importer import Conversion
from handrail.library.schemas.schema_words import described
from handrail.library.workrail.functions import WorkRailFunction, functions_in
from handrail.library.workrail.naming import Names, workflow_id
from handrail.library.workrail.needs import request_variables
from handrail.library.workrail.noting import Notes, Reader
from handrail.library.workrail.prompts import PromptContext
from handrail.library.workrail.steps import StepContext, Steps
from handrail.library.workrail.templates import Originals, Placed, expanded, no_originals
from handrail.library.workrail.texts import plain

DESCRIPTION_MAX: Final = 2_000
NAME_MAX: Final = 200
KEYS: Final = (
    *("$schema", "id", "name", "description", "version", "preconditions", "clarificationPrompts", "metaGuidance"),
    *("functionDefinitions", "steps", "recommendedPreferences", "features", "assessments", "extensionPoints"),
    *("references", "modelTier", "metricsProfile", "about", "examples", "validatedAgainstSpecVersion"),
)
WORKRAIL_TERMS: Final = ("continue_workflow", "complete_step", "notesMarkdown")
TRANSLATED: Final = (
    "This was written for WorkRail. Instead of continue_workflow or complete_step, call workflow_next; its "
    "`context` is `vars` here, and its notes and artifacts are the `output`."
)
LEFT_OUT: Final = ("metricsProfile", "validatedAgainstSpecVersion")
AS_GUIDANCE: Final = {
    "recommendedPreferences": "Recommended preferences",
    "features": "Features of WorkRail that this was written for",
    "extensionPoints": "Parts that a project may replace",
    "references": "References, to be read when they matter",
}
ORIGINS: Final = {
    "when": "runCondition",
    "confirm": "requireConfirmation",
    "checks": "validationCriteria",
    "role": "agentRole",
    "model": "modelTier",
    "repeat": "loop",
    "each": "loop",
}
"""The original key of each of our keys, if the names differ."""


def convert(document: Document, originals: Originals = no_originals) -> Conversion:
    """A WorkRail document in our format; `originals` finds the routines that it calls."""
    notes = Notes()
    if not isinstance(document.value, Mapping):
        notes.fault((), f"a workflow is an object, not {described(document.value)}")
        return Conversion(value=document.value, flaws=notes.flaws())
    source = Reader(document.value, (), notes)
    source.note_unknown(KEYS)
    functions = functions_in(source)
    steps, conversion = _steps(source, functions, originals)
    needed = request_variables(conversion.slots, conversion.uses)
    value = {
        **_head(source),
        "preconditions": conversion.sentences(
            [*source.texts("preconditions"), *(f"in `vars`, given at the start: {one}" for one in needed)],
            source.at("preconditions"),
        ),
        "clarify": conversion.sentences(source.texts("clarificationPrompts"), source.at("clarificationPrompts")),
        "guidance": conversion.sentences(_guidance(source, conversion, functions), source.at("metaGuidance")),
        # WorkRail looks for the next step from the first one on, each time.
        "revisit": any("when" in step for step in steps),
        "steps": steps,
    }
    kept = {key: item for key, item in value.items() if item or key == "steps"}
    return Conversion(value=kept, flaws=notes.flaws(), origins=dict(_origins(steps, conversion.origins)))


def _steps(
    source: Reader, functions: Mapping[str, WorkRailFunction], originals: Originals
) -> tuple[list[dict[str, Any]], Steps]:
    placed: list[Placed] = [(step, source.at("steps", index)) for index, step in enumerate(source.items("steps"))]
    if not placed:
        source.notes.fault(source.at("steps") if "steps" in source.value else (), "the workflow has no steps")
    conversion = Steps(source.notes, {name: one for one in placed if (name := _name_of(one))}, originals)
    inside = {name for step, _ in placed for name in _named_in_bodies(step)}
    # A step that a loop names belongs to the loop only.
    own = expanded([one for one in placed if _name_of(one) not in inside], originals, source.notes)
    assessments = {one.text("id"): one.value for one in source.inners("assessments")}
    words = PromptContext(
        names=Names(), functions=functions, assessments=assessments, references=dict(_references(source))
    )
    context = StepContext(words=words, tier=source.text("modelTier"))
    steps = conversion.converted(own, context)
    if not source.notes.has_faults:
        _refuse_unreached(placed, conversion)
    return steps, conversion


def _references(source: Reader) -> Iterator[tuple[str, str]]:
    for one in source.inners("references"):
        words = [one.text("title"), one.text("source"), one.text("purpose")]
        if name := one.text("id"):
            yield name, ", ".join(filter(None, words)) or f"`{name}`"


def _refuse_unreached(placed: Iterable[Placed], conversion: Steps) -> None:
    for _, path in placed:
        if path not in conversion.reached:
            message = "the step is only inside a loop that is never reached"
            conversion.notes.fault(path, message, "remove it from the loop's body")


def _name_of(placed: Placed) -> str:
    name = placed[0].get("id") if isinstance(placed[0], Mapping) else None
    return name.strip() if isinstance(name, str) else ""


def _named_in_bodies(step: Any) -> Iterator[str]:
    body = step.get("body") if isinstance(step, Mapping) else None
    names = body if isinstance(body, list | tuple) else [body]
    return (name.strip() for name in names if isinstance(name, str))


def _head(source: Reader) -> dict[str, Any]:
    """The id, name, version and description."""
    written = source.text("id")
    identity = workflow_id(written or source.text("name"))
    if not identity:
        source.notes.fault((), "the workflow has no `id`", "add one")
    elif written != identity:
        source.notes.note(source.at("id") if written else (), f"the workflow is called `{identity}` here")
    for key in LEFT_OUT:
        if key in source.value:
            source.notes.note(source.at(key), f"`{key}` has no counterpart: left out")
    name, version = source.text("name")[:NAME_MAX], source.text("version")
    return {"id": identity, "name": name, "version": version, "description": _description(source)}


def _description(source: Reader) -> str:
    description = source.text("description")
    examples = source.value.get("examples")
    more = {"about": source.text("about"), "examples": f"Examples:\n{plain(examples)}" if examples else ""}
    for key, text in more.items():
        if not text:
            continue
        longer = f"{description}\n\n{text}".strip()
        if len(longer) <= DESCRIPTION_MAX:
            description = longer
            source.notes.note(source.at(key), f"`{key}` is kept at the end of the description")
        else:
            source.notes.note(source.at(key), f"`{key}` is too long for the description: left out")
    return description[:DESCRIPTION_MAX]


def _guidance(source: Reader, conversion: Steps, functions: Mapping[str, WorkRailFunction]) -> list[str]:
    """Guidance for the whole run."""
    texts = source.texts("metaGuidance")
    if any(word in slot.raw for slot in conversion.slots for word in WORKRAIL_TERMS):
        texts.insert(0, TRANSLATED)
    texts += [f"WorkRailFunction {one.text}" for name, one in functions.items() if name not in conversion.mentioned]
    for key, title in AS_GUIDANCE.items():
        value = source.value.get(key)
        if value:
            texts.append(f"{title}:\n{plain(value)}")
            source.notes.note(source.at(key), f"`{key}` is kept as text in the guidance")
    return texts


def _origins(steps: list[dict[str, Any]], made_of: Mapping[int, Path]) -> Iterator[tuple[Path, Path]]:
    """The path in the original for each part of the result."""
    for key in ("id", "name", "version", "description", "preconditions", "steps"):
        yield (key,), (key,)
    yield ("clarify",), ("clarificationPrompts",)
    yield ("guidance",), ("metaGuidance",)
    yield from _step_origins(steps, ("steps",), made_of)


def _step_origins(steps: list[dict[str, Any]], path: Path, made_of: Mapping[int, Path]) -> Iterator[tuple[Path, Path]]:
    for index, step in enumerate(steps):
        here, origin = (*path, index), made_of.get(id(step), ())
        if origin:
            yield here, origin
            yield from (((*here, key), (*origin, ORIGINS.get(key, key))) for key in step)
        yield from _step_origins(step.get("steps", []), (*here, "steps"), made_of)
