"""Steps as a story names them."""

from __future__ import annotations

import pytest

from handrail.domain.history.story_words import StepNames


def names(title: str) -> StepNames:
    return StepNames(title=lambda path: title.format(path), tool=lambda _: "", undo_tool=lambda _: "")


@pytest.mark.parametrize(
    ("title", "count", "said"),
    [
        ("{}", 2, "“a[0]”, “a[1]”"),
        ("{}", 1_207, "“a[0]”, “a[1]”, “a[2]”, “a[3]”, “a[4]” and 1,202 more"),
        ("Upload", 1, "“Upload”"),
        ("Upload", 437, "“Upload” and 436 more"),
    ],
)
def test_rounds_with_the_same_title_are_named_once(title: str, count: int, said: str) -> None:
    assert names(title).listed([f"a[{number}]" for number in range(count)]) == said
