"""All errors that a caller may handle. `code`, `name` and `hint` are public interface; each interface translates them.

Pure values. Which exit code or protocol reply an error becomes is decided in interfaces/."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from handrail.domain.checks.finding import Finding


class HandrailError(Exception):
    """Base of all errors a caller may handle; `hint` says what to do next."""

    code: ClassVar[int] = -32603
    name: ClassVar[str] = "internal"
    hint: str = "report this with the run id"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint or type(self).hint


class NotFound(HandrailError):
    """No such workflow, plan, run or step."""

    code, name = -32001, "not_found"
    hint = "list what there is, then repeat the call with one of those names"


class Invalid(HandrailError):
    """A definition, input, output or argument is invalid; the findings say where and how to fix it."""

    code, name = -32002, "invalid"
    hint = "fix what the findings name, then repeat the call"

    def __init__(self, message: str, *, hint: str = "", findings: Sequence[Finding] = ()) -> None:
        super().__init__(message, hint=hint)
        self.findings = tuple(findings)


class Conflict(HandrailError):
    """Not legal in this state; the message says what is."""

    code, name = -32003, "conflict"
    hint = "read the run again, then choose one of the legal moves"


class OnlyRecorded(Conflict):
    """The run is performed by its agent and only recorded here: it accepts reports, not submissions."""

    hint = "report what was done for the step instead"


class RunArchived(Conflict):
    """The events of the run are in an archive: it can be read, and nothing can be added to it."""

    hint = "bring it back first: `handrail db unarchive RUN`"


class EventsDeleted(Conflict):
    """The events of the run were archived and then deleted, on purpose: nothing but its row and hashes is left."""

    hint = "`handrail db list --deleted` says who deleted them, and why"


class OtherProject(Conflict):
    """The run belongs to another project: only processes of that project execute, check, undo or answer it."""

    hint = "work on it from the folder of its project"


class Forbidden(HandrailError):
    """Not allowed for this actor, or by policy."""

    code, name = -32004, "forbidden"
    hint = "ask a person who may do this"


class SealedForOthers(Forbidden):
    """A run has secret inputs that were sealed before this node was admitted; `keys` are those that open them."""

    hint = "let a node that was admitted before go on with it"

    def __init__(self, message: str, *, keys: Sequence[str]) -> None:
        super().__init__(message)
        self.keys = tuple(keys)


class Limited(HandrailError):
    """A size, depth, rate or quota limit was reached."""

    code, name = -32005, "limited"
    hint = "make it smaller, or split it"


class Unavailable(HandrailError):
    """The store, a tool server or a worker can't be reached now; nothing was lost."""

    code, name = -32006, "unavailable"
    hint = "repeat the call in a moment"


class IntegrityBroken(Unavailable):
    """The store was changed or damaged; nothing more is written until an operator has checked it."""

    hint = "run `handrail journal verify`; to continue anyway: `handrail journal checkpoint --accept --reason ...`"


class JournalConflict(Conflict):
    """Another writer appended to this stream first; dispatch reads again and decides again."""

    hint = "read the run again, then repeat the call"


class LeaseLost(Conflict):
    """The lease of an append is no longer the current one; nothing was written."""

    hint = "another worker executes this run now; nothing was written"
