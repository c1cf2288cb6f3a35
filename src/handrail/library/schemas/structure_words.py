"""Messages for documents that do not fit the schema of workflows.

schema_words.py has the messages for any schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Flaw
from handrail.domain.definition.authoring import slug
from handrail.domain.definition.model import Kind as StepKind
from handrail.domain.suggestion import did_you_mean
from handrail.library.documents.document import FINDINGS_MAX
from handrail.library.documents.document_tree import shown
from handrail.library.schemas.author_schema import schema_flaw
from handrail.library.schemas.schema_words import (
    Kind,
    Mismatch,
    alternatives,
    any_of,
    described,
    example_of,
    general_flaws,
)

# The rule of a finding if the pattern of this definition in the schema does not match.
RULES: Final = {
    "id": "id",
    "step_id": "id",
    "variable": "id",
    "reference": "id",
    "duration": "duration",
    "version": "version",
    "tool": "tool",
}

# Keys of other workflow languages, with ours; the first that is allowed in the place is suggested.
SYNONYMS: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(("depends_on", "dependsOn", "needs", "requires"), ("after",)),
    **dict.fromkeys(("if", "condition", "run_if", "runCondition"), ("when",)),
    **dict.fromkeys(("instructions", "instruction", "ask"), ("prompt",)),
    **dict.fromkeys(("action", "uses", "call", "run"), ("tool",)),
    **dict.fromkeys(("arguments", "parameters", "params", "input"), ("args", "with", "inputs")),
    **dict.fromkeys(("compensate", "compensation", "rollback"), ("undo",)),
    **dict.fromkeys(("validate", "validation", "rules"), ("checks",)),
    **dict.fromkeys(("foreach", "for_each", "items"), ("each",)),
    **dict.fromkeys(("result", "results", "returns"), ("outputs", "output")),
    **dict.fromkeys(("title", "name", "label"), ("name", "title")),
    **dict.fromkeys(("summary", "description"), ("description", "guidance")),
    "retries": ("retry", "attempts"),
    "loop": ("repeat",),
    "concurrency": ("max_parallel", "parallel"),
}

STEP_KINDS: Final = tuple(kind.value for kind in StepKind)


class StructureMessages:
    """Turns mismatches with the schema of workflows into flaws; it reads from that schema which key belongs where."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions: Mapping[str, Any] = schema["definitions"]

    def flaws(self, mismatch: Mismatch) -> Iterator[Flaw]:
        """The flaws of a mismatch; none if another mismatch describes it better."""
        owner = str(mismatch.spot[1]) if mismatch.spot[:1] == ("definitions",) else ""
        match mismatch.kind:
            case _ if mismatch.in_schema:
                yield schema_flaw(mismatch)
            case Kind.AdditionalProperties(unexpected=keys):
                # One more than is listed: then it is said that there are more.
                yield from (self._unknown(mismatch, owner, key) for key in keys[: FINDINGS_MAX + 1])
            case Kind.PropertyNames() if owner == "variable":
                yield _misnamed(mismatch)
            case Kind.PropertyNames():
                yield from self._misplaced(mismatch, owner)
            case Kind.OneOfNotValid() | Kind.OneOfMultipleValid():
                yield from self._kinds(mismatch, owner)
            case _:
                yield from _special(mismatch, owner)

    def _unknown(self, mismatch: Mismatch, owner: str, key: str) -> Flaw:
        fix = _suggestion(key, self._known_keys(mismatch, owner))
        return mismatch.key_flaw(
            key, "unknown_key", f"`{shown(key)}` is not a key of {self._title(mismatch, owner)}", fix
        )

    def _known_keys(self, mismatch: Mismatch, owner: str) -> Sequence[str]:
        kinds = _given(mismatch, STEP_KINDS)
        if owner == "step_keys" and len(kinds) == 1:
            return self._keys_of(f"{kinds[0]}_step")
        return list(mismatch.part["properties"])

    def _misplaced(self, mismatch: Mismatch, owner: str) -> Iterator[Flaw]:
        """A key of another kind of step; unknown keys and several kinds are other mismatches."""
        key = str(mismatch.kind.error.instance)
        suffix = owner[owner.rindex("_") :]
        homes = [name for name in self._definitions if name.endswith(suffix) and key in self._keys_of(name)]
        if homes and len(_given(mismatch, STEP_KINDS)) == 1:
            titles = any_of([self._definitions[name]["title"] for name in homes])
            message = f"`{key}` belongs to {titles}; this is {self._title(mismatch, owner)}"
            yield mismatch.key_flaw(key, "unknown_key", message, f"remove it, or move it to {titles}")

    def _kinds(self, mismatch: Mismatch, owner: str) -> Iterator[Flaw]:
        """None or several of the keys of which exactly one is required."""
        options = alternatives(mismatch.part, "oneOf")
        given = _given(mismatch, options)
        if len(given) > 1:
            both = " and ".join(f"`{key}`" for key in given)
            message = (
                f"{both} can't be used together: {self._title(mismatch, owner)} has exactly one of {', '.join(options)}"
            )
            yield mismatch.key_flaw(given[1], "kind", message, "keep one of them")
        elif isinstance(mismatch.value, dict) and not self._has_misspelt(mismatch, owner, options):
            message = f"{self._title(mismatch, owner)} needs exactly one of {', '.join(options)}"
            yield mismatch.flaw("kind", message, "add one of them")

    def _has_misspelt(self, mismatch: Mismatch, owner: str, options: Sequence[str]) -> bool:
        """Whether one of the required keys seems to be misspelt: then only that is reported."""
        known = self._definitions["step_keys" if owner == "whole_step" else owner]["properties"]
        unknown = (key for key in mismatch.value if key not in known)
        return any(
            _suggestion(key, list(known)) == f"did you mean `{option}`?" for key in unknown for option in options
        )

    def _keys_of(self, name: str) -> Sequence[str]:
        keys: Sequence[str] = self._definitions[name].get("propertyNames", {}).get("enum", ())
        return keys

    def _title(self, mismatch: Mismatch, owner: str) -> str:
        return str(self._definitions.get(owner, mismatch.part).get("title", "this"))


def _special(mismatch: Mismatch, owner: str) -> Iterator[Flaw]:
    """Values that need special messages."""
    match mismatch.kind:
        case Kind.Pattern() if owner in RULES:
            message = f"{described(mismatch.value)} is not {mismatch.part['title']}"
            yield mismatch.flaw(RULES[owner], message, _rewritten(mismatch, owner))
        case Kind.Not() if owner == "step_id":
            message = f"`{mismatch.value}` can't be the id of a step: in expressions it is a field of one"
            yield mismatch.flaw("id", message, "choose another word")
        case Kind.FalseSchema() if mismatch.path[-1:] == ("insert_after",):
            message = "`insert_after` is only for the steps of a workflow that `extends` another"
            yield replace(mismatch.flaw("unknown_key", message, "use `after`"), on_key=True)
        case Kind.Required(property="id") if owner in ("whole_step", "change"):
            yield mismatch.flaw("missing_key", "`id` is missing", f"add `id: {_made_of(mismatch.value)}`")
        case Kind.Type() if mismatch.spot == ("definitions", "step_keys", "type"):
            only = (
                "under `extends`, a step is an object"
                if isinstance(mismatch.value, str)
                else "a step is an object or a string"
            )
            yield mismatch.flaw("type", f"{only}, not {described(mismatch.value)}", "write `id` and what to do")
        case Kind.Type() if owner in ("duration", "version") and mismatch.value is not None:
            yield from (replace(flaw, fix=example_of(mismatch.part)) for flaw in general_flaws(mismatch))
        case _:
            yield from general_flaws(mismatch)


def _misnamed(mismatch: Mismatch) -> Flaw:
    key = str(mismatch.kind.error.instance)
    return mismatch.key_flaw(key, "id", f"`{shown(key)}` is not a name that expressions can use", _variable(key))


def _suggestion(key: str, known: Sequence[str]) -> str:
    meant = next((word for word in SYNONYMS.get(key, ()) if word in known), None)
    return f"did you mean `{meant}`?" if meant else did_you_mean(key, known)


def _given(mismatch: Mismatch, keys: Sequence[str]) -> list[str]:
    return [key for key in keys if key in mismatch.value] if isinstance(mismatch.value, dict) else []


def _rewritten(mismatch: Mismatch, owner: str) -> str:
    """How to write the author's value; else an example."""
    match owner:
        case "id":
            return f"write it like `{slug(mismatch.value)}`"
        case "step_id":
            return f"write it like `{_step_id(mismatch.value)}`"
        case "variable":
            return _variable(mismatch.value)
        case _:
            return example_of(mismatch.part)


def _variable(text: str) -> str:
    made = slug(text).replace("-", "_")
    return f"write it like `{made if made[0].isalpha() else f'x_{made}'}`"


def _step_id(text: str) -> str:
    made = slug(text)
    return made if made[0].isalpha() else f"step-{made}"


def _made_of(step: Mapping[str, Any]) -> str:
    """An id for a step that has none, from its title or work."""
    words = (step.get(key) for key in ("title", *STEP_KINDS))
    text = next((word for word in words if isinstance(word, str)), "step")
    return _step_id(" ".join(text.split()[:4]))
