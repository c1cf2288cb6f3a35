"""The gate: applies the checks of a step to a submitted output, and reports the result.

Async: rules are applied here; the verdict follows in domain/checks/judgement.py. Checks run in parallel up to a
limit, each with a timeout; an outcome for identical inputs is taken from the cache. A rule that crashes, hangs or
returns nonsense becomes a finding: it never counts as a pass, and never ends this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, FixedBy, Severity, blocks
from handrail.domain.checks.judgement import (
    FINDINGS_MAX,
    CheckTask,
    Composed,
    Judgement,
    RuleCall,
    given_of,
    judgement_of,
    misfits,
    not_run,
    shape_of_output,
    tasks_of,
    unusable,
)
from handrail.domain.checks.rule import CheckOutcome, Evidence, Given, Reads, RuleCard, SchemaJudge
from handrail.domain.definition.duration import duration_ms, duration_text
from handrail.domain.definition.model import Prompt, Tool
from handrail.domain.json import digest
from handrail.domain.metrics.cache_catalog import CHECK_RESULTS
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import Lane
from handrail.domain.suggestion import did_you_mean
from handrail.engine.checking.rule import Baselines, Memory, Rule, RuleSet, RuleUnavailable, Setting
from handrail.engine.checking.shared_call import SharedLooks
from handrail.engine.known_secrets import NO_SECRETS, KnownSecrets
from handrail.engine.sandbox import Sandbox
from handrail.engine.tool import Progress, silent
from handrail.foundation.cache_use import use_of

AT_ONCE: Final = 4
"""How many checks that wait (not plain ones) run at once, over all runs."""
TRIES: Final = 3
PAUSE_S: Final = 0.5
TEXT_MAX: Final = 1_000
EXCERPT_MAX: Final = 2_000
TIMEOUT_MS_MAX: Final = 3_600_000
RESULTS: Final = use_of(CHECK_RESULTS)

Tree: TypeAlias = Callable[[], Awaitable[str]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class QualityGate:
    """Judges outputs by the available rules."""

    rules: RuleSet
    fits: SchemaJudge
    project: Path
    sandbox: Sandbox
    memory: Memory
    private: tuple[Path, ...] = ()
    tree: Tree | None = None
    """Computes the digest of the project's current files."""
    is_plain: bool = False
    """Whether only rules that read just the output are run; others are reported as not run."""
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    secrets: KnownSecrets = NO_SECRETS
    """What no finding may quote."""

    async def judge(
        self, work: Prompt | Tool, output: Any, run: Run, lane: Lane, *, step: str = "", progress: Progress = silent
    ) -> Judgement:
        """Judge an output of a step; checks are applied only if it fits the schema."""
        output = self.secrets.scrubber().value(output)  # now: a finding quotes the beginning of a value
        shape = shape_of_output(work, output, self.fits)
        if blocks(shape) or not work.checks:
            return judgement_of(work, shape)
        given = given_of(output, run, lane, self.fits)
        baselines = Baselines(run=run.baselines.get(""), step=run.baselines.get(step))
        checks = OutputChecks(self, given, baselines, progress)
        tasks = tasks_of(work.checks, given, run, lane)
        outcomes = await asyncio.gather(*(checks.outcome(task) for _, task in tasks))
        return judgement_of(work, shape, list(zip((check for check, _ in tasks), outcomes, strict=True)))


class OutputChecks:
    """Applies the check tasks of one output. What the outcomes mean is decided in domain/checks/judgement.py."""

    def __init__(self, gate: QualityGate, given: Given, baselines: Baselines, progress: Progress) -> None:
        self._gate = gate
        self._looks = SharedLooks()
        self._setting = Setting(
            given=given,
            project=gate.project,
            private=gate.private,
            sandbox=gate.sandbox,
            baselines=baselines,
            progress=progress,
            looks=self._looks,
        )

    async def outcome(self, task: CheckTask) -> CheckOutcome:
        """The outcome of a task and of all tasks inside it."""
        match task:
            case CheckOutcome():
                return task
            case Composed():
                return await self._composed(task)
            case RuleCall():
                return await self._applied(task)

    async def _composed(self, task: Composed) -> CheckOutcome:
        """The outcome of a rule made of rules; its parts run in parallel, within its timeout."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(_time_ms(task.card, task.parameters) / 1_000):
                parts = await asyncio.gather(*(self.outcome(part) for _, part in task.parts))
        except TimeoutError:
            return _too_slow(task.card, task.parameters)
        whole = task.outcome(parts)
        # Without evidence nothing counts as verified, which is right for a rule that was not run.
        bounded = _bounded(task.card, whole, took=_since(started)) if whole.was_run else whole
        return replace(bounded, looks_at=whole.looks_at)

    async def _applied(self, call: RuleCall) -> CheckOutcome:
        name, parameters = call.rule, call.parameters
        rule = await self._gate.rules.find(name)
        if rule is None:
            return not_run(name) if self._gate.is_plain else unusable(name, _why_not(name, self._gate.rules))
        if flaws := misfits(rule.card, parameters, self._gate.fits, is_filled=call.is_filled):
            return flaws
        if rule.card.reads is Reads.OUTPUT:
            return await _guarded(rule, parameters, self._setting)
        if self._gate.is_plain:
            return not_run(name)
        async with self._gate.places:
            outcome = await self._remembered(rule, parameters, self._setting)
        return replace(outcome, looks_at=rule.card.looks_at)

    async def _remembered(self, rule: Rule, parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
        """The cached outcome for identical inputs, or a new one."""
        reading = asyncio.ensure_future(self._tree())
        try:
            return await self._known_or_new(rule, parameters, setting, lambda: asyncio.shield(reading))
        finally:
            reading.cancel()

    async def _tree(self) -> str:
        return await self._looks.once("tree", self._gate.tree) if self._gate.tree is not None else ""

    async def _known_or_new(
        self, rule: Rule, parameters: Mapping[str, Any], setting: Setting, tree: Tree
    ) -> CheckOutcome:
        setting = replace(setting, tree=tree)
        try:
            inputs = await rule.inputs(parameters, setting)
        except (Exception, SystemExit) as error:  # third-party code may raise anything, and must not end this process
            return _broken(rule.card, f"it can't say what it reads: {_shown(error)}")
        # What was found without a sandbox is not what would be found in one.
        where = [setting.sandbox.caveat] if setting.sandbox.caveat else []
        key = digest([rule.card.name, rule.card.version, parameters, inputs, *where]) if inputs else ""
        if key and (known := await self._gate.memory.find(key)) is not None:
            return _as_remembered(known, await tree())
        with RESULTS.making() if key else nullcontext():
            outcome = await _guarded(rule, parameters, setting)
        outcome = _with_digests(outcome, inputs, await tree())
        if not key or not _is_settled(outcome):
            return outcome
        # The files may have changed while the rule looked at them: then it is not known which of them it saw.
        if inputs == (now := await self._inputs_now(rule, parameters, setting)):
            await self._gate.memory.keep(key, outcome)
        elif now and not outcome.findings and not setting.sandbox.caveat:  # without one, its own command may write
            return _changed_meanwhile(rule.card)
        return outcome

    async def _inputs_now(self, rule: Rule, parameters: Mapping[str, Any], setting: Setting) -> str:
        """What a rule reads once it has been applied: if that has changed, the outcome may be of either."""
        tree = self._gate.tree if self._gate.tree is not None else setting.tree
        try:
            return await rule.inputs(parameters, replace(setting, tree=tree, looks=SharedLooks()))
        except (Exception, SystemExit):  # third-party code may raise anything: then nothing is known about it
            return ""


def _is_settled(outcome: CheckOutcome) -> bool:
    return outcome.evidence is not None and outcome.evidence.is_settled


async def _guarded(rule: Rule, parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    """The outcome of a rule within its timeout; a rule that asks for it is retried."""
    for left in reversed(range(TRIES)):
        try:
            return await _timed(rule, parameters, setting)
        except RuleUnavailable as error:
            if not left:
                return _broken(rule.card, f"it failed {TRIES} times: {_shown(error)}")
            await asyncio.sleep(PAUSE_S)
        except TimeoutError:
            return _too_slow(rule.card, parameters)
        except (Exception, SystemExit) as error:  # third-party code may raise anything, and must not end this process
            log.info("the rule %s crashed", rule.card.name, exc_info=True)
            return _broken(rule.card, _shown(error))
    raise AssertionError("the last try has returned")


async def _timed(rule: Rule, parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    started = asyncio.get_running_loop().time()
    async with asyncio.timeout(_time_ms(rule.card, parameters) / 1_000):
        outcome = await rule.apply(parameters, setting)
    return _bounded(rule.card, outcome, took=_since(started))


def _since(started: float) -> int:
    """How many milliseconds have passed on the loop's clock."""
    return round(1_000 * (asyncio.get_running_loop().time() - started))


def _time_ms(card: RuleCard, parameters: Mapping[str, Any]) -> int:
    # An author may give a check less or more time, up to what the gate allows any of them.
    asked = parameters.get("timeout")
    text = asked if isinstance(asked, str) and asked else card.timeout
    return min(duration_ms(text), TIMEOUT_MS_MAX)


def _bounded(card: RuleCard, outcome: CheckOutcome, *, took: int) -> CheckOutcome:
    """An outcome that fits into the journal, with evidence."""
    shown = tuple(map(_short, outcome.findings[:FINDINGS_MAX]))
    if outcome.is_note:
        return CheckOutcome(findings=shown, was_run=False, is_note=True)
    evidence = outcome.evidence or _bare(card, outcome)
    excerpt = evidence.excerpt[:EXCERPT_MAX]
    complete = replace(evidence, rule=card.name, version=card.version, took=evidence.took or took, excerpt=excerpt)
    complete = replace(complete, passed=not outcome.findings)
    return CheckOutcome(findings=shown, evidence=complete, remarks=tuple(map(_short, outcome.remarks[:FINDINGS_MAX])))


def _bare(card: RuleCard, outcome: CheckOutcome) -> Evidence:
    """The evidence of a rule that gives none. A failure of one that reads more than the output is not cached."""
    passed = not outcome.findings
    is_settled = passed or card.reads is Reads.OUTPUT
    return Evidence(rule=card.name, version=card.version, passed=passed, is_settled=is_settled)


def _short(finding: Finding) -> Finding:
    if not isinstance(finding, Finding):
        raise TypeError(f"it returned something that is not a finding: {type(finding).__name__}")
    fields = {name: str(getattr(finding, name))[:TEXT_MAX] for name in ("rule", "where", "message", "fix", "excerpt")}
    return replace(finding, **fields)


def _with_digests(outcome: CheckOutcome, inputs: str, tree: str) -> CheckOutcome:
    evidence = outcome.evidence
    if evidence is None:
        return outcome
    return replace(outcome, evidence=replace(evidence, digest=evidence.digest or inputs, tree=tree))


def _as_remembered(outcome: CheckOutcome, tree: str) -> CheckOutcome:
    evidence = replace(outcome.evidence, cached=True, tree=tree) if outcome.evidence is not None else None
    return replace(outcome, evidence=evidence)


def _changed_meanwhile(card: RuleCard) -> CheckOutcome:
    """The outcome of a rule that passed for files that are no longer there."""
    finding = Finding(
        rule=card.name,
        severity=Severity.CRITICAL,
        where="checks",
        message="the project changed while it was checked",
        fix="submit again once nothing changes it any more",
        unapplied=True,
        fixed_by=FixedBy.AGENT,
    )
    evidence = Evidence(rule=card.name, version=card.version, passed=False, is_settled=False)
    return CheckOutcome(findings=(finding,), evidence=evidence)


def _too_slow(card: RuleCard, parameters: Mapping[str, Any]) -> CheckOutcome:
    return _broken(card, f"it took longer than {duration_text(_time_ms(card, parameters))}")


def _broken(card: RuleCard, words: str) -> CheckOutcome:
    finding = Finding(
        rule=card.name,
        severity=Severity.CRITICAL,
        where="checks",
        message=f"the rule is broken: {words[:TEXT_MAX]}",
        fix="it neither passed nor failed; submit again, or contact the author of the rule",
        unapplied=True,
        fixed_by=FixedBy.AUTHOR,
    )
    evidence = Evidence(
        rule=card.name, version=card.version, passed=False, excerpt=words[:EXCERPT_MAX], is_settled=False
    )
    return CheckOutcome(findings=(finding,), evidence=evidence)


def _why_not(name: str, rules: RuleSet) -> str:
    if name in rules.broken:
        return f"`{name}` can't be used: {rules.broken[name]}"
    near = did_you_mean(name, rules.names())
    return f"there is no rule `{name}` here" + (f"; {near}" if near else "")


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
