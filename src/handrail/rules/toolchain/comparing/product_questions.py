"""Code of the product that asks whether tests run it, so that it can do what they expect for them alone. Pure.

Such a question is no fault by itself: it may switch off the network. It becomes one if tests fail once it is answered
with no, in a view that is thrown away (suite.py). Only questions that this change added count."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final

from msgspec import Struct

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import RuleCard
from handrail.rules.function_rule import found_at
from handrail.rules.toolchain.comparing.hidden_failures import SHOWN_MAX, flipped
from handrail.rules.toolchain.comparing.hiding import CODE
from handrail.rules.toolchain.comparing.old_view import OldFiles, is_steering, is_test_like
from handrail.rules.toolchain.comparing.written_tests import SOURCE_BYTES_MAX
from handrail.rules.toolchain.task import Result

RUNNERS: Final = frozenset({"pytest", "_pytest", "unittest", "xdist", "nose", "nose2"})
"""Modules that are there only if tests run."""
VARIABLES: Final = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER"})
SAME: Final = "let the product do the same whether or not it is tested"

_callers = re.compile(r"\bmodules\b|\bargv\b|\bfilename\b|co_filename|\bstack\b")
_js_question = re.compile(
    r"process\.env(?:\.|\[['\"])(?:JEST_WORKER_ID|VITEST(?:_\w{1,40})?|NODE_TEST_CONTEXT|MOCHA_\w{1,40})(?:['\"]\])?"
    r"|typeof\s+(?:jest|vi|describe|it|test|expect|beforeEach|afterEach)\b"
    r"|\b(?:globalThis|global)\.(?:jest|vi|describe|it|test|expect|beforeEach|__vitest_\w{1,40}|__coverage__)\b"
)


class Asking(Struct, frozen=True):
    """A place that asks whether tests run the code."""

    line: int
    words: str
    start: int
    """Where it is in the file, in bytes."""
    end: int
    answer: str
    """What it says where no test runs."""


class Answered(Struct, frozen=True):
    """The product with its new questions answered with no."""

    files: OldFiles
    where: str
    """The first of them."""
    words: str


def answered(old: OldFiles, now: Mapping[str, bytes]) -> Answered | None:
    """The changed files of the product without their new questions; None if there are none."""
    contents: dict[str, bytes | None] = {}
    first = ("", "")
    for path, text in now.items():
        new = list(_new(path, old.contents.get(path) or b"", text)) if _is_product(path) else []
        if new:
            contents[path] = _without(text, new)
            first = first if first[0] else (f"{path}:{new[0].line}", new[0].words)
    return Answered(OldFiles(contents), *first) if contents else None


def right_only_if_tested(
    card: RuleCard, product: Answered, now: Mapping[str, str], without: list[Result]
) -> Iterator[Finding]:
    """The tests that pass only because the product knows that it is tested."""
    for test, said, _ in list(flipped(now, without))[:SHOWN_MAX]:
        words = f"{test} passes only because the product asks whether it is tested ({product.words}): if not, {said}"
        yield found_at(card.name, product.where, words, SAME)


def _is_product(path: str) -> bool:
    return path.endswith(CODE) and not is_test_like(path) and not is_steering(path)


def _new(path: str, before: bytes, now: bytes) -> Iterator[Asking]:
    if len(now) > SOURCE_BYTES_MAX:
        return
    read = _in_python if path.endswith(".py") else _in_javascript
    old = Counter(one.words for one in read(before))
    for one in read(now):
        old[one.words] -= 1
        if old[one.words] < 0:
            yield one


def _without(text: bytes, questions: list[Asking]) -> bytes:
    # From the last to the first, so that the places of the others stay right.
    for one in sorted(questions, key=lambda question: question.start, reverse=True):
        text = text[: one.start] + one.answer.encode() + text[one.end :]
    return text


def _in_javascript(text: bytes) -> Iterator[Asking]:
    # One character a byte, so that places in the text are places in the file.
    source = text.decode("latin-1")
    for found in _js_question.finditer(source):
        answer = "'undefined'" if found[0].startswith("typeof") else "undefined"
        line = source.count("\n", 0, found.start()) + 1
        yield Asking(line, found[0], found.start(), found.end(), answer)


def _in_python(text: bytes) -> Iterator[Asking]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    starts = list(accumulate((len(line) + 1 for line in text.split(b"\n")), initial=0))
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and (answer := _answer(node)):
            last, column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
            start, end = starts[node.lineno - 1] + node.col_offset, starts[last - 1] + column
            yield Asking(node.lineno, ast.unparse(node)[:120], start, end, answer)


def _answer(node: ast.expr) -> str:
    """What an expression says where no test runs; empty if it does not ask for that."""
    match node:
        case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In() | ast.NotIn() as op], comparators=[place]):
            return str(isinstance(op, ast.NotIn)) if _asks(name, place) or _asks_who(name, place) else ""
        case ast.Call(func=ast.Attribute(value=place, attr="get"), args=[ast.Constant(value=str(name)), *_]):
            return "None" if _asks(name, place) else ""
        case ast.Call(func=ast.Attribute(attr="getenv") | ast.Name(id="getenv"), args=[ast.Constant(value=name), *_]):
            return "None" if name in VARIABLES else ""
        case _:
            return ""


def _asks_who(name: str, place: ast.expr) -> bool:
    """Whether a name in what called the code, or in how the process was started, tells of tests."""
    return "test" in name.lower() and bool(_callers.search(ast.unparse(place)))


def _asks(name: str, place: ast.expr) -> bool:
    """Whether a name in what is loaded, or in the environment, tells of tests."""
    last = place.id if isinstance(place, ast.Name) else getattr(place, "attr", "")
    return (last == "modules" and name.partition(".")[0] in RUNNERS) or (last == "environ" and name in VARIABLES)
