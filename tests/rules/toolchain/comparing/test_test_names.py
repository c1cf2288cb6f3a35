"""A test is found by the name that its runner prints, and by no other."""

from __future__ import annotations

import pytest

from handrail.rules.toolchain.comparing.test_names import file_of, is_named, nearest

NESTED = "test/slug.test.js::slug every space becomes a dash"
ALONE = "test/slug.test.js::every space becomes a dash"
IN_CLASS = "tests/test_a.py::TestSlug::test_spaces[a-b]"


@pytest.mark.parametrize(
    ("test", "name"),
    [
        (ALONE, "test/slug.test.js > every space becomes a dash"),
        (ALONE, "every space becomes a dash"),
        (NESTED, "test/slug.test.js > slug > every space becomes a dash"),
        (NESTED, "slug.test.js \u203a slug \u203a every space becomes a dash"),
        (NESTED, "slug > every space becomes a dash"),
        (NESTED, "test/slug.test.js::slug > every space becomes a dash"),
        (NESTED, "test/slug.test.js::slug::every space becomes a dash"),
        (NESTED, "test/slug.test.js::every space becomes a dash"),
        (IN_CLASS, "tests/test_a.py::TestSlug::test_spaces"),
        (IN_CLASS, "tests/test_a.py::test_spaces"),
        (IN_CLASS, "test_spaces"),
        ("TestSlug/spaces", "TestSlug/spaces"),
        ("slug.test.js::a > b is true", "slug.test.js > a > b is true"),
    ],
)
def test_what_a_runner_prints_names_the_test(test: str, name: str) -> None:
    assert is_named(test, name)


@pytest.mark.parametrize(
    ("test", "name"),
    [
        (NESTED, "test/other.test.js > slug > every space becomes a dash"),
        (NESTED, "other.test.js::every space becomes a dash"),
        (NESTED, "test/slug.test.js > other > every space becomes a dash"),
        (NESTED, "test/slug.test.js > becomes"),
        (NESTED, "test/slug.test.js"),
        (NESTED, "test/slug.test.js::"),
        (NESTED, " > "),
        (IN_CLASS, "tests/test_a.py::TestOther::test_spaces"),
        (IN_CLASS, "spaces"),
    ],
)
def test_other_names_do_not(test: str, name: str) -> None:
    assert not is_named(test, name)


def test_the_file_of_a_name_is_what_it_starts_with() -> None:
    names = (ALONE, "test/a.test.ts > x", "a.test.js \u203a x", "outer > inner", "just a name", "tests::works")
    assert [file_of(name) for name in names] == ["test/slug.test.js", "test/a.test.ts", "a.test.js", "", "", "tests"]


def test_the_nearest_names_are_as_the_runner_reports_them() -> None:
    assert nearest("slug > every space becomes dashes", [NESTED, IN_CLASS]) == [NESTED]
    assert nearest("x", [NESTED, IN_CLASS]) == []
