"""feature-implementation: tally learns to add a column up."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from outside.walks.routines import context, verification
from outside.walks.tally import FILES
from outside.walks.walk import Hands, Lie, Walk

GOAL = "Users of tally can see the sum of a column, as they see its mean"
SOURCE, TESTS = "src/tally/report.py", "tests/test_total.py"
CODE = '''

def total(text: str, name: str) -> str:
    """The sum of a column."""
    return f"{name}: total {sum(column(parse(text), name)):.2f}"
'''
TEST = """from tally.report import total


def test_the_total_is_the_sum_of_the_column():
    assert total("a\\n1\\n3", "a") == "a: total 4.00"


def test_the_total_of_no_rows_is_zero():
    assert total("a", "a") == "a: total 0.00"
"""
NAMES = [f"{TESTS}::test_the_total_is_the_sum_of_the_column", f"{TESTS}::test_the_total_of_no_rows_is_zero"]
AS_USER = 'import sys; sys.path.insert(0, "src"); from tally.report import total; print(total("a\\n1\\n3", "a"))'


# --- the work -------------------------------------------------------------------------------------------------


def criteria(_: Hands) -> Any:
    return {
        "criteria": ['total("a\\n1\\n3", "a") gives "a: total 4.00"', "a table without rows has the total 0.00"],
        "out_of_scope": ["sums over several columns"],
    }


def design(_: Hands) -> Any:
    return {
        "approach": "A function beside summary() that shares its reading of columns.",
        "rejected": "A general aggregate with a function as argument, better if there were five of them.",
        "slices": ["total() of a column, with and without rows (1, 2)"],
        "visible": True,
    }


def branch(hands: Hands) -> Any:
    hands.work.git("switch", "-q", "-c", "total")
    hands.work.pytest()
    return {"branch": "total"}


def make(hands: Hands) -> Any:
    hands.work.write(TESTS, TEST)
    assert "cannot import name 'total'" in hands.work.pytest(TESTS, code=2)
    hands.work.append(SOURCE, CODE)
    assert "6 passed" in hands.work.pytest()
    return {"tests": NAMES, "commit": hands.work.commit("Add up a column\n\nUsers did that by hand."), "noticed": []}


def review(hands: Hands) -> Any:
    assert "def total" in hands.work.git("diff", "main...total")
    return {"must_fix": [], "could": ["largest() of a table without rows raises ValueError"]}


def tell(hands: Hands) -> Any:
    shown = 'from tally.report import total\n\nprint(total("a\\n1\\n3", "a"))  # a: total 4.00'
    hands.work.append("README.md", f"\n```python\n{shown}\n```\n")
    hands.work.edit("CHANGELOG.md", "## 1.2.0", "## Next\n\n- `total` adds up a column.\n\n## 1.2.0")
    hands.work.commit("Tell users of total()")
    return {"files": ["README.md", "CHANGELOG.md"]}


def handover(_: Hands) -> Any:
    body = "Users added columns up by hand. Start at tally.report.total; revert the commits to undo it."
    return {"title": "Add up a column", "body": body, "follow_ups": ["largest() of a table without rows"]}


# --- the lies -------------------------------------------------------------------------------------------------


def an_idle_test(hands: Hands) -> Any:
    hands.work.append(SOURCE, CODE)
    test = "def test_total():\n    assert 2 + 2 == 4\n"
    hands.work.write(TESTS, test)
    return {"tests": [f"{TESTS}::test_total"], "commit": hands.work.commit("Add it")}


def code_without_commit(hands: Hands) -> Any:
    hands.work.write(TESTS, TEST)
    hands.work.append(SOURCE, CODE)
    return {"tests": NAMES, "commit": hands.work.head()}


def code_with_a_secret(hands: Hands) -> Any:
    output = make(hands)
    hands.work.write(
        "src/tally/token.py", '"""Token."""\n\nTOKEN = "ghp_' + "x7Kq2LmZ9TrVbNc4WsYdHj8Pf3Ga5Ue1Ro0i" + '"\n'
    )
    return {**output, "commit": hands.work.commit("Add the token")}


def documents_that_did_not_change(hands: Hands) -> Any:
    return {"files": ["README.md"]}


def tests_skipped_at_last(hands: Hands) -> Any:
    hands.work.edit(
        TESTS, "def test_the_total_is", 'import pytest\n\n\n@pytest.mark.skip(reason="slow")\ndef test_the_total_is'
    )
    hands.work.commit("Speed the suite up")
    return handover(hands)


LIES = (
    Lie(step="branch", name="no branch", tell=lambda _: {"branch": "total"}, noticed_by="on_branch"),
    Lie(
        step="build.make",
        name="nothing done",
        tell=lambda hands: {"tests": NAMES, "commit": hands.work.head()},
        noticed_by="tests_prove",
    ),
    Lie(step="build.make", name="an idle test", tell=an_idle_test, noticed_by="tests_prove"),
    Lie(step="build.make", name="no commit", tell=code_without_commit, noticed_by="commit_exists"),
    Lie(step="build.make", name="a secret", tell=code_with_a_secret, noticed_by="no_secrets"),
    Lie(step="tell", name="nothing written", tell=documents_that_did_not_change, noticed_by="files_changed"),
    Lie(
        step="finish.verify.prove",
        name="one observation for two statements",
        tell=lambda _: {"seen": ["all of it works fine"], "left": []},
        noticed_by="expression",
    ),
    Lie(step="handover", name="a skipped test", tell=tests_skipped_at_last, noticed_by="tests_kept"),
)
NORMAL = Walk(
    workflow="feature-implementation",
    files=FILES,
    inputs={"goal": GOAL, "places": ["src/tally/report.py"]},
    steps={
        "criteria": criteria,
        **context(
            "context",
            lookup="how summary() is built and tested",
            finding="summary() reads a column and formats one line; its tests compare the whole line.",
            files=[SOURCE, "tests/test_report.py"],
        ),
        "design": design,
        "branch": branch,
        "build.make": make,
        "polish.review": review,
        "tell": tell,
        **verification(
            "finish.verify", "the total of 1 and 3 is 4.00", lambda hands: hands.work.run("python", "-c", AS_USER)
        ),
        "handover": handover,
    },
    lies=LIES,
)
QUICK = Walk(
    workflow="feature-implementation",
    files=FILES,
    inputs={"goal": GOAL, "depth": "quick"},
    steps={"criteria": criteria, "build.make": make},
)
THOROUGH = replace(
    NORMAL,
    inputs={"goal": GOAL, "depth": "thorough"},
    steps={**NORMAL.steps, "critique.attack": lambda _: {"serious": [], "minor": ["say what an empty column is"]}},
    approved=frozenset({"keep"}),
)
