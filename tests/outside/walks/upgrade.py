"""dependency-upgrade: a package that tally uses has a new major version, in a folder of wheels made for the walk.

Version 2 has another name for a parameter, which every caller notices, and writes thousands with a comma, which only
those notice who look."""

from __future__ import annotations

import sys
from typing import Any
from zipfile import ZipFile

from outside.walks.tally import FILES, REPORT
from outside.walks.walk import Hands, Lie, Walk
from outside.walks.workplace import Workplace

PACKAGE, OLD, NEW = "plainround", "1.4.0", "2.0.0"
CODE = {
    OLD: 'VERSION = "1.4.0"\n\n\ndef fixed(value, digits):\n    return f"{value:.{digits}f}"\n',
    NEW: 'VERSION = "2.0.0"\n\n\ndef fixed(value, places):\n    return f"{value:,.{places}f}"\n',
}
PIN = "requirements.txt"
SOURCE, TESTS = "src/tally/report.py", "tests/test_report.py"
USE, USE_NEW = "fixed(mean(values), digits=2)", "fixed(mean(values), places=2).replace(',', '')"
LARGE = """

def test_a_large_mean_has_no_separator():
    assert summary("a\\n2000", "a") == "a: 1 values, mean 2000.00"
"""
INSTALLED = ["python", "-c", f"import {PACKAGE}; print({PACKAGE}.VERSION)"]
UPGRADED: dict[str, str] = {
    **FILES,
    PIN: f"{PACKAGE}=={OLD}\n",
    SOURCE: REPORT.replace("{mean(values):.2f}", "{" + USE + "}").replace(
        "from tally.table", f"from {PACKAGE} import fixed\n\nfrom tally.table"
    ),
}


def with_the_old_version(work: Workplace) -> None:
    """A folder with wheels of both versions; the old one is installed."""
    for version, code in CODE.items():
        wheel(work, version, code)
    install(work)


def wheel(work: Workplace, version: str, code: str) -> None:
    """A wheel of the package, as an index has it."""
    (work.folder / "wheels").mkdir(exist_ok=True)
    info = f"{PACKAGE}-{version}.dist-info"
    files = {
        f"{PACKAGE}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with ZipFile(work.folder / "wheels" / f"{PACKAGE}-{version}-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def install(work: Workplace) -> None:
    """Install what requirements.txt says, from the wheels only."""
    own = str(work.project / ".venv" / "bin" / "python")
    wheels = ["--no-index", "--find-links", str(work.folder / "wheels")]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    work.run(sys.executable, "-m", "pip", "--python", own, "install", *quiet, *wheels, "-r", PIN)


# --- the work -------------------------------------------------------------------------------------------------


def state(hands: Hands) -> Any:
    assert hands.work.run(*INSTALLED).strip() == OLD
    assert hands.work.read(PIN) == f"{PACKAGE}=={OLD}\n"
    uses = hands.work.git("grep", "-l", PACKAGE, "--", "src").splitlines()
    versions = {"from": OLD, "to": NEW, "jump": "major"}
    return {**versions, "manifests": [PIN], "pinned_in": PIN, "installed": INSTALLED, "uses": uses}


def trust(hands: Hands) -> Any:
    with ZipFile(hands.work.folder / "wheels" / f"{PACKAGE}-{NEW}-py3-none-any.whl") as archive:
        assert f"{PACKAGE}.py" in archive.namelist()
    return {"released": "2026-01-10", "verdict": "fine", "reason": "one module, no install scripts"}


def notes(hands: Hands) -> Any:
    renamed = {"what": "digits is called places", "where": [SOURCE], "since": NEW, "silent": False}
    comma = {"what": "thousands are separated by a comma", "where": [SOURCE], "since": NEW, "silent": True}
    return {"concerns": [renamed, comma], "hops": [NEW]}


def net(hands: Hands) -> Any:
    hands.work.append(TESTS, LARGE)
    assert "5 passed" in hands.work.pytest()
    hands.work.commit("Show that large means have no separator")
    return {"warnings": [], "added": [TESTS], "before": ["5 tests"]}


def bump(hands: Hands) -> Any:
    hands.work.write(PIN, f"{PACKAGE}=={NEW}\n")
    install(hands.work)
    assert "2 failed" in hands.work.pytest(code=1)
    return {}


def adapt(hands: Hands) -> Any:
    hands.work.edit(SOURCE, USE, USE_NEW)
    assert "5 passed" in hands.work.pytest()
    return {"commit": hands.work.commit(f"Use {PACKAGE} {NEW}")}


def look(hands: Hands) -> Any:
    code = 'from tally.report import summary; print(summary("a\\n2000", "a"))'
    seen = hands.work.run("env", "PYTHONPATH=src", "python", "-c", code).strip()
    assert seen == "a: 1 values, mean 2000.00"
    return {"seen": [seen], "after": ["5 tests"], "worse": []}


def close(hands: Hands) -> Any:
    hands.work.edit("CHANGELOG.md", "# Changelog\n", f"# Changelog\n\n## Next\n\n- Needs {PACKAGE} {NEW}.\n")
    hands.work.commit("Tell packagers")
    return {"message": f"{PACKAGE} from {OLD} to {NEW}: routine. Large means look as before; go back by reverting."}


# --- the lies -------------------------------------------------------------------------------------------------


def another_version(hands: Hands) -> Any:
    return {**state(hands), "from": "1.3.9"}


def only_written(hands: Hands) -> Any:
    hands.work.write(PIN, f"{PACKAGE}=={NEW}\n")
    return {}


def with_code(hands: Hands) -> Any:
    hands.work.write(PIN, f"{PACKAGE}=={NEW}\n")
    hands.work.edit(SOURCE, USE, USE_NEW)
    return {}


def without_the_test(hands: Hands) -> Any:
    hands.work.edit(SOURCE, "digits=2", "places=2")
    hands.work.edit(TESTS, LARGE, "")
    return {"commit": hands.work.commit(f"Use {PACKAGE} {NEW}")}


def still_red(hands: Hands) -> Any:
    return {"commit": hands.work.commit(f"Use {PACKAGE} {NEW}")}


def back_again(hands: Hands) -> Any:
    hands.work.write(PIN, f"{PACKAGE}=={OLD}\n")
    hands.work.commit("Tidy up")
    return {"message": f"{PACKAGE} from {OLD} to {NEW}"}


LIES = (
    Lie(step="state", name="another version", tell=another_version, noticed_by="file_contains"),
    Lie(
        step="net",
        name="an invented test",
        tell=lambda _: {"warnings": [], "added": ["tests/test_rounding.py"], "before": []},
        noticed_by="files_exist",
    ),
    Lie(
        step="net",
        name="an old test",
        tell=lambda _: {"warnings": [], "added": [TESTS], "before": []},
        noticed_by="files_changed",
    ),
    Lie(step="hops.bump", name="nothing done", tell=lambda _: {}, noticed_by="file_contains"),
    Lie(step="hops.bump", name="not installed", tell=only_written, noticed_by="command_succeeds"),
    Lie(step="hops.bump", name="code as well", tell=with_code, noticed_by="diff_within"),
    Lie(step="hops.adapt", name="a red suite", tell=still_red, noticed_by="tests_pass"),
    Lie(step="hops.adapt", name="a test taken out", tell=without_the_test, noticed_by="tests_kept"),
    Lie(step="close", name="the old version again", tell=back_again, noticed_by="file_contains"),
)
NORMAL = Walk(
    workflow="dependency-upgrade",
    files=UPGRADED,
    prepared=with_the_old_version,
    inputs={"package": PACKAGE, "to": NEW},
    steps={
        "state": state,
        "trust": trust,
        "notes": notes,
        "critique.attack": lambda _: {"serious": [], "minor": []},
        "net": net,
        "hops.bump": bump,
        "hops.adapt": adapt,
        "look": look,
        "close": close,
    },
    approved=frozenset({"go"}),
    lies=LIES,
)
