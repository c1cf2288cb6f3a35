"""The table [witnesses] of config.toml in HANDRAIL_HOME: which targets there are, each a string with its kind in front.

    [witnesses]
    targets = ["file:/backup/handrail.jsonl", "git:/srv/audit.git", "https://witness.example/in", "syslog://host:514"]

A project can't name witnesses: what was cloned must not get copies of what is signed here."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from handrail.domain.errors import Invalid
from handrail.engine.proving.witness_courier import Witness
from handrail.storage.witnesses.file_witness import FileWitness
from handrail.storage.witnesses.git_witness import GitWitness
from handrail.storage.witnesses.syslog_witness import SyslogWitness

TARGETS_MAX: Final = 10
TARGET_LENGTH_MAX: Final = 2_000
EXAMPLE: Final = 'write: targets = ["file:/backup/handrail.jsonl"]'
KINDS: Final = "file:PATH, git:REPOSITORY, https://..., syslog: (this machine) or syslog://HOST:PORT"
KEYS: Final = frozenset({"targets", "token_env"})


def witnesses_of(table: Mapping[str, Any], *, home: Path) -> tuple[Witness, ...]:
    """The witnesses that the table names; Invalid with what is wrong."""
    targets, token_env = table.get("targets", []), table.get("token_env", "")
    if table.keys() - KEYS or not isinstance(token_env, str) or not _is_texts(targets):
        raise Invalid("config.toml: [witnesses] takes a list of strings: targets, and token_env", hint=EXAMPLE)
    if len(targets) > TARGETS_MAX or any(len(target) > TARGET_LENGTH_MAX for target in targets):
        raise Invalid(f"config.toml: [witnesses] has more than {TARGETS_MAX} targets, or a very long one", hint=EXAMPLE)
    return tuple(_witness(target, token_env, home) for target in dict.fromkeys(targets))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _witness(target: str, token_env: str, home: Path) -> Witness:
    kind, _, rest = target.partition(":")
    if kind == "file" and rest:
        return FileWitness(target, _outside(rest, home))
    if kind == "git" and rest:
        return GitWitness(target, _outside(rest, home))
    if kind == "syslog":
        return _syslog(target)
    if kind in {"http", "https"}:
        # Late: only who has such a witness pays for importing an HTTP client at the start.
        from handrail.storage.witnesses.https_witness import HttpsWitness

        _require_safe(target, _split(target))
        return HttpsWitness(target, token_env)
    raise Invalid(f"config.toml: [witnesses] knows no target {target!r}", hint=f"targets are: {KINDS}")


def _outside(text: str, home: Path) -> Path:
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise Invalid(f"config.toml: [witnesses]: {text!r} is not a whole path", hint="start it with / or ~")
    if path.resolve().is_relative_to(home.resolve()):
        raise Invalid(
            f"config.toml: [witnesses]: {text!r} is inside HANDRAIL_HOME, where it proves nothing",
            hint="name a place that is not replaced together with the journal",
        )
    return path


def _split(target: str) -> SplitResult:
    try:
        url = urlsplit(target)
        _ = url.port  # raises if it is no number
    except ValueError as error:
        raise Invalid(
            f"config.toml: [witnesses]: {target!r} is no address: {error}", hint=f"targets are: {KINDS}"
        ) from error
    return url


def _require_safe(target: str, url: SplitResult) -> None:
    if not url.hostname or url.username or url.password:
        raise Invalid(
            f"config.toml: [witnesses]: {url.scheme}://{url.hostname or ''} must have a host, and no user or password",
            hint="name the variable with the token: token_env",
        )
    if url.scheme == "http" and not _is_loopback(url.hostname):
        raise Invalid(f"config.toml: [witnesses]: {target!r} is not encrypted", hint="use https://")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _syslog(target: str) -> Witness:
    if target == "syslog:":
        return SyslogWitness(target)
    url = _split(target)
    if not url.hostname or url.path not in {"", "/"}:
        raise Invalid(f"config.toml: [witnesses]: {target!r} has no host", hint="write syslog: or syslog://HOST:PORT")
    return SyslogWitness(target, url.hostname, url.port or 514)
