"""Declarations of MCP servers, as people write them in tools.json, in the format that MCP clients use.

    {"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "deny": ["git_push"],
        "tools": {"create_branch": {"undo": {"tool": "delete_branch", "args": {"name": "{{ args.name }}"}}}}}}}

Everything is checked when it is read, and an error names the file and the location. connection.py starts the servers;
secrets stay references (`${secret:NAME}`) until then."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NoReturn

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from handrail.domain.definition.model import Effect
from handrail.domain.errors import Invalid
from handrail.domain.fleet.label import LABEL_PATTERN, LABELS_MAX
from handrail.domain.language.shape import ANY, Shape
from handrail.domain.language.template import template_errors
from handrail.domain.secrets.secret_reference import names_value, references_in, visible_words
from handrail.domain.suggestion import did_you_mean
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.tools.configuration import RATE_PATTERN, Duration, RetryChoice

FILE_BYTES_MAX: Final = 1_000_000
SERVERS_MAX: Final = 200
RULES_MAX: Final = 1_000
"""How many tools of one server may have their own settings."""
PATTERNS_MAX: Final = 1_000
TEXTS_MAX: Final = 1_000
TEXT_MAX: Final = 32_000

RESERVED: Final = frozenset({"file", "http", "shell", "value", "wait"})
IGNORED: Final = frozenset(
    {"alwaysAllow", "autoApprove", "description", "disabled", "enabled", "gallery", "trust", "type", "version"}
)
"""Keys of other clients; `type` is checked, `disabled` and `enabled` can switch a server off, the rest is ignored."""
STDIO_TYPES: Final = ("stdio",)
HTTP_TYPES: Final = ("http", "streamable-http", "streamableHttp")
UNDO_SCOPE: Final[Mapping[str, Shape]] = {"args": ANY, "output": ANY}
"""The names that the arguments of an undo may use: the arguments of the call, and its output."""

Text = Annotated[str, Meta(max_length=TEXT_MAX, pattern=r"\A[^\x00]*\Z")]
Line = Annotated[str, Meta(max_length=TEXT_MAX, pattern=r"\A[^\x00\r\n]*\Z")]
Word = Annotated[str, Meta(pattern=r"\A[^\x00\r\n]{1,1000}\Z")]
ToolName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_./-]{1,128}\Z")]
EnvName = Annotated[str, Meta(pattern=r"\A[^=\x00\r\n]{1,200}\Z")]
HeaderName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}\Z")]
Patterns = Annotated[tuple[Word, ...], Meta(max_length=PATTERNS_MAX)]

_server_name = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_user = re.compile(r"https?://[^/?#]*@")
_misfit = re.compile(r"(?P<words>.*?)(?: - at `(?:key in )?\$(?P<place>.*)`)?", re.DOTALL)


class UndoRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tool of the same server undoes a call, and its arguments."""

    tool: ToolName
    args: Mapping[str, Any] = field(default_factory=dict)
    """Templates over `args` and `output` of the call that is undone."""
    idempotent: bool | None = None


class ToolRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings for a tool, or for all tools of a server."""

    effect: Effect | None = None
    idempotent: bool | None = None
    timeout: Duration | None = None
    concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    rate: Annotated[str, Meta(pattern=RATE_PATTERN)] | None = None
    retry: RetryChoice | None = None
    runs_on: Annotated[tuple[Annotated[str, Meta(pattern=LABEL_PATTERN)], ...], Meta(max_length=LABELS_MAX)] = ()
    """Which labels a node needs to call it."""
    undo: UndoRule | None = None


class Declared(Struct, frozen=True, kw_only=True):
    """One MCP server: how to start or reach it, and the settings of its tools."""

    name: str
    origin: str
    """The file that declares it."""
    is_projects: bool = False
    """Whether the project declares it, not the user."""
    off: str = ""
    """Why it is not started, whatever asks for it; empty: it may be."""
    shadows: tuple[str, ...] = ()
    """Files whose entry of the same name does not count, because this one does."""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    """Patterns of the tools that may be called; empty: all."""
    deny: tuple[str, ...] = ()
    """Patterns of the tools that may not be called, whatever `allow` says."""
    start_timeout: str = "20s"
    rule: ToolRule = ToolRule()
    """Settings for all its tools; concurrency and rate are for the server as a whole."""
    tools: Mapping[str, ToolRule] = field(default_factory=dict)


class _Written(Struct, frozen=True, kw_only=True):
    """A server as it is written, without the keys of a ToolRule."""

    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    command: Annotated[str, Meta(max_length=TEXT_MAX, pattern=r"\A[^\x00\r\n]+\Z")] = ""
    args: Annotated[tuple[Text, ...], Meta(max_length=TEXTS_MAX)] = ()
    env: Annotated[dict[EnvName, Text], Meta(max_length=TEXTS_MAX)] = field(default_factory=dict)
    cwd: Line = ""
    url: Annotated[str, Meta(max_length=2_000, pattern=r"\A(https?://[^\s\x00]+|\$\{[^\s\x00]+)\Z")] = ""
    headers: Annotated[dict[HeaderName, Line], Meta(max_length=TEXTS_MAX)] = field(default_factory=dict)
    allow: Patterns = ()
    deny: Patterns = ()
    start_timeout: Duration = "20s"


OWN_KEYS: Final = tuple(name for name in _Written.__struct_fields__ if name != "type")
SERVER_RULE_KEYS: Final = tuple(name for name in ToolRule.__struct_fields__ if name != "undo")
WHEN_STARTED: Final = ("args", "env", "cwd")
WHEN_REACHED: Final = ("headers",)
KEYS: Final = (*OWN_KEYS, *SERVER_RULE_KEYS, "tools")

HINTS: Final[Mapping[str, str]] = {
    "args": 'write a list of strings: ["mcp-server-git"]',
    "env": 'write strings: {"TOKEN": "${secret:GIT}"}',
    "headers": 'write strings: {"Authorization": "Bearer ${secret:TOKEN}"}',
    "url": "write the server's full address: https://host/mcp",
    "allow": 'write patterns of tool names: ["git_*"]',
    "deny": 'write patterns of tool names: ["git_push"]',
    "timeout": 'write a duration like "30s" or "5m"',
    "start_timeout": 'write a duration like "20s" or "1m"',
    "concurrency": "write a whole number from 1",
    "rate": 'write a rate like "10/s" or "100/m"',
    "runs_on": 'write labels of nodes: ["gpu"]',
    "retry": 'write {"attempts": 3, "first": "1s"}',
    "effect": f"write one of {', '.join(Effect)}",
    "idempotent": "write true or false",
    "undo": 'write {"tool": "delete_branch", "args": {"name": "{{ args.name }}"}}',
    "type": f"write one of {', '.join((*STDIO_TYPES, *HTTP_TYPES))}, or leave it out",
    "tools": "tool names have letters, digits and _ - . /",
}


class ToolsText(Struct, frozen=True, kw_only=True):
    """A tools.json that was read already; `off` gives the reason why a server of it is not started, by its name."""

    file: Path
    content: bytes
    is_projects: bool = False
    off: Callable[[str], str] | None = None


def declared_servers(files: Sequence[Path | ToolsText]) -> Mapping[str, Declared]:
    """The servers that these files declare, by name.

    An entry of an earlier file wins: what a project brings never replaces what the user has declared. Any file may
    disable a server."""
    found: dict[str, Declared | None] = {}
    for one in files:
        text = _read_file(one) if isinstance(one, Path) else one
        for name, entry in _entries(text).items():
            declared = _declared(name, entry, text)
            first = found.setdefault(name, declared)
            if declared is None:
                found[name] = None
            elif first is not None and first is not declared:
                found[name] = replace(first, shadows=(*first.shadows, str(text.file)))
    if len(found) > SERVERS_MAX:
        raise Invalid(f"{len(found)} tool servers are declared", hint=f"keep at most {SERVERS_MAX}")
    return {name: server for name, server in found.items() if server is not None}


def declared_text(declared: Declared) -> str:
    """What a declaration says, as JSON: how the server is started or reached, and all its settings."""
    said = {name: getattr(declared, name) for name in ("command", "args", "env", "cwd", "url", "headers")}
    said |= {name: getattr(declared, name) for name in ("allow", "deny", "rule", "tools")}
    return msgspec.json.encode(_without_nothing(msgspec.to_builtins(said))).decode()


def _without_nothing(table: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: _without_nothing(value) if isinstance(value, dict) else value for name, value in table.items()}
    return {name: value for name, value in shown.items() if value not in (None, "", (), [], {})}


class _Place(Struct, frozen=True):
    """A location in a file, for messages."""

    file: Path
    path: str = "mcpServers"

    def at(self, name: str) -> _Place:
        return _Place(self.file, f"{self.path}.{name}")

    def refuse(self, message: str, hint: str) -> NoReturn:
        raise Invalid(f"{self.file}: {self.path}: {message}", hint=hint)

    def table(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.refuse("this is not an object", "write it in braces: {...}")
        return value

    def known(self, table: Mapping[str, Any], names: Sequence[str]) -> None:
        for name in table:
            if name not in names:
                self.refuse(f"unknown key `{name[:100]}`", did_you_mean(name, names))


def _read_file(file: Path) -> ToolsText:
    """A tools.json; one that declares nothing if there is no such file."""
    try:
        return ToolsText(file=file, content=read_plain(file, bytes_max=FILE_BYTES_MAX))
    except (FileNotFoundError, NotADirectoryError):
        return ToolsText(file=file, content=b"{}")
    except NotPlain as error:
        raise Invalid(str(error), hint="fix the file, or remove it") from error


def _entries(text: ToolsText) -> dict[str, Any]:
    """The servers of one file, unchecked."""
    file = text.file
    whole = _Place(file, "the document").table(_read(file, text.content))
    _Place(file, "the document").known(whole, ("mcpServers", "$schema"))
    servers = _Place(file).table(whole.get("mcpServers", {}))
    if len(servers) > SERVERS_MAX:
        _Place(file).refuse(f"{len(servers)} servers are too many", f"keep at most {SERVERS_MAX}")
    return servers


def _read(file: Path, raw: bytes) -> Any:
    try:
        data = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_constant)
        msgspec.json.encode(data)  # fails for lone surrogates, which can't be passed to a process
    except json.JSONDecodeError as error:
        hint = "write strict JSON: double quotes, no comments, no comma before a closing bracket"
        raise Invalid(f"{file}:{error.lineno}:{error.colno}: {error.msg}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{file} can't be read as JSON: {error}", hint="fix the place that the message names") from error
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key `{twice[:100]}` appears twice in one object")
    return table


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not valid JSON")


def _declared(name: str, entry: Any, text: ToolsText) -> Declared | None:
    """One server, checked; None if it is disabled."""
    servers = _Place(text.file)
    _require_name(name, servers)
    place = servers.at(name)
    table = place.table(entry)
    if table.get("disabled") is True or table.get("enabled") is False:
        return None
    place.known(table, (*KEYS, *sorted(IGNORED)))
    if table.get("type") == "sse":
        hint = "give the server's streamable HTTP address (often /mcp) and type http"
        place.at("type").refuse("HTTP+SSE is deprecated, and handrail does not support it", hint)
    written: _Written = _converted(_only(table, ("type", *OWN_KEYS)), _Written, place)
    _require_one_way(written, place)
    _require_unseen(written, place)
    return Declared(
        name=name,
        origin=str(place.file),
        is_projects=text.is_projects,
        off=text.off(name) if text.off else "",
        rule=_converted(_only(table, SERVER_RULE_KEYS), ToolRule, place),
        tools=_rules(table.get("tools", {}), place.at("tools")),
        **_only(asdict(written), OWN_KEYS),
    )


def _require_name(name: str, servers: _Place) -> None:
    if not _server_name.fullmatch(name):
        hint = "use small letters, digits, _ and -, at most 64: plans call <server>.<tool>"
        servers.refuse(f"`{name[:100]}` can't be a server's name", hint)
    if name in RESERVED:
        servers.refuse(f"`{name}` is the name of built-in tools", f"choose another, such as `my-{name}`")


def _only(table: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: table[key] for key in keys if key in table}


def _rules(written: Any, place: _Place) -> Mapping[str, ToolRule]:
    rules = place.table(written)
    if len(rules) > RULES_MAX:
        place.refuse(f"{len(rules)} tools are too many", f"keep at most {RULES_MAX}")
    return {tool: _rule(tool, rule, place) for tool, rule in rules.items()}


def _require_one_way(written: _Written, place: _Place) -> None:
    """Require either `command` or `url`, and no keys that belong to the other one."""
    if bool(written.command) == bool(written.url):
        many = "both `command` and `url`" if written.url else "neither `command` nor `url`"
        place.refuse(f"it has {many}", "give `command` for a server to start, or `url` for one to reach")
    fitting = (None, *(STDIO_TYPES if written.command else HTTP_TYPES))
    if written.type not in fitting:
        place.at("type").refuse(f"`{written.type}` does not fit", "leave it out: command or url say enough")
    way, strange = ("reached by `url`", WHEN_STARTED) if written.url else ("started by `command`", WHEN_REACHED)
    lost = next((key for key in strange if getattr(written, key)), None)
    if lost is not None:
        place.at(lost).refuse(f"a server that is {way} can't have this key", "leave it out")
    if _user.match(written.url):
        hint = 'put credentials into headers: {"Authorization": "Bearer ${secret:TOKEN}"}'
        place.at("url").refuse("the URL must not contain a user or a password", hint)


def _require_unseen(written: _Written, place: _Place) -> None:
    """Refuse secrets where other users of the machine can see them."""
    seen = {"command": (written.command,), "args": written.args, "cwd": (written.cwd,)}
    for key, texts in seen.items():
        found = next((one for text in texts for one in references_in(text) if names_value(one)), None)
        if found is not None:
            hint = f'give it to the process in env: {{"{found.name}": "{found}"}}'
            place.at(key).refuse(f"`{found}` {visible_words(key)}", hint)


def _rule(tool: str, written: Any, tools: _Place) -> ToolRule:
    place = tools.at(tool)
    _converted({tool: 0}, dict[ToolName, int], tools)
    table = place.table(written)
    place.known(table, ToolRule.__struct_fields__)
    if "undo" in table:
        place.at("undo").known(place.at("undo").table(table["undo"]), UndoRule.__struct_fields__)
    rule: ToolRule = _converted(table, ToolRule, place)
    if rule.undo is not None:
        _require_undo(rule, place.at("undo"))
    return rule


def _require_undo(rule: ToolRule, place: _Place) -> None:
    if rule.effect in (Effect.NONE, Effect.IRREVERSIBLE):
        place.refuse(f"the tool's effect is `{rule.effect}`", "leave the undo out, or write effect compensatable")
    for error in template_errors(rule.undo.args if rule.undo else {}, UNDO_SCOPE):
        place.refuse(f"args{error.where}: {error}", "use `args` (of the call) and `output` (its result)")


def _converted(value: Any, kind: Any, place: _Place) -> Any:
    """A value converted to a type; an error names the location inside it."""
    if isinstance(value.get("retry"), dict):
        place.at("retry").known(value["retry"], RetryChoice.__struct_fields__)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        found = _misfit.fullmatch(str(error))
        words, below = (found["words"], found["place"] or "") if found else (str(error), "")
        key = re.split(r"[.\[]", below.lstrip("."), maxsplit=1)[0] or place.path.rpartition(".")[2]
        at = _Place(place.file, f"{place.path}{below}")
        at.refuse("this is not valid" if "regex" in words else words, HINTS.get(key, "fix it, or leave it out"))
