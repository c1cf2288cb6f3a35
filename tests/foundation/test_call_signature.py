"""What a function wants is read from its hints, once, and its defaults are nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.foundation.call_signature import CallSignature, call_signature


class Context:
    pass


SHARED = ["a"]


def example(context: Context, count: int, /) -> None: ...


def plain(name: str, tags: list[str] = SHARED, *, often: int = 1, context: Context) -> None: ...


def untyped(name) -> None: ...  # type: ignore[no-untyped-def]


def signature(function: Any, **more: Any) -> CallSignature:
    return call_signature(function, shape="Arguments", context=Context, caller="a plan", **more)


def test_the_context_and_what_is_left_aside_are_no_arguments() -> None:
    found = signature(plain, besides=("often",))
    assert (found.context, found.names) == ("context", frozenset({"name", "tags"}))
    assert [one.name for one in found.parameters] == ["name", "tags"]
    assert signature(test_the_context_and_what_is_left_aside_are_no_arguments).context == ""


def test_arguments_are_converted_and_what_does_not_fit_is_refused() -> None:
    found = signature(plain)
    assert found.arguments({"name": "n", "often": 2}) == {"name": "n", "tags": ["a"], "often": 2}
    for wrong in ({}, {"name": 1}, {"name": "n", "more": 1}):
        with pytest.raises(ValueError, match=r"Object|Expected"):
            found.arguments(wrong)


def test_a_default_is_changed_neither_by_a_call_nor_by_its_owner() -> None:
    found = signature(plain)
    found.arguments({"name": "n"})["tags"].append("b")
    SHARED.append("c")
    try:
        assert found.arguments({"name": "n"})["tags"] == ["a"]
    finally:
        SHARED.remove("c")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (example, "example: a plan can't pass the parameter `count` by name; write plain parameters"),
        (untyped, "untyped: the parameter `name` has no type; write `name: str`, for example"),
    ],
)
def test_a_function_that_can_not_be_called_by_name_is_refused_with_what_to_do(function: Any, words: str) -> None:
    with pytest.raises(TypeError) as refused:
        signature(function)
    assert str(refused.value) == words
