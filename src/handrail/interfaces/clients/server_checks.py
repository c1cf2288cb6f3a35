"""Checks of servers as clients start them: whether they answer, how fast, their tools and version.

probe.py starts them, configured.py finds them; here the results become checks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

from handrail.domain.plural import plural
from handrail.interfaces.clients.check import Check, fail, ok, warn
from handrail.interfaces.clients.configured import Configured
from handrail.interfaces.clients.launch import NAME, Launch
from handrail.interfaces.clients.probe import UNSTARTED, Answered, ProbeFailed, probe_legacy, probe_modern

SLOW_MS: Final = 5_000
"""Half of the shortest start timeout of any client."""
TOKENS_MANY: Final = 5_000
INIT: Final = "run `handrail init` to write the entry again"


@dataclass(frozen=True, slots=True)
class Server:
    """A server, what it answered in each version of the protocol, and its checks."""

    name: str
    launch: Launch
    answers: Mapping[str, Answered] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()


def entry_checks(entry: Configured) -> Iterator[Check]:
    """Checks of an entry that need no start."""
    name = name_of(entry)
    if entry.error is not None:
        yield fail(name, f"{entry.file} can't be read: {entry.error}", entry.error.hint)
    elif entry.launch is None:
        yield ok(name, "has no command to start; not tested")
    elif entry.is_off:
        yield warn(name, f"turned off in {entry.file}", "turn it on there, or in the client")


def name_of(entry: Configured) -> str:
    """The name of an entry in the list."""
    return f"{entry.client.name} ({entry.scope})" + (f" {entry.name}" if entry.name not in ("", NAME) else "")


async def tried(name: str, launch: Launch, environment: Mapping[str, str]) -> Server:
    """Start a server twice, once for each version of the protocol, and check its answers."""
    answers: dict[str, Answered] = {}
    failures: dict[str, str] = {}
    for era, probe in (("modern", probe_modern), ("legacy", probe_legacy)):
        try:
            answers[era] = await probe(launch, environment)
        except ProbeFailed as error:
            failures[era] = str(error)
            if not answers and str(error).startswith(UNSTARTED):
                break
    if not answers:
        return Server(name, launch, answers, (_failed(name, launch, next(iter(failures.values()))),))
    return Server(name, launch, answers, tuple(_judged(name, answers, failures)))


def _failed(name: str, launch: Launch, reason: str) -> Check:
    if reason.startswith(UNSTARTED):
        return fail(name, reason, INIT)
    by_hand = shlex.join([launch.command, *launch.args])
    return fail(name, reason, f"start it by hand, and fix what it reports: {by_hand}")


def _judged(name: str, answers: Mapping[str, Answered], failures: Mapping[str, str]) -> Iterator[Check]:
    for era, reason in failures.items():
        yield warn(name, f"clients with the {era} protocol can't use it: {reason}", "install a newer handrail")
    answer = next(iter(answers.values()))
    times = ", ".join(f"{one.started_ms} ms ({era})" for era, one in answers.items())
    yield ok(name, f"{plural(answer.tools, 'tool')}, {answer.tokens:,} tokens, ready in {times}")
    yield from _remarks(name, answer)


def _remarks(name: str, answer: Answered) -> Iterator[Check]:
    ours = version(NAME)
    if answer.tools == 0:
        yield fail(name, "has no tools", "check the --toolsets in its arguments")
    if answer.server == NAME and answer.version != ours:
        yield warn(name, f"version {answer.version} differs from this one, {ours}", INIT)
    if answer.server != NAME:
        yield warn(name, f"calls itself `{answer.server}`, not handrail", INIT)
    if answer.started_ms > SLOW_MS:
        yield warn(name, "starts slowly; some clients give up after 10 s", "see the log in HANDRAIL_HOME/logs")
    if answer.tokens > TOKENS_MANY:
        yield warn(name, "its tools cost many tokens", "choose fewer with --toolsets")
