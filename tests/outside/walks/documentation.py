"""documentation-update: a function was renamed, and the pages and their examples still have the old name."""

from __future__ import annotations

from typing import Any

from outside.walks.tally import CHANGELOG, FILES
from outside.walks.walk import Hands, Lie, Walk
from outside.walks.workplace import Workplace

README = """# tally

Reads tables and reports about them.

>>> import sys; sys.path.insert(0, "src")
>>> from tally.report import largest
>>> largest("a\\n1\\n3", "a")
'a: largest 3.00'
"""
GUIDE = "# Guide\n\nUse `largest` to find the outlier of a column.\n"
PAGES = {"README.md": README, "docs/guide.md": GUIDE}
LINE = "- `maximum` replaces `largest`; the old name is gone. See docs/guide.md."
EXAMPLES = ["python", "-m", "doctest", "README.md"]


def renamed(work: Workplace) -> None:
    """The change to document."""
    work.edit("src/tally/report.py", "def largest(", "def maximum(")
    work.commit("Call it maximum")


# --- the work -------------------------------------------------------------------------------------------------


def facts(hands: Hands) -> Any:
    assert "maximum" in hands.work.git("show", "HEAD")
    changed = {"kind": "renamed", "was": "largest", "now": "maximum", "for_reader": "calls of largest must be changed"}
    return {"facts": [changed], "words": ["largest"]}


def sweep(hands: Hands) -> Any:
    found = hands.work.git("grep", "-l", "largest", "--", "README.md", "docs").splitlines()
    assert sorted(found) == sorted(PAGES)
    pages = [{"path": path, "action": "edit", "what": "the new name is used"} for path in found]
    kept = {"path": "CHANGELOG.md", "action": "leave", "what": "what was said about 1.2.0 stays"}
    return {"pages": [*pages, kept], "outside": []}


def revise(hands: Hands) -> Any:
    page = next(path for path in PAGES if path in hands.prompt)
    text = hands.work.read(page)
    hands.work.write(page, text.replace("largest(", "maximum(").replace("import largest", "import maximum"))
    if page == "docs/guide.md":
        hands.work.edit(page, "`largest`", "`maximum`")
    return {}


def run(hands: Hands) -> Any:
    hands.work.run(*EXAMPLES)
    return {"failures": [], "command": EXAMPLES}


def read(hands: Hands) -> Any:
    return {"stumbles": ["the guide does not say where maximum is imported from"]}


def smooth(hands: Hands) -> Any:
    hands.work.append("docs/guide.md", "\nImport it from `tally.report`.\n")
    return {"changed": ["docs/guide.md"], "left": []}


def announce(hands: Hands) -> Any:
    hands.work.edit("CHANGELOG.md", "# Changelog\n", f"# Changelog\n\n## Next\n\n{LINE}\n")
    return {"lines": [LINE]}


def close(hands: Hands) -> Any:
    return {"summary": "README and guide use the new name.", "commit": hands.work.commit("Document maximum")}


# --- the lies -------------------------------------------------------------------------------------------------


def another_page(hands: Hands) -> Any:
    hands.work.append("docs/guide.md" if "README.md" in hands.prompt else "README.md", "\nUp to date.\n")
    return {}


def broken_example(hands: Hands) -> Any:
    hands.work.edit("README.md", "'a: largest 3.00'", "'a: maximum 3.00'")
    return {"failures": [], "command": EXAMPLES}


def other_lines(hands: Hands) -> Any:
    hands.work.append("CHANGELOG.md", "\n")
    return {"lines": [LINE]}


LIES = (
    Lie(step="edit.revise", name="nothing changed", tell=lambda _: {}, noticed_by="files_changed"),
    Lie(step="edit.revise", name="another page", tell=another_page, noticed_by="files_changed"),
    Lie(step="run", name="an example that fails", tell=broken_example, noticed_by="command_succeeds"),
    Lie(step="announce", name="no line", tell=lambda _: {"lines": [LINE]}, noticed_by="files_changed"),
    Lie(step="announce", name="another line", tell=other_lines, noticed_by="file_contains"),
    Lie(step="close", name="no commit", tell=lambda _: {"summary": "All is committed."}, noticed_by="expression"),
    Lie(
        step="close",
        name="an old commit",
        tell=lambda hands: {"summary": "All is committed.", "commit": hands.work.head()},
        noticed_by="commit_exists",
    ),
)
NORMAL = Walk(
    workflow="documentation-update",
    files={**FILES, **PAGES, "CHANGELOG.md": CHANGELOG},
    prepared=renamed,
    inputs={"change": "the last commit"},
    steps={
        "facts": facts,
        "sweep": sweep,
        "edit.revise": revise,
        "run": run,
        "read": read,
        "smooth": smooth,
        "announce": announce,
        "close": close,
    },
    lies=LIES,
)
