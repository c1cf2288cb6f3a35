"""Resolves references to other workflows: `extends` becomes one document, `workflow` becomes a pin.

extending.py merges documents; loading.py loads called workflows, and passes a function for that. A pinned definition
never changes: a run always uses the text it started with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, Flaw, Path, Severity, blocks
from handrail.domain.definition.authoring import content_hash
from handrail.domain.definition.model import Call, Definition, Each, Repeat, Step, Work
from handrail.domain.definition.work_items import calls_in
from handrail.domain.errors import Invalid
from handrail.domain.suggestion import did_you_mean
from handrail.library.documents.document import Document, finding_of
from handrail.library.extending import merge
from handrail.library.schemas.structure import check_structure
from handrail.library.shelf.catalog import Candidate, WorkflowLookup, chosen

DEPTH_MAX: Final = 10
HASH_LENGTH: Final = 12


class Loaded(Struct, frozen=True, kw_only=True):
    """A definition, if one could be built, with all findings."""

    definition: Definition | None
    findings: tuple[Finding, ...]
    hash: str = ""

    @property
    def is_valid(self) -> bool:
        """Whether there is a definition, and no finding is an error."""
        return self.definition is not None and not blocks(self.findings)


Trail: TypeAlias = tuple[str, ...]
"""The ids of the workflows that are being loaded, each called by the one before it."""
Load: TypeAlias = Callable[[Document, Trail], Loaded]


class Extended(Struct, frozen=True):
    """A document merged with all that it extends; None if that was not found or is invalid."""

    document: Document | None
    findings: tuple[Finding, ...]


class Pinned(Struct, frozen=True):
    """A definition whose calls name exact versions, with the findings of the called workflows."""

    definition: Definition
    flaws: tuple[Flaw, ...]
    findings: tuple[Finding, ...]


def extend(document: Document, source: WorkflowLookup) -> Extended:
    """The document merged with all that it extends; itself if it extends nothing."""
    chain, names = [document], [str(_value(document).get("id", ""))]
    while "extends" in _value(chain[-1]):
        try:
            base = _base_of(chain[-1], names, source)
        except Invalid as error:
            flaw = _flaw("extends", ("extends",), error)
            return Extended(None, (finding_of(flaw, chain[-1]), *error.findings))
        chain.append(base)
        names.append(str(_value(base)["id"]))
    if len(chain) == 1:
        return Extended(document, ())
    merged = merge(chain[::-1])
    return Extended(merged.document, merged.findings)


def pin(definition: Definition, trail: Trail, source: WorkflowLookup, load: Load) -> Pinned:
    """The definition with every called workflow found, loaded and named by its exact version."""
    names: dict[str, str] = {}
    pins: dict[str, Definition] = {}
    flaws: list[Flaw] = []
    findings: dict[Finding, None] = {}
    for reference, paths in _references(definition).items():
        try:
            name, loaded = _called(reference, trail, source, load)
        except Invalid as error:
            flaws += [_flaw("workflow", path, error) for path in paths]
            continue
        findings.update(dict.fromkeys(loaded.findings))
        if not loaded.is_valid:
            faulty = Invalid(f"the workflow `{reference}` has errors of its own", hint="fix them first")
            flaws += [_flaw("workflow", path, faulty) for path in paths]
        if loaded.definition is not None:
            names[reference] = name
            pins |= {**loaded.definition.pinned, name: replace(loaded.definition, pinned={})}
    if names:
        definition = replace(definition, steps=_renamed(definition.steps, names), pinned=pins)
    return Pinned(definition, tuple(flaws), tuple(findings))


def _references(definition: Definition) -> dict[str, list[Path]]:
    """Every workflow that steps or their undos call, with the paths of these calls."""
    found: dict[str, list[Path]] = {}
    for path, call in calls_in(definition):
        found.setdefault(call.workflow, []).append((*path, "workflow"))
    return found


def _base_of(document: Document, names: Sequence[str], source: WorkflowLookup) -> Document:
    reference = str(_value(document)["extends"])
    name = reference.partition("@")[0]
    if name in names:
        circle = " -> ".join([*names[names.index(name) :], name])
        raise Invalid(f"these workflows extend each other: {circle}", hint="remove `extends` from one of them")
    if len(names) > DEPTH_MAX:
        raise Invalid(f"more than {DEPTH_MAX} workflows extend each other: {' -> '.join(names)}", hint="merge some")
    base = _chosen(reference, source).document
    findings = check_structure(base)
    if blocks(findings):
        raise Invalid(f"the workflow `{name}` has errors of its own", hint="fix them first", findings=findings)
    return base


def _called(reference: str, trail: Trail, source: WorkflowLookup, load: Load) -> tuple[str, Loaded]:
    """The exact name to pin a reference by, and the workflow."""
    name = reference.partition("@")[0]
    if name in trail:
        circle = " -> ".join([*trail[trail.index(name) :], name])
        raise Invalid(f"these workflows call each other: {circle}", hint="a workflow can't call itself")
    if len(trail) > DEPTH_MAX:
        raise Invalid(f"more than {DEPTH_MAX} workflows call each other: {' -> '.join(trail)}", hint="nest less")
    found = _chosen(reference, source)
    loaded = load(found.document, (*trail, name))
    if found.version or loaded.definition is None:
        return f"{name}@{found.version}", loaded
    own_hash = content_hash(replace(loaded.definition, pinned={}))
    return f"{name}@{own_hash[: len('sha256:') + HASH_LENGTH]}", loaded


def _chosen(reference: str, source: WorkflowLookup) -> Candidate:
    """The best version for a reference."""
    name, _, wanted = reference.partition("@")
    candidates = source.find(name)
    if not candidates:
        raise Invalid(f"there is no workflow `{name}`", hint=did_you_mean(name, source.ids()) or "none is known here")
    found = chosen(candidates, wanted)
    if found is not None:
        return found
    known = ", ".join(dict.fromkeys(one.version or "one without a version" for one in candidates))
    raise Invalid(f"no version of `{name}` fits `{wanted}`", hint=f"there is: {known}")


def _renamed(steps: tuple[Step, ...], names: Mapping[str, str]) -> tuple[Step, ...]:
    return tuple(
        replace(step, work=_renamed_work(step.work, names), undo=step.undo and _renamed_work(step.undo, names))
        for step in steps
    )


def _renamed_work(work: Work, names: Mapping[str, str]) -> Work:
    match work:
        case Call(workflow=reference):
            return replace(work, workflow=names.get(reference, reference))
        case Each(steps=steps) | Repeat(steps=steps):
            return replace(work, steps=_renamed(steps, names))
        case _:
            return work


def _flaw(rule: str, path: Path, error: Invalid) -> Flaw:
    return Flaw(rule=rule, severity=Severity.CRITICAL, path=path, message=str(error), fix=error.hint)


def _value(document: Document) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", document.value)
