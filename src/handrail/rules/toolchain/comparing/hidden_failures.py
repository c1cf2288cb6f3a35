"""Failures of the product that changes of its tests hide: which of these changes to take out, and what that shows.

Pure. Two things are tried in a view that is thrown away (suite.py): the product of now with what could hide a failure
as it was at the start, and with the tests of the start. A test that passes now and fails there tells of the change."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import RuleCard
from handrail.rules.function_rule import found_at
from handrail.rules.toolchain.comparing.hiding import (
    CODE,
    Suspect,
    is_setting,
    is_test_script,
    runs_otherwise,
    suspects,
)
from handrail.rules.toolchain.comparing.lost_tests import function_of
from handrail.rules.toolchain.comparing.old_view import OldFiles, is_steering, is_test_like
from handrail.rules.toolchain.comparing.stand_ins import StandIn, stand_ins, standing_in
from handrail.rules.toolchain.comparing.weaker_assertions import (
    Demands,
    demands,
    demands_less,
    weaker,
)
from handrail.rules.toolchain.task import Result

ASSERTIONS: Final = frozenset({"AssertionError", "Failed", "failureException", "ComparisonFailure", "Error", ""})
"""The kinds of error of a failed assertion; runners that do not say which it was count, too."""
GO: Final = ".go"
SHOWN_MAX: Final = 3
FIX_PRODUCT: Final = "fix the product; what tests replace or leave out must not be what they are about"
RESTORE_IT: Final = (
    "let it demand what it demanded, and fix the product; if it had to change, ask for a step that allows it"
)

_dotted = re.compile(r"^[\w.]+$")


class ChangedTest(Struct, frozen=True):
    """A test that was there at the start and asserts something else now."""

    path: str
    name: str
    was: Demands
    now: Demands

    def is_meant(self, test: str) -> bool:
        """Whether a runner's name for a test stands for this one."""
        function = function_of(test)
        if (
            not self.path.endswith(GO)  # named by the package
            and "::" in function
            and not function.startswith(("::", f"{self.path}::"))
            and "/" in function.partition("::")[0]
        ):
            return False
        if _dotted.match(function):
            return "::".join(function.split(".")[-2:]) == self.name or function.rpartition(".")[2] == self.name
        return function.endswith((f"::{self.name}", f" {self.name}")) or function == self.name


class TestSide(Struct, frozen=True):
    """What this change did to the tests of a project and their settings."""

    suspects: tuple[Suspect, ...] = ()
    """Outside of tests."""
    changed: tuple[ChangedTest, ...] = ()
    data: tuple[str, ...] = ()
    """The files that tests compare with, as far as they were there and are others now: snapshots, wanted results."""
    rebound: tuple[StandIn, ...] = ()
    """Names of the product that mean something else now."""

    @property
    def hiding(self) -> frozenset[str]:
        """The files with something in them that could hide a failure."""
        return frozenset(one.path for one in self.suspects)


def test_side(old: OldFiles, now: Mapping[str, bytes], own: frozenset[str]) -> TestSide:
    """What changed in tests and settings; `now` has the files of now by path, without those that are gone."""
    paths = [path for path in old.contents if is_of_tests(path, old, now)]
    outside = [one for path in paths for one in _outside(path, old, now, own)]
    changed = [one for path in paths if path.endswith((*CODE, GO)) for one in _changed(path, old, now)]
    data = [path for path in paths if _is_data(path, old)]
    rebound = [one for path in paths for one in stand_ins(path, old.contents[path], now.get(path, b""))]
    return TestSide(tuple(outside), tuple(changed), tuple(data), tuple(rebound))


def _outside(path: str, old: OldFiles, now: Mapping[str, bytes], own: frozenset[str]) -> Iterator[Suspect]:
    yield from (one for one in suspects(path, old.contents[path], now.get(path, b""), own) if not one.inside)


def _is_data(path: str, old: OldFiles) -> bool:
    is_other = path.endswith((*CODE, GO)) or is_setting(path) or is_test_script(path) or is_steering(path)
    return old.contents[path] is not None and not is_other


def own_modules(files: Sequence[str]) -> frozenset[str]:
    """The modules of a product by their top names: packages that are in no other, and files where packages are."""
    product = [name for name in files if name.endswith(".py") and not is_test_like(name)]
    packages = {name.removesuffix("/__init__.py") for name in product if name.endswith("/__init__.py")}
    tops = {one for one in packages if one.rpartition("/")[0] not in packages}
    places = {"", "src", "lib", *(one.rpartition("/")[0] for one in tops)}
    single = {name.removesuffix(".py") for name in product if name.rpartition("/")[0] in places}
    return frozenset(one.rpartition("/")[2] for one in {*tops, *single}) - {"setup", "noxfile", "tasks", "conftest"}


def is_of_tests(path: str, old: OldFiles, now: Mapping[str, bytes]) -> bool:
    """Whether a file belongs to the tests, or is a setting whose part about tests has changed."""
    if is_setting(path):
        before, after = (
            (old.contents[path] or b"").decode(errors="replace"),
            now.get(path, b"").decode(errors="replace"),
        )
        return runs_otherwise(path, before, after)
    return is_test_like(path) or is_steering(path) or is_test_script(path)


def _changed(path: str, old: OldFiles, now: Mapping[str, bytes]) -> Iterator[ChangedTest]:
    before, after = demands(path, old.contents[path] or b""), demands(path, now.get(path, b""))
    for name, was in before.items():
        if name in after and after[name].text != was.text:
            yield ChangedTest(path, name, was, after[name])


def weakened(card: RuleCard, side: TestSide) -> Iterator[Finding]:
    """The tests of which one sees without running them that they demand less than before."""
    for one in side.changed:
        if subject := weaker(one.was, one.now):
            message = f"{one.name} demanded the value of {subject[:120]}, and only that it exists now"
            yield found_at(card.name, f"{one.path}::{one.name}", message, RESTORE_IT)


def hidden(
    card: RuleCard, side: TestSide, now: Mapping[str, str], without: Sequence[Result], known: Collection[str]
) -> Iterator[Finding]:
    """The tests of the start that pass only with what was added around them: they fail when it is taken out."""
    cause = side.suspects[0]
    failing = [(test, said) for test, said, _ in flipped(now, without) if not known or test in known]
    # Those that were changed in the same file have their older state in the view: that is judged elsewhere.
    others = [
        (test, said)
        for test, said in failing
        if not any(one.is_meant(test) for one in side.changed if one.path in side.hiding)
    ]
    for test, said in others[:SHOWN_MAX]:
        words = f"{test} passes only because of {cause.where} ({cause.words}): as it was at the start, {said}"
        yield found_at(card.name, cause.where, words, FIX_PRODUCT)


def less_demanding(
    card: RuleCard, side: TestSide, now: Mapping[str, str], before: Sequence[Result], *, is_strict: bool
) -> tuple[list[Finding], list[Finding]]:
    """What refuses, and what only should be seen: changed tests that fail on this product as they were."""
    failing = list(flipped(now, before))
    pairs = [(one, flip) for flip in failing for one in side.changed if one.is_meant(flip[0])]
    judged = [_judged(card, one, flip, is_strict=is_strict) for one, flip in pairs]
    judged += [(is_strict, found) for found in _by_data(card, side, failing)]
    judged += [(True, found) for found in standing_in(card, side.rebound, failing)]
    against, seen = ([found for is_against, found in judged if is_against is wanted] for wanted in (True, False))
    return against, seen


def _judged(card: RuleCard, one: ChangedTest, flip: tuple[str, str, bool], *, is_strict: bool) -> tuple[bool, Finding]:
    """Whether a changed test is refused, and what there is to say about it.

    One that does not get to its assertion as it was calls what has another shape now, which is no expectation."""
    test, said, is_assertion = flip
    is_less = is_assertion and demands_less(one.was, one.now)
    words = "demands less than at the start" if is_less else "asserts something else than at the start"
    message = f"{test} {words}; as it was, it fails: {said}"
    is_against = is_assertion and (is_less or is_strict)
    return is_against, found_at(card.name, f"{one.path}::{one.name}", message, RESTORE_IT)


def _by_data(card: RuleCard, side: TestSide, failing: Sequence[tuple[str, str, bool]]) -> Iterator[Finding]:
    """What there is to say of tests that are as they were, but compare with something else."""
    same = [flip for flip in failing if not any(one.is_meant(flip[0]) for one in side.changed)]
    for test, said, _ in same[:SHOWN_MAX] if side.data else ():
        message = f"{test} compares with something else than at the start; with what was there, it fails: {said}"
        yield found_at(card.name, side.data[0], message, RESTORE_IT)


def flipped(now: Mapping[str, str], other: Sequence[Result]) -> Iterator[tuple[str, str, bool]]:
    """The tests that pass now and fail in another view, what they say there, and whether that is an assertion."""
    for result in other:
        for test, how in result.tests.items():
            if how == "failed" and now.get(test) == "passed":
                yield test, _said(test, result), result.raised.get(test, "") in ASSERTIONS


def _said(test: str, result: Result) -> str:
    """What a test says where it fails. Some runners leave the file out there."""
    pairs = (one.message.partition(" fails: ")[::2] for one in result.problems)
    return next(
        (said for name, said in pairs if name and said and (test == name or test.endswith(f"::{name}"))), "it fails"
    )
