"""Whoever calls, and what a call can come to: an answer, a question to a person, or a task that goes on.

Values and one protocol; a shell implements it. Nothing here knows how any of this travels."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NoReturn, Protocol

from msgspec import Struct

POLL_MS_DEFAULT: Final = 500


class Reply(Struct, frozen=True, kw_only=True):
    """What a call answers: data, and the same in few words for clients that show only text."""

    text: str
    data: Mapping[str, Any] | None = None
    is_error: bool = False


class Question(Struct, frozen=True, kw_only=True):
    """A question to a person: what is asked, and the form of the answer (flat JSON Schema properties)."""

    text: str
    form: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...] = ()


class Response(StrEnum):
    """What a person did with a question."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


class Answered(Struct, frozen=True, kw_only=True):
    """A person's answer."""

    response: Response
    content: Mapping[str, Any] = {}


class AskFirst(Exception):
    """The call can't be answered before a person was asked; it is repeated with the answer then."""

    def __init__(self, key: str, question: Question, *, about: str) -> None:
        super().__init__(question.text)
        self.key = key
        self.question = question
        self.about = about


class TaskStatus(StrEnum):
    """Where a task stands."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskView(Struct, frozen=True, kw_only=True):
    """A call that goes on after its answer."""

    id: str
    status: TaskStatus
    created: str
    updated: str
    ttl_ms: int | None = None
    poll_ms: int = POLL_MS_DEFAULT
    message: str = ""
    reply: Reply | None = None
    error: tuple[int, str] | None = None
    """A protocol error that the call ended with."""
    questions: Mapping[str, Question] = {}


class Caller(Protocol):
    """Who calls a tool, and what can be done with them while it runs."""

    @property
    def actor(self) -> str:
        """The caller's name in the journal: `agent:<name>`."""
        ...

    @property
    def can_ask(self) -> bool:
        """Whether a person can be asked through the client."""
        ...

    @property
    def wants_tasks(self) -> bool:
        """Whether the client can follow a call that goes on after its answer."""
        ...

    async def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Tell how far the call is, if the client wants to know."""
        ...

    async def ask(self, key: str, question: Question, *, about: str) -> Answered:
        """Ask the person behind the client; `about` binds the answer to what was shown.

        May raise AskFirst, which must reach the shell: the call then comes again, with the answer."""
        ...


class Unknown(Exception):
    """There is no tool, prompt, resource or task of that name: a mistake of the protocol, not of the work."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"there is no {what} {name!r}")
        self.what = what
        self.name = name


def unknown(what: str, name: str) -> NoReturn:
    """Refuse a name that nobody offers."""
    raise Unknown(what, name)
