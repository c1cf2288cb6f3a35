"""What the schema of workflows has against a document, in words that know what a step is.

What is not special about workflows is worded in schema_words.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.authoring import slug
from handrail.domain.check import Flaw
from handrail.domain.definition import Kind as StepKind
from handrail.domain.suggestion import did_you_mean
from handrail.library.author_schema import unfit_words
from handrail.library.document_tree import shown
from handrail.library.schema_words import Clash, Kind, alternatives, any_of, described, example_of, plain_words

# The rule that a definition of the schema stands for, where its pattern does not fit.
RULES: Final = {
    "id": "id",
    "step_id": "id",
    "variable": "id",
    "reference": "id",
    "duration": "duration",
    "version": "version",
    "tool": "tool",
}

# What other workflow languages call our keys; the first that is known at the place is meant.
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


class StructureWords:
    """Tells an author what clashes with the schema of workflows; which key goes where is read from that schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions: Mapping[str, Any] = schema["definitions"]

    def flaws(self, clash: Clash) -> Iterator[Flaw]:
        """What one clash means; nothing, if another one says it better."""
        owner = str(clash.spot[1]) if clash.spot[:1] == ("definitions",) else ""
        match clash.kind:
            case _ if clash.in_schema:
                yield unfit_words(clash)
            case Kind.AdditionalProperties(unexpected=keys):
                yield from (self._unknown(clash, owner, key) for key in keys)
            case Kind.PropertyNames() if owner == "variable":
                yield _misnamed(clash)
            case Kind.PropertyNames():
                yield from self._misplaced(clash, owner)
            case Kind.OneOfNotValid() | Kind.OneOfMultipleValid():
                yield from self._kinds(clash, owner)
            case _:
                yield from _special(clash, owner)

    def _unknown(self, clash: Clash, owner: str, key: str) -> Flaw:
        fix = _suggestion(key, self._known_keys(clash, owner))
        return clash.key_flaw(key, "unknown_key", f"`{shown(key)}` is not a key of {self._title(clash, owner)}", fix)

    def _known_keys(self, clash: Clash, owner: str) -> Sequence[str]:
        kinds = _given(clash, STEP_KINDS)
        if owner == "step_keys" and len(kinds) == 1:
            return self._keys_of(f"{kinds[0]}_step")
        return list(clash.part["properties"])

    def _misplaced(self, clash: Clash, owner: str) -> Iterator[Flaw]:
        """A key of another kind; unknown keys and several kinds are other clashes."""
        key = str(clash.kind.error.instance)
        suffix = owner[owner.rindex("_") :]
        homes = [name for name in self._definitions if name.endswith(suffix) and key in self._keys_of(name)]
        if homes and len(_given(clash, STEP_KINDS)) == 1:
            titles = any_of([self._definitions[name]["title"] for name in homes])
            message = f"`{key}` belongs to {titles}; this is {self._title(clash, owner)}"
            yield clash.key_flaw(key, "unknown_key", message, f"remove it, or move it to {titles}")

    def _kinds(self, clash: Clash, owner: str) -> Iterator[Flaw]:
        """None or several of the keys of which there must be one."""
        options = alternatives(clash.part, "oneOf")
        given = _given(clash, options)
        if len(given) > 1:
            both = " and ".join(f"`{key}`" for key in given)
            message = (
                f"{both} can't be used together: {self._title(clash, owner)} has exactly one of {', '.join(options)}"
            )
            yield clash.key_flaw(given[1], "kind", message, "keep one of them")
        elif isinstance(clash.value, dict) and not self._has_misspelt(clash, owner, options):
            message = f"{self._title(clash, owner)} needs exactly one of {', '.join(options)}"
            yield clash.flaw("kind", message, "add one of them")

    def _has_misspelt(self, clash: Clash, owner: str, options: Sequence[str]) -> bool:
        """Whether one of the wanted keys seems to be there under a wrong name, which is reported as such."""
        known = self._definitions["step_keys" if owner == "whole_step" else owner]["properties"]
        unknown = (key for key in clash.value if key not in known)
        return any(
            _suggestion(key, list(known)) == f"did you mean `{option}`?" for key in unknown for option in options
        )

    def _keys_of(self, name: str) -> Sequence[str]:
        keys: Sequence[str] = self._definitions[name].get("propertyNames", {}).get("enum", ())
        return keys

    def _title(self, clash: Clash, owner: str) -> str:
        return str(self._definitions.get(owner, clash.part).get("title", "this"))


def _special(clash: Clash, owner: str) -> Iterator[Flaw]:
    """Single values that need words of their own."""
    match clash.kind:
        case Kind.Pattern() if owner in RULES:
            message = f"{described(clash.value)} is not {clash.part['title']}"
            yield clash.flaw(RULES[owner], message, _rewritten(clash, owner))
        case Kind.Not() if owner == "step_id":
            message = f"`{clash.value}` can't be the id of a step: expressions know it as a part of one"
            yield clash.flaw("id", message, "choose another word")
        case Kind.FalseSchema() if clash.path[-1:] == ("insert_after",):
            message = "`insert_after` is only for the steps of a workflow that `extends` another"
            yield replace(clash.flaw("unknown_key", message, "use `after`"), on_key=True)
        case Kind.Required(property="id") if owner in ("whole_step", "change"):
            yield clash.flaw("missing_key", "`id` is missing", f"add `id: {_made_of(clash.value)}`")
        case Kind.Type() if clash.spot == ("definitions", "step_keys", "type"):
            only = (
                "under `extends`, a step is an object"
                if isinstance(clash.value, str)
                else "a step is an object or a text"
            )
            yield clash.flaw("type", f"{only}, not {described(clash.value)}", "write `id` and what is to be done")
        case Kind.Type() if owner in ("duration", "version") and clash.value is not None:
            yield from (replace(flaw, fix=example_of(clash.part)) for flaw in plain_words(clash))
        case _:
            yield from plain_words(clash)


def _misnamed(clash: Clash) -> Flaw:
    key = str(clash.kind.error.instance)
    return clash.key_flaw(key, "id", f"`{shown(key)}` is not a name that expressions can use", _variable(key))


def _suggestion(key: str, known: Sequence[str]) -> str:
    meant = next((word for word in SYNONYMS.get(key, ()) if word in known), None)
    return f"did you mean `{meant}`?" if meant else did_you_mean(key, known)


def _given(clash: Clash, keys: Sequence[str]) -> list[str]:
    return [key for key in keys if key in clash.value] if isinstance(clash.value, dict) else []


def _rewritten(clash: Clash, owner: str) -> str:
    """How the author's own word could be written; else an example."""
    match owner:
        case "id":
            return f"write it like `{slug(clash.value)}`"
        case "step_id":
            return f"write it like `{_step_id(clash.value)}`"
        case "variable":
            return _variable(clash.value)
        case _:
            return example_of(clash.part)


def _variable(text: str) -> str:
    made = slug(text).replace("-", "_")
    return f"write it like `{made if made[0].isalpha() else f'x_{made}'}`"


def _step_id(text: str) -> str:
    made = slug(text)
    return made if made[0].isalpha() else f"step-{made}"


def _made_of(step: Mapping[str, Any]) -> str:
    """An id for a step that has none, out of its words."""
    words = (step.get(key) for key in ("title", *STEP_KINDS))
    text = next((word for word in words if isinstance(word, str)), "step")
    return _step_id(" ".join(text.split()[:4]))
