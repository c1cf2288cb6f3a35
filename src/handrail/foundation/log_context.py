"""Which ids the log lines of the present task carry: set once where work starts, and added to every line below it.

A context variable: tasks inherit it, and two runs in one process don't mix."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

Result = TypeVar("Result")

_NOTHING: Final[Mapping[str, str]] = {}
_ids: ContextVar[Mapping[str, str]] = ContextVar("handrail_log_ids", default=_NOTHING)


@contextmanager
def logging_as(**ids: str) -> Iterator[None]:
    """Within this block, log lines have these ids, and those that were set before; an empty one takes its name out."""
    token = _ids.set({name: value for name, value in {**_ids.get(), **ids}.items() if value})
    try:
        yield
    finally:
        _ids.reset(token)


async def logged_as(do: Callable[[], Awaitable[Result]], **ids: str) -> Result:
    """Do some work, with these ids in its log lines."""
    with logging_as(**ids):
        return await do()  # made only now: a task that is cancelled before it starts leaves no work behind


def log_ids() -> Mapping[str, str]:
    """The ids of the present task, by name."""
    return _ids.get()
