"""Tasks of the fixture, in memory: work that continues after its answer, may ask, and may be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from handrail.interfaces.mcp.surface.caller import (
    Caller,
    TaskStatus,
    TaskView,
    ToolReply,
    Unknown,
    UserAnswer,
    UserQuestion,
)

TTL_MS = 3_600_000
POLL_MS = 200
ENDED = {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED}


class Broken(Exception):
    """The work ended with an error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Task:
    """One task."""

    id: str = field(default_factory=lambda: str(uuid4()))
    status: TaskStatus = TaskStatus.WORKING
    created: str = field(default_factory=lambda: _now())
    updated: str = field(default_factory=lambda: _now())
    reply: ToolReply | None = None
    error: tuple[int, str] | None = None
    questions: dict[str, UserQuestion] = field(default_factory=dict)
    _answered: asyncio.Event = field(default_factory=asyncio.Event)
    _doing: asyncio.Task[None] | None = None

    def begin(self, work: Work) -> None:
        """Let the work go on by itself."""
        self._doing = asyncio.get_running_loop().create_task(self._do(work))

    async def _do(self, work: Work) -> None:
        try:
            self.reply = await work(self)
            self._become(TaskStatus.COMPLETED)
        except Broken as error:
            self.error = (error.code, str(error))
            self._become(TaskStatus.FAILED)

    async def ask(self, *texts: str) -> None:
        """Ask these questions, and wait until each has an answer."""
        form = {"answer": {"type": "string"}}
        self.questions = {uuid4().hex: UserQuestion(text=text, form=form) for text in texts}
        self._become(TaskStatus.INPUT_REQUIRED)
        await self._answered.wait()
        self._become(TaskStatus.WORKING)

    def answer(self, keys: Mapping[str, UserAnswer]) -> None:
        """Take answers; those that match no question are ignored."""
        self.questions = {key: question for key, question in self.questions.items() if key not in keys}
        if not self.questions:
            self._answered.set()

    def cancel(self) -> None:
        """End it, if it has not ended."""
        if self._doing is not None:
            self._doing.cancel()
        self._become(TaskStatus.CANCELLED)

    def _become(self, status: TaskStatus) -> None:
        if self.status not in ENDED:
            self.status, self.updated = status, _now()

    @property
    def view(self) -> TaskView:
        """Its status."""
        return TaskView(
            id=self.id,
            status=self.status,
            created=self.created,
            updated=self.updated,
            ttl_ms=TTL_MS,
            poll_ms=POLL_MS,
            reply=self.reply,
            error=self.error,
            questions=self.questions,
        )


Work = Callable[[Task], Awaitable[ToolReply]]


@dataclass
class MemoryBook:
    """All tasks of the fixture, by id."""

    known: dict[str, Task] = field(default_factory=dict)

    def start(self, work: Work) -> TaskView:
        """Start a task."""
        task = Task()
        self.known[task.id] = task
        task.begin(work)
        return task.view

    async def get(self, task: str, caller: Caller) -> TaskView:
        """The status of a task."""
        return self._task(task).view

    async def answer(self, task: str, answers: Mapping[str, UserAnswer], caller: Caller) -> None:
        """Pass on the user's answers."""
        self._task(task).answer(answers)

    async def cancel(self, task: str, caller: Caller) -> None:
        """End a task."""
        self._task(task).cancel()

    def _task(self, task: str) -> Task:
        if task not in self.known:
            raise Unknown("task", task)
        return self.known[task]


def _now() -> str:
    return datetime.now(UTC).isoformat()
