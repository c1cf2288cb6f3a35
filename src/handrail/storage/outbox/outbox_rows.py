"""What is kept of channels and notices, as stores keep it: JSON values, which processes of two versions understand."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from handrail.domain.errors import IntegrityBroken
from handrail.domain.notify.notice import Message, Notice
from handrail.engine.notify.outbox import ChannelState, ChannelSwitch, KeptChannel

Value = TypeVar("Value")


def kept(value: ChannelState | ChannelSwitch | Notice) -> bytes:
    """A value to keep."""
    return msgspec.json.encode(value)


def kept_channel(name: str, state: bytes, switch: bytes | None, owner: str, waiting: int, dead: int) -> KeptChannel:
    """A channel from the columns of its row."""
    return KeptChannel(
        name=name,
        state=_read(state, ChannelState),
        disabled=_read(switch, ChannelSwitch) if switch is not None else None,
        owner=owner,
        waiting=waiting,
        dead=dead,
    )


def message_of(number: int, due: int, attempts: int, tried: int, error: str, dead: Any, notice: bytes) -> Message:
    """A notice on its way, from the columns of its row."""
    return Message(
        number=number,
        notice=_read(notice, Notice),
        due=due,
        attempts=attempts,
        tried=tried,
        error=error,
        is_dead=bool(dead),
    )


def reports(notice: bytes, n: int) -> bool:
    """Whether a kept notice tells of this event of its subject."""
    return _read(notice, Notice).data.get("n") == n


def moved(state: bytes, mark: str) -> bytes:
    """The stored state of a channel that goes on from another place of the journal."""
    return kept(replace(_read(state, ChannelState), mark=mark))


def _read(body: bytes, type_: type[Value]) -> Value:
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.MsgspecError as error:
        raise IntegrityBroken(f"a stored value of the outbox can't be read: {error}") from error
