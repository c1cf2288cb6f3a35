"""Tests that fail whatever the code does are known by their source, and honest ones are never taken for them."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from handrail.rules.toolchain.comparing.fixed_failures import IN_ANY_CASE, ONLY_ITSELF, always_fails

HEAD = """
import json, os, subprocess, sys, unittest
from pathlib import Path
from unittest.mock import patch
import pytest
from calc import LIMIT, Point, add
from .helpers import check
from tools import *

ROOT = Path(__file__).parent
CASES = [1, 2]
LATER = None

def wrong():
    return [1] == [2]

def sums():
    return add(1, 1)

@pytest.fixture
def total():
    global LATER
    LATER = add(1, 1)
    return LATER

"""


def why(body: str, *, arguments: str = "", before: str = "") -> str | None:
    text = f"{HEAD}{before}\ndef test_it({arguments}):\n{indent(dedent(body).strip(), '    ')}\n"
    return always_fails("tests/test_a.py", text.encode(), "tests/test_a.py::test_it[1-2]")


@pytest.mark.parametrize(
    "body",
    [
        "x = 1\nassert x == 2",
        "assert wrong()",
        "assert json.loads('[1]') == [2]",
        "assert len([1]) == 2",
        "assert CASES == []",
        "import calc\nassert len('calc') == 5",
        "with pytest.raises(ValueError):\n    int('1')",
        "assert tmp_path is None",
        "assert all(one > 1 for one in CASES)",
    ],
)
def test_a_test_that_refers_to_nothing_but_itself_is_known(body: str) -> None:
    assert why(body, arguments="tmp_path" if "tmp_path" in body else "") == ONLY_ITSELF


@pytest.mark.parametrize(
    "body",
    [
        "assert False",
        "assert 0, 'not yet'",
        "assert 1 == 2",
        "assert []",
        "add(1, 2)\nassert False",
        "with patch('calc.add'):\n    add(1, 1)\npytest.fail('it is broken')",
        "raise AssertionError('broken')",
        "raise AssertionError",
    ],
)
def test_a_test_that_ends_in_a_failure_in_any_case_is_known(body: str) -> None:
    assert why(body) == IN_ANY_CASE


@pytest.mark.parametrize(
    "body",
    [
        "assert add(1, 1) == 2",
        "assert sums() == 3",
        "assert LIMIT == 3",
        "assert Point(1, 2).x == 2",
        "assert calc.new() == 1",
        "from calc.later import new\nassert new() == 1",
        "import calc.later\nassert calc.later.VALUE == 1",
        "assert LATER == 3",
        "assert (ROOT / 'data.json').exists()",
        "assert json.loads(open('data.json').read()) == 1",
        "assert os.path.exists('LICENSE')",
        "assert subprocess.run([sys.executable, '-m', 'calc']).returncode == 0",
        "check()\nassert 1 > 2",
        "assert something_by_star() == 1",
        "try:\n    add(1, 1)\nexcept ValueError:\n    pass\nelse:\n    assert False",
        "try:\n    add(1, 1)\nexcept ValueError:\n    return\npytest.fail('no error')",
        "if add(1, 1) == 2:\n    return\nassert False",
        "for one in sums():\n    if one:\n        break\nelse:\n    pytest.fail('none')",
        "if not os.environ.get('DB'):\n    pytest.skip()\nassert False",
        "pytest.importorskip('calc').add(1) == 2\nassert 1 > 2",
        "assert eval('add(1, 1)') == 3",
    ],
)
def test_an_honest_test_is_left_alone(body: str) -> None:
    assert why(body) == ""


@pytest.mark.parametrize(
    ("arguments", "before", "expected"),
    [
        ("total", "", ""),
        ("n", "@pytest.mark.parametrize('n', sums())", ""),
        ("n", "@pytest.mark.parametrize('n', [1, 2])", ONLY_ITSELF),
        ("n, monkeypatch", "@pytest.mark.parametrize('n', [1, 2])", ""),
        ("mocked, n=1", "@patch('calc.add')", ""),
        ("*n", "", ""),
    ],
)
def test_what_a_test_is_given_may_be_the_project(arguments: str, before: str, expected: str) -> None:
    assert why("assert 2 < 1", arguments=arguments, before=before) == expected


def test_methods_are_read_and_what_they_inherit_is_not_known() -> None:
    def of(body: str) -> str | None:
        text = f"import unittest\n\n\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n        {body}\n"
        return always_fails("test_a.py", text.encode(), "tests.test_a.TestIt.test_it")

    assert of("self.assertEqual(1, 2)") == ONLY_ITSELF
    assert of("self.fail('broken')") == IN_ANY_CASE
    assert of("self.assertEqual(self.total, 2)") == ""
    assert of("self.assertTotal(2)") == ""
    assert of("super().test_it()") == ""


def test_a_test_that_is_not_here_or_can_not_be_read_is_not_judged() -> None:
    source = b"def test_a():\n    assert False\n"
    assert always_fails("test_a.py", source, "test_a.py::test_b") is None
    assert always_fails("test_a.py", b"def test_a(:", "test_a") is None
    assert always_fails("test_a.py", source + b"# " + b"x" * 1_000_000, "test_a") is None
    twice = source + b"class TestB:\n    def test_a(self):\n        assert self.b\n"
    assert always_fails("test_a.py", twice, "test_a.py::test_a") == "", "one of the same name is honest"


JS_HEAD = "const { test } = require('node:test');\nconst assert = require('node:assert');\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("assert.strictEqual(1, 2);", ONLY_ITSELF),
        ("const sum = 1 + 1; // of add\n assert.equal(sum, 'add');", ONLY_ITSELF),
        ("throw new Error('broken');", ONLY_ITSELF),
        ("expect(true).toBe(false);", ONLY_ITSELF),
        ("assert.strictEqual(add(1, 1), 2);", ""),
        ("expect(`${add}`).toBe('x');", ""),
        ("const { add } = require('../calc.js'); assert.ok(add);", ""),
        ("assert.ok(fs.existsSync('x'));", ""),
        ("equal(1, 2);", ""),
    ],
)
def test_tests_in_javascript_are_read_by_their_words(body: str, expected: str) -> None:
    source = f"{JS_HEAD}const {{ equal }} = require('../calc.js');\ntest('adds', async () => {{ {body} }});\n"
    assert always_fails("test/a.test.js", source.encode(), "test/a.test.js::adds") == expected
    assert always_fails("test/a.test.js", source.encode(), "other") is None


def test_what_a_runner_gives_a_test_in_javascript_may_be_the_project() -> None:
    source = b"test('opens', async ({ page }) => { expect(1).toBe(2); });"
    assert always_fails("a.spec.ts", source, "pages opens") == ""
