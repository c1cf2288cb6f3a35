"""code-review: a branch adds a median that is wrong for an even number of values; another one breaks a test."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from outside.walks.routines import context
from outside.walks.tally import FILES
from outside.walks.walk import Hands, Lie, Walk
from outside.walks.workplace import Workplace

SOURCE, TESTS = "src/tally/report.py", "tests/test_median.py"
MEDIAN = '''

def median(text: str, name: str) -> str:
    """The middle value of a column."""
    values = sorted(column(parse(text), name))
    return f"{name}: median {values[len(values) // 2]:.2f}"
'''
TEST = """from tally.report import median


def test_the_median_is_the_middle_value():
    assert median("a\\n1\\n9\\n3", "a") == "a: median 3.00"
"""
NAME = f"{TESTS}::test_the_median_is_the_middle_value"
SCENARIO = "With an even number of values the larger one of the middle two is taken, not their mean: 1, 3 gives 3."
REVIEWED = {
    "intent": "Adds median(), which reports the middle value of a column.",
    "risk": "medium",
    "parts": [{"question": "Is it the median for every column?", "files": [1, 2]}],
}


def proposed(work: Workplace) -> None:
    """The colleague's branch; the reviewer is on main, which went on meanwhile."""
    work.git("switch", "-q", "-c", "median")
    work.append(SOURCE, MEDIAN)
    work.write(TESTS, TEST)
    work.commit("Report the median of a column")
    work.git("switch", "-q", "main")
    work.append("README.md", "\nLicensed under Apache-2.0.\n")
    work.commit("Name the license")


def broken(work: Workplace) -> None:
    proposed(work)
    work.git("switch", "-q", "median")
    work.edit(SOURCE, "mean {mean(values):.2f}", "mean {mean(values):.1f}")
    work.commit("Shorten means")
    work.git("switch", "-q", "main")


# --- the work -------------------------------------------------------------------------------------------------


def scope(hands: Hands) -> Any:
    hands.work.git("switch", "-q", "median")
    base = hands.work.git("merge-base", "main", "median")
    files = hands.work.git("diff", "--name-only", f"{base}...median").splitlines()
    return {**REVIEWED, "merge_base": base, "files": files}


def look(hands: Hands) -> Any:
    assert SOURCE in hands.prompt
    assert TESTS in hands.prompt
    line = hands.work.read(SOURCE).splitlines().index("    values = sorted(column(parse(text), name))") + 2
    finding = {"file": SOURCE, "line": line, "severity": "blocker", "scenario": SCENARIO}
    return {"answer": "No, not for an even number of values.", "findings": [finding]}


def run(hands: Hands) -> Any:
    assert "5 passed" in hands.work.pytest()
    return {"tests": "pass", "proving": [NAME]}


def run_red(hands: Hands) -> Any:
    assert "1 failed" in hands.work.pytest(code=1)
    return {"tests": "fail", "surprises": ["test_a_summary_counts_and_averages fails, and does not on main"]}


def disprove(hands: Hands) -> Any:
    assert SCENARIO in hands.prompt
    command = 'import sys; sys.path.insert(0, "src"); from tally.report import median; print(median("a\\n1\\n3", "a"))'
    said = hands.work.run("python", "-c", command).strip()
    assert said == "a: median 3.00"
    return {"blockers": [{"finding": "part 1.1", "by": f'median("a\\n1\\n3", "a") says {said}'}]}


def review(_: Hands) -> Any:
    comment = {"file": SOURCE, "line": 31, "text": "1, 3 gives 3.00; take the mean of the middle two."}
    return {"summary": "Adds median(); it is wrong for an even number of values.", "comments": [comment]}


def merged(work: Workplace) -> None:
    """The change is on main already, as its last commit."""
    work.append(SOURCE, MEDIAN)
    work.write(TESTS, TEST)
    work.commit("Report the median of a column")


def scope_of_range(hands: Hands) -> Any:
    assert "merge base with `main`" not in hands.prompt  # on main, that diff is empty
    assert "range of commits" in hands.prompt
    start = hands.work.git("rev-parse", "HEAD~1")
    files = hands.work.git("diff", "--name-only", "HEAD~1..HEAD").splitlines()
    return {**REVIEWED, "merge_base": start, "files": files}


def unrefuted(hands: Hands) -> Any:
    """It names no blocker, and leaves the one on record."""
    assert SCENARIO in hands.prompt
    return {"blockers": []}


def review_of_all(hands: Hands) -> Any:
    assert f"part 1.1 [blocker] {SOURCE}:" in hands.prompt
    assert SCENARIO in hands.prompt
    return review(hands)


# --- the lies -------------------------------------------------------------------------------------------------


def half_of_the_files(hands: Hands) -> Any:
    output = scope(hands)
    return {**output, "files": output["files"][:1]}


def never_checked_out(hands: Hands) -> Any:
    with hands.work.aside():
        return scope(hands)


def invented_base(hands: Hands) -> Any:
    return {**scope(hands), "merge_base": "0123456789abcdef"}


def invented_file(_: Hands) -> Any:
    finding = {"file": "src/tally/median.py", "line": 9, "severity": "major", "scenario": "it may fail on bad input"}
    return {"answer": "Mostly.", "findings": [finding]}


def another_test(_: Hands) -> Any:
    return {"tests": "pass", "proving": ["tests/test_report.py::test_the_mean_of_nothing_is_zero"]}


LIES = (
    Lie(step="scope", name="half of the files", tell=half_of_the_files, noticed_by="diff_within"),
    Lie(step="scope", name="never checked out", tell=never_checked_out, noticed_by="files_changed"),
    Lie(step="scope", name="an invented base", tell=invented_base, noticed_by="commit_exists"),
    Lie(step="read.look", name="an invented file", tell=invented_file, noticed_by="files_exist"),
    Lie(step="run", name="a test of something else", tell=another_test, noticed_by="tests_prove"),
    Lie(
        step="review",
        name="a blocker without a word",
        tell=lambda _: {"summary": "Looks good to me.", "comments": []},
        noticed_by="expression",
    ),
)
NORMAL = Walk(
    workflow="code-review",
    files=FILES,
    prepared=proposed,
    inputs={"change": "median"},
    steps={"scope": scope, "read.look": look, "run": run, "disprove": disprove, "review": review},
    lies=LIES,
)
QUICK = Walk(
    workflow="code-review",
    files=FILES,
    prepared=broken,
    inputs={"change": "median", "depth": "quick"},
    steps={"scope": scope, "read.look": look, "run": run_red, "review": review},
    lies=(
        Lie(step="run", name="green, although it is red", tell=lambda _: {"tests": "pass"}, noticed_by="tests_pass"),
    ),
)
RANGE = replace(
    NORMAL,
    prepared=merged,
    inputs={"change": "HEAD~1..HEAD"},
    steps={**NORMAL.steps, "scope": scope_of_range, "disprove": unrefuted, "review": review_of_all},
)
THOROUGH = replace(
    NORMAL,
    inputs={"change": "median", "depth": "thorough"},
    steps={
        **NORMAL.steps,
        "scope": lambda hands: {**scope(hands), "areas": ["api"]},
        **context(
            "context",
            lookup="who calls the functions of report.py",
            finding="Only users do; all reports have the same form, a name and a number with two places.",
            files=[SOURCE, "README.md"],
        ),
        "lenses.inspect": lambda _: {"findings": []},
    },
)
