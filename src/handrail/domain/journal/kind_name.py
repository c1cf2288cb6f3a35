"""Names of event kinds as readers write them: in full, or by some of their words.

Pure. `decision` means `decision_recorded`; `failed` means every kind that ends in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from handrail.domain.errors import Invalid
from handrail.domain.journal.codec import KINDS
from handrail.domain.suggestion import did_you_mean


def kinds_named(names: Iterable[str]) -> frozenset[str]:
    """The kinds that are meant; Invalid for a name that means none."""
    return frozenset(kind for name in names for kind in _meant(name))


def _meant(name: str) -> list[str]:
    said = "_".join(name.lower().replace("-", "_").split())
    if said in KINDS:
        return [said]
    found = _with_words(said) or _with_words(said.removesuffix("s"))  # `decisions`
    if not found:
        raise Invalid(f"there is no kind of event {name[:100]!r}", hint=_hint(said))
    return found


def _with_words(words: str) -> list[str]:
    return [kind for kind in KINDS if words and f"_{words}_" in f"_{kind}_"]


def _hint(said: str) -> str:
    near = did_you_mean(said, sorted({word for kind in KINDS for word in (kind, *kind.split("_"))}))
    return near if near.startswith("did") else SOME


SOME: Final = "for example decision, action, step_completed, failed, approval; leave `kinds` out to see what there is"
