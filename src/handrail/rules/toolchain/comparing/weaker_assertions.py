"""Assertions of a test that demand less than before. Pure.

An assertion is about a subject: the expression whose value it judges. `== 4` demands the value, `> 3` something about
it, `is not None` or a bare `assert` only that there is one. A heuristic on purpose: what was rewritten so that the
subject can't be found again is not judged here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from itertools import islice
from typing import Final

from msgspec import Struct

from handrail.rules.toolchain.comparing.worded_tests import arguments_of, closed_by, javascript_bodies
from handrail.rules.toolchain.comparing.written_tests import ASSERTING, SOURCE_BYTES_MAX, FunctionNode

SUBJECTS_MAX: Final = 2_000


class Demand(IntEnum):
    """How much an assertion demands of its subject."""

    EXISTS = 1
    """That there is a value, or that it counts as true."""
    SOMETHING = 2
    """Something about the value."""
    VALUE = 3
    """The value itself."""


class Demands(Struct, frozen=True):
    """What a test demands, by subject."""

    by_subject: Mapping[str, Demand]
    within: frozenset[str] = frozenset()
    """What stands somewhere in an assertion without being judged itself."""
    values: int = 0
    """How many assertions demand a value."""
    text: str = ""
    """The same for two tests that assert the same."""


TOLERANCES: Final = frozenset({"abs", "rel", "delta", "abs_tol", "rel_tol", "atol", "rtol"})
WIDE: Final = 0.1
"""From which tolerance on a value is not demanded any more."""
EQUAL: Final = re.compile(
    r"^assert(?:Equals?|Is|Almost\w*|ListEqual|DictEqual|SetEqual|TupleEqual|SequenceEqual|CountEqual"
    r"|MultiLineEqual|CountEqual|ItemsEqual|_equal|_array_equal|_frame_equal|_allclose)$",
    re.IGNORECASE,
)
EXISTING: Final = re.compile(r"^assert(?:True|False|_|IsNone|IsNotNone|NotEqual|IsNot|_true|_not_none)?$")
EMPTY: Final = ("True", "False", "None", "0", "''", "[]", "{}", "()", "set()")
"""What a bare `assert` demands as well, so that nothing is lost by it."""

JAVASCRIPT: Final = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")

_py_values = re.compile(
    r"^[ \t]*assert\b[^\n]{0,500}?==|\.assert(?:Equals?|AlmostEqual|Is)\("
    r"|\.assert(?:List|Dict|Set|Tuple|Sequence|MultiLine|Count)Equal\("
    r"|\bassert_(?:equals?|almost_equal|array_equal|allclose|frame_equal)\(",
    re.MULTILINE,
)
_c_values = re.compile(
    r"^[ \t]*(?!#)[^\n/]{0,200}?\b(?:\w{0,20}(?:assert|ASSERT|EXPECT|REQUIRE|CHECK)\w{0,40}!?\s*"
    r"\([^\n]{0,500}?(?:==|\bstrn?cmp\b|\bmemcmp\b)|\w{1,40}(?:_eq|_EQ|equal|EQUAL|STREQ)\w{0,20}!?\s*\()",
    re.MULTILINE,
)
_go_test = re.compile(r"^func (Test\w*)\(.*?^\}", re.MULTILINE | re.DOTALL)
_go_values = re.compile(
    r"[!=]=|\b(?:reflect\.DeepEqual|cmp\.(?:Diff|Equal)|bytes\.Equal|slices\.Equal|maps\.Equal|errors\.(?:Is|As))\b"
    r"|\b(?:assert|require|is)\.\w*(?:Equal|Error|Len|Contains|True|False|Nil)\w*\("
    r"|\b\w{1,20}\.(?:Error|Fatal)f?\(|\b\w{1,20}\.Fail(?:Now)?\("
)
_comment = re.compile(r"//[^\n]*")
_js_expect = re.compile(r"(?<![\w$.])expect\s*\(")
_js_matcher = re.compile(r"\s*((?:\.\s*[A-Za-z_$]{1,40}\s*){1,8})")
_js_assert = re.compile(r"(?<![\w$.])assert(?:\s*\.\s*(\w{1,40}))?\s*\(")
_js_equal = re.compile(
    r"^(?:to(?:Be|Equal|StrictEqual|BeCloseTo|MatchObject|MatchInlineSnapshot|MatchSnapshot|HaveLength)"
    r"|(?:deep)?(?:strict)?Equal|deepStrictEqual|equals?|eql?|eqls|is|deepEqual|same|strictSame)$",
    re.IGNORECASE,
)
_js_existing = re.compile(
    r"^(?:toBe(?:Defined|Truthy|Falsy)|ok|exist|exists|true|truthy|isOk|isDefined|notEqual|notStrictEqual|pass|isNotNull"
    r"|a|an|isTrue)$",
    re.IGNORECASE,
)


def weaker(was: Demands, now: Demands) -> str:
    """The subject whose value was demanded, and now only that it exists; empty if there is none."""
    for subject, demand in was.by_subject.items():
        left = now.by_subject.get(subject)
        if demand is Demand.VALUE and left is Demand.EXISTS and subject not in now.within:
            return subject
    return ""


def demands_less(was: Demands, now: Demands) -> bool:
    """Whether fewer values are demanded than before: an assertion is gone, or asks for less."""
    return now.values < was.values or bool(weaker(was, now))


def demands(path: str, source: bytes) -> dict[str, Demands]:
    """What each test of a file demands, by its name as in written_tests; none if the file can't be read."""
    if len(source) > SOURCE_BYTES_MAX:
        return {}
    if path.endswith(".go"):
        return dict(_in_go(source.decode(errors="replace")))
    if not path.endswith(".py"):
        return {title: demands_in_words(body) for title, body in javascript_bodies(source.decode(errors="replace"))}
    try:
        return dict(_in_python(ast.parse(source).body, ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _in_python(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Demands]]:
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from _in_python(one.body, f"{prefix}{one.name}::")
        elif isinstance(one, FunctionNode) and one.name.startswith("test"):
            yield f"{prefix}{one.name}", _of_function(one)


def _of_function(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Demands:
    nodes = [(node, list(_assertion(node))) for node in ast.walk(function)]
    every = [one for _, found in nodes for one in found][:SUBJECTS_MAX]
    found: dict[str, Demand] = {}
    within: set[str] = set()
    measured = [[_measured(one, demand) for one in subjects] for demand, subjects in every]
    for subject, demand in (pair for pairs in measured for pair in pairs):
        text = ast.unparse(subject)
        found[text] = max(found.get(text, demand), demand)
        within |= _parts(subject) if demand is Demand.VALUE else set()
    values = sum(Demand.VALUE in [demand for _, demand in pairs] for pairs in measured)
    text = "\n".join(ast.dump(node) for node, asserted in nodes if asserted)
    return Demands(found, frozenset(within), values, text)


def _parts(subject: ast.expr) -> set[str]:
    """The expressions inside of one."""
    return {ast.unparse(part) for part in ast.walk(subject) if isinstance(part, ast.expr) and part is not subject}


def _is_wide(node: ast.AST) -> bool:
    """Whether a comparison takes almost everything for equal: `approx(1.5, abs=10)`."""
    named = {one.arg: one.value for one in node.keywords} if isinstance(node, ast.Call) else {}
    given = [value.value for name, value in named.items() if name in TOLERANCES and isinstance(value, ast.Constant)]
    return any(isinstance(one, int | float) and one >= WIDE for one in given)


def _measured(subject: ast.expr, demand: Demand) -> tuple[ast.expr, Demand]:
    """What an assertion is about: the length of something, or its type, says little about it."""
    match subject:
        case ast.Call(func=ast.Name(id="len" | "type" | "bool"), args=[inner]):
            return inner, min(demand, Demand.SOMETHING)
        case _:
            return subject, demand


def _assertion(node: ast.AST) -> Iterator[tuple[Demand, list[ast.expr]]]:
    """How much a node demands of which subjects; nothing if it asserts nothing."""
    match node:
        case ast.Assert(test=test):
            yield from _condition(test)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[_, *_]) if ASSERTING.match(name):
            yield _demand_of_call(name, node.args), _subjects(node.args)


def _demand_of_call(name: str, arguments: list[ast.expr]) -> Demand:
    if EXISTING.match(name):
        return Demand.EXISTS
    if name in {"assertEqual", "assertIs"} and any(_is_empty(one) for one in arguments[:2]):
        return Demand.EXISTS
    # A helper may compare anything: it is trusted to.
    return Demand.VALUE if EQUAL.match(name) or not name.startswith("assert") else Demand.SOMETHING


def _condition(test: ast.expr) -> Iterator[tuple[Demand, list[ast.expr]]]:
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for one in values:
                yield from _condition(one)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from ((Demand.EXISTS, subjects) for _, subjects in _condition(operand))
        case ast.Compare(left=left, ops=ops, comparators=others):
            is_wide = any(map(_is_wide, [left, *others]))
            demand = Demand.SOMETHING if is_wide else _demand_of(ops, [left, *others])
            yield demand, _subjects([left, *others])
        case ast.Call(func=ast.Name(id="isinstance" | "hasattr" | "callable" | "bool" | "len"), args=[first, *_]):
            yield Demand.EXISTS, [test, first]
        case _:
            yield Demand.EXISTS, [test]


def _demand_of(ops: list[ast.cmpop], sides: list[ast.expr]) -> Demand:
    if all(isinstance(one, ast.NotEq | ast.IsNot) for one in ops):
        return Demand.EXISTS
    if not all(isinstance(one, ast.Eq | ast.Is) for one in ops):
        return Demand.SOMETHING
    return Demand.EXISTS if any(_is_empty(one) for one in sides) else Demand.VALUE


def _is_empty(one: ast.expr) -> bool:
    return ast.unparse(one) in EMPTY


def _subjects(sides: list[ast.expr]) -> list[ast.expr]:
    """The sides of a comparison that are not plain values; in a call of `len` also what is measured."""
    return [one for one in sides if any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(one))]


# --- JavaScript -------------------------------------------------------------------------------------


def demands_in_words(body: str) -> Demands:
    """What one test in JavaScript demands, read from its words."""
    found: dict[str, Demand] = {}
    every = list(islice(_in_words(body), SUBJECTS_MAX))
    for subject, demand in every:
        found[subject] = max(found.get(subject, demand), demand)
    values = sum(demand is Demand.VALUE for _, demand in every)
    return Demands(found, frozenset(), values, " ".join(body.split()))


def _in_go(text: str) -> Iterator[tuple[str, Demands]]:
    """What each test in Go compares and reports; which value that is about is not known."""
    for found in _go_test.finditer(text):
        body = _comment.sub("", found[0])
        values = sum(1 for _ in islice(_go_values.finditer(body), SUBJECTS_MAX))
        yield found[1], Demands({}, frozenset(), values, " ".join(body.split()))


def values_in(path: str, text: str) -> int:
    """How many values a file demands as a whole, in any language."""
    if path.endswith(JAVASCRIPT):
        return demands_in_words(text).values
    found = _py_values if path.endswith(".py") else _c_values
    return sum(1 for _ in islice(found.finditer(text), SUBJECTS_MAX))


def _in_words(body: str) -> Iterator[tuple[str, Demand]]:
    for found in _js_expect.finditer(body):
        subject = closed_by(body, found.end())
        after = _js_matcher.match(body, found.end() + len(subject) + 1)
        words = [word.strip() for word in after[1].split(".") if word.strip()] if after else []
        yield " ".join(subject.split()), _demand_of_words(words)
    for found in _js_assert.finditer(body):
        arguments = closed_by(body, found.end())
        yield _first_of(arguments), _demand_of_words([found[1] or "ok"])


def _demand_of_words(words: list[str]) -> Demand:
    if not words or "not" in words:
        return Demand.EXISTS
    if any(_js_equal.match(word) for word in words):
        return Demand.VALUE
    return Demand.EXISTS if _js_existing.match(words[-1]) else Demand.SOMETHING


def _first_of(arguments: str) -> str:
    """The first of the arguments of a call."""
    return " ".join(arguments_of(arguments)[0].split())
