"""The vault: replaces references by secret values when a tool is called, and removes the values from its results.

domain/secrets/secret_reference.py defines where references are allowed in a plan's arguments; storage keeps the
values. A secret goes only to the tools and servers that it is for, in a plan and in tools.json alike, and never into
the arguments of a process, which other users can see."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from handrail.domain.checks.finding import Path
from handrail.domain.definition.model import Category
from handrail.domain.errors import Forbidden, HandrailError, Unavailable
from handrail.domain.secrets.secret_reference import (
    Reference,
    ReferenceSource,
    filled,
    names_value,
    references_in,
    visible_words,
)
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.secrets import Secret, Secrets
from handrail.engine.tool import ToolCall, ToolFailed

REFERENCES_MAX: Final = 100
VALUE_LENGTH_MAX: Final = 10_000
HTTP: Final = "http.request"
ASK: Final = "only a person decides which tools get it, so ask one if the step needs it"
ORDINARY: Final = frozenset(
    {
        *("APPDATA", "COMPUTERNAME", "HOME", "HOMEPATH", "HOSTNAME", "LANG", "LOCALAPPDATA", "LOGNAME", "PATH", "PWD"),
        *("SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER", "USERNAME", "USERPROFILE", "VIRTUAL_ENV"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
    }
)
"""Environment variables that contain no secret: their values appear in many results, and are not removed."""

# So strict that every URL parser sees the same host in it.
_URL: Final = re.compile(
    r"https?://([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?(?:[/?#].*)?", re.DOTALL
)


def secret_variables(environment: Mapping[str, str], names: Collection[str]) -> Mapping[str, str]:
    """The values of these variables that may be secrets, each with what refers to it."""
    references = {name: Reference(ReferenceSource.ENV, name) for name in names if name not in ORDINARY}
    return {environment[name]: str(one) for name, one in references.items() if environment.get(name)}


class Vault:
    """Gives values to tools, and removes all known ones from what comes back; threads can share it."""

    def __init__(
        self,
        secrets: Secrets | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        allowed_env: Collection[str] = (),
        known: KnownSecrets | None = None,
    ) -> None:
        """`allowed_env` are the environment variables that plans may use; `known` remembers what is given to tools."""
        self.known = KnownSecrets() if known is None else known
        self._secrets = secrets
        self._environment = os.environ if environment is None else environment
        self._allowed_env = frozenset(allowed_env)

    def text(self, text: str, *, server: str) -> str:
        """A string from the declaration of a server with its references filled in; ToolFailed says what is missing, or
        may not be given to that server."""
        references = _bounded(references_in(text))
        if not references:
            return text
        values = {one: self._servers_value(one, server) for one in references}
        self._remember(values)
        return filled(text, values.__getitem__)

    def arguments(self, call: ToolCall, *, visible: Collection[str] = ()) -> Mapping[str, Any]:
        """The arguments of a call with references filled in where allowed; ToolFailed if the tool may not have them.

        `visible` are the arguments that other users of the machine can see: no secret goes into these."""
        # Only where an author wrote a reference: the same characters in the output of a tool stay what they are, text.
        texts = {path: text for path in call.references if isinstance(text := _at(call.args, path), str)}
        for path, text in texts.items():
            # Words of a command line are in the list of processes, which every user of the machine can read.
            if path[:1] and path[0] in visible and (found := next(filter(names_value, references_in(text)), None)):
                raise ToolFailed(Category.PERMISSION, f"`{found}` {visible_words(str(path[0]))}")
        references = _bounded([one for text in texts.values() for one in references_in(text)])
        if not references:
            return call.args
        secrets = {one: self._secret(one.name) for one in references if one.source is ReferenceSource.SECRET}
        values = {one: secrets[one].value if one in secrets else self._plans_variable(one) for one in references}
        args = dict(call.args)
        for path, text in texts.items():
            args = _with(args, path, filled(text, values.__getitem__))
        for one, secret in secrets.items():
            # Checked with the filled-in arguments: a value may be part of the address that it is sent to.
            if not _may_have(secret, call.tool, args):
                raise ToolFailed(Category.PERMISSION, _withheld(one, call))
        self._remember(values)
        return args

    def scrubbed(self, value: Any) -> Any:
        """A JSON value without any known secret; the same object if it contains none."""
        return self.known.scrubber().value(value)

    def _remember(self, values: Mapping[Reference, str]) -> None:
        self.known.add(
            {
                value: str(one)
                for one, value in values.items()
                if one.source is ReferenceSource.SECRET or one.name not in ORDINARY
            }
        )

    def _servers_value(self, reference: Reference, server: str) -> str:
        if reference.source is not ReferenceSource.SECRET:
            return self._variable(reference)
        secret = self._secret(reference.name)
        if not any(_is_for_server(pattern, server) for pattern in secret.given_to):
            message = f"`{reference}` may not be given to the server {server}"
            raise ToolFailed(Category.PERMISSION, f"{message}; {ASK}")
        return secret.value

    def _secret(self, name: str) -> Secret:
        try:
            secret = self._secrets.find(name) if self._secrets else None
        except HandrailError as error:
            raise ToolFailed(_category(error), f"the secret `{name}` can't be read: {error}; {error.hint}") from error
        if secret is None:
            message = f"there is no secret `{name}`; a person can set it: `handrail secrets set {name}`"
            raise ToolFailed(Category.NOT_FOUND, message)
        return secret

    def _plans_variable(self, reference: Reference) -> str:
        if reference.name not in self._allowed_env:
            raise ToolFailed(
                Category.PERMISSION,
                f"a plan may not read `{reference}`; only a person can allow it, so ask one if the step needs it",
            )
        return self._variable(reference)

    def _variable(self, reference: Reference) -> str:
        value = self._environment.get(reference.name)
        if value is None:
            message = f"`{reference}` is not set in the environment of handrail; set it, then restart handrail"
            raise ToolFailed(Category.NOT_FOUND, message)
        if len(value) > VALUE_LENGTH_MAX:
            message = f"the value of `{reference}` is longer than {VALUE_LENGTH_MAX:,} characters; keep it in a file"
            raise ToolFailed(Category.INVALID_INPUT, message)
        return value


def _bounded(references: list[Reference]) -> list[Reference]:
    if len(references) > REFERENCES_MAX:
        message = f"more than {REFERENCES_MAX} references to secrets at once; name fewer"
        raise ToolFailed(Category.INVALID_INPUT, message)
    return list(dict.fromkeys(references))


def _category(error: HandrailError) -> Category:
    if isinstance(error, Forbidden):
        return Category.PERMISSION
    return Category.TRANSIENT if isinstance(error, Unavailable) else Category.INVALID_INPUT


def _may_have(secret: Secret, tool: str, args: Mapping[str, Any]) -> bool:
    return any(_fits(pattern, tool, args) for pattern in secret.given_to)


def _fits(pattern: str, tool: str, args: Mapping[str, Any]) -> bool:
    named, colon, host = pattern.partition(":")
    if not colon:
        return fnmatchcase(tool, named)
    return tool == named == HTTP and host.lower() in _hosts(args)


def _is_for_server(pattern: str, server: str) -> bool:
    """Whether a pattern names the server, or a tool that it may have: what its tool may know, the server gets."""
    return ":" not in pattern and fnmatchcase(server, pattern.partition(".")[0])


def _hosts(args: Mapping[str, Any]) -> Collection[str]:
    """The host of a request, without its port and with it."""
    found = _URL.fullmatch(str(args.get("url", "")))
    if found is None:
        return ()
    host = found[1].lower()
    return (host, f"{host}{found[2]}") if found[2] else (host,)


def _withheld(reference: Reference, call: ToolCall) -> str:
    """Why a tool may not have a secret. Agents read it, so it names no command that would give it to the tool."""
    tool = call.tool
    if tool == HTTP:
        # From the plan's own text: with references filled in, the address may contain a secret itself.
        tool = f"{HTTP}:{next(iter(_hosts(call.args)), 'HOST')}"
    return f"`{reference}` may not be given to {tool}; {ASK}"


def _at(value: Any, path: Path) -> Any:
    """The value at a path; None if there is none."""
    for key in path:
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list | tuple) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            return None
    return value


def _with(value: Any, path: Path, text: str) -> Any:
    """A copy of a value with this text at an existing path."""
    if not path:
        return text
    key, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {**value, key: _with(value[key], rest, text)}
    items = list(value)
    items[int(key)] = _with(items[int(key)], rest, text)
    return items
