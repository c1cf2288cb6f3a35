"""Reads what a request asks: its query and its body, as the types of its route. Pure; Invalid says what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
import msgspec.inspect
from msgspec import Struct

from handrail.domain.errors import Invalid
from handrail.domain.suggestion import did_you_mean
from handrail.interfaces.http.contract.asked import TicketBody
from handrail.interfaces.http.contract.route import Route

Asked = TypeVar("Asked", bound=Struct)

FLAGS: Final = {"": True, "1": True, "true": True, "0": False, "false": False}


def query_of(kind: type[Asked], pairs: Iterable[tuple[str, str]]) -> Asked:
    """A query string as its type; a name can be repeated where several values are allowed."""
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(kind)}
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name not in defaults:
            raise Invalid(f"{name[:60]!r} is not a parameter here", hint=did_you_mean(name, defaults) or _hint(kind))
        if isinstance(defaults[name], tuple):
            given.setdefault(name, []).extend(filter(None, value.split(",")))
        elif name in given:
            raise Invalid(f"{name!r} is given twice", hint="give it once")
        else:
            given[name] = _plain(value, defaults[name])
    return _converted(given, kind)


def body_of(route: Route, body: bytes) -> Any:
    """The body of a write as its type."""
    if route.takes_bytes:
        return body
    if route.body is None:
        return None
    try:
        return msgspec.json.decode(body or b"{}", type=route.body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Invalid(f"the body is not what {route.name} takes: {error}", hint=_hint(route.body)) from error


def ticket_body(body: bytes) -> TicketBody:
    """The body of a request for a link."""
    try:
        return msgspec.json.decode(body or b"{}", type=TicketBody)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Invalid(f"the body is not what a link takes: {error}", hint=_hint(TicketBody)) from error


def _plain(value: str, default: Any) -> Any:
    return FLAGS.get(value.lower(), value) if isinstance(default, bool) else value


def _converted(given: Mapping[str, Any], kind: type[Asked]) -> Asked:
    try:
        return msgspec.convert(given, kind, strict=False)  # a query has nothing but text
    except msgspec.MsgspecError as error:
        _require_known_values(given, kind)
        raise Invalid(f"the query is wrong: {error}", hint=_hint(kind)) from error


def _require_known_values(given: Mapping[str, Any], kind: type[Struct]) -> None:
    """Refuse the first value of a list that is none of those it can have, with the nearest."""
    for field in msgspec.structs.fields(kind):
        known = _values_of(field.type)
        for value in given.get(field.encode_name, ()) if known else ():
            if value not in known:
                message = f"there is no {field.encode_name} {value[:60]!r}"
                raise Invalid(message, hint=did_you_mean(value, known))


def _values_of(kind: Any) -> tuple[str, ...]:
    """The values that the items of a list can have; empty if they can be anything, or if it is not a list."""
    listed = msgspec.inspect.type_info(kind)
    if isinstance(listed, msgspec.inspect.VarTupleType) and isinstance(listed.item_type, msgspec.inspect.EnumType):
        return tuple(str(one.value) for one in listed.item_type.cls)
    return ()


def _hint(kind: type[Struct]) -> str:
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    return f"it takes {', '.join(names)}" if names else "it takes nothing"
