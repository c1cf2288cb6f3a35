"""Scanners for known vulnerabilities: how each is called, and how its output is parsed. Pure; output is not trusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from handrail.rules.toolchain.reading import json_of, maps, whole
from handrail.rules.toolchain.site import Site

VULNERABILITIES_MAX: Final = 5_000
VALUES_MAX: Final = 20_000
TITLE_MAX: Final = 200


class Vulnerability(Struct, frozen=True, kw_only=True):
    """One known vulnerability of one package."""

    package: str
    id: str
    version: str = ""
    title: str = ""
    fixed: str = ""
    aliases: tuple[str, ...] = ()
    file: str = ""
    line: int = 0


class Scanner(Struct, frozen=True, kw_only=True):
    """A program that finds known vulnerabilities."""

    program: str
    files: tuple[str, ...]
    """Files that show that a project is of its kind; the first that exists is shown in findings."""
    words: Callable[[Site], Sequence[str]]
    read: Callable[[str], list[Vulnerability] | None]
    """Parses its output; None if that is not an answer."""
    how: str
    also_needs: tuple[str, ...] = ()
    exits: tuple[int, ...] = (0, 1)
    """Most end with exit code 1 if they found something."""


def pip_audit(text: str) -> list[Vulnerability] | None:
    """The answer of pip-audit."""
    said = json_of(text)
    packages = said.get("dependencies") if isinstance(said, Mapping) else None
    if not isinstance(packages, list):
        return None
    pairs = [(package, one) for package in maps(packages) for one in maps(package.get("vulns"))]
    return [
        Vulnerability(
            package=str(package.get("name")),
            version=str(package.get("version", "")),
            id=str(one.get("id")),
            title=_title(one.get("description")),
            fixed=", ".join(_texts(one.get("fix_versions"))),
            aliases=tuple(_texts(one.get("aliases"))),
        )
        for package, one in pairs[:VULNERABILITIES_MAX]
    ]


def npm_audit(text: str) -> list[Vulnerability] | None:
    """The answer of `npm audit`; packages that only depend on a vulnerable one are left out."""
    said = json_of(text)
    packages = said.get("vulnerabilities") if isinstance(said, Mapping) else None
    if not isinstance(packages, Mapping):
        return None
    pairs = [(package, one) for package in maps(list(packages.values())) for one in maps(package.get("via"))]
    return [_of_npm(package, one) for package, one in pairs[:VULNERABILITIES_MAX]]


def _of_npm(package: Mapping[str, Any], one: Mapping[str, Any]) -> Vulnerability:
    cure = package.get("fixAvailable")
    fixed = f"{cure.get('name')} {cure.get('version')}" if isinstance(cure, Mapping) else ""
    return Vulnerability(
        package=str(one.get("name") or package.get("name")),
        version=str(one.get("range", "")),
        id=str(one.get("url", "")).rsplit("/", 1)[-1] or str(one.get("source")),
        title=_title(one.get("title")),
        fixed=fixed or ("what `npm audit fix` installs" if cure is True else ""),
    )


def cargo_audit(text: str) -> list[Vulnerability] | None:
    """The answer of `cargo audit`."""
    said = json_of(text)
    found = said.get("vulnerabilities") if isinstance(said, Mapping) else None
    if not isinstance(found, Mapping):
        return None
    return [
        Vulnerability(
            package=str(_map(one.get("package")).get("name")),
            version=str(_map(one.get("package")).get("version", "")),
            id=str(_map(one.get("advisory")).get("id")),
            title=_title(_map(one.get("advisory")).get("title")),
            fixed=", ".join(_texts(_map(one.get("versions")).get("patched"))),
            aliases=tuple(_texts(_map(one.get("advisory")).get("aliases"))),
        )
        for one in maps(found.get("list"))[:VULNERABILITIES_MAX]
    ]


def govulncheck(text: str) -> list[Vulnerability] | None:
    """The answer of govulncheck: only vulnerabilities that the project's code can reach."""
    values = list(_values(text))
    if not any("config" in value for value in values):
        return None
    entries = [_map(value.get("osv")) for value in values]
    known = {str(entry.get("id")): entry for entry in entries}
    vulnerabilities: dict[str, Vulnerability] = {}
    for finding in (_map(value.get("finding")) for value in values):
        trace = maps(finding.get("trace"))
        if _is_reached(trace):
            vulnerabilities.setdefault(str(finding.get("osv")), _of_go(finding, trace, known))
    return list(vulnerabilities.values())[:VULNERABILITIES_MAX]


def _is_reached(trace: Sequence[Mapping[str, Any]]) -> bool:
    return bool(trace) and bool(trace[0].get("function"))


def _of_go(
    finding: Mapping[str, Any], trace: Sequence[Mapping[str, Any]], known: Mapping[str, Mapping[str, Any]]
) -> Vulnerability:
    at = _map(trace[-1].get("position"))
    entry = known.get(str(finding.get("osv")), {})
    return Vulnerability(
        package=str(trace[0].get("module")),
        version=str(trace[0].get("version", "")),
        id=str(finding.get("osv")),
        title=_title(entry.get("summary")),
        fixed=str(finding.get("fixed_version", "")),
        aliases=tuple(_texts(entry.get("aliases"))),
        file=str(at.get("filename", "")),
        line=whole(at.get("line")),
    )


def osv_scanner(text: str) -> list[Vulnerability] | None:
    """The answer of osv-scanner."""
    said = json_of(text)
    results = said.get("results") if isinstance(said, Mapping) else None
    if not isinstance(results, list):
        return None
    found = [
        (str(_map(result.get("source")).get("path", "")), package, one)
        for result in maps(results)
        for package in maps(result.get("packages"))
        for one in maps(package.get("vulnerabilities"))
    ]
    return [_of_osv(path, _map(package.get("package")), one) for path, package, one in found[:VULNERABILITIES_MAX]]


def _of_osv(path: str, package: Mapping[str, Any], one: Mapping[str, Any]) -> Vulnerability:
    ranges = [span for affected in maps(one.get("affected")) for span in maps(affected.get("ranges"))]
    fixes = [str(event["fixed"]) for span in ranges for event in maps(span.get("events")) if "fixed" in event]
    return Vulnerability(
        package=str(package.get("name")),
        version=str(package.get("version", "")),
        id=str(one.get("id")),
        title=_title(one.get("summary")),
        fixed=", ".join(dict.fromkeys(fixes)),
        aliases=tuple(_texts(one.get("aliases"))),
        file=path,
    )


def _values(text: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects in a string with one after the other."""
    decoder = json.JSONDecoder()
    at = 0
    for _ in range(VALUES_MAX):
        at = text.find("{", at)
        if at < 0:
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        if isinstance(value, Mapping):
            yield value


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _title(value: Any) -> str:
    lines = str(value or "").strip().splitlines()
    return lines[0][:TITLE_MAX] if lines else ""


def _pip_words(site: Site) -> Sequence[str]:
    what = ("-r", "requirements.txt") if site.has("requirements.txt") else (".",)
    return ("--format", "json", "--progress-spinner", "off", *what)


SCANNERS: Final = (
    Scanner(
        program="pip-audit",
        files=("requirements.txt", "pyproject.toml"),
        words=_pip_words,
        read=pip_audit,
        how="pip install pip-audit",
    ),
    Scanner(
        program="npm",
        files=("package-lock.json", "npm-shrinkwrap.json"),
        words=lambda _: ("audit", "--json"),
        read=npm_audit,
        how="it comes with Node",
        also_needs=("node",),
    ),
    Scanner(
        program="cargo-audit",
        files=("Cargo.lock",),
        words=lambda _: ("audit", "--json"),
        read=cargo_audit,
        how="cargo install cargo-audit",
    ),
    Scanner(
        program="govulncheck",
        files=("go.mod",),
        words=lambda _: ("-format", "json", "./..."),
        read=govulncheck,
        how="go install golang.org/x/vuln/cmd/govulncheck@latest",
        also_needs=("go",),
        exits=(0, 3),
    ),
    Scanner(
        program="osv-scanner",
        files=("pom.xml", "gradle.lockfile", "conan.lock", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock"),
        words=lambda _: ("scan", "--format", "json", "--recursive", "."),
        read=osv_scanner,
        how="github.com/google/osv-scanner",
    ),
)
