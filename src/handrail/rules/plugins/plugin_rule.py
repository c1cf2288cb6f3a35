"""A plugin rule: a rule of a third-party package, applied in a process of its own, within limits.

Its code is never imported here. It runs in the same sandbox as commands: no network, no write access, no access to
other processes. Its answer is validated, because the code is not trusted. The process itself is in plugin_host.py."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, FixedBy, Severity
from handrail.domain.checks.rule import CheckOutcome, Evidence, Reads, RuleCard
from handrail.domain.definition.duration import duration_ms, duration_text
from handrail.domain.definition.model import Category
from handrail.domain.definition.semver import parse_version
from handrail.domain.errors import Invalid
from handrail.domain.json import digest
from handrail.engine.checking.rule import RuleUnavailable, Setting
from handrail.engine.sandbox import Bounds, Job, Ran, Sandbox
from handrail.engine.tool import ToolFailed
from handrail.rules.files.tree import tree_of
from handrail.rules.output.subject import MISSING, missing, subject_of

AT_ONCE: Final = 4
MEMORY_BYTES: Final = 536_870_912
PROCESSES: Final = 32
ANSWER_BYTES_MAX: Final = 1_000_000
QUESTION_BYTES_MAX: Final = 10_000_000
TIMEOUT_MS_MAX: Final = 600_000
DESCRIBE_MS: Final = 15_000
FINDINGS_MAX: Final = 51
"""As many as a host lists, and the note that there are more."""
TEXT_MAX: Final = 1_000
WORDS_MAX: Final = 300
PARAMETERS_MAX: Final = 50
CARD_BYTES_MAX: Final = 100_000
SHARED: Final = frozenset({"of", "timeout"})
"""Parameters that every check may have and that are not passed to the rule."""
OWN_PLACE: Final = str(Path(__file__).parents[3])
START: Final = "import sys; sys.path.append(sys.argv[1]); from handrail.rules.plugins.plugin_host import main; main()"
"""With -I, Python finds only installed packages, and handrail itself may run from a checkout: so its place is added."""
NO_SANDBOX_FIX: Final = "ask a person to run `handrail doctor`: it says what the sandbox needs"

Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Text = Annotated[str, Meta(max_length=TEXT_MAX * 10)]

_unprintable = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class RuleBroken(Exception):
    """A rule returned no findings: it crashed, hung, wrote too much, or answered nonsense."""


class RuleEntry(Struct, frozen=True, kw_only=True):
    """Where a rule of a package is, according to the package's metadata."""

    name: str
    value: str
    """`package.module:name`"""
    package: str
    version: str
    """The version of the package."""
    path: tuple[str, ...] = ()
    """The folders with its code."""
    content: str = ""
    """The digest of its files by the installer's record; empty if they can change within one version."""

    @property
    def origin(self) -> str:
        """The package and its version, for display."""
        return f"{self.package} {self.version}"


class _Card(Struct, frozen=True, kw_only=True):
    """The card of a rule as it comes from its process, within limits."""

    name: Name
    summary: Annotated[str, Meta(max_length=TEXT_MAX)]
    version: Annotated[str, Meta(max_length=100)]
    reads: Reads
    timeout: Annotated[str, Meta(max_length=20)]
    parameters: Annotated[dict[Name, dict[str, Any] | bool], Meta(max_length=PARAMETERS_MAX)] = field(
        default_factory=dict
    )
    required: Annotated[tuple[Name, ...], Meta(max_length=PARAMETERS_MAX)] = ()
    example: dict[str, Any] = field(default_factory=dict)


class _Found(Struct, frozen=True):
    message: Text
    where: Text = "output"
    fix: Text = ""
    excerpt: Text = ""


class _Answer(Struct, frozen=True, kw_only=True):
    card: _Card | None = None
    findings: Annotated[tuple[_Found, ...], Meta(max_length=FINDINGS_MAX)] | None = None
    failed: str | None = None
    broken: str | None = None


class PluginSandbox:
    """Runs plugin rules in the sandbox, a few at once."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.caveat = sandbox.caveat
        self._places = asyncio.Semaphore(AT_ONCE)

    async def trial(self) -> str:
        """Empty if plugin rules can run here, else why not."""
        return await self._sandbox.trial()

    async def ask(self, question: Mapping[str, Any], *, time_ms: int) -> tuple[_Answer, Ran]:
        """The answer of a rule; RuleBroken says why there is none."""
        stdin = msgspec.json.encode(question)
        if len(stdin) > QUESTION_BYTES_MAX:
            raise RuleBroken(f"the output has {len(stdin):,} bytes; plugin rules accept at most {QUESTION_BYTES_MAX:,}")
        bounds = Bounds(
            time_ms=time_ms,
            memory_bytes=MEMORY_BYTES,
            processes=PROCESSES,
            output_bytes=ANSWER_BYTES_MAX,
            file_bytes=ANSWER_BYTES_MAX,
        )
        job = Job(argv=command(), stdin=stdin.decode(), bounds=bounds, writable=False)
        # Each is a process of its own: a step with thirty checks must not start thirty of them at once.
        async with self._places:
            try:
                ran = await self._sandbox.run(job)
            except ToolFailed as error:
                # A machine that is busy may have room a moment later; a rule that can't start will never.
                kind = RuleUnavailable if error.category is Category.TRANSIENT else RuleBroken
                raise kind(error.message) from error
        return _answer_in(ran, bounds), ran


class PluginRule:
    """A rule of a package, as the gate applies it."""

    def __init__(self, card: RuleCard, entry: RuleEntry, sandbox: PluginSandbox) -> None:
        self.card = card
        self._entry = entry
        self._sandbox = sandbox

    async def apply(self, parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
        """The findings of the rule; RuleBroken if it returns none."""
        if why_not := await self._sandbox.trial():
            return CheckOutcome(findings=(_not_run(self.card.name, why_not),), evidence=self._unsettled())
        output = subject_of(parameters, setting.given)
        if output is MISSING:
            return CheckOutcome(findings=(missing(self.card.name, parameters),))
        question = {
            **_asked("apply", self._entry),
            "parameters": {name: value for name, value in parameters.items() if name not in SHARED},
            "output": output,
            "project": str(setting.project),
            "private": [str(folder) for folder in setting.private],
        }
        answer, ran = await self._sandbox.ask(question, time_ms=self._time_ms(parameters))
        if answer.failed is not None:
            raise RuleUnavailable(_clean(answer.failed))
        if answer.findings is None:
            raise RuleBroken("its answer has no findings")
        findings = tuple(self._finding(one) for one in answer.findings)
        return CheckOutcome(findings=findings, evidence=self._evidence(ran, passed=not findings))

    async def inputs(self, parameters: Mapping[str, Any], setting: Setting) -> str:
        """The digest of the output, of the package's files, and of the project's files if the rule reads them."""
        # A package that is installed as a link to its sources can change without a new version: nothing is cached then.
        if not self._entry.content:
            return ""
        tree = ""
        if self.card.reads is Reads.PROJECT:
            tree = await tree_of(setting)
            if not tree:
                return ""
        return digest([self._entry.content, self._entry.value, setting.given.output, tree])

    def _time_ms(self, parameters: Mapping[str, Any]) -> int:
        text = parameters.get("timeout") or self.card.timeout
        return max(1, min(duration_ms(str(text)), TIMEOUT_MS_MAX))

    def _finding(self, found: _Found) -> Finding:
        return Finding(
            rule=self.card.name,
            severity=Severity.MAJOR,
            where=_clean(found.where) or "output",
            message=_clean(found.message) or "the rule does not say what is wrong",
            fix=_clean(found.fix),
            excerpt=_clean(found.excerpt),
        )

    def _unsettled(self) -> Evidence:
        """The evidence of a check that could not be applied: with a sandbox the outcome may be another."""
        return Evidence(rule=self.card.name, version=self.card.version, passed=False, is_settled=False)

    def _evidence(self, ran: Ran, *, passed: bool) -> Evidence:
        version = ".".join(map(str, sys.version_info[:3]))
        return Evidence(
            rule=self.card.name,
            version=self.card.version,
            passed=passed,
            ran=(Path(sys.executable).name, *command()[1:-1], self._entry.value),
            exit=ran.exit,
            took=ran.took_ms,
            tools={"python": version, self._entry.package: self._entry.version},
            caveat=self._sandbox.caveat,
        )


async def described(entry: RuleEntry, sandbox: PluginSandbox) -> PluginRule:
    """The rule of an entry with its card; RuleBroken if it can't be used."""
    if why_not := await sandbox.trial():
        raise RuleBroken(f"{why_not}; {NO_SANDBOX_FIX}")
    answer, _ = await sandbox.ask(_asked("describe", entry), time_ms=DESCRIBE_MS)
    card = answer.card
    if card is None:
        raise RuleBroken("its answer does not describe it")
    _require_valid(card, entry)
    fields = {name: getattr(card, name) for name in card.__struct_fields__}
    return PluginRule(replace(RuleCard(**fields), summary=_clean(card.summary), origin=entry.origin), entry, sandbox)


def command() -> tuple[str, ...]:
    """The command that starts a host process."""
    return (sys.executable, "-I", "-c", START, OWN_PLACE)


def _asked(what: str, entry: RuleEntry) -> dict[str, Any]:
    return {"what": what, "rule": entry.value, "path": entry.path}


def _require_valid(card: _Card, entry: RuleEntry) -> None:
    if card.name != entry.name:
        raise RuleBroken(
            f"its entry point is called {entry.name} but the rule is called {card.name}; give both the same name"
        )
    if card.reads is Reads.NETWORK:
        raise RuleBroken("it reads the network, which plugin rules can't reach: choose `output` or `project`")
    if unknown := sorted(set(card.required) - set(card.parameters)):
        raise RuleBroken(f"it requires `{unknown[0]}`, which is not one of its parameters")
    if len(msgspec.json.encode(card)) > CARD_BYTES_MAX:
        raise RuleBroken(f"its card has more than {CARD_BYTES_MAX:,} bytes")
    try:
        parse_version(card.version)
        duration_ms(card.timeout)
    except Invalid as error:
        raise RuleBroken(f"{error}; {error.hint}") from error


def _answer_in(ran: Ran, bounds: Bounds) -> _Answer:
    """The validated answer of a host process."""
    if ran.stopped:
        raise RuleBroken(_beyond(bounds)[ran.stopped] + _last_words(ran))
    if ran.exit or not ran.stdout:
        raise RuleBroken(f"it ended without an answer (exit {ran.exit})" + _last_words(ran))
    answer = _decoded(ran.stdout, _Answer)
    if answer.broken is not None:
        raise RuleBroken(_clean(answer.broken))
    return answer


Shape = TypeVar("Shape")


def _decoded(text: str, shape: type[Shape]) -> Shape:
    try:
        return msgspec.json.decode(text, type=shape)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RuleBroken(f"its answer is not valid: {_clean(str(error))[:WORDS_MAX]}") from error


def _beyond(bounds: Bounds) -> Mapping[str, str]:
    return {
        "time": f"it took longer than {duration_text(bounds.time_ms)}",
        "memory": f"it used more than {bounds.memory_bytes // 1_048_576} MiB of memory",
        "processes": f"it started more than {bounds.processes} processes",
        "output": f"it wrote more than {bounds.output_bytes:,} bytes",
    }


def _last_words(ran: Ran) -> str:
    words = _clean(" ".join(ran.stderr[-10 * WORDS_MAX :].split()))[-WORDS_MAX:]
    return f"; its last output: {words}" if words else ""


def _clean(text: str) -> str:
    """A string that is safe to display: without characters that move a terminal's cursor or reverse text."""
    return _unprintable.sub(" ", text).encode(errors="replace").decode()[:TEXT_MAX]


def _not_run(name: str, why_not: str) -> Finding:
    return Finding(
        rule=name,
        severity=Severity.MAJOR,
        where="checks",
        message=f"the rule was not run: it needs a sandbox: {_clean(why_not)}",
        fix=NO_SANDBOX_FIX,
        unapplied=True,
        fixed_by=FixedBy.PERSON,
    )
