"""Merges a workflow with the one that it `extends`, as data; every value keeps the position in its own file.

The child's values win; `inputs` and `outputs` merge by name; steps merge by id, in the top list only. resolve.py finds
the base. The base's implied order is written out first, so that an inserted step becomes part of the chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct

from handrail.domain.checks.finding import Finding, Flaw, Path, Severity
from handrail.domain.definition.model import Approve, Call, Each, Kind, Prompt, Repeat, Tool
from handrail.domain.suggestion import did_you_mean
from handrail.library.documents.document import Document, ValuePosition, finding_of

IDENTITY: Final = frozenset({"id", "version", "extends"})
"""Keys that identify a document, and are never inherited."""
MERGED_BY_NAME: Final = ("inputs", "outputs")
MERGED_KEYS: Final = frozenset({"steps", *MERGED_BY_NAME})
# `effect` and `undo` belong to the work: a step of another kind has to declare them again.
KIND_KEYS: Final = {
    Kind(str(work.__struct_config__.tag)): frozenset({*work.__struct_encode_fields__, "effect", "undo"})
    for work in (Prompt, Tool, Approve, Call, Each, Repeat)
}


class Merged(Struct, frozen=True):
    """The document of a chain of extensions, and what could not be merged."""

    document: Document
    findings: tuple[Finding, ...]


class _Origin:
    """A document whose positions can be copied along with its values."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.value: Mapping[str, Any] = cast("Mapping[str, Any]", document.value)
        self.below: dict[Path, list[Path]] = {}
        for path in document.positions:
            for length in range(min(len(path), 3) + 1):
                self.below.setdefault(path[:length], []).append(path)

    def copy(self, source: Path, target: Path, into: dict[Path, ValuePosition]) -> None:
        """Copy the positions of a value and of everything inside it."""
        for path in self.below.get(source, ()):
            into[(*target, *path[len(source) :])] = self.document.positions[path]

    def copy_one(self, source: Path, target: Path, into: dict[Path, ValuePosition]) -> None:
        """Copy the position of the value only."""
        if source in self.document.positions:
            into[target] = self.document.positions[source]


class _Piece(Struct):
    """A step to merge."""

    data: dict[str, Any]
    sources: dict[str, tuple[_Origin, Path]]
    """Where each of its keys comes from."""
    whole: tuple[_Origin, Path]
    is_implied: bool = False
    """Whether its `after` was not written but follows from its place in the list."""
    anchor: str = ""
    """The step after which it was inserted."""

    @property
    def name(self) -> str:
        return str(self.data["id"])


def merge(chain: Sequence[Document]) -> Merged:
    """The document of a chain, its base first: each extends the one before it."""
    origins = [_Origin(document) for document in chain]
    pieces = _with_order(_pieces(origins[0]))
    findings: list[Finding] = []
    for origin in origins[1:]:
        findings += [finding_of(flaw, origin.document) for flaw in _join(pieces, _pieces(origin))]
    value: dict[str, Any] = {}
    positions: dict[Path, ValuePosition] = {}
    origins[-1].copy_one((), (), positions)
    _merge_tops(origins, value, positions)
    for index, piece in enumerate(pieces):
        piece.whole[0].copy_one(piece.whole[1], ("steps", index), positions)
        for key, (origin, source) in piece.sources.items():
            origin.copy(source, ("steps", index, key), positions)
    value["steps"] = [piece.data for piece in pieces]
    return Merged(Document(chain[-1].name, value, positions), tuple(findings))


def _merge_tops(origins: Sequence[_Origin], value: dict[str, Any], positions: dict[Path, ValuePosition]) -> None:
    """Everything but the steps: the last document wins; inputs and outputs merge by name."""
    owner_of = {key: origin for origin in origins for key in origin.value if key not in IDENTITY}
    owner_of |= {key: origins[-1] for key in ("id", "version") if key in origins[-1].value}
    for key, owner in owner_of.items():
        owner.copy_one((key,), (key,), positions)
        if key not in MERGED_KEYS:
            value[key] = owner.value[key]
            owner.copy((key,), (key,), positions)
    for key in MERGED_BY_NAME:
        owners = {name: origin for origin in origins for name in origin.value.get(key, ())}
        for name, origin in owners.items():
            value.setdefault(key, {})[name] = origin.value[key][name]
            origin.copy((key, name), (key, name), positions)


def _pieces(origin: _Origin) -> list[_Piece]:
    pieces: list[_Piece] = []
    for index, item in enumerate(origin.value.get("steps", ())):
        path: Path = ("steps", index)
        if isinstance(item, str):  # a plain string is a prompt step
            pieces.append(_Piece({"prompt": item}, {"prompt": (origin, path)}, (origin, path)))
        else:
            sources: dict[str, tuple[_Origin, Path]] = {key: (origin, (*path, key)) for key in item}
            pieces.append(_Piece(dict(item), sources, (origin, path)))
    return pieces


def _with_order(pieces: list[_Piece]) -> list[_Piece]:
    """The base's steps with the ids and the order that their places imply."""
    done: list[_Piece] = []
    for number, piece in enumerate(pieces, 1):
        piece.data.setdefault("id", f"step-{number}")
        _append(done, piece)
    return done


def _join(pieces: list[_Piece], layer: Sequence[_Piece]) -> Iterator[Flaw]:
    """Merge the steps of another document into the list."""
    own: set[str] = set()
    for piece in layer:
        anchor = piece.data.pop("insert_after", None)
        at = _index(pieces, piece.name)
        if at is None:
            yield from _add(pieces, piece, anchor)
        elif anchor is None and piece.name not in own:
            pieces[at] = _overridden(pieces[at], piece)
        else:
            yield _taken(piece, in_base=piece.name not in own)
        own.add(piece.name)


def _add(pieces: list[_Piece], piece: _Piece, anchor: str | None) -> Iterator[Flaw]:
    at = _index(pieces, anchor)
    if at is not None:
        _insert(pieces, piece, at)
        return
    if anchor is not None:
        yield _unknown_anchor(piece, anchor, pieces)
    _append(pieces, piece)


def _append(pieces: list[_Piece], piece: _Piece) -> None:
    piece.is_implied = "after" not in piece.data
    if piece.is_implied:
        piece.data["after"] = [pieces[-1].name] if pieces else []
    pieces.append(piece)


def _insert(pieces: list[_Piece], piece: _Piece, anchor_at: int) -> None:
    """Insert a step after its anchor, and after those inserted there before."""
    at = anchor_at
    piece.anchor = pieces[anchor_at].name
    while at + 1 < len(pieces) and pieces[at + 1].anchor == piece.anchor:
        at += 1
    before = pieces[at].name
    piece.is_implied = "after" not in piece.data
    piece.data.setdefault("after", [before])
    for follower in pieces:
        if follower.is_implied and before in follower.data["after"]:
            # A step with its own `after` may not wait for `before`; then the follower must still wait for it.
            follower.data["after"] = [piece.name] if piece.is_implied else [before, piece.name]
    pieces.insert(at + 1, piece)


def _overridden(base: _Piece, piece: _Piece) -> _Piece:
    """The base's step with the child's keys; if the kind changes, the keys of the old kind are removed."""
    old, new = _kind(base.data), _kind(piece.data)
    gone = KIND_KEYS[old] if old and new and old is not new else frozenset()
    return _Piece(
        data={key: value for key, value in base.data.items() if key not in gone} | piece.data,
        sources={key: source for key, source in base.sources.items() if key not in gone} | piece.sources,
        whole=piece.whole,
        is_implied=base.is_implied and "after" not in piece.data,
        anchor=base.anchor,
    )


def _kind(data: Mapping[str, Any]) -> Kind | None:
    return next((kind for kind in Kind if kind.value in data), None)


def _index(pieces: Sequence[_Piece], name: str | None) -> int | None:
    return next((index for index, piece in enumerate(pieces) if piece.name == name), None)


def _taken(piece: _Piece, *, in_base: bool) -> Flaw:
    if in_base:
        return Flaw(
            rule="insert_after",
            severity=Severity.CRITICAL,
            path=(*piece.whole[1], "insert_after"),
            message=f"the base has a step `{piece.name}` already: it can't be inserted again",
            fix="give it another id, or remove `insert_after` to override the base's step",
        )
    return Flaw(
        rule="duplicate_id",
        severity=Severity.CRITICAL,
        path=(*piece.whole[1], "id"),
        message=f"the id `{piece.name}` is used twice in one list",
        fix="give one of them another id",
    )


def _unknown_anchor(piece: _Piece, anchor: str, pieces: Sequence[_Piece]) -> Flaw:
    return Flaw(
        rule="insert_after",
        severity=Severity.CRITICAL,
        path=(*piece.whole[1], "insert_after"),
        message=f"the base has no step `{anchor}`",
        fix=did_you_mean(anchor, (other.name for other in pieces)),
    )
