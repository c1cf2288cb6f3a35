"""`no_secrets`: no password, key or token is in the changed files, or in the named files.

The forms of secrets are in domain/secrets/secret_forms.py. Findings show the place and kind of a secret, never the
secret itself. Files that git ignores are not searched."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, FixedBy
from handrail.domain.checks.rule import CheckOutcome, Evidence
from handrail.domain.secrets.secret_forms import AWS_ID, AWS_SECRET, Form, forms_in
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import NO_SECRETS as CARD
from handrail.rules.files.baseline import HEAD, changes_since, require_start, since_of, state_of
from handrail.rules.files.disguised import disguised
from handrail.rules.files.files_changed import git_evidence
from handrail.rules.files.git import commit_of
from handrail.rules.files.git_facts import asked_together
from handrail.rules.files.git_history import contents, messages_since, versions_since
from handrail.rules.files.git_language import FileVersion
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.ignoring.ignore_rules import Since
from handrail.rules.files.placeholders import HOST_MAX, is_placeholder
from handrail.rules.files.project import PathRefused, ProjectFiles, is_in, project_of
from handrail.rules.files.tree import FILES_MAX, tree_files, tree_of
from handrail.rules.function_rule import (
    FINDINGS_MAX,
    FunctionRule,
    evidence_of,
    found_at,
    not_checked,
    outcome,
    unchecked_outcome,
)

FILE_BYTES_MAX: Final = 5_000_000
BYTES_MAX: Final = 200_000_000
HEAD_BYTES: Final = 8_000
AROUND: Final = 60
"""How many characters are shown on either side of the hidden secret."""
IN_ADDRESS: Final = "password"
"""The kind of a password in an address."""
FIX_COMMITTED: Final = "rewrite the commits without it, and have it replaced: a later commit does not remove it"
FIX: Final = "remove it, read it from the environment, and have it replaced: it may already be known to others"


class _Span(Struct, frozen=True, order=True):
    """The position of a secret in a string."""

    start: int
    end: int
    kind: str


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    project = project_of(setting)
    try:
        since = since_of(parameters, setting) if _compares(parameters) else Since(HEAD, HEAD)
        (paths, evidence), old, said = await asked_together(
            _looked_at(parameters, project, since),
            _committed(parameters, project, since),
            _said(parameters, project, since),
        )
    except GitUnavailable as error:
        fix = f"{error.fix}, or give only `paths`"
        return unchecked_outcome(CARD, str(error), fix, error.by)
    findings = await asyncio.to_thread(_scan, project, paths)
    findings += await asyncio.to_thread(_scan_old, old, {found.where.split(":")[0] for found in findings})
    findings += await asyncio.to_thread(_scan_messages, said)
    return outcome(findings, replace(evidence, counts={"files": len(paths)}, excerpt=""))


async def _looked_at(parameters: Mapping[str, Any], project: ProjectFiles, since: Since) -> tuple[list[str], Evidence]:
    """All files of `paths` if only `paths` is given, else the changed files."""
    globs = parameters.get("paths", ["."])
    if _compares(parameters):
        found = await changes_since(project, since)
        paths = [one.path for one in found.files if is_in(one.path, globs)]
        return paths, await git_evidence(CARD, found, paths, project)
    files = await tree_files(project)
    if files is None:
        message = f"the project has more than {FILES_MAX:,} files"
        raise GitUnavailable(message, "let git ignore generated files", FixedBy.AGENT)
    return [path for path in files if is_in(path, globs)], evidence_of(CARD)


async def _committed(parameters: Mapping[str, Any], project: ProjectFiles, since: Since) -> dict[FileVersion, bytes]:
    """What files contained in the commits since then: a secret stays there, also if a later commit removes it."""
    if not _compares(parameters):
        return {}
    await require_start(project, since)
    versions = await versions_since(project, since.commit)
    named = [one for one in versions if is_in(one.path, parameters.get("paths", ["."]))]
    known = await contents(project, (one.oid for one in named))
    return {one: known[one.oid] for one in named if one.oid in known}


async def _said(parameters: Mapping[str, Any], project: ProjectFiles, since: Since) -> dict[str, str]:
    """The messages of the commits since then."""
    return await messages_since(project, since.commit) if _compares(parameters) else {}


def _scan_old(old: Mapping[FileVersion, bytes], known: Collection[str]) -> list[Finding]:
    """The secrets in old versions of files, without the files in which secrets were found already."""
    findings: list[Finding] = []
    for version, content in old.items():
        if version.path in known or len(findings) > FINDINGS_MAX:
            continue
        text = _decoded(content)
        for found in _secrets(version.path, text):
            place = f"{found.where} (commit {version.commit[:12]})"
            message = f"{found.message}, in a commit of this run"
            findings.append(replace(found, where=place, message=message, fix=FIX_COMMITTED))
    return findings


def _scan_messages(messages: Mapping[str, str]) -> list[Finding]:
    """The secrets in the messages of commits."""
    return [
        replace(found, message=f"{found.message}, in the message of a commit of this run", fix=FIX_COMMITTED)
        for commit, message in messages.items()
        for found in _secrets(f"commit {commit[:12]}", message)
    ]


def _compares(parameters: Mapping[str, Any]) -> bool:
    return "paths" not in parameters or "since" in parameters or "against" in parameters


async def _inputs(parameters: Mapping[str, Any], setting: Setting) -> str:
    tree = await tree_of(setting)
    base = ""
    if _compares(parameters):
        try:
            since, project = since_of(parameters, setting), project_of(setting)
            base = f"{await state_of(project, since)} {await commit_of(project, HEAD)}"
        except GitUnavailable:
            return ""
    return f"sha256:{hashlib.sha256(f'{tree} {base}'.encode()).hexdigest()}" if tree else ""


def _scan(project: ProjectFiles, paths: Sequence[str]) -> list[Finding]:
    findings: list[Finding] = []
    left = BYTES_MAX
    for path in paths:
        try:
            text = _text(project, path)
        except PathRefused as error:
            fix = "remove it from `paths`, or make it smaller"
            findings.append(found_at(CARD.name, path, f"{error}, so it was not searched for secrets", fix))
            continue
        left -= len(text)
        if left < 0:
            message = f"the files have more than {BYTES_MAX:,} bytes; those from {path} on were not searched"
            return [*findings, not_checked(CARD.name, message, "name fewer files in `paths`", FixedBy.AGENT)]
        findings += _secrets(path, text)
        if len(findings) > FINDINGS_MAX:
            break  # more would not be shown
    return findings


def _text(project: ProjectFiles, path: str) -> str:
    """The text of a file; empty if it is gone, not a plain file, or binary."""
    link = project.root / path
    if link.is_symlink() or not link.is_file():
        return ""
    with os.fdopen(project.opened(path), "rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    text = _decoded(content)
    if text and len(content) > FILE_BYTES_MAX:
        raise PathRefused(f"{path} is larger than {FILE_BYTES_MAX:,} bytes")
    return text


def _decoded(content: bytes) -> str:
    """The text of a content; empty if it is binary."""
    is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if b"\0" in content[:HEAD_BYTES] and not is_wide:
        return ""
    return content.decode("utf-16" if is_wide else "utf-8", errors="replace")


def _secrets(path: str, text: str) -> Iterator[Finding]:
    spans = _spans(text)
    for span in spans[: FINDINGS_MAX + 1]:
        line = text.count("\n", 0, span.start) + 1
        column = span.start - text.rfind("\n", 0, span.start)
        excerpt = _masked(text, spans, span)
        yield found_at(CARD.name, f"{path}:{line}:{column}", f"this is a secret: {span.kind}", FIX, excerpt=excerpt)


def _spans(text: str) -> list[_Span]:
    """All secrets in a string, in order; overlapping ones are merged."""
    forms: list[Form] = list(forms_in(text))
    if AWS_ID in forms and AWS_ID.pattern.search(text):
        forms.append(AWS_SECRET)
    every: Iterable[_Span] = (
        _Span(*_place(found), form.kind)
        for form in forms
        for found in form.pattern.finditer(text)
        if not (form.kind == IN_ADDRESS and _is_placeholder(found))
    )
    every = chain(every, (_Span(start, end, kind) for start, end, kind in disguised(text)))
    spans: list[_Span] = []
    for span in sorted(every):
        if spans and span.start < spans[-1].end:
            spans[-1] = replace(spans[-1], end=max(span.end, spans[-1].end))
        else:
            spans.append(span)
    return spans


def _is_placeholder(found: re.Match[str]) -> bool:
    start, end = _place(found)
    return is_placeholder(found[1], found.string[start:end], found.string[end : end + HOST_MAX])


def _place(found: re.Match[str]) -> tuple[int, int]:
    start, end = found.span()
    return (found.end(1) if found.re.groups else start), end


def _masked(text: str, spans: Sequence[_Span], span: _Span) -> str:
    """The line around a secret, with all secrets hidden."""
    start = max(text.rfind("\n", 0, span.start) + 1, span.start - AROUND)
    stop = text.find("\n", span.end)
    stop = min(len(text) if stop < 0 else stop, span.end + AROUND)
    shown, at = "", start
    for one in spans:
        if one.end > start and one.start < stop:
            shown += text[at : max(at, one.start)] + f"[{one.kind}]"
            at = one.end
    return (shown + text[at:stop]).strip()


no_secrets: Final = FunctionRule(CARD, _apply, _inputs)
