"""Builds one prompt from all texts of a step, in a fixed order.

Audits, unknown contracts and templates that are not there have no counterpart: they are added as text, with a note."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from handrail.library.schemas.schema_words import described
from handrail.library.workrail.assessments import assessed_by
from handrail.library.workrail.conditions import Read, condition_of
from handrail.library.workrail.contracts import Artifact, artifact_of, submit_text
from handrail.library.workrail.functions import WorkRailFunction, calls_in, functions_in, mentioned_in
from handrail.library.workrail.naming import Names
from handrail.library.workrail.noting import Reader
from handrail.library.workrail.texts import (
    bullets,
    filled,
    own_placeholders,
    placeholders,
    plain,
    section,
    verbatim,
)

BLOCKS: Final = ("goal", "constraints", "procedure", "outputRequired", "verify")
HEADINGS: Final = {
    "goal": "Goal",
    "constraints": "Constraints",
    "procedure": "Procedure",
    "outputRequired": "What to submit",
    "verify": "Verify",
}


class PromptContext(Struct, frozen=True, kw_only=True):
    """What a prompt depends on: names, available functions, and the assessments of the workflow."""

    names: Names
    functions: Mapping[str, WorkRailFunction] = {}
    assessments: Mapping[str, Any] = {}
    references: Mapping[str, str] = {}
    """What the file says about the texts that it refers to."""
    preface: str = ""
    """The text of the loop around it, for the first of its steps."""
    decides: str = ""
    """The text for a step that decides whether a loop continues."""


class PromptText(Struct, frozen=True):
    """A prompt, the original text, and the variables that it depends on."""

    prompt: str
    raw: str
    reads: tuple[Read, ...] = ()
    shows: tuple[Read, ...] = ()
    """Variables that are only shown in its text."""
    used: tuple[str, ...] = ()
    """The functions that it mentions."""


def prompt_of(step: Reader, words: PromptContext) -> PromptText:
    """The one prompt of a step."""
    names = words.names
    says = list(filter(None, (words.preface, step.text("prompt"), _blocks(step, words.references))))
    raw = "\n\n".join(says)
    _note_own(raw, step)
    fragments, reads = _fragments(step, names)
    own = functions_in(step)
    mentioned_functions = mentioned_in(step, raw, {**words.functions, **own})
    known = dict.fromkeys([*own.values(), *mentioned_functions])
    parts = [
        *(filled(one, names) for one in says),
        *fragments,
        *(filled(one, names) for one in _kept(step, words)),
        filled(section("Functions", bullets(function.text for function in known)), names),
        filled(section("Call", bullets(calls_in(step))), names),
    ]
    prompt = "\n\n".join(filter(None, parts))
    shown = [Read(name) for name in placeholders("\n".join([raw, *_guidance_texts(step)])) if names.is_variable(name)]
    mentioned = "\n".join([raw, *fragments, *_guidance_texts(step)])
    return PromptText(prompt, mentioned, tuple(reads), tuple(shown), tuple(function.name for function in known))


def _guidance_texts(step: Reader) -> list[str]:
    return [text for text in step.items("guidance") if isinstance(text, str)]


class _Blocks(Reader):
    """The blocks of a prompt, and what the file says about the texts that it refers to."""

    def __init__(self, found: Reader, references: Mapping[str, str]) -> None:
        super().__init__(found.value, found.path, found.notes)
        self.references = references


def _blocks(step: Reader, references: Mapping[str, str]) -> str:
    found = step.inner("promptBlocks")
    if found is None:
        return ""
    blocks = _Blocks(found, references)
    blocks.note_unknown(BLOCKS)
    sections: list[str] = []
    for key in BLOCKS:
        value = blocks.value.get(key)
        if value is not None:
            sections.append(section(HEADINGS[key], _block(key, value, blocks)))
    return "\n\n".join(filter(None, sections))


def _block(key: str, value: Any, blocks: _Blocks) -> str:
    if key == "goal":
        return _joined(value, blocks, key)
    if key == "outputRequired":
        required = blocks.inner(key)
        return bullets(f"{name}: {plain(about)}" for name, about in required.value.items()) if required else ""
    lines = [_joined(item, blocks, key, index) for index, item in enumerate(blocks.items(key))]
    if key == "procedure":
        return "\n".join(f"{number}. {line}" for number, line in enumerate(filter(None, lines), 1))
    return bullets(filter(None, lines))


def _joined(value: Any, blocks: _Blocks, *keys: str | int) -> str:
    """A string, or the parts of one, joined."""
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, list | tuple):
        blocks.notes.fault(blocks.at(*keys), f"a string is expected here, not {described(value)}")
        return ""
    return "".join(_part(part, blocks, *keys, index) for index, part in enumerate(value)).strip()


def _part(part: Any, blocks: _Blocks, *keys: str | int) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part, Mapping) and isinstance(part.get("refId"), str):
        return _reference(part["refId"], blocks, *keys)
    blocks.notes.fault(blocks.at(*keys), "a part of a text is expected here", "write {kind: text, text: ...}")
    return ""


def _reference(name: str, blocks: _Blocks, *keys: str | int) -> str:
    """A text that is named: what the file says about it, or only its name."""
    if known := blocks.references.get(name):
        return f" (see {known})"
    blocks.notes.note(blocks.at(*keys), f"the text `{name}` belongs to WorkRail itself: only its name is kept")
    return f" (see `{name}`)"


def _fragments(step: Reader, names: Names) -> tuple[list[str], list[Read]]:
    """Texts with a condition."""
    texts: list[str] = []
    reads: list[Read] = []
    for fragment in step.inners("promptFragments"):
        fragment.note_unknown(("id", "when", "text"))
        condition = condition_of(fragment.value.get("when"), names, fragment.at("when"), step.notes)
        text = filled(fragment.text("text"), names)
        if condition is not None:
            reads += condition.reads
            text = f"{{% if {condition.source} %}}{text}{{% endif %}}"
        texts.append(text)
    return texts, reads


def _kept(step: Reader, words: PromptContext) -> Iterator[str]:
    """What has no counterpart here, as text."""
    yield _template(step)
    if step.flag("askForFiles"):
        yield "Ask the user for the files that matter here before you start."
    if step.flag("notesOptional"):
        yield "Notes are optional here."
    yield from _assessed(step, words.assessments)
    if artifacts := artifacts_of(step, words):
        yield submit_text(artifacts)
    if words.decides:
        yield words.decides
    elif artifact_of(step) is None:
        yield _object(step, "outputContract", "Contract of the output")
    yield _object(step, "audit", "Audit")
    yield _object(step, "verification", "Verification")


def _template(step: Reader) -> str:
    call = step.inner("templateCall")
    if call is None:
        return ""
    call.note_unknown(("templateId", "args"))
    name = call.text("templateId")
    step.notes.note(call.path, f"the template `{name}` is not in this file: its name and arguments are kept as text")
    arguments = call.inner("args")
    given = f", with:\n{plain(arguments.value)}" if arguments and arguments.value else ""
    return f"This step is made from the template `{name}`, whose text is not here. Do what its name says{given}"


def _assessed(step: Reader, known: Mapping[str, Any]) -> Iterator[str]:
    for index, name in enumerate(step.texts("assessmentRefs")):
        path = step.at("assessmentRefs", index)
        if name not in known:
            step.notes.note(path, f"there is no assessment `{name}` in this file: only its name is kept")
            yield f"Make the assessment `{name}`."
        else:
            yield section(f"Assess: {name}", plain(known[name]))


def artifacts_of(step: Reader, words: PromptContext) -> list[Artifact]:
    """The artifacts that a step must submit: that of its contract, and its assessments."""
    contract = None if words.decides else artifact_of(step)
    return [*([contract] if contract else []), *assessed_by(step, words.assessments)]


def _object(step: Reader, key: str, title: str) -> str:
    found = step.inner(key)
    if found is None or not found.value:
        return ""
    step.notes.note(found.path, f"`{key}` is shown to the agent; handrail does not check it")
    return section(title, plain(found.value))


def _note_own(text: str, step: Reader) -> None:
    for name in dict.fromkeys(own_placeholders(text)):
        step.notes.note(step.path, f"`{name}` is filled in by WorkRail itself: it stays in the text")


def delegated(step: Reader, words: PromptContext) -> tuple[str, list[Read]]:
    """The prompt of a step whose parts are delegated to several agents."""
    step.notes.note(step.path, "a parallel step is shown to the agent as one step; nothing is delegated by handrail")
    reads: list[Read] = []
    lines: list[str] = []
    for one in step.inners("parallelDelegations"):
        condition = condition_of(one.value.get("runCondition"), words.names, one.at("runCondition"), step.notes)
        rest = {key: value for key, value in one.value.items() if key != "runCondition"}
        text = filled(f"Delegate:\n{plain(rest)}", words.names)
        if condition is not None:
            reads += condition.reads
            text = f"{{% if {condition.source} %}}{text}{{% endif %}}"
        lines.append(text)
    synthesis = step.inner("synthesis")
    after = [filled(section("Then bring it together", plain(synthesis.value)), words.names)] if synthesis else []
    head = "Have these done at the same time, by helpers if there are any; otherwise do them one after the other."
    return "\n\n".join([head, *lines, *after]), reads


def appended(prompt: str, parts: Iterable[str]) -> str:
    """A prompt with further parts; braces in these have no meaning."""
    return "\n\n".join(filter(None, (prompt, *map(verbatim, parts))))
