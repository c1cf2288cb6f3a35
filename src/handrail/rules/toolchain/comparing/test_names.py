"""Which test a name stands for. Pure.

Runners print names in ways of their own, and not always as they report them: `test/a.test.js > outer > inner` is
reported as `test/a.test.js::outer inner`. A name that was copied from a terminal means that test."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

from handrail.rules.toolchain.comparing.lost_tests import function_of

COMPARED_MAX: Final = 500
NEAR_MAX: Final = 3
NEAR: Final = 0.5

_between = re.compile(r"::|\s+[>\u203a\u00bb]\s+")
_file = re.compile(r"[^\s:]+\.\w{1,5}")


def file_of(name: str) -> str:
    """The file that a name starts with; empty if it starts with none."""
    first, *rest = _between.split(name)
    return first if rest and (name.startswith(f"{first}::") or _file.fullmatch(first)) else ""


def is_named(test: str, name: str) -> bool:
    """Whether a name stands for a test: in full, without its file or class, or without its case."""
    file, between, (function, slash, case) = *name.rpartition("::")[:2], name.rpartition("::")[2].partition("/")
    names = {name, f"{file}{between}{function}[{case}]"} if slash else {name}  # a case as Go writes it
    ends = tuple(f"{before}{one}" for one in names for before in ("::", ".", " "))
    return any(one in names or one.endswith(ends) for one in (test, function_of(test))) or _is_printed_as(test, name)


def nearest(name: str, tests: Iterable[str]) -> list[str]:
    """The tests whose names are most like this one."""
    known = {_words(test): test for test in islice(tests, COMPARED_MAX)}
    return [known[words] for words in get_close_matches(_words(name), known, NEAR_MAX, NEAR)]


def _is_printed_as(test: str, name: str) -> bool:
    """Whether a runner may print a test by this name: with its groups apart, or without some of them."""
    file = file_of(name)
    where, between, own = test.partition("::")
    if file and between and where != file and not where.endswith(f"/{file}"):
        return False
    inner = _words(name[len(file) :] if file else name)
    shown = [_words(one) for one in (own if between else test, function_of(own if between else test))]
    return bool(inner) and any(one == inner or one.endswith(f" {inner}") for one in shown)


def _words(name: str) -> str:
    """A name with single spaces instead of what stands between its parts."""
    return " ".join(" ".join(_between.split(name)).split())
