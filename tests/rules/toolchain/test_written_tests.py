"""What tests check is read from their source: those that were emptied are told from those that were changed."""

from __future__ import annotations

import pytest

from handrail.rules.toolchain.comparing.written_tests import Checks, read_tests

PYTHON = (
    "from helpers import compare\n\n\ndef check(a):\n    assert a\n\n\n"
    "class TestA:\n    def test_b(self):\n        {}\n"
)
JAVASCRIPT = "test('adds', () => {{\n  {}\n}});\n"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("assert add(1, 2) == 3", Checks.ASSERTS),
        ("self.assertEqual(add(1, 2), 3)", Checks.ASSERTS),
        ("with pytest.raises(ValueError): add(None)", Checks.ASSERTS),
        ("check(add(1, 2))", Checks.ASSERTS),
        ("compare(add(1, 2), 3)", Checks.ASSERTS),
        ("for one in (1, 2): assert add(one, 0) == one", Checks.ASSERTS),
        ("add(1, 2)", Checks.RUNS),
        ("pass", Checks.NOTHING),
        ("print(3)", Checks.NOTHING),
        ("assert True", Checks.NOTHING),
        ("assert 1 == 1", Checks.NOTHING),
        ("x = 1; assert x == x", Checks.NOTHING),
        ("self.assertTrue(True)", Checks.NOTHING),
        ("return\n        assert add(1, 2) == 3", Checks.NOTHING),
        ("if False:\n            assert add(1, 2) == 3", Checks.NOTHING),
        ("try:\n            assert add(1, 2) == 3\n        except AssertionError:\n            pass", Checks.RUNS),
        ("try:\n            assert add(1, 2) == 3\n        except KeyError:\n            pass", Checks.ASSERTS),
    ],
)
def test_a_python_test_checks_what_it_reaches(body: str, wanted: Checks) -> None:
    [found] = read_tests("tests/test_a.py", PYTHON.format(body).encode())
    assert (found.name, found.bare, found.line, found.checks) == ("TestA::test_b", "test_b", 9, wanted)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("expect(add(1, 2)).toBe(3);", Checks.ASSERTS),
        ("assert.strictEqual(add(1, 2), 3);", Checks.ASSERTS),
        ("add('it(')", Checks.RUNS),
        ("", Checks.NOTHING),
        ("// expect(add(1, 2)).toBe(3);", Checks.NOTHING),
        ("expect(true).toBe(true);", Checks.NOTHING),
        ("assert.ok(true);", Checks.NOTHING),
        ("console.log('ok');", Checks.NOTHING),
        ("return; expect(add(1, 2)).toBe(3);", Checks.NOTHING),
        ("try { expect(add(1, 2)).toBe(3); } catch (error) {}", Checks.RUNS),
    ],
)
def test_a_javascript_test_checks_what_its_words_say(body: str, wanted: Checks) -> None:
    [found] = read_tests("test/a.test.js", JAVASCRIPT.format(body).encode())
    assert (found.name, found.line, found.checks) == ("adds", 1, wanted)


@pytest.mark.parametrize("source", [b"def test_a(:\n", b"\0", b"(" * 10_000, b"x" * 2_000_000])
def test_a_file_that_can_not_be_read_has_no_tests(source: bytes) -> None:
    assert read_tests("test_a.py", source) == []
    assert read_tests("a.test.js", source) == []
