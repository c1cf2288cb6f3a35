"""Model hints: which models suit a step, in one line. Data only: handrail calls no model.

Pure. The list of models is configuration; the default is library/models.toml."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from handrail.domain.definition.model import ModelHint

SHOWN_MAX: Final = 3


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model, or a family of them: its tier, what it can do, its cost and its speed."""

    name: str
    tier: str
    can: tuple[str, ...] = ()
    cost: float = 1.0
    """Relative to the others in the list; lower is cheaper."""
    speed: float = 1.0
    """Relative to the others in the list; higher is faster."""


def matching(hint: ModelHint, models: Sequence[Model]) -> list[Model]:
    """The models that suit a step: preferred ones first, then the cheapest, then the fastest."""
    fitting = [
        model
        for model in models
        if (not hint.tier or model.tier == hint.tier) and frozenset(hint.needs) <= frozenset(model.can)
    ]
    order = {name: place for place, name in enumerate(hint.prefer)}
    return sorted(fitting, key=lambda model: (order.get(model.name, len(order)), model.cost, -model.speed))


def hint_words(hint: ModelHint | None, models: Sequence[Model] = ()) -> str:
    """A hint in one line: the tier and what is needed, models that fit, and the reason."""
    if hint is None:
        return ""
    wanted = ", ".join(filter(None, (hint.tier, *hint.needs)))
    names = [model.name for model in matching(hint, models)] or list(hint.prefer)
    known = f"{wanted} ({', '.join(names[:SHOWN_MAX])})" if names and wanted else wanted or ", ".join(names[:SHOWN_MAX])
    return f"{known}: {hint.why}" if known and hint.why else known or hint.why
