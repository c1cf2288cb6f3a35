"""Configuration of tools: what config.toml sets about addresses, limits and retries.

    [http]
    allow = ["127.0.0.1", "ci.internal:8080"]

    [tools."http.request"]
    timeout = "10s"
    rate = "10/s"

    [servers.http]
    retry = {attempts = 5, first = "1s"}

The file is read in settings.py; `[shell]` is read in shell.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from handrail.domain.definition.duration import DURATION_PATTERN
from handrail.domain.definition.model import Category, Retry
from handrail.domain.errors import Invalid
from handrail.domain.suggestion import did_you_mean
from handrail.engine.tool import CallLimits, ToolSpec

RATE_PATTERN: Final = r"^[1-9][0-9]{0,5}/(s|m|h)$"
ALLOWED_MAX: Final = 1_000

Duration = Annotated[str, Meta(pattern=DURATION_PATTERN)]

_allowed = re.compile(r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:[0-9]{1,5})?$|^[0-9A-Fa-f:.]+$")


class RetryChoice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A retry policy as written in the file; every field is optional."""

    attempts: Annotated[int, Meta(ge=1, le=100)] | None = None
    first: Duration | None = None
    factor: Annotated[float, Meta(ge=1, le=100)] | None = None
    max: Duration | None = None
    jitter: bool | None = None
    on: tuple[Category, ...] | None = None


class CallChoice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings for the calls of a tool, or of all tools of a server."""

    timeout: Duration | None = None
    concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    rate: Annotated[str, Meta(pattern=RATE_PATTERN)] | None = None
    retry: RetryChoice | None = None


class WithheldHosts(Struct, frozen=True):
    """Hosts that a project allows in a file that does not count, and why it does not."""

    hosts: tuple[str, ...] = ()
    why: str = ""


NONE_WITHHELD: Final = WithheldHosts()


class ToolConfiguration(Struct, frozen=True, kw_only=True):
    """The configuration of all tools."""

    allow: tuple[str, ...] = ()
    """Hosts, with or without a port, that http.request may reach although they are not public."""
    withheld: WithheldHosts = NONE_WITHHELD
    """Those that the project's own file allows, while it does not count."""
    tools: Mapping[str, CallChoice] = field(default_factory=dict)
    servers: Mapping[str, CallChoice] = field(default_factory=dict)


def tool_configuration(tables: Mapping[str, Any]) -> ToolConfiguration:
    """What [http], [tools] and [servers] of config.toml say; Invalid for a key that has no effect.

    Unknown tables are refused where the file is read (settings.py)."""
    given = {name: table for name, table in tables.items() if isinstance(table, Mapping)}
    http = given.get("http", {})
    _require_known(http, ["allow"], where="[http]")
    return ToolConfiguration(
        allow=_allowed_hosts(http.get("allow", [])),
        tools={name: _choice(name, table, of="tools") for name, table in given.get("tools", {}).items()},
        servers={name: _choice(name, table, of="servers") for name, table in given.get("servers", {}).items()},
    )


def configured(spec: ToolSpec, configuration: ToolConfiguration) -> ToolSpec:
    """A tool's spec with its configuration: its own table wins over its spec, which wins over its server's table."""
    mine = configuration.tools.get(spec.name, CallChoice())
    server = configuration.servers.get(spec.name.partition(".")[0], CallChoice())
    if mine == server == CallChoice():
        return spec
    each = CallChoice() if spec.server else server  # the limits of an MCP server are for all its tools together
    return replace(
        spec,
        timeout=_first(mine.timeout, spec.timeout, server.timeout),
        concurrency=_first(mine.concurrency, spec.concurrency, each.concurrency),
        rate=_first(mine.rate, spec.rate, each.rate),
        retry=merged_retry(mine.retry, spec.retry, server.retry),
        shared=_shared(spec, server) if spec.server else spec.shared,
    )


def _shared(spec: ToolSpec, server: CallChoice) -> CallLimits | None:
    own = spec.shared or CallLimits(name=spec.server)
    concurrency, rate = _first(server.concurrency, own.concurrency), _first(server.rate, own.rate)
    return replace(own, concurrency=concurrency, rate=rate) if concurrency or rate else None


def merged_retry(*policies: RetryChoice | Retry | None) -> Retry | None:
    """Each field from the first policy that sets it."""
    said = [asdict(policy) for policy in policies if policy is not None]
    if not said:
        return None
    return Retry(**{name: _first(*(policy[name] for policy in said)) for name in Retry.__struct_fields__})


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _choice(name: str, table: Any, *, of: str) -> CallChoice:
    where = f'[{of}."{name}"]' if "." in name else f"[{of}.{name}]"
    if of == "tools" and "." not in name:
        inner = next(iter(table), "tool") if isinstance(table, Mapping) else "tool"
        raise Invalid(f"config.toml: {where} is not a tool", hint=f'write the name in quotes: [tools."{name}.{inner}"]')
    if not isinstance(table, Mapping):
        raise Invalid(f"config.toml: {where} is not a table", hint="write it as a table with keys such as timeout")
    _require_known(table, CallChoice.__struct_fields__, where=where)
    if isinstance(table.get("retry"), Mapping):
        _require_known(table["retry"], RetryChoice.__struct_fields__, where=f"{where} retry")
    try:
        return msgspec.convert(table, CallChoice)
    except msgspec.ValidationError as error:
        hint = 'write durations like 30s or 5m, rates like 10/s or 100/m, retry like {attempts = 3, first = "1s"}'
        raise Invalid(f"config.toml: {where}: {error}", hint=hint) from error


def _allowed_hosts(value: Any) -> tuple[str, ...]:
    hint = 'write hosts, with or without a port: allow = ["127.0.0.1", "ci.internal:8080", "[::1]:8080"]'
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) <= ALLOWED_MAX
    if not is_list or not all(isinstance(host, str) and _allowed.match(host) for host in value):
        raise Invalid("config.toml: [http] allow is not a list of hosts", hint=hint)
    return tuple(host.lower() for host in value)


def _require_known(table: Mapping[str, Any], known: Sequence[str], *, where: str) -> None:
    for name in table:
        if name not in known:
            raise Invalid(f"{where}: unknown key `{name}`", hint=did_you_mean(name, known))
