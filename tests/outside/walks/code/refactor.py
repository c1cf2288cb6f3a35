"""refactoring: the reports of tally all read their column by themselves."""

from __future__ import annotations

from typing import Any

from outside.walks.tally import FILES
from outside.walks.walk import Hands, Lie, Walk

TARGET, PINNED = "src/tally/report.py", "tests/test_largest.py"
PAIN = "Every new report repeats how a column is read, last time for largest()"
TEST = """from tally.report import largest


def test_the_largest_value_is_reported():
    assert largest("a\\n1\\n3.5", "a") == "a: largest 3.50"
"""
SUMMARY = "tests/test_report.py::test_a_summary_counts_and_averages"
LARGEST = f"{PINNED}::test_the_largest_value_is_reported"
BREAKS = [
    {"test": SUMMARY, "file": TARGET, "old": "{len(values)} values", "new": "{len(values) + 1} values"},
    {"test": LARGEST, "file": TARGET, "old": "max(values)", "new": "min(values)"},
]
READING = '''def _values(text: str, name: str) -> list[float]:
    return column(parse(text), name)


def summary(text: str, name: str) -> str:
    """One line about a column."""
    values = _values(text, name)
'''
OLD = '''def summary(text: str, name: str) -> str:
    """One line about a column."""
    values = column(parse(text), name)
'''
MOVES = ["Extract the reading of a column from summary()", "Let largest() use the extracted function"]


# --- the work -------------------------------------------------------------------------------------------------


def aim(hands: Hands) -> Any:
    now = hands.work.read(TARGET).count("column(parse(text), name)")
    return {"next_change": "read columns with a thousands separator", "measure": "edits", "now": now, "stop_at": 1}


def branch(hands: Hands) -> None:
    hands.work.git("switch", "-q", "-c", "one-reading")


def net(hands: Hands) -> Any:
    hands.work.write(PINNED, TEST)
    hands.work.pytest()
    hands.work.commit("Pin what largest() says")
    return {"breaks": BREAKS, "held": [PINNED, "tests/test_report.py"]}


def pin(hands: Hands) -> Any:
    branch(hands)
    return net(hands)


def make(hands: Hands) -> Any:
    if MOVES[0] in hands.prompt:
        hands.work.edit(TARGET, OLD, READING)
    else:
        hands.work.edit(TARGET, "    values = column(parse(text), name)\n", "    values = _values(text, name)\n")
    assert "5 passed" in hands.work.pytest()
    return {"commit": hands.work.commit("One more move")}


def make_at_once(hands: Hands) -> Any:
    hands.work.edit(TARGET, OLD, READING)
    hands.work.edit(TARGET, "    values = column(parse(text), name)\n", "    values = _values(text, name)\n")
    return {"commit": hands.work.commit("Read a column in one place")}


def compare(hands: Hands) -> Any:
    after = hands.work.read(TARGET).count("column(parse(text), name)")
    assert after == 1
    return {"after": after, "better": True, "tried": "the separator is one edit now"}


def handover(hands: Hands) -> Any:
    assert hands.prompt.count("made, ") == len(MOVES)
    return {"description": "A column is read in one place; the number of edits went from 2 to 1."}


# --- the lies -------------------------------------------------------------------------------------------------


def left_broken(hands: Hands) -> Any:
    branch(hands)
    output = net(hands)
    hands.work.edit(TARGET, "return 0.0", "return 1.0 - 1.0")
    hands.work.commit("Try something")
    return output


def nobody_notices(hands: Hands) -> Any:
    branch(hands)
    return {"breaks": [{**BREAKS[1], "test": SUMMARY}], "held": ["tests/test_report.py"]}


def behaviour_and_its_test(hands: Hands) -> Any:
    hands.work.edit(TARGET, "largest {max(values):.2f}", "largest {max(values)}")
    hands.work.edit(PINNED, "3.50", "3.5")
    return {"commit": hands.work.commit("Extract it")}


def behaviour(hands: Hands) -> Any:
    hands.work.edit(TARGET, "largest {max(values):.2f}", "largest {max(values)}")
    return {"commit": hands.work.commit("Extract it")}


def dropped_but_there(hands: Hands) -> Any:
    hands.work.edit(TARGET, OLD, READING)
    return {"dropped": "it was not needed after all"}


def a_test_is_gone(hands: Hands) -> Any:
    text = hands.work.read("tests/test_table.py")
    hands.work.write("tests/test_table.py", text[: text.index("def test_a_column")].rstrip() + "\n")
    hands.work.commit("Tidy up")
    return {"after": 1, "better": True, "tried": "the separator is one edit now"}


LIES = (
    Lie(step="pin", name="on main", tell=net, noticed_by="on_branch"),
    Lie(step="pin", name="a break is left", tell=left_broken, noticed_by="files_unchanged"),
    Lie(step="pin", name="nobody notices", tell=nobody_notices, noticed_by="tests_notice"),
    Lie(step="apply.make", name="nothing done", tell=lambda h: {"commit": h.work.head()}, noticed_by="commit_exists"),
    Lie(step="apply.make", name="behaviour and test", tell=behaviour_and_its_test, noticed_by="files_unchanged"),
    Lie(step="apply.make", name="behaviour", tell=behaviour, noticed_by="tests_pass"),
    Lie(step="apply.make", name="dropped, but there", tell=dropped_but_there, noticed_by="git_clean"),
    Lie(step="compare", name="a test is gone", tell=a_test_is_gone, noticed_by="tests_kept"),
)
NORMAL = Walk(
    workflow="refactoring",
    files=FILES,
    inputs={"target": TARGET, "pain": PAIN},
    steps={
        "aim": aim,
        "pin": pin,
        "moves": lambda _: {"moves": MOVES},
        "apply.make": make,
        "compare": compare,
        "handover": handover,
    },
    lies=LIES,
)
QUICK = Walk(
    workflow="refactoring",
    files=FILES,
    inputs={"target": TARGET, "pain": PAIN, "depth": "quick"},
    steps={"pin": net, "apply.make": make_at_once},
)
