"""Checks of servers as clients start them: whether they answer, how fast, their tools and version.

configured.py finds the servers, probe.py starts them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

from handrail.domain.health.check import HealthCheck, fail, ok, warn
from handrail.domain.plural import plural
from handrail.interfaces.clients.configured import ConfiguredEntry
from handrail.interfaces.clients.launch import NAME, LaunchCommand, is_own
from handrail.interfaces.clients.probe import CANT_START, ProbeFailed, ProbeResult, probe_legacy, probe_modern

SLOW_MS: Final = 5_000
"""Half of the shortest start timeout of any client."""
TOKENS_WARN: Final = 5_000
INIT: Final = "run `handrail init` to write the entry again"


@dataclass(frozen=True, slots=True)
class Server:
    """A server, what it answered in each version of the protocol, and its checks."""

    name: str
    launch: LaunchCommand
    answers: Mapping[str, ProbeResult] = field(default_factory=dict)
    checks: tuple[HealthCheck, ...] = ()


def entry_checks(entry: ConfiguredEntry, home: Path) -> Iterator[HealthCheck]:
    """Checks of an entry that need no start; `home` is the HANDRAIL_HOME of this handrail."""
    name = name_of(entry)
    if entry.error is not None:
        yield fail(name, f"{entry.file} can't be read: {entry.error}", entry.error.hint)
    elif entry.launch is None:
        yield ok(name, "has no command to start; not tested")
    elif entry.is_off:
        yield warn(name, f"turned off in {entry.file}", "turn it on there, or in the client")
    elif not may_start(entry, home):
        command = shlex.join([entry.launch.command, *entry.launch.args])
        starts = "starts another program, or this one with other state"
        why = f"not started: {entry.file} is a file of the project, and its entry {starts}"
        yield warn(name, why, f"look at it, then start it by hand: {command}")


def may_start(entry: ConfiguredEntry, home: Path) -> bool:
    """Whether an entry may be started to test it: one that came with the project only if it starts this handrail, on
    this home."""
    return entry.launch is not None and (not entry.is_of_project or is_own(entry.launch, home))


def name_of(entry: ConfiguredEntry) -> str:
    """The name of an entry in the output."""
    return f"{entry.client.name} ({entry.scope})" + (f" {entry.name}" if entry.name not in ("", NAME) else "")


async def check_server(name: str, launch: LaunchCommand, environment: Mapping[str, str]) -> Server:
    """Start a server twice, once for each version of the protocol, and check its answers."""
    answers: dict[str, ProbeResult] = {}
    failures: dict[str, str] = {}
    for era, probe in (("modern", probe_modern), ("legacy", probe_legacy)):
        try:
            answers[era] = await probe(launch, environment)
        except ProbeFailed as error:
            failures[era] = str(error)
            if not answers and str(error).startswith(CANT_START):
                break
    if not answers:
        return Server(name, launch, answers, (_failed(name, launch, next(iter(failures.values()))),))
    return Server(name, launch, answers, tuple(_answer_checks(name, answers, failures)))


def _failed(name: str, launch: LaunchCommand, reason: str) -> HealthCheck:
    if reason.startswith(CANT_START):
        return fail(name, reason, INIT)
    by_hand = shlex.join([launch.command, *launch.args])
    return fail(name, reason, f"start it by hand, and fix what it reports: {by_hand}")


def _answer_checks(name: str, answers: Mapping[str, ProbeResult], failures: Mapping[str, str]) -> Iterator[HealthCheck]:
    for era, reason in failures.items():
        yield warn(name, f"clients with the {era} protocol can't use it: {reason}", "install a newer handrail")
    answer = next(iter(answers.values()))
    times = ", ".join(f"{one.started_ms} ms ({era})" for era, one in answers.items())
    yield ok(name, f"{plural(answer.tools, 'tool')}, {answer.tokens:,} tokens, ready in {times}")
    yield from _further_checks(name, answer)


def _further_checks(name: str, answer: ProbeResult) -> Iterator[HealthCheck]:
    ours = version(NAME)
    if answer.tools == 0:
        yield fail(name, "has no tools", "check the --toolsets in its arguments")
    if answer.server == NAME and answer.version != ours:
        yield warn(name, f"version {answer.version} differs from this one, {ours}", INIT)
    if answer.server != NAME:
        yield warn(name, f"calls itself `{answer.server}`, not handrail", INIT)
    if answer.started_ms > SLOW_MS:
        yield warn(name, "starts slowly; some clients give up after 10 s", "see the log in HANDRAIL_HOME/logs")
    if answer.tokens > TOKENS_WARN:
        yield warn(name, "its tools cost many tokens", "choose fewer with --toolsets")
