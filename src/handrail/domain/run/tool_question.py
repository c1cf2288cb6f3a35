"""A question that a tool asks a person during a call, and the person's reply.

Pure values. The question is asked like an approval; the call is made again once it is answered."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from handrail.domain.json import digest


class ToolQuestion(Struct, frozen=True, kw_only=True):
    """What a tool wants to know; its text comes from outside handrail."""

    text: str
    schema: Any = None
    """The JSON Schema of the answer; None if a yes or no is enough."""

    @property
    def digest(self) -> str:
        """What the answer is bound to: the same question is not asked twice."""
        return digest({"text": self.text, "schema": self.schema})


class PersonReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's reply: no, or yes with the answer."""

    agreed: bool
    content: Any = None
