"""Which changes of an assertion demand less than before, and which only say it in other words."""

from __future__ import annotations

import pytest

from handrail.rules.toolchain.comparing.weaker_assertions import demands, demands_less, weaker

PYTHON = "def test_a(self):\n    {}\n"
JAVASCRIPT = "test('a', () => {{ {}; }});\n"


def both(path: str, form: str, was: str, now: str) -> tuple[str, bool]:
    name = "test_a" if path.endswith(".py") else "a"
    old, new = (demands(path, form.format(one).encode())[name] for one in (was, now))
    return weaker(old, new), demands_less(old, new)


def test_a_wide_tolerance_is_less_than_a_value() -> None:
    def demanded(words: str) -> int:
        return demands("test_a.py", f"def test_a():\n    assert total() == {words}\n".encode())["test_a"].values

    assert demanded("approx(1.5, abs=10)") == demanded("pytest.approx(1.5, rel=0.5)") == 0
    assert demanded("approx(1.5)") == demanded("approx(1.5, abs=1e-6)") == 1


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("assert f(1) == 1", "assert f(1) is not None"),
        ("assert f(1) == 1", "assert f(1)"),
        ("assert f(1) == 1", "assert isinstance(f(1), int)"),
        ("assert 1 == f(1)", "assert f(1) != 2"),
        ("self.assertEqual(f(1), 1)", "self.assertIsNotNone(f(1))"),
        ("self.assertEqual(f(1), 1)", "self.assertTrue(f(1))"),
    ],
)
def test_only_that_there_is_a_value_is_weaker(was: str, now: str) -> None:
    subject, is_less = both("test_a.py", PYTHON, was, now)
    assert (subject, is_less) == ("f(1)", True)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("assert f(1) == 1", "assert f(1) <= 1"),
        ("assert f(1) == [1]", "assert len(f(1)) == 1"),
        ("assert f(1) == 1; assert g() == 2", "assert f(1) == 1"),
    ],
)
def test_less_is_demanded_if_fewer_values_are(was: str, now: str) -> None:
    assert both("test_a.py", PYTHON, was, now)[1]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("assert f(1) == 1", "assert f(1) == 2"),
        ("assert f(1) == 1", "assert 1 == f(1)"),
        ("self.assertEqual(f(1), 1)", "assert f(1) == 1"),
        ("self.assertIsNone(f(1))", "assert f(1) is None"),
        ("self.assertEqual(f(1), None)", "assert f(1) is None"),
        ("assert f(1) == True", "assert f(1)"),
        ("assert f(1) == []", "assert not f(1)"),
        ("self.assertTrue(f(1))", "assert f(1)"),
        ("self.assertFalse(f(1))", "assert not f(1)"),
        ("assert f(1) == 1", "result = f(1)\n    assert result == 1"),
        ("assert f(1) == 1", "assert f(1) is not None\n    assert f(1) == 1"),
        ("assert f(1) == 1", "check(f(1), 1)"),
    ],
)
def test_the_same_in_other_words_is_not_weaker(was: str, now: str) -> None:
    assert both("test_a.py", PYTHON, was, now)[0] == ""


@pytest.mark.parametrize(
    ("was", "now", "is_weaker"),
    [
        ("expect(f(1)).toBe(1)", "expect(f(1)).toBeDefined()", True),
        ("expect(f(1)).toEqual([1])", "expect(f(1)).not.toBeNull()", True),
        ("assert.strictEqual(f(1), 1)", "assert.ok(f(1))", True),
        ("assert.equal(f(1), 1)", "assert(f(1))", True),
        ("expect(f(1)).to.equal(1)", "expect(f(1)).to.exist", True),
        ("expect(f(1)).toBe(1)", "expect(f(1)).toEqual(1)", False),
        ("assert.equal(f(1), 1)", "assert.strictEqual(f(1), 1)", False),
        ("expect(f(1)).to.be.true", "expect(f(1)).toBe(true)", False),
    ],
)
def test_assertions_in_javascript_by_their_words(was: str, now: str, is_weaker: bool) -> None:
    assert both("a.test.js", JAVASCRIPT, was, now)[0] == ("f(1)" if is_weaker else "")
