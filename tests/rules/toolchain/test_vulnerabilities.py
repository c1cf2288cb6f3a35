"""`no_known_vulnerabilities`: which scanner is asked, what it answers, and what is said where it can't be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.rules.no_known_vulnerabilities import no_known_vulnerabilities
from handrail.rules.toolchain.scanners import SCANNERS
from rules.on_project import setting_of
from rules.toolchain.workshop import Scripted, judged, made, places, program, ran, scripted

PIP = """{"dependencies": [{"name": "flask", "version": "0.5", "vulns": [{"id": "PYSEC-2019-179",
 "fix_versions": ["1.0"], "aliases": ["CVE-2019-1010083"], "description": "Memory use.\\nMore."}]},
 {"name": "good", "version": "1", "vulns": []}]}"""
NPM = """{"auditReportVersion": 2, "vulnerabilities": {"lodash": {"name": "lodash", "severity": "high",
 "via": [{"source": 1, "name": "lodash", "title": "Prototype Pollution", "url": "https://github.com/advisories/GHSA-jf85-cpcp-j695",
 "range": "<4.17.12"}], "fixAvailable": {"name": "lodash", "version": "4.17.21"}},
 "user": {"name": "user", "via": ["lodash"], "fixAvailable": true},
 "other": {"name": "other", "via": [{"source": 7, "title": "T", "range": "*"}], "fixAvailable": true}}}"""
CARGO = """{"vulnerabilities": {"found": true, "count": 1, "list": [{"advisory": {"id": "RUSTSEC-2020-0071",
 "title": "Potential segfault", "aliases": ["CVE-2020-26235"]}, "versions": {"patched": [">=0.2.23"]},
 "package": {"name": "time", "version": "0.1.43"}}]}}"""
GO = """{"config": {"protocol_version": "v1.0.0"}}
{"osv": {"id": "GO-2021-0113", "summary": "Out-of-bounds read", "aliases": ["CVE-2021-38561"]}}
{"finding": {"osv": "GO-2021-0113", "trace": [{"module": "golang.org/x/text", "version": "v0.3.5"}]}}
{"finding": {"osv": "GO-2021-0113", "fixed_version": "v0.3.7", "trace": [{"module": "golang.org/x/text",
 "version": "v0.3.5", "function": "Parse"}, {"function": "main", "position": {"filename": "main.go", "line": 9}}]}}
"""
OSV = """{"results": [{"source": {"path": "pom.xml", "type": "lockfile"}, "packages": [{"package": {"name": "log4j",
 "version": "2.14.0"}, "vulnerabilities": [{"id": "GHSA-jfh8-c2jp-5v3q", "summary": "Remote code",
 "affected": [{"ranges": [{"events": [{"introduced": "2.13.0"}, {"fixed": "2.15.0"}]}]}]}]}]}]}"""
ANSWERS = {
    "pip-audit": (PIP, [("requirements.txt", "flask 0.5 has PYSEC-2019-179: Memory use.; fixed in 1.0")]),
    "npm": (
        NPM,
        [
            (
                "package-lock.json",
                "lodash <4.17.12 has GHSA-jf85-cpcp-j695: Prototype Pollution; fixed in lodash 4.17.21",
            ),
            ("package-lock.json", "other * has 7: T; fixed in what `npm audit fix` installs"),
        ],
    ),
    "cargo-audit": (
        CARGO,
        [("Cargo.lock", "time 0.1.43 has RUSTSEC-2020-0071: Potential segfault; fixed in >=0.2.23")],
    ),
    "govulncheck": (
        GO,
        [("main.go:9", "golang.org/x/text v0.3.5 has GO-2021-0113: Out-of-bounds read; fixed in v0.3.7")],
    ),
    "osv-scanner": (OSV, [("pom.xml", "log4j 2.14.0 has GHSA-jfh8-c2jp-5v3q: Remote code; fixed in 2.15.0")]),
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


@pytest.mark.parametrize("scanner", SCANNERS, ids=lambda scanner: scanner.program)
async def test_every_scanner_is_asked_and_understood(machine: Path, tmp_path: Path, scanner: object) -> None:
    assert hasattr(scanner, "program")
    assert hasattr(scanner, "files")
    program(machine, scanner.program)
    answer, wanted = ANSWERS[scanner.program]
    project = made(tmp_path / "project", {scanner.files[0]: ""})
    sandbox = Scripted(ran(answer, code=1 if scanner.program != "govulncheck" else 3))
    assert await places(no_known_vulnerabilities, scripted(project, sandbox), network=True) == wanted
    assert sandbox.jobs[0].bounds.network
    assert not sandbox.jobs[0].writable


async def test_an_accepted_id_is_left_out_by_any_of_its_names(machine: Path, tmp_path: Path) -> None:
    program(machine, "pip-audit")
    project = made(tmp_path / "project", {"pyproject.toml": ""})
    for name in ("PYSEC-2019-179", "CVE-2019-1010083"):
        setting = scripted(project, Scripted(ran(PIP, code=1)))
        outcome = await judged(no_known_vulnerabilities, setting, network=True, ignore=[name])
        assert outcome.findings == ()
        assert outcome.evidence is not None
        assert outcome.evidence.counts == {"vulnerabilities": 0, "ignored": 1}


async def test_without_the_network_nothing_is_asked_and_nothing_passes(machine: Path, tmp_path: Path) -> None:
    program(machine, "npm")
    project = made(tmp_path / "project", {"package-lock.json": ""})
    outcome = await judged(no_known_vulnerabilities, setting_of(project))
    assert [one.fix for one in outcome.findings] == ["set `network: true` on the check"]
    assert await no_known_vulnerabilities.inputs({}, setting_of(project)) == ""


async def test_a_scanner_that_is_not_here_is_named(machine: Path, tmp_path: Path) -> None:
    project = made(tmp_path / "project", {"Cargo.lock": "", "go.mod": ""})
    assert await places(no_known_vulnerabilities, setting_of(project), network=True) == [
        ("checks", "there is no cargo-audit here to look at Cargo.lock"),
        ("checks", "there is no govulncheck here to look at go.mod"),
    ]


async def test_a_project_without_dependencies_says_so(machine: Path, tmp_path: Path) -> None:
    project = made(tmp_path / "project", {"a.txt": ""})
    [(_, message)] = await places(no_known_vulnerabilities, setting_of(project))
    assert message.startswith("no file lists the dependencies")
    [(_, message)] = await places(no_known_vulnerabilities, setting_of(project), path="..")
    assert message == ".. leads out of the project"


@pytest.mark.parametrize("scanner", SCANNERS, ids=lambda scanner: scanner.program)
@pytest.mark.parametrize("answer", ["", "oh", "[]", "{}", '{"vulnerabilities": 3, "results": 3, "dependencies": 3}'])
async def test_an_answer_that_is_none_is_no_pass(machine: Path, tmp_path: Path, scanner: object, answer: str) -> None:
    assert hasattr(scanner, "program")
    assert hasattr(scanner, "files")
    program(machine, scanner.program)
    project = made(tmp_path / "project", {scanner.files[0]: ""})
    found = await places(no_known_vulnerabilities, scripted(project, Scripted(ran(answer))), network=True)
    assert [where for where, _ in found] == ["checks"]
