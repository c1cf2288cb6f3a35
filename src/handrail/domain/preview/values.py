"""What a preview says. Values only; control_preview.py computes them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from handrail.domain.definition.model import Effect
from handrail.domain.json import canonical_bytes
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RunStatus, StepStatus

CALLS_MAX: Final = 1_000
"""How many calls a preview lists."""
VALUE_LENGTH_MAX: Final = 20_000
"""How much of a value is shown, as characters of JSON."""


class Hand(StrEnum):
    """Who does it."""

    HANDRAIL = "handrail"
    AGENT = "agent"
    PERSON = "person"


class Lasting(StrEnum):
    """Why an effect stays."""

    NO_UNDO = "no_undo"
    """Nothing says how to undo it."""
    UNKNOWN = "unknown"
    """It failed in a way that leaves open whether it changed anything."""
    GIVEN_UP = "given_up"
    """Its undo failed, and somebody gave it up."""
    UNDO_FAILS = "undo_fails"
    """Its undo can't be called, or one that has to come first can't."""
    NOT_UNDONE = "not_undone"
    """It can be undone, but this control does not."""


class PreviewPart(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of all parts of a preview: empty fields are left out."""


class CallAhead(PreviewPart, frozen=True):
    """Something that would be done: a call with its arguments, a prompt, or a question."""

    order: int
    step: str
    by: Hand
    title: str = ""
    is_undo: bool = False
    tool: str = ""
    workflow: str = ""
    args: Any = None
    """With all values filled in that are known; references to secrets stay references."""
    text: str = ""
    """The prompt for the agent, or the question for a person."""
    own_undo: bool = False
    """Whether the tool undoes its own call, by what it captured before; `args` are then those of that call."""
    effect: Effect | None = None
    can_be_undone: bool = False
    after: str = ""
    """The step that has to be undone before."""
    when: str = ""
    """A condition that is not decided yet."""
    problem: str = ""
    """Why it would fail."""


class StepChange(PreviewPart, frozen=True):
    """A step that the control moves at once."""

    step: str
    was: StepStatus
    becomes: StepStatus
    title: str = ""


class EffectLeft(PreviewPart, frozen=True):
    """An effect that stays."""

    step: str
    why: Lasting
    title: str = ""
    tool: str = ""
    effect: Effect | None = None
    can_be_undone: bool = False


class ForkAhead(PreviewPart, frozen=True):
    """What a new run would share with this one."""

    carried: tuple[str, ...] = ()
    again: tuple[str, ...] = ()


class ControlPreview(PreviewPart, frozen=True):
    """What a control would do. Nothing is changed by asking."""

    run: str
    action: Action
    at: int
    """The number of the run's last entry: a later one may change the answer."""
    legal: bool
    allowed: bool
    was: RunStatus
    step: str = ""
    message: str = ""
    """Why it is not legal."""
    hint: str = ""
    why: str = ""
    """Why this actor may not."""
    who_may: str = ""
    passphrase: bool = False
    """Whether the passphrase has to be typed."""
    means: str = ""
    becomes: RunStatus | None = None
    """The status of the run right after it; undoing and further steps come later."""
    ends: RunStatus | None = None
    """The status in which undoing would end, if every call worked."""
    changes: tuple[StepChange, ...] = ()
    calls: tuple[CallAhead, ...] = ()
    """In the order in which they would start; with `max_parallel` above 1 several can run at once."""
    unshown: int = 0
    stays: tuple[EffectLeft, ...] = ()
    in_progress: tuple[str, ...] = ()
    """Steps that are being executed now, and end first."""
    fork: ForkAhead | None = None
    digest: str = ""
    missing: int = 0
    """How many more people must approve after this one."""
    schema: Any = None
    notes: tuple[str, ...] = ()


def shown_value(value: Any) -> Any:
    """A value, or the start of its text if it is long."""
    text = canonical_bytes(value).decode()
    left = len(text) - VALUE_LENGTH_MAX
    return value if left <= 0 else f"{text[:VALUE_LENGTH_MAX]}… [{left} more characters]"
