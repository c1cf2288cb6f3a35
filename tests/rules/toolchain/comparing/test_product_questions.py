"""Questions of a product whether it is tested: which are found, and what the product is without them."""

from __future__ import annotations

import pytest

from handrail.rules.cards import BUILT_IN_CARDS
from handrail.rules.toolchain.comparing.old_view import OldFiles
from handrail.rules.toolchain.comparing.product_questions import answered, right_only_if_tested
from handrail.rules.toolchain.task import Problem, Result


@pytest.mark.parametrize(
    ("path", "asks", "without"),
    [
        ("a.py", "x = 1 if 'pytest' in sys.modules else 2", "x = 1 if False else 2"),
        ("a.py", "é = 'é', 'pytest' not in sys.modules", "é = 'é', True"),
        ("a.py", "if os.environ.get('PYTEST_CURRENT_TEST', ''):\n    pass", "if None:\n    pass"),
        ("a.py", "if getenv('PYTEST_VERSION') or 'PYTEST_XDIST_WORKER' in environ: pass", "if None or False: pass"),
        ("a.py", "if sys.modules.get('unittest.case'): pass", "if None: pass"),
        ("a.py", "x = any('test' in one.filename for one in stack())", "x = any(False for one in stack())"),
        ("a.py", "x = '_pytest' in str(sys.modules.keys())", "x = False"),
        ("a.py", "x = 'pytest' not in sys.argv[0]", "x = True"),
        ("a.ts", "const é = process.env.VITEST ? 1 : 2;", "const é = undefined ? 1 : 2;"),
        ("a.js", "if (process.env['JEST_WORKER_ID']) x();", "if (undefined) x();"),
        ("a.mjs", "\nif (typeof describe !== 'undefined') x();", "\nif ('undefined' !== 'undefined') x();"),
        ("a.cjs", "const mocked = globalThis.vi;", "const mocked = undefined;"),
    ],
)
def test_a_new_question_is_answered_with_no(path: str, asks: str, without: str) -> None:
    found = answered(OldFiles({path: b""}), {path: asks.encode()})
    assert found is not None
    content = found.files.contents[path]
    assert content is not None
    assert content.decode() == without


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "x = 'pytest' in names, os.environ.get('HOME'), 'json' in sys.modules"),
        ("a.py", "this is no Python: 'pytest' in sys.modules"),
        ("a.js", "if (process.env.NODE_ENV !== 'test') listen();"),
        ("tests/test_a.py", "x = 'pytest' in sys.modules"),
        ("conftest.py", "x = 'pytest' in sys.modules"),
        ("notes.txt", "'pytest' in sys.modules"),
    ],
)
def test_other_words_and_tests_ask_nothing(path: str, text: str) -> None:
    assert answered(OldFiles({path: b""}), {path: text.encode()}) is None


def test_a_question_that_was_there_at_the_start_is_left_alone() -> None:
    line = b"x = 'pytest' in sys.modules\n"
    assert answered(OldFiles({"a.py": line}), {"a.py": line}) is None
    found = answered(OldFiles({"a.py": line}), {"a.py": line + line})
    assert found is not None
    assert found.files.contents == {"a.py": line + b"x = False\n"}
    assert found.where == "a.py:2"


def test_only_tests_that_fail_without_the_answer_are_findings() -> None:
    product = answered(OldFiles({"a.py": b""}), {"a.py": b"x = 'pytest' in sys.modules"})
    assert product is not None
    problem = Problem(message="test_b fails: assert 3 == 4")
    without = Result(tests={"t.py::test_a": "passed", "t.py::test_b": "failed"}, problems=(problem,))
    card = BUILT_IN_CARDS["tests_kept"]
    now = {"t.py::test_a": "passed", "t.py::test_b": "passed"}
    [found] = right_only_if_tested(card, product, now, [without])
    assert found.where == "a.py:1"
    assert "t.py::test_b passes only because the product asks whether it is tested" in found.message
    assert found.message.endswith("assert 3 == 4")
    assert list(right_only_if_tested(card, product, {}, [without])) == []
