"""Names of the product that mean something else in a test than at the start."""

from __future__ import annotations

import pytest

from handrail.rules.toolchain.comparing.stand_ins import stand_ins

PYTHON = "from shop.prices import label, total\n\n\ndef test_it():\n    assert total([1]) == 1\n"
NODE = "import { label, total } from '../src/prices.js';\n\nit('adds', () => expect(total([1])).toBe(1));\n"


def names(path: str, before: str, now: str) -> list[tuple[str, str]]:
    return [(one.name, one.words) for one in stand_ins(path, before.encode(), now.encode())]


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (PYTHON.replace("label, total", "label") + "\n\ndef total(prices):\n    return 1\n", "it is defined here"),
        (PYTHON.replace("label, total", "label") + "\ntotal = sum\n", "it is set here"),
        (PYTHON.replace("test_it()", "test_it(total)"), "it is an argument"),
        (PYTHON.replace("shop.prices", "tests.helpers"), "from tests.helpers:total"),
        (PYTHON.replace("    assert", "    with mock.patch(f'{__name__}.total'):\n        assert"), "it is patched"),
        (
            PYTHON.replace("()", "(monkeypatch)").replace("    a", "    monkeypatch.setattr(x, 'total', 1)\n    a"),
            "it is patched",
        ),
    ],
)
def test_what_stands_in_for_the_product_is_seen(now: str, words: str) -> None:
    assert ("total", words) in names("tests/test_a.py", PYTHON, now)


def test_in_javascript_too() -> None:
    local = NODE.replace("label, total", "label") + "const total = () => 1;\n"
    assert names("test/a.test.js", NODE, local) == [("total", "it is defined here")]
    elsewhere = NODE.replace("../src/prices.js", "./right.js")
    assert ("total", "from ./right.js") in names("test/a.test.js", NODE, elsewhere)


def test_what_is_as_it_was_is_not() -> None:
    more = PYTHON + "\n\ndef test_more():\n    other = total([2])\n    assert other == 2\n"
    assert names("tests/test_a.py", PYTHON, more) == []
    assert names("tests/test_a.py", PYTHON, "def (") == []
    assert names("test/a.test.js", NODE, NODE + "it('has more', () => expect(label(1)).toBe('1'));\n") == []
