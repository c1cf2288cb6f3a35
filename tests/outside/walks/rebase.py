"""rebase-and-conflicts: two branches changed one line each in their own way, and a remote has the old state."""

from __future__ import annotations

from typing import Any

from outside.walks.tally import FILES
from outside.walks.walk import Hands, Lie, Walk
from outside.walks.workplace import Workplace

BRANCH, ONTO = "plain-mean", "origin/main"
REPORT = "src/tally/report.py"
MEAN = "mean {mean(values):.2f}"
THEIRS, OURS = "average {mean(values):.2f}", "mean {mean(values):.3f}"
BOTH = "average {mean(values):.3f}"
TEST = "tests/test_report.py"


def two_branches(work: Workplace) -> None:
    """A remote with a base that has moved on, and a branch of two commits that conflicts with it."""
    start = work.git("branch", "--show-current")
    work.git("init", "-q", "--bare", str(work.folder / "remote.git"))
    work.git("remote", "add", "origin", str(work.folder / "remote.git"))
    work.git("branch", "-m", start, "main")
    work.git("checkout", "-q", "-b", BRANCH)
    work.edit(REPORT, MEAN, OURS)
    work.edit(TEST, "mean 2.00", "mean 2.000")
    work.commit("Show three digits")
    work.append("README.md", "\nMeans have three digits.\n")
    work.commit("Say how many digits there are")
    work.git("checkout", "-q", "main")
    work.edit(REPORT, MEAN, THEIRS)
    work.edit(TEST, "mean 2.00", "average 2.00")
    work.commit("Call it average")
    work.git("push", "-q", "origin", "main", BRANCH)
    work.git("checkout", "-q", BRANCH)


# --- the work -------------------------------------------------------------------------------------------------


def survey(hands: Hands) -> Any:
    hands.work.git("fetch", "-q")
    commits = hands.work.git("log", "--reverse", "--format=%h %s", f"{ONTO}..{BRANCH}").splitlines()
    assert len(commits) == 2
    plain = {"shared": False, "strategy": "rebase", "why": "one author, two commits"}
    return {"commits": commits, "overlap": [REPORT, TEST], **plain}


def baseline(hands: Hands) -> Any:
    backup = f"backup/{BRANCH}"
    hands.work.git("branch", backup)
    assert "4 passed" in hands.work.pytest()
    return {"backup": backup, "commit": hands.work.git("rev-parse", backup), "command": "python -m pytest"}


def rehearse(hands: Hands) -> Any:
    said = hands.work.run("git", "merge-tree", "--write-tree", ONTO, BRANCH, code=1)
    assert f"Merge conflict in {REPORT}" in said
    return {"conflicts": [{"file": file, "kind": "text", "where": "the mean"} for file in (REPORT, TEST)]}


def intent(hands: Hands) -> Any:
    wanted = {"base_wanted": "the word average", "branch_wanted": "three digits"}
    return {**wanted, "choice": "combine", "plan": "average with three digits; test_report notices"}


def replay(hands: Hands) -> Any:
    work = hands.work
    assert "CONFLICT" in work.run("git", "rebase", ONTO, code=1)
    work.git("checkout", "--ours", REPORT, TEST)  # in a rebase, ours is the base
    work.edit(REPORT, THEIRS, BOTH)
    work.edit(TEST, "average 2.00", "average 2.000")
    assert "2 passed" in work.pytest(TEST)
    work.git("add", REPORT, TEST)
    work.git("-c", "core.editor=true", "rebase", "--continue")
    return {"head": work.head(), "resolved": [REPORT, TEST]}


def compare(hands: Hands) -> Any:
    kept = hands.work.git("log", "--reverse", "--format=%h", f"{ONTO}..{BRANCH}").splitlines()
    return {"kept": kept, "changed": ["the first: average instead of mean"]}


def test(hands: Hands) -> Any:
    assert "4 passed" in hands.work.pytest()
    return {"new_failures": []}


def push(hands: Hands) -> Any:
    work, before = hands.work, hands.said["baseline"]["commit"]
    work.git("push", "-q", f"--force-with-lease={BRANCH}:{before}", "origin", BRANCH)
    return {"before": before, "now": work.git("ls-remote", "origin", BRANCH).split()[0]}


# --- the lies -------------------------------------------------------------------------------------------------


def a_backup_elsewhere(hands: Hands) -> Any:
    hands.work.git("branch", "backup/here", "HEAD~1")
    return {"backup": "backup/here", "commit": hands.work.head(), "command": "python -m pytest"}


def markers_left(hands: Hands) -> Any:
    hands.work.run("git", "rebase", ONTO, code=1)
    hands.work.git("add", "-A")
    hands.work.git("-c", "core.editor=true", "rebase", "--continue")
    return {"head": hands.work.head()}


def not_moved(hands: Hands) -> Any:
    hands.work.git("commit", "-q", "--allow-empty", "-m", "Rebased")
    return {"head": hands.work.head()}


def one_commit_lost(hands: Hands) -> Any:
    hands.work.git("reset", "-q", "--hard", "HEAD~1")
    return {"kept": [hands.work.head(), hands.work.head()]}


def a_broken_test(hands: Hands) -> Any:
    hands.work.edit(REPORT, BOTH, THEIRS)
    hands.work.commit("Resolve it")
    return {"new_failures": []}


LIES = (
    Lie(
        step="baseline",
        name="no backup",
        tell=lambda hands: {"backup": "backup/none", "commit": hands.work.head(), "command": "pytest"},
        noticed_by="command_succeeds",
    ),
    Lie(step="baseline", name="a backup of something else", tell=a_backup_elsewhere, noticed_by="command_succeeds"),
    Lie(step="replay", name="markers left", tell=markers_left, noticed_by="command_succeeds"),
    Lie(step="replay", name="not on the base", tell=not_moved, noticed_by="command_succeeds"),
    Lie(
        step="replay",
        name="an invented head",
        tell=lambda _: {"head": "5" * 40},
        noticed_by="command_succeeds",
    ),
    Lie(step="compare", name="one commit lost", tell=one_commit_lost, noticed_by="commits_since"),
    Lie(
        step="compare",
        name="commits of before",
        tell=lambda hands: {"kept": hands.work.git("log", "--format=%h", "-2", f"backup/{BRANCH}").splitlines()},
        noticed_by="commit_exists",
    ),
    Lie(step="compare", name="the loss admitted", tell=lambda _: {"kept": []}, noticed_by="expression"),
    Lie(step="verify.test", name="a test that fails", tell=a_broken_test, noticed_by="tests_pass"),
    Lie(
        step="push",
        name="not pushed",
        tell=lambda hands: {"before": hands.said["baseline"]["commit"], "now": hands.work.head()},
        noticed_by="command_succeeds",
    ),
)
PUSHED = Walk(
    workflow="rebase-and-conflicts",
    files=FILES,
    prepared=two_branches,
    inputs={"branch": BRANCH, "onto": ONTO, "push": True},
    steps={
        "survey": survey,
        "baseline": baseline,
        "rehearse": rehearse,
        "understand.intent": intent,
        "replay": replay,
        "compare": compare,
        "verify.test": test,
        "push": push,
    },
    lies=LIES,
)
