"""Answers without secrets: also those that an argument has, or an event from before they were stored.

Replies, tasks, questions to the user and progress go through here; resources are cleaned in resources.py, before they
are cut to their length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from handrail.domain.secrets.scrubbing import SecretScrubber
from handrail.interfaces.mcp.surface.caller import Caller, TaskView, ToolReply, UserAnswer, UserQuestion


def clean_reply(reply: ToolReply, scrubber: SecretScrubber) -> ToolReply:
    """A reply without secrets."""
    if not scrubber:
        return reply
    text, data, meta = scrubber.text(reply.text), scrubber.value(reply.data), scrubber.value(reply.meta)
    return replace(reply, text=text, data=data, meta=meta)


def clean_question(question: UserQuestion, scrubber: SecretScrubber) -> UserQuestion:
    """A question without secrets; its form is ours."""
    return replace(question, text=scrubber.text(question.text)) if scrubber else question


def clean_task(task: TaskView, scrubber: SecretScrubber) -> TaskView:
    """A task without secrets."""
    if not scrubber:
        return task
    reply = clean_reply(task.reply, scrubber) if task.reply is not None else None
    questions = {key: clean_question(question, scrubber) for key, question in task.questions.items()}
    return replace(task, message=scrubber.text(task.message), reply=reply, questions=questions)


@dataclass(frozen=True)
class CleanCaller:
    """A caller whose user sees no secret in a question, and whose client none in progress."""

    caller: Caller
    scrubber: Callable[[], SecretScrubber]

    @property
    def actor(self) -> str:
        """As the caller says."""
        return self.caller.actor

    @property
    def can_ask(self) -> bool:
        """As the caller says."""
        return self.caller.can_ask

    @property
    def wants_tasks(self) -> bool:
        """As the caller says."""
        return self.caller.wants_tasks

    @property
    def shows_apps(self) -> bool:
        """As the caller says."""
        return self.caller.shows_apps

    async def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report how far the call is."""
        await self.caller.progress(done, total, self.scrubber().text(text))

    async def ask(self, key: str, question: UserQuestion, *, about: str) -> UserAnswer:
        """Ask the user."""
        return await self.caller.ask(key, clean_question(question, self.scrubber()), about=about)
