"""The gate: applies the checks of a step to what was handed in, and says what came of it.

Async. Checks run side by side within a limit, each within its time; what was found before on the very same is not
looked for again. A rule that crashes, hangs or talks nonsense is a finding of its own: never a pass, never our end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from handrail.domain.check import Finding, Severity, blocks
from handrail.domain.definition import Check, Prompt, Tool
from handrail.domain.duration import duration_ms, duration_text
from handrail.domain.json import digest
from handrail.domain.judgement import Asked, Judgement, asked_of, given_of, not_run, weighed
from handrail.domain.path import Lane
from handrail.domain.rule import Evidence, Outcome, Reads, RuleCard, SchemaJudge
from handrail.domain.run import Run
from handrail.domain.suggestion import did_you_mean
from handrail.engine.rule import Memory, Rule, RuleUnwell, Setting, Shelf
from handrail.engine.sandbox import Sandbox
from handrail.engine.tool import Progress, silent

AT_ONCE: Final = 4
"""How many checks that wait run at once, over all runs."""
TRIES: Final = 3
PAUSE_S: Final = 0.5
FINDINGS_MAX: Final = 50
TEXT_MAX: Final = 1_000
EXCERPT_MAX: Final = 2_000
NESTED_MAX: Final = 8
TIMEOUT_MS_MAX: Final = 3_600_000

Tree: TypeAlias = Callable[[], Awaitable[str]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Judges outputs by the rules that there are."""

    rules: Shelf
    fits: SchemaJudge
    project: Path
    sandbox: Sandbox
    memory: Memory
    private: tuple[Path, ...] = ()
    tree: Tree | None = None
    """Tells the digest of the project's files as they are now."""
    is_plain: bool = False
    """Whether only rules are run that look at the output alone; others are told as not run."""
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def judge(
        self, work: Prompt | Tool, output: Any, run: Run, lane: Lane, *, progress: Progress = silent
    ) -> Judgement:
        """What is to be said of an output; checks are applied only if it has the right shape."""
        shape = tuple(self.fits(work.output, output)) if work.output is not None else ()
        if blocks(shape) or not work.checks:
            return Judgement(shape, bar=work.bar)
        bench = Bench(self, output, run, lane, progress)
        outcomes = await bench.all_of(work.checks)
        findings = [*shape, *(found for _, outcome in outcomes for found in outcome.findings)]
        passed = [check.rule for check, outcome in outcomes if outcome.evidence is not None and outcome.evidence.passed]
        evidence = [outcome.evidence for _, outcome in outcomes if outcome.evidence is not None]
        return Judgement(tuple(findings[:FINDINGS_MAX]), tuple(dict.fromkeys(passed)), tuple(evidence), work.bar)


class Bench:
    """One output on trial."""

    def __init__(self, gate: Gate, output: Any, run: Run, lane: Lane, progress: Progress) -> None:
        self._gate = gate
        self._output = output
        self._run = run
        self._lane = lane
        self._progress = progress
        self._given = given_of(output, run, lane, gate.fits)

    async def all_of(self, checks: Sequence[Check]) -> list[tuple[Check, Outcome]]:
        """What each check comes to; those whose condition does not hold are left out."""
        asked = [(check, asked_of(check, self._output, self._run, self._lane)) for check in checks]
        found = await asyncio.gather(*(self._outcome(check, one) for check, one in asked if one is not None))
        return list(zip([check for check, one in asked if one is not None], found, strict=True))

    async def _outcome(self, check: Check, asked: Asked | Finding) -> Outcome:
        if isinstance(asked, Finding):
            return Outcome(findings=(asked,))
        outcome = await self._applied(check.rule, asked.parameters, depth=0)
        if outcome.evidence is None:
            return outcome  # it was not applied at all, and how bad that is no check can say
        return replace(outcome, findings=tuple(weighed(check, outcome.findings)))

    async def _applied(self, name: str, parameters: Mapping[str, Any], *, depth: int) -> Outcome:
        rule = await self._gate.rules.find(name)
        if rule is None:
            words = not_run(name) if self._gate.is_plain else _unusable(name, self._gate.rules)
            return Outcome(findings=(words,))
        if flaws := self._misfits(rule, parameters):
            return Outcome(findings=flaws)
        setting = self._setting(depth)
        if rule.card.reads is Reads.OUTPUT:
            return await _guarded(rule, parameters, setting)
        if self._gate.is_plain:
            return Outcome(findings=(not_run(name),))
        async with self._gate.places:
            return await self._remembered(rule, parameters, setting)

    def _setting(self, depth: int) -> Setting:
        async def nested(check: Mapping[str, Any]) -> Outcome | None:
            return await self._inside(check, depth + 1)

        gate = self._gate
        return Setting(
            given=self._given,
            project=gate.project,
            private=gate.private,
            sandbox=gate.sandbox,
            nested=nested,
            progress=self._progress,
        )

    async def _inside(self, check: Mapping[str, Any], depth: int) -> Outcome | None:
        """What a check comes to that stands inside another."""
        name = str(check.get("rule", ""))
        if depth > NESTED_MAX:
            return Outcome(findings=(_flaw(name, f"checks stand in checks, more than {NESTED_MAX} deep"),))
        if "when" in check and self._given.evaluate(str(check["when"])) is not True:
            return None
        parameters = {key: value for key, value in check.items() if key not in OF_CHECK}
        return await self._applied(name, parameters, depth=depth)

    def _misfits(self, rule: Rule, parameters: Mapping[str, Any]) -> tuple[Finding, ...]:
        """What is wrong with the parameters: that is the author's to mend, and never a pass."""
        card = rule.card
        schema = {
            "type": "object",
            "properties": {**card.parameters, **SHARED},
            "required": list(card.required),
            "additionalProperties": False,
        }
        return tuple(_flaw(card.name, found.message, found.where) for found in self._gate.fits(schema, parameters))

    async def _remembered(self, rule: Rule, parameters: Mapping[str, Any], setting: Setting) -> Outcome:
        """What the rule found before on the very same, or finds now."""
        try:
            inputs = await rule.inputs(parameters, setting)
        except (Exception, SystemExit) as error:  # a rule's own code: it may be anything, and must not be our end
            return _broken(rule, f"it can't say what it looks at: {_told(error)}")
        key = digest([rule.card.name, rule.card.version, parameters, inputs]) if inputs else ""
        tree = await self._gate.tree() if self._gate.tree is not None else ""
        if key and (known := await self._gate.memory.find(key)) is not None:
            return _as_remembered(known, tree)
        outcome = _with_digests(await _guarded(rule, parameters, setting), inputs, tree)
        if key and outcome.evidence is not None and outcome.evidence.is_settled:
            await self._gate.memory.keep(key, outcome)
        return outcome


OF_CHECK: Final = frozenset({"rule", "when", "severity", "message"})
SHARED: Final[Mapping[str, Any]] = {
    "of": {"type": "string", "maxLength": 1_000},
    "timeout": {"type": "string", "maxLength": 20},
}
"""Parameters that every rule takes."""


async def _guarded(rule: Rule, parameters: Mapping[str, Any], setting: Setting) -> Outcome:
    """What the rule finds, within its time; what it could not come to is tried again."""
    for left in reversed(range(TRIES)):
        try:
            return await _timed(rule, parameters, setting)
        except RuleUnwell as error:
            if not left:
                return _broken(rule, f"it could not come to an end, {TRIES} times: {_told(error)}")
            await asyncio.sleep(PAUSE_S)
        except TimeoutError:
            return _broken(rule, f"it took longer than {duration_text(_time_ms(rule, parameters))}")
        except (Exception, SystemExit) as error:  # a rule's own code: it may be anything, and must not be our end
            log.info("the rule %s broke", rule.card.name, exc_info=True)
            return _broken(rule, _told(error))
    raise AssertionError("the last try has returned")


async def _timed(rule: Rule, parameters: Mapping[str, Any], setting: Setting) -> Outcome:
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(_time_ms(rule, parameters) / 1_000):
        outcome = await rule.apply(parameters, setting)
    return _bounded(rule, outcome, took=round(1_000 * (loop.time() - began)))


def _time_ms(rule: Rule, parameters: Mapping[str, Any]) -> int:
    asked = parameters.get("timeout")
    text = asked if isinstance(asked, str) and asked else rule.card.timeout
    return min(duration_ms(text), TIMEOUT_MS_MAX)


def _bounded(rule: Rule, outcome: Outcome, *, took: int) -> Outcome:
    """An outcome that fits into the journal, with the evidence that every check leaves."""
    card = rule.card
    shown = tuple(map(_short, outcome.findings[:FINDINGS_MAX]))
    evidence = outcome.evidence or _bare(card, outcome)
    excerpt = evidence.excerpt[:EXCERPT_MAX]
    told = replace(evidence, rule=card.name, version=card.version, took=evidence.took or took, excerpt=excerpt)
    return Outcome(findings=shown, evidence=replace(told, passed=not outcome.findings))


def _bare(card: RuleCard, outcome: Outcome) -> Evidence:
    """The record of a rule that tells nothing of how it came to that: what stood in its way may be gone next time."""
    passed = not outcome.findings
    is_settled = passed or card.reads is Reads.OUTPUT
    return Evidence(rule=card.name, version=card.version, passed=passed, is_settled=is_settled)


def _short(finding: Finding) -> Finding:
    if not isinstance(finding, Finding):
        raise TypeError(f"it found something that is no finding: {type(finding).__name__}")
    fields = {name: str(getattr(finding, name))[:TEXT_MAX] for name in ("rule", "where", "message", "fix", "excerpt")}
    return replace(finding, **fields)


def _with_digests(outcome: Outcome, inputs: str, tree: str) -> Outcome:
    evidence = outcome.evidence
    if evidence is None:
        return outcome
    return replace(outcome, evidence=replace(evidence, digest=evidence.digest or inputs, tree=tree))


def _as_remembered(outcome: Outcome, tree: str) -> Outcome:
    evidence = replace(outcome.evidence, cached=True, tree=tree) if outcome.evidence is not None else None
    return replace(outcome, evidence=evidence)


def _broken(rule: Rule, words: str) -> Outcome:
    card = rule.card
    finding = Finding(
        rule=card.name,
        severity=Severity.CRITICAL,
        where="checks",
        message=f"the rule is broken: {words[:TEXT_MAX]}",
        fix="it neither passed nor failed; hand in again, or ask whoever wrote the rule",
    )
    evidence = Evidence(
        rule=card.name, version=card.version, passed=False, excerpt=words[:EXCERPT_MAX], is_settled=False
    )
    return Outcome(findings=(finding,), evidence=evidence)


def _unusable(name: str, rules: Shelf) -> Finding:
    if name in rules.broken:
        return _flaw(name, f"`{name}` can't be used: {rules.broken[name]}")
    near = did_you_mean(name, rules.names())
    return _flaw(name, f"there is no rule `{name}` here" + (f"; {near}" if near else ""))


def _flaw(rule: str, message: str, place: str = "") -> Finding:
    return Finding(
        rule=rule,
        severity=Severity.CRITICAL,
        where=f"checks.{place}" if place else "checks",
        message=f"the check can't be applied: {message}",
        fix="the workflow's author must mend it",
    )


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
