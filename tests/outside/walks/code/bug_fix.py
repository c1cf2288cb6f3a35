"""bug-fix-test-first: a blank line that is counted as a row (normal), an empty text that crashes (quick)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from outside.walks.routines import verification
from outside.walks.tally import FILES
from outside.walks.walk import Hands, Lie, Walk

TESTS = "tests/test_table.py"
SOURCE = "src/tally/table.py"
BLANK = '\n\ndef test_a_blank_line_is_no_row():\n    assert parse("a\\n1\\n\\n") == [{"a": "1"}]\n'
BLANK_NAME = f"{TESTS}::test_a_blank_line_is_no_row"
EMPTY = '\n\ndef test_an_empty_text_is_an_empty_table():\n    assert parse("") == []\n'
EMPTY_NAME = f"{TESTS}::test_an_empty_text_is_an_empty_table"


# --- the work -------------------------------------------------------------------------------------------------


def reproduce(hands: Hands) -> Any:
    hands.work.append(TESTS, BLANK)
    assert "1 failed" in hands.work.pytest(BLANK_NAME, code=1)
    return {"tests": [BLANK_NAME]}


def cause(hands: Hands) -> Any:
    line = hands.work.read(SOURCE).splitlines().index("    lines = text.splitlines()") + 1
    return {"file": SOURCE, "line": line, "why": "a line without any text is taken for a row with one empty value"}


def fixed(hands: Hands) -> None:
    hands.work.edit(SOURCE, "lines = text.splitlines()", "lines = [line for line in text.splitlines() if line]")


def fix(hands: Hands) -> Any:
    fixed(hands)
    assert "5 passed" in hands.work.pytest()
    return {"commit": hands.work.commit("Count no blank line as a row\n\nSummaries of such tables were wrong.")}


def siblings(hands: Hands) -> Any:
    return {"found": [], "later": ["a row that is shorter than the header loses its last columns without a word"]}


def seen(hands: Hands) -> str:
    command = 'import sys; sys.path.insert(0, "src"); from tally.report import summary; '
    saw = hands.work.run("python", "-c", command + 'print(summary("a\\n1\\n\\n3\\n", "a"))').strip()
    assert saw == "a: 2 values, mean 2.00"
    return saw


def observe(hands: Hands) -> Any:
    return {"seen": [{"did": "summary of a table with a blank line", "saw": seen(hands)}], "gaps": []}


def handover(hands: Hands) -> Any:
    line = "- A blank line in a table is no longer counted as a row."
    hands.work.edit("CHANGELOG.md", "## 1.2.0", f"## Next\n\n{line}\n\n## 1.2.0")
    hands.work.commit("Tell users of the fixed count")
    return {"message": "Blank lines are left out now; the counts were wrong since 1.0.", "follow_ups": []}


def reproduce_crash(hands: Hands) -> Any:
    hands.work.append(TESTS, EMPTY)
    assert "IndexError" in hands.work.pytest(EMPTY_NAME, code=1)
    return {"tests": [EMPTY_NAME], "raises": ["IndexError"]}


def fix_crash(hands: Hands) -> Any:
    hands.work.edit(SOURCE, "    header = lines[0]", "    if not lines:\n        return []\n    header = lines[0]")
    assert "5 passed" in hands.work.pytest()
    return {"commit": hands.work.commit("Read an empty text as an empty table")}


# --- the lies -------------------------------------------------------------------------------------------------


def a_test_that_passes(hands: Hands) -> Any:
    hands.work.append(TESTS, BLANK.replace('[{"a": "1"}]', '[{"a": "1"}, {"a": ""}]'))
    return {"tests": [BLANK_NAME]}


def a_test_that_can_not_run(hands: Hands) -> Any:
    hands.work.append(TESTS, BLANK.replace("    assert", "    import nothing\n\n    assert"))
    return {"tests": [BLANK_NAME], "raises": ["ModuleNotFoundError"]}


def a_test_of_nothing(hands: Hands) -> Any:
    hands.work.append(TESTS, BLANK.replace('parse("a\\n1\\n\\n")', "[]"))
    return {"tests": [BLANK_NAME]}


def a_weakened_test(hands: Hands) -> Any:
    hands.work.edit(TESTS, 'assert parse("a\\n1\\n\\n") == [{"a": "1"}]', 'assert parse("a\\n1\\n\\n")')
    return {"commit": hands.work.commit("Fix it")}


def a_deleted_test(hands: Hands) -> Any:
    fixed(hands)
    hands.work.delete("tests/test_report.py")
    return {"commit": hands.work.commit("Fix it")}


def not_committed(hands: Hands) -> Any:
    fixed(hands)
    return {"commit": hands.work.head()}


def a_skipped_test(hands: Hands) -> Any:
    hands.work.edit(TESTS, "def test_a_column", "import pytest\n\n\n@pytest.mark.skip\ndef test_a_column")
    hands.work.commit("Tidy up")
    return {"seen": [{"did": "looked at it", "saw": "fine"}], "gaps": []}


LIES = (
    Lie(
        step="reproduce", name="no test", tell=lambda _: {"tests": [f"{TESTS}::test_it_works"]}, noticed_by="tests_fail"
    ),
    Lie(step="reproduce", name="a green test", tell=a_test_that_passes, noticed_by="tests_fail"),
    Lie(step="reproduce", name="a test of nothing", tell=a_test_of_nothing, noticed_by="tests_fail"),
    Lie(step="reproduce", name="a broken test", tell=a_test_that_can_not_run, noticed_by="tests_fail"),
    Lie(
        step="cause",
        name="a file that is not there",
        tell=lambda _: {"file": "src/tally/reader.py", "line": 3, "why": "it reads one line too many"},
        noticed_by="file_exists",
    ),
    Lie(step="fix", name="nothing done", tell=lambda hands: {"commit": hands.work.head()}, noticed_by="tests_prove"),
    Lie(step="fix", name="a weakened test", tell=a_weakened_test, noticed_by="tests_prove"),
    Lie(step="fix", name="a deleted test", tell=a_deleted_test, noticed_by="tests_kept"),
    Lie(step="fix", name="no commit", tell=not_committed, noticed_by="commit_exists"),
    Lie(
        step="siblings",
        name="an invented place",
        tell=lambda _: {"found": [{"file": "src/tally/writer.py", "breaks_with": "a blank line"}]},
        noticed_by="files_exist",
    ),
    Lie(step="prove.observe", name="a skipped test", tell=a_skipped_test, noticed_by="tests_kept"),
)
REPORT = "A table with a blank line at its end has one row too many, so that means are wrong or float() fails."
NORMAL = Walk(
    workflow="bug-fix-test-first",
    files=FILES,
    inputs={"report": REPORT},
    steps={
        "reproduce": reproduce,
        "cause": cause,
        "fix": fix,
        "siblings": siblings,
        "prove.observe": observe,
        "handover": handover,
    },
    lies=LIES,
)
QUICK = Walk(
    workflow="bug-fix-test-first",
    files=FILES,
    inputs={"report": 'parse("") crashes with IndexError instead of giving an empty table.', "depth": "quick"},
    steps={"reproduce": reproduce_crash, "fix": fix_crash},
)
THOROUGH = replace(
    NORMAL,
    inputs={"report": REPORT, "depth": "thorough"},
    steps={**NORMAL.steps, **verification("prove.verify", "a blank line is not counted", seen)},
)
