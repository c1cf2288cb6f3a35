"""A question that a tool asks a person in the middle of a call, and what the person says.

Pure values. Asking and waiting is done as for approvals; the call is made again when the answer is there."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from handrail.domain.json import digest


class ToolQuestion(Struct, frozen=True, kw_only=True):
    """What a tool wants to know; its words come from outside."""

    text: str
    schema: Any = None
    """The JSON Schema of the answer; None if a yes or no is all that is asked."""

    @property
    def digest(self) -> str:
        """What the answer is bound to: the same question asked again needs no second answer."""
        return digest({"text": self.text, "schema": self.schema})


class PersonReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person said: no, or yes with the answer."""

    agreed: bool
    content: Any = None
