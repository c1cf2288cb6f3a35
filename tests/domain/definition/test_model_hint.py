"""Model hints: the tier, models that fit, and the reason, in one line; data only."""

from __future__ import annotations

import pytest

from handrail.domain.definition.model import ModelHint
from handrail.domain.definition.model_hint import Model, hint_words, matching
from handrail.domain.errors import Invalid
from handrail.library.models import models_of

CHEAP = Model(name="cheap", tier="strong", can=("tools", "long_context"), cost=1, speed=1)
QUICK = Model(name="quick", tier="strong", can=("tools", "long_context"), cost=2, speed=3)
SLOW = Model(name="slow", tier="strong", can=("tools", "long_context"), cost=2, speed=1)
SMALL = Model(name="small", tier="fast", can=("tools",))
MODELS = (SLOW, SMALL, QUICK, CHEAP)


def test_models_that_fit_come_by_preference_then_cost_then_speed() -> None:
    assert matching(ModelHint(tier="strong"), MODELS) == [CHEAP, QUICK, SLOW]
    assert matching(ModelHint(tier="strong", prefer=("slow",)), MODELS) == [SLOW, CHEAP, QUICK]
    assert matching(ModelHint(needs=("tools",)), (SMALL, CHEAP)) == [SMALL, CHEAP]
    assert matching(ModelHint(tier="fast", needs=("long_context",)), MODELS) == []


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (None, ""),
        (ModelHint(tier="fast", why="short, local task"), "fast (small): short, local task"),
        (ModelHint(tier="strong", needs=("long_context",)), "strong, long_context (cheap, quick, slow)"),
        (ModelHint(tier="odd", why="why not"), "odd: why not"),
        (ModelHint(tier="odd", prefer=("mine",)), "odd (mine)"),
        (ModelHint(tier="odd", needs=("x",), prefer=()), "odd, x"),
        (ModelHint(why="think hard"), "small, cheap, quick: think hard"),
    ],
)
def test_a_hint_is_one_line(hint: ModelHint | None, words: str) -> None:
    assert hint_words(hint, MODELS) == words


def test_there_is_a_model_for_each_tier_by_default() -> None:
    assert {model.tier for model in models_of({})} == {"fast", "balanced", "strong"}


def test_configuration_adds_and_changes_models() -> None:
    models = {model.name: model for model in models_of({"mine": {"tier": "fast"}, "gpt": {"cost": 9}})}
    assert models["mine"].tier == "fast"
    assert (models["gpt"].cost, models["gpt"].tier) == (9, "strong")


@pytest.mark.parametrize("wrong", [{"x": 1}, {"x": {}}, {"x": {"tier": 1}}, {"x": {"tier": "fast", "price": 1}}])
def test_what_is_no_model_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(Invalid, match=r"config\.toml: \[models"):
        models_of(wrong)
