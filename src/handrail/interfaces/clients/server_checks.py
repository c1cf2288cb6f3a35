"""Checks of servers as clients start them: do they answer, how fast, with how many tools, and of which version.

Turns what probe.py sees into checks; where the servers come from is told in configured.py."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

from handrail.interfaces.clients.check import Check, fail, ok, warn
from handrail.interfaces.clients.configured import Configured
from handrail.interfaces.clients.launch import NAME, Launch
from handrail.interfaces.clients.probe import UNSTARTED, Answered, ProbeFailed, probe_legacy, probe_modern

SLOW_MS: Final = 5_000
"""Half of what the least patient client grants a server to start."""
TOKENS_MANY: Final = 5_000
MEND: Final = "run `handrail init` to write the entry anew"


@dataclass(frozen=True, slots=True)
class Server:
    """A server, what it showed in each era, and what there is to say about it."""

    name: str
    launch: Launch
    answers: Mapping[str, Answered] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()


def entry_checks(entry: Configured) -> Iterator[Check]:
    """What can be said of an entry without starting it."""
    name = name_of(entry)
    if entry.error is not None:
        yield fail(name, f"{entry.file} can't be read: {entry.error}", entry.error.hint)
    elif entry.launch is None:
        yield ok(name, "it is reached without starting a command; not tried")
    elif entry.is_off:
        yield warn(name, f"it is turned off in {entry.file}", "turn it on there, or in the client")


def name_of(entry: Configured) -> str:
    """How an entry is called in the list."""
    return f"{entry.client.name} ({entry.scope})" + (f" {entry.name}" if entry.name not in ("", NAME) else "")


async def tried(name: str, launch: Launch, environment: Mapping[str, str]) -> Server:
    """Start a server twice, once for each era of the protocol, and judge what it showed."""
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
        return fail(name, reason, MEND)
    by_hand = shlex.join([launch.command, *launch.args])
    return fail(name, reason, f"start it by hand, and mend what it says: {by_hand}")


def _judged(name: str, answers: Mapping[str, Answered], failures: Mapping[str, str]) -> Iterator[Check]:
    for era, reason in failures.items():
        yield warn(name, f"clients of the {era} protocol can't use it: {reason}", "install a newer handrail")
    answer = next(iter(answers.values()))
    times = ", ".join(f"{one.started_ms} ms ({era})" for era, one in answers.items())
    yield ok(name, f"{answer.tools} tools, {answer.tokens} tokens, from start to tools in {times}")
    yield from _remarks(name, answer)


def _remarks(name: str, answer: Answered) -> Iterator[Check]:
    ours = version(NAME)
    if answer.tools == 0:
        yield fail(name, "it has no tools", "see whether its arguments name --toolsets that exist")
    if answer.server == NAME and answer.version != ours:
        yield warn(name, f"it is version {answer.version}, and this is {ours}", MEND)
    if answer.server != NAME:
        yield warn(name, f"it calls itself `{answer.server}`: is it handrail?", MEND)
    if answer.started_ms > SLOW_MS:
        yield warn(name, "it starts slowly; some clients give up after 10 s", "see what the log in HANDRAIL_HOME says")
    if answer.tokens > TOKENS_MANY:
        yield warn(name, "its tools cost an agent many tokens", "choose fewer with --toolsets")
