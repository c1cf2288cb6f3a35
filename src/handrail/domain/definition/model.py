"""The definition: a workflow or plan as values. One format for both, six kinds of step.

Pure. A definition here has passed the structure check (library/schemas/structure.py). Its meaning is checked in
analysis/. authoring.py converts it from and to data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from handrail.domain.checks.finding import Path, Severity

LOOP_ROUNDS_DEFAULT: Final = 100
PARALLEL_DEFAULT: Final = 4


class Kind(StrEnum):
    """The six kinds of step, each named by the one key it has."""

    PROMPT = "prompt"
    TOOL = "tool"
    APPROVE = "approve"
    WORKFLOW = "workflow"
    EACH = "each"
    REPEAT = "repeat"


class Effect(StrEnum):
    """What effect a step has outside handrail, and whether it can be undone."""

    NONE = "none"
    REVERSIBLE = "reversible"
    COMPENSATABLE = "compensatable"
    IRREVERSIBLE = "irreversible"


class OnFailure(StrEnum):
    """What a run does when a step has failed permanently."""

    ASK = "ask"
    COMPENSATE = "compensate"
    CONTINUE = "continue"
    STOP = "stop"


class Skippable(StrEnum):
    """Who may skip a step."""

    AGENT = "agent"
    PERSON = "person"
    NOBODY = "nobody"


class AtMax(StrEnum):
    """What happens to a loop that is not done after its most rounds."""

    FAIL = "fail"
    LEAVE = "leave"


class Category(StrEnum):
    """Why an attempt failed, as one word that retry policies can name."""

    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    INVALID_INPUT = "invalid_input"
    NOT_FOUND = "not_found"
    PERMISSION = "permission"
    CONFLICT = "conflict"
    TOOL_ERROR = "tool_error"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


class Retry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step's own retry policy; what it leaves out comes from the tool, its server, then the default."""

    attempts: int | None = None
    first: str | None = None
    factor: float | None = None
    max: str | None = None
    jitter: bool | None = None
    on: tuple[Category, ...] | None = None


class ModelHint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which kind of model suits a step, and why. Data only."""

    tier: str = ""
    needs: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    why: str = ""


MAX_TRIES_DEFAULT: Final = 5


class Check(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A validation rule that handrail applies to a step's output."""

    rule: str
    severity: Severity = Severity.MAJOR
    when: str | None = None
    message: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Prompt(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="prompt"):
    """Done by the agent."""

    prompt: str
    role: str = ""
    confirm: bool | str = False
    output: Mapping[str, Any] | None = None
    checks: tuple[Check, ...] = ()
    max_tries: int = MAX_TRIES_DEFAULT
    """After how many refused outputs a person must decide."""
    bar: Severity = Severity.MAJOR
    """The least severity of a finding that blocks."""
    model: ModelHint | None = None


class Tool(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="tool"):
    """Done by handrail: a call of `<server>.<tool>`."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    idempotent: bool | None = None
    """Whether a call may be repeated under its key; None: as the tool says, and for an undo yes."""
    timeout: str | None = None
    retry: Retry | None = None
    output: Mapping[str, Any] | None = None
    checks: tuple[Check, ...] = ()
    bar: Severity = Severity.MAJOR


class Approve(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="approve"):
    """Done by a person: yes or no to a question."""

    approve: str
    by: tuple[str, ...] = ()
    expires: str | None = None
    approvals: int = 1
    """How many different people must say yes."""
    not_by: str = ""
    """`starter`: the person who started the run, or had an agent start it, may not answer."""


class Call(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="kind",
    tag="workflow",
    rename={"with_": "with"},
):
    """Another workflow, inlined: `id` or `id@range` as written, `id@version` once pinned."""

    workflow: str
    with_: Mapping[str, Any] = field(default_factory=dict)


class Each(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="kind",
    tag="each",
    rename={"items": "each", "as_": "as"},
):
    """A loop over a list; its steps can use the item's name and `index`."""

    items: str
    steps: tuple[Step, ...]
    as_: str = "item"
    parallel: int = 1
    max: int = LOOP_ROUNDS_DEFAULT
    at_max: AtMax = AtMax.FAIL


class Rounds(Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"while_": "while"}):
    """When a repeat ends: exactly one of until, while and times."""

    until: str | None = None
    while_: str | None = None
    times: int | None = None
    max: int | None = None
    at_max: AtMax = AtMax.FAIL
    every: str | None = None

    @property
    def bound(self) -> int:
        """The number of rounds after which the loop fails, or is left."""
        return self.max or self.times or LOOP_ROUNDS_DEFAULT


class Repeat(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="repeat"):
    """A loop until or while a condition holds, or a number of times."""

    repeat: Rounds
    steps: tuple[Step, ...]


Work: TypeAlias = Prompt | Tool | Approve | Call | Each | Repeat


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step: what all kinds have in common, and the work of its kind."""

    id: str
    work: Work
    title: str = ""
    after: tuple[str, ...] = ()
    when: str | None = None
    priority: int = 0
    on_failure: OnFailure | None = None
    skippable: Skippable | None = None
    """Who may skip it, if the author says so; else it depends on what the step is (domain/policy/skipping.py)."""
    guidance: tuple[str, ...] = ()
    runs_on: tuple[str, ...] = ()
    """Which labels the node needs that calls its tool."""
    effect: Effect | None = None
    undo: Prompt | Tool | Call | None = None

    @property
    def kind(self) -> Kind:
        """Which of the six kinds this step is."""
        return Kind(str(self.work.__struct_config__.tag))

    @property
    def body(self) -> tuple[Step, ...]:
        """The steps inside a loop; none for other kinds."""
        return self.work.steps if isinstance(self.work, Each | Repeat) else ()


class Definition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A workflow or plan with its order resolved: every step says in `after` what it waits for."""

    id: str
    steps: tuple[Step, ...]
    name: str = ""
    version: str = ""
    description: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    license: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    preconditions: tuple[str, ...] = ()
    clarify: tuple[str, ...] = ()
    guidance: tuple[str, ...] = ()
    on_failure: OnFailure = OnFailure.ASK
    max_parallel: int = PARALLEL_DEFAULT
    deadline: str | None = None
    revisit: bool = False
    """Whether a step of the top list whose condition was false is looked at again after each other step."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    pinned: Mapping[str, Definition] = field(default_factory=dict)
    """The inlined workflows by `id@version`: present once resolved, so that a run always uses the same text."""


def walk(steps: tuple[Step, ...], path: Path = ("steps",)) -> Iterator[tuple[Path, Step]]:
    """Every step with its path in the document, loop bodies after their loop."""
    for index, step in enumerate(steps):
        here = (*path, index)
        yield here, step
        yield from walk(step.body, (*here, "steps"))


def title_of(step: Step) -> str:
    """What a person would call the step."""
    return step.title or step.id.replace("-", " ").replace("_", " ").capitalize()
