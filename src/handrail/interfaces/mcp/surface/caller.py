"""The caller of a tool, and the possible results of a call: an answer, a question to the user, or a task.

Values and one protocol. The protocol is implemented for the MCP SDK in shell_caller.py."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NoReturn, Protocol

from msgspec import Struct

POLL_MS_DEFAULT: Final = 500


class ToolReply(Struct, frozen=True, kw_only=True):
    """The answer to a call: data, and the same as short text for clients that show only text."""

    text: str
    data: Mapping[str, Any] | None = None
    is_error: bool = False
    meta: Mapping[str, Any] | None = None
    """For a page in the client's window: clients don't pass it on to models."""


class UserQuestion(Struct, frozen=True, kw_only=True):
    """A question to the user, and the form for the answer (flat JSON Schema properties)."""

    text: str
    form: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...] = ()


class Response(StrEnum):
    """What the user did with a question."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


class UserAnswer(Struct, frozen=True, kw_only=True):
    """The user's answer."""

    response: Response
    content: Mapping[str, Any] = {}


class AskFirst(Exception):
    """The user must be asked first; the client then repeats the call, with the answer."""

    def __init__(self, key: str, question: UserQuestion, *, about: str) -> None:
        super().__init__(question.text)
        self.key = key
        self.question = question
        self.about = about


class TaskStatus(StrEnum):
    """The status of a task, as MCP names it."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskView(Struct, frozen=True, kw_only=True):
    """A call that continues after its answer."""

    id: str
    status: TaskStatus
    created: str
    updated: str
    ttl_ms: int | None = None
    poll_ms: int = POLL_MS_DEFAULT
    message: str = ""
    reply: ToolReply | None = None
    error: tuple[int, str] | None = None
    """Code and message of a protocol error that ended the call."""
    questions: Mapping[str, UserQuestion] = {}


class Caller(Protocol):
    """Who calls a tool, and how to reach them while the call runs."""

    @property
    def actor(self) -> str:
        """The caller's name in the journal: `agent:<name>`."""
        ...

    @property
    def can_ask(self) -> bool:
        """Whether the client can ask its user."""
        ...

    @property
    def wants_tasks(self) -> bool:
        """Whether the client supports tasks: calls that continue after their answer."""
        ...

    @property
    def shows_apps(self) -> bool:
        """Whether the client shows pages of servers in a window of its own."""
        ...

    async def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report how far the call is, if the client asked for progress."""
        ...

    async def ask(self, key: str, question: UserQuestion, *, about: str) -> UserAnswer:
        """Ask the user; `about` binds the answer to what was shown.

        May raise AskFirst. Don't catch it: the shell sends the question, and the client repeats the call."""
        ...


class Unknown(Exception):
    """There is no tool, prompt, resource or task with that name: a protocol error, not an answer of a tool."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"there is no {what} {name!r}")
        self.what = what
        self.name = name


def unknown(what: str, name: str) -> NoReturn:
    """Raise Unknown for a name that is not offered."""
    raise Unknown(what, name)
