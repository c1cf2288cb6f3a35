"""release-and-deploy: a version is tagged, pushed to a remote, built once and given to users slot by slot.

What users get is a tree of files: twenty slots, each of which serves one of the versions that were unpacked."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from outside.walks.tally import FILES
from outside.walks.walk import Hands, Lie, Walk
from outside.walks.workplace import Workplace

OLD, NEW = "1.2.0", "1.3.0"
SLOTS = [f"{number:02}" for number in range(20)]
SERVED = """import pathlib

found = {slot.resolve().name for slot in pathlib.Path("live/slots").iterdir()}
print(*(found if len(found) == 1 else ["several"]))
"""
SECTION = f"## {NEW}\n\n- Means are right for large tables.\n"
PROBE = ["python3", "tools/served.py"]


def served_by_the_old_version(work: Workplace) -> None:
    """A remote that has everything so far, and users who get the old version."""
    work.git("init", "-q", "--bare", str(work.folder / "remote.git"))
    work.git("remote", "add", "origin", str(work.folder / "remote.git"))
    work.git("tag", "-a", f"v{OLD}", "-m", OLD)
    work.edit("src/tally/report.py", "sum(values)", "sum(values, 0.0)")
    work.commit("Sum as floats")
    work.git("push", "-q", "--tags", "origin", "HEAD")
    built(work, OLD)
    unpacked(work, OLD)
    served(work, OLD, SLOTS)


def built(work: Workplace, version: str) -> str:
    """Build the archive of a version, in the registry: its digest."""
    registry = work.folder / "registry"
    registry.mkdir(exist_ok=True)
    archive = registry / f"{version}.tar"
    work.git("archive", "-o", str(archive), f"v{version}")
    return f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}"


def unpacked(work: Workplace, version: str) -> None:
    folder = work.project / "live" / "versions" / version
    folder.mkdir(parents=True, exist_ok=True)
    work.run("tar", "-xf", str(work.folder / "registry" / f"{version}.tar"), "-C", str(folder))


def served(work: Workplace, version: str, slots: list[str]) -> None:
    """Let slots serve a version."""
    for slot in slots:
        link = work.project / "live" / "slots" / slot
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(f"../versions/{version}")


def share_of(work: Workplace) -> int:
    """The per cent of slots that serve the new version."""
    links = [work.project / "live" / "slots" / slot for slot in SLOTS]
    return 100 * sum(link.resolve().name == NEW for link in links) // len(links)


def asked(work: Workplace, folder: str) -> str:
    """What a version says when it is used."""
    code = 'from tally.report import summary; print(summary("a\\n1\\n3", "a"))'
    return work.run("env", f"PYTHONPATH={folder}/src", "python", "-c", code).strip()


# --- the work -------------------------------------------------------------------------------------------------


def scope(hands: Hands) -> Any:
    changes = hands.work.git("log", "--format=%s", f"v{OLD}..HEAD").splitlines()
    risk = "the sum of a column; means would be wrong"
    return {"changes": changes, "breaking": [], "migrations": [], "riskiest": risk}


def notes(hands: Hands) -> Any:
    hands.work.edit("CHANGELOG.md", "# Changelog\n", f"# Changelog\n\n{SECTION}")
    return {"commit": hands.work.commit(f"Notes for {NEW}")}


def gate(hands: Hands) -> Any:
    assert "4 passed" in hands.work.pytest()
    hands.work.git("push", "-q", "origin", "HEAD")
    return {"commit": hands.work.head()}


def retreat(hands: Hands) -> Any:
    return {"possible": True, "minutes": 1, "how": f"let the slots serve {OLD} again; it stays unpacked"}


def build(hands: Hands) -> Any:
    hands.work.git("tag", "-a", f"v{NEW}", "-m", NEW, hands.said["gate"]["commit"])
    hands.work.git("push", "-q", "origin", f"v{NEW}")
    return {"digest": built(hands.work, NEW)}


def staging(hands: Hands) -> Any:
    unpacked(hands.work, NEW)
    seen = asked(hands.work, f"live/versions/{NEW}")
    assert seen == "a: 2 values, mean 2.00"
    return {"paths": [{"path": "a summary", "seen": seen}, {"path": "the tests in it", "seen": "all are there"}]}


def shift(hands: Hands) -> Any:
    share = 100 if "Give 100 %" in hands.prompt else 50
    served(hands.work, NEW, SLOTS[: len(SLOTS) * share // 100])
    assert share_of(hands.work) == share
    return {"at": datetime.now(UTC).isoformat(timespec="seconds"), "measured_share": share, "short_by": 0}


def watch(hands: Hands) -> Any:
    figures = [f"slot {slot}: {asked(hands.work, f'live/slots/{slot}')}" for slot in (SLOTS[0], SLOTS[1], SLOTS[2])]
    return {"figures": figures, "requests": len(figures)}


def announce(hands: Hands) -> Any:
    assert hands.work.run(*PROBE).strip() == NEW
    return {"published": ["CHANGELOG.md on the release page"]}


# --- the lies -------------------------------------------------------------------------------------------------


def notes_of_another(hands: Hands) -> Any:
    hands.work.append("CHANGELOG.md", "\nMore is better now.\n")
    return {"commit": hands.work.commit("Notes")}


def notes_left(hands: Hands) -> Any:
    hands.work.edit("CHANGELOG.md", "# Changelog\n", f"# Changelog\n\n{SECTION}")
    return {"commit": hands.work.head()}


def fewer_tests(hands: Hands) -> Any:
    hands.work.delete("tests/test_report.py")
    return {"commit": hands.work.commit("Tidy up the tests")}


def tag_elsewhere(hands: Hands) -> Any:
    hands.work.git("tag", "-a", f"v{NEW}", "-m", NEW, "HEAD~1")
    return {"digest": f"sha256:{'0' * 64}"}


def only_half(hands: Hands) -> Any:
    served(hands.work, NEW, SLOTS[:10])
    return {"at": datetime.now(UTC).isoformat(timespec="seconds"), "measured_share": 100, "short_by": 0}


LIES = (
    Lie(step="notes", name="another section", tell=notes_of_another, noticed_by="file_contains"),
    Lie(step="notes", name="not committed", tell=notes_left, noticed_by="commit_exists"),
    Lie(
        step="gate",
        name="another commit",
        tell=lambda hands: {"commit": hands.work.git("rev-parse", "HEAD~1")},
        noticed_by="command_succeeds",
    ),
    Lie(step="gate", name="fewer tests", tell=fewer_tests, noticed_by="tests_kept"),
    Lie(
        step="build",
        name="no tag",
        tell=lambda _: {"digest": f"sha256:{'0' * 64}"},
        noticed_by="command_succeeds",
    ),
    Lie(step="build", name="a tag elsewhere", tell=tag_elsewhere, noticed_by="command_succeeds"),
    Lie(step="roll.shift", name="only half", tell=only_half, noticed_by="command_succeeds"),
)
NORMAL = Walk(
    workflow="release-and-deploy",
    files={**FILES, "tools/served.py": SERVED, "live/.gitignore": "*\n!.gitignore\n"},
    prepared=served_by_the_old_version,
    inputs={"service": "tally", "version": NEW, "previous": OLD, "shares": [50, 100], "probe": PROBE},
    steps={
        "scope": scope,
        "notes": notes,
        "gate": gate,
        "retreat": retreat,
        "build": build,
        "staging": staging,
        "roll.shift": shift,
        "roll.watch": watch,
        "announce": announce,
    },
    approved=frozenset({"go"}),
)
AT_ONCE = Walk(
    workflow=NORMAL.workflow,
    files=NORMAL.files,
    prepared=NORMAL.prepared,
    inputs={**NORMAL.inputs, "shares": [100]},
    steps=NORMAL.steps,
    approved=NORMAL.approved,
    lies=LIES,
)
