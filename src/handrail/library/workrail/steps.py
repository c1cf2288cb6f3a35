"""Converts standard, loop and parallel steps of WorkRail to prompt, each and repeat steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Path
from handrail.library.schemas.schema_words import described
from handrail.library.workrail.assessments import consequences_of
from handrail.library.workrail.conditions import Condition, Read, condition_text, run_condition_of
from handrail.library.workrail.confirming import ALWAYS, at_first, confirmation_of, either
from handrail.library.workrail.contracts import output_with
from handrail.library.workrail.criteria import Criteria, bounded, criteria_of
from handrail.library.workrail.functions import functions_in
from handrail.library.workrail.loops import (
    DECIDE,
    DECISION,
    LoopPlan,
    decided_by,
    loop_plan_of,
    started_by,
    submits_decision,
    waits_for_decision,
)
from handrail.library.workrail.naming import Names, step_id
from handrail.library.workrail.needs import Slot, Use
from handrail.library.workrail.noting import Notes, Reader
from handrail.library.workrail.prompts import PromptContext, appended, artifacts_of, delegated, prompt_of
from handrail.library.workrail.templates import Originals, Placed, expanded, no_originals
from handrail.library.workrail.texts import (
    SENTENCES_MAX,
    bullets,
    filled,
    placeholders,
    section,
    sentences,
    verbatim,
    verbatim_value,
)

TITLE_MAX: Final = 200
STEP_KEYS: Final = (
    *("id", "type", "title", "prompt", "promptBlocks", "promptFragments", "agentRole", "modelTier", "guidance"),
    *("askForFiles", "hasValidation", "requireConfirmation", "runCondition", "validationCriteria", "outputContract"),
    *("assessmentRefs", "assessmentConsequences", "notesOptional", "functionDefinitions", "functionCalls"),
    *("functionReferences", "templateCall", "audit", "verification"),
)
LOOP_KEYS: Final = (
    *("id", "type", "title", "loop", "body", "functionDefinitions", "requireConfirmation", "runCondition"),
    *("prompt", "promptBlocks", "agentRole", "modelTier", "guidance"),
)
PARALLEL_KEYS: Final = (*STEP_KEYS, "parallelDelegations", "synthesis")
STEPS_MAX: Final = 5_000
TEXT_MAX: Final = 2_000_000
"""The total length of all prompts of a file: texts that steps share are repeated in each of them."""
LOOPS_NESTED_MAX: Final = 10
ONLY_IF: Final = "Do this only if"

Step: TypeAlias = dict[str, Any]


class StepContext(Struct, frozen=True, kw_only=True):
    """What applies to all steps of a list."""

    words: PromptContext
    role: str = ""
    tier: str = ""
    trail: tuple[str, ...] = ()
    """The loops around the list, outermost first."""
    guard: Condition | None = None
    goes_on: Condition | None = None
    """A condition for all steps of the list but the first."""
    confirm: Condition | None = None
    """When the user must agree to the first step of the list."""
    decider: str = ""
    """The step before that decides whether the next loop starts."""


class Steps:
    """Converts the steps of one file, and records the variables they need and their origins."""

    def __init__(self, notes: Notes, named: Mapping[str, Placed], originals: Originals = no_originals) -> None:
        """`named` are the steps that a loop may name; `originals` finds the routines in other files."""
        self.notes = notes
        self.originals = originals
        self.named = named
        self.slots: list[Slot] = []
        self.uses: list[Use] = []
        self.origins: dict[int, Path] = {}
        self.mentioned: set[str] = set()
        self.reached: set[Path] = set()
        self.open: set[str] = set()
        self.text_left = TEXT_MAX

    def converted(
        self, steps: Sequence[Placed], context: StepContext, exits: Mapping[int, str] | None = None
    ) -> list[Step]:
        """The steps of a list; `exits` is the text for the one that ends the loop; what is not a step is an error."""
        found: list[Step] = []
        taken: dict[str, int] = {}
        deciders = {**_deciders(steps), **(exits or {})}
        for index, (value, path) in enumerate(steps):
            context = replace(context, words=replace(context.words, decides=deciders.get(index, "")))
            if not isinstance(value, Mapping):
                self.notes.fault(path, f"a step is an object, not {described(value)}")
                continue
            if self._is_too_much(context):
                break
            # What no list reaches is reported in the end: nothing of the original may be dropped silently.
            self.reached.add(path)
            step = self._step(Reader(value, path, self.notes), context, taken)
            if step is not None:
                self.origins[id(step)] = path
                found.append(step)
                decider = step["id"] if index in deciders else "" if "repeat" in step else context.decider
                context = replace(context, confirm=None, decider=decider, words=replace(context.words, preface=""))
                if index in (exits or {}):
                    context = replace(context, goes_on=started_by(context.trail, step["id"]))
                if context.goes_on is not None:
                    context = replace(context, guard=context.goes_on.joined(context.guard), goes_on=None)
        return found

    def _is_too_much(self, context: StepContext) -> bool:
        """Whether the file exceeds a limit of workflows; it is reported once."""
        if len(self.origins) >= STEPS_MAX:
            self.notes.fault(("steps",), f"there are more than {STEPS_MAX:,} steps", "split the workflow")
        elif self.text_left < 0:
            self.notes.fault(("steps",), "all prompts together are too long", "split the workflow")
        elif len(context.trail) > LOOPS_NESTED_MAX:
            self.notes.fault(("steps",), f"more than {LOOPS_NESTED_MAX} loops are nested", "nest them less")
        else:
            return False
        return True

    def _step(self, step: Reader, context: StepContext, taken: dict[str, int]) -> Step | None:
        kind = step.value.get("type")
        identity = self._identity(step, taken)
        if kind == "loop" or ("loop" in step.value and "body" in step.value):
            return self._loop(step, context, identity)
        if kind == "parallel":
            return self._parallel(step, context, identity)
        if kind not in (None, "standard", "step"):
            self.notes.fault(
                step.at("type"), f"{described(kind)} is not a kind of step", "remove it, or write loop or parallel"
            )
        step.note_unknown(STEP_KEYS)
        return self._agent_step(step, context, identity)

    def _identity(self, step: Reader, taken: dict[str, int]) -> str:
        written = step.text("id")
        if not written and "id" not in step.value:
            self.notes.fault(step.path, "the step has no `id`", "add one")
        # Ids of WorkRail may hold what no path of ours can: the step is then called differently, and that is noted.
        identity = step_id(written or step.text("title"), taken)
        if written and identity != written:
            self.notes.note(step.at("id"), f"the step is called `{identity}` here")
        return identity

    def _agent_step(self, step: Reader, context: StepContext, identity: str) -> Step:
        names = context.words.names
        prompt = prompt_of(step, context.words)
        self.mentioned.update(prompt.used)
        criteria = self._criteria(step, names)
        guidance = step.texts("guidance")
        shown = [text for text in guidance if placeholders(text)]
        filled_in = filled(section("Guidance", bullets(shown)), names)
        only_if = verbatim(condition_text(step, "runCondition", ONLY_IF))
        words = appended("\n\n".join(filter(None, (only_if, prompt.prompt, filled_in))), criteria.rules())
        data: Step = {
            **self._common(step, context, identity),
            "role": step.text("agentRole") or context.role,
            "prompt": words or verbatim(step.text("title") or identity),
            "guidance": self.sentences([one for one in guidance if one not in shown], step.at("guidance")),
            **self._terms(step, context, criteria),
        }
        self._use(prompt.reads, len(self.slots))
        self._use(criteria.reads, len(self.slots) + 1)
        self.uses += [Use(read=read, first=0, last=len(self.slots), is_shown=True) for read in prompt.shows]
        return self._slotted(data, prompt.raw)

    def _criteria(self, step: Reader, names: Names) -> Criteria:
        value, path = step.value.get("validationCriteria"), step.at("validationCriteria")
        if step.flag("hasValidation") and not value:
            self.notes.note(step.at("hasValidation"), "the step has no `validationCriteria`: nothing is checked")
        return criteria_of(value, names, path, self.notes)

    def _parallel(self, step: Reader, context: StepContext, identity: str) -> Step:
        step.note_unknown(PARALLEL_KEYS)
        if not step.inners("parallelDelegations"):
            self.notes.fault(step.path, "nothing is delegated", "add `parallelDelegations`")
        prompt, reads = delegated(step, context.words)
        data = self._agent_step(step, context, identity)
        data["prompt"] = f"{data['prompt']}\n\n{prompt}"
        self._use(reads, len(self.slots) - 1)
        return data

    def _slotted(self, data: Step, raw: str) -> Step:
        kept = {key: value for key, value in data.items() if value not in ("", [], (), None, {})}
        self.slots.append(Slot(kept, raw))
        self.text_left -= len(kept["prompt"])
        return kept

    def _common(self, step: Reader, context: StepContext, identity: str) -> Step:
        """What steps of all kinds have."""
        condition = run_condition_of(step, context.words.names)
        if condition is not None:
            self._use(condition.reads, len(self.slots))
        whole = context.guard.joined(condition) if context.guard else condition
        if context.decider and step.value.get("type") == "loop":
            whole = started_by(context.trail, context.decider).joined(whole)
        return {"id": identity, "title": step.text("title")[:TITLE_MAX], "when": whole.source if whole else None}

    def _terms(self, step: Reader, context: StepContext, criteria: Criteria) -> Step:
        """When the step counts as done, and which model should do it."""
        own = confirmation_of(step, context.words.names)
        self._use(
            own.reads if own else (), len(self.slots) + 1
        )  # variables that are submitted with the step itself count too
        confirm = either(context.confirm, own)
        tier = step.text("modelTier") or context.tier
        return {
            "confirm": True if confirm is ALWAYS else confirm.source if confirm else None,
            **self._submitted(step, context, criteria),
            "model": {"tier": tier} if tier else None,
        }

    def _submitted(self, step: Reader, context: StepContext, criteria: Criteria) -> Step:
        """The output that a step needs, and how it is checked."""
        artifacts = artifacts_of(step, context.words)
        output = output_with(artifacts) if artifacts else None
        checks = [*criteria.checks, *map(verbatim_value, consequences_of(step))]
        if context.words.decides:
            checks += [{"rule": "schema", "schema": verbatim_value(output)}] if output else []
            output = dict(DECISION)
        return {"output": output, "checks": bounded(checks)}

    def _loop(self, step: Reader, context: StepContext, identity: str) -> Step | None:
        step.note_unknown(LOOP_KEYS)
        body = self._body(step)
        control = next((index for index, (one, _) in enumerate(body) if submits_decision(one)), None)
        plan = loop_plan_of(step, context.words.names, has_control=control is not None)
        if plan is None or not body:
            return None
        first = len(self.slots)
        self._use(plan.before, first)
        common = self._common(step, context if plan.is_decided else replace(context, decider=""), identity)
        inside = self._inside(step, context, plan, (*context.trail, identity))
        exit_at = len(body) - 1 if control is None else control
        steps = self._body_steps(body, inside, {exit_at: _decide(plan)} if plan.is_decided else {})
        keys = self._ended(plan, steps, inside.trail, step.at("body"))
        if not steps or keys is None:
            return None
        self.uses += [Use(read=read, first=first, last=len(self.slots)) for read in plan.within]
        self._show_unused_functions(step, first)
        return {**{key: value for key, value in common.items() if value}, **keys, "steps": steps}

    def _ended(self, plan: LoopPlan, steps: Sequence[Step], trail: Sequence[str], path: Path) -> Step | None:
        """The keys of the loop, with its end condition; None if nothing can end it."""
        if not plan.is_decided:
            return plan.keys
        deciding = next((one["id"] for one in steps if one.get("output") == DECISION), None)
        if deciding is None:
            self.notes.fault(path, "no step inside can decide whether the loop continues")
            return None
        return {"repeat": {**plan.keys["repeat"], "until": decided_by(trail, deciding)}}

    def _inside(self, step: Reader, context: StepContext, plan: LoopPlan, trail: tuple[str, ...]) -> StepContext:
        """The context for the steps of a loop."""
        says = prompt_of(Reader(_only(step.value, ("prompt", "promptBlocks")), step.path, self.notes), _bare(context))
        guidance = bullets(step.texts("guidance"))
        only_if = condition_text(step, "runCondition", ONLY_IF)
        preface = "\n\n".join(filter(None, (only_if, plan.says, says.raw, guidance)))
        if preface:
            self.notes.note(step.path, "the loop's own text is shown with its first step")
        confirm = confirmation_of(step, context.words.names)
        self._use(confirm.reads if confirm else (), len(self.slots))
        functions = {**context.words.functions, **functions_in(step)}
        return StepContext(
            words=replace(context.words, names=plan.names, functions=functions, preface=preface, decides=""),
            role=step.text("agentRole") or context.role,
            tier=step.text("modelTier") or context.tier,
            trail=trail,
            guard=plan.guard,
            goes_on=plan.goes_on,
            confirm=at_first(confirm, step),
        )

    def _body(self, step: Reader) -> list[Placed]:
        """The steps of a loop: written there, or named and defined elsewhere in the file."""
        body, path = step.value.get("body"), step.at("body")
        if isinstance(body, str):
            return expanded(self._named(body, path), self.originals, self.notes)
        if not isinstance(body, list | tuple) or not body:
            self.notes.fault(path if "body" in step.value else step.path, "the loop has no steps in its `body`")
            return []
        placed: list[Placed] = []
        for index, one in enumerate(body):
            placed += self._named(one, (*path, index)) if isinstance(one, str) else [(one, (*path, index))]
        return expanded(placed, self.originals, self.notes)

    def _named(self, name: str, path: Path) -> list[Placed]:
        found = self.named.get(name.strip())
        if found is None:
            self.notes.fault(path, f"there is no step `{name[:60]}`", "name a step of this file")
            return []
        if name.strip() in self.open:
            self.notes.fault(path, f"the loop `{name[:60]}` contains itself", "remove it from its own body")
            return []
        return [found]

    def _body_steps(self, body: Sequence[Placed], inside: StepContext, exits: Mapping[int, str]) -> list[Step]:
        names = {str(one.get("id")) for one, _ in body if isinstance(one, Mapping)} - self.open
        self.open |= names
        steps = self.converted(body, inside, exits)
        self.open -= names
        return steps

    def _show_unused_functions(self, step: Reader, first: int) -> None:
        """A loop's functions that no step mentions are shown with its first step."""
        rest = [one.text for name, one in functions_in(step).items() if name not in self.mentioned]
        if rest and first < len(self.slots):
            slot = self.slots[first]
            slot.step["prompt"] = appended(slot.step["prompt"], [section("Functions of the loop", bullets(rest))])

    def _use(self, reads: Iterable[Read], last: int) -> None:
        self.uses += [Use(read=read, first=0, last=last) for read in reads]

    def sentences(self, texts: Iterable[str], path: Path) -> list[str]:
        """Texts as sentences, up to a limit."""
        found = sentences(texts)
        if len(found) > SENTENCES_MAX:
            self.notes.note(path, f"only the first {SENTENCES_MAX} are kept")
        return found[:SENTENCES_MAX]


def _deciders(steps: Sequence[Placed]) -> dict[int, str]:
    """Which steps of a list decide about a loop that follows, and what they show."""
    waiting = [index for index, (step, _) in enumerate(steps) if waits_for_decision(step)]
    last = waiting[-1] if waiting else 0
    return {index: DECIDE for index, (step, _) in enumerate(steps[:last]) if submits_decision(step)}


def _decide(plan: LoopPlan) -> str:
    return f"{DECIDE} There are at most {plan.keys['repeat']['max']} rounds."


def _only(value: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value[key] for key in keys if key in value}


def _bare(context: StepContext) -> PromptContext:
    return replace(context.words, preface="", functions={}, decides="")
