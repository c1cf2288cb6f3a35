"""The vault: replaces references by secret values when a tool is called, and removes the values from its results.

domain/secrets/secret_reference.py defines where references are allowed in a plan's arguments; storage keeps the
values. References in tools.json, which a person writes, are always filled in; a plan only gets secrets that were
given to that tool."""

from __future__ import annotations

import os
import re
import shlex
import threading
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from handrail.domain.checks.finding import Path
from handrail.domain.definition.model import Category
from handrail.domain.errors import Forbidden, HandrailError, Unavailable
from handrail.domain.secrets.scrubbing import forms_of, scrubbed
from handrail.domain.secrets.secret_reference import Reference, ReferenceSource, filled, references_in
from handrail.engine.secrets import Secret, Secrets
from handrail.engine.tool import ToolCall, ToolFailed

REFERENCES_MAX: Final = 100
VALUE_LENGTH_MAX: Final = 10_000
GIVEN_MAX: Final = 1_000
GIVEN_CHARACTERS_MAX: Final = 20_000_000
"""How many values are remembered; beyond that, the ones used longest ago are forgotten."""
HTTP: Final = "http.request"
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


class Vault:
    """Gives values to tools, and remembers which ones; threads can share it."""

    def __init__(
        self,
        secrets: Secrets | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        allowed_env: Collection[str] = (),
    ) -> None:
        """`allowed_env` are the environment variables that plans may use."""
        self._secrets = secrets
        self._environment = os.environ if environment is None else environment
        self._allowed_env = frozenset(allowed_env)
        self._lock = threading.Lock()
        self._given: dict[str, tuple[str, ...]] = {}
        self._forms: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """A text from tools.json with all its references filled in; ToolFailed names what is missing."""
        references = _bounded(references_in(text))
        if not references:
            return text
        values = {one: self._value(one) for one in references}
        self._remember(values)
        return filled(text, values.__getitem__)

    def arguments(self, call: ToolCall) -> Mapping[str, Any]:
        """The arguments of a call with references filled in where allowed; ToolFailed if the tool may not have them."""
        texts = {path: text for path in call.references if isinstance(text := _at(call.args, path), str)}
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
                raise ToolFailed(Category.PERMISSION, _how_to_allow(one, secret, call))
        self._remember(values)
        return args

    def scrubbed(self, value: Any) -> Any:
        """A JSON value without the remembered secrets; the same object if it contains none."""
        return scrubbed(value, self._forms)

    def _remember(self, values: Mapping[Reference, str]) -> None:
        secret_values = [
            value for one, value in values.items() if one.source is ReferenceSource.SECRET or one.name not in ORDINARY
        ]
        with self._lock:
            is_known = all(value in self._given for value in secret_values)
            for value in secret_values:  # the last ones used are last in the order
                self._given[value] = self._given.pop(value, ()) or forms_of(value)
            if is_known:
                return
            while self._is_full():
                del self._given[next(iter(self._given))]
            forms = {form for forms in self._given.values() for form in forms}
            self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def _is_full(self) -> bool:
        size = sum(len(form) for forms in self._given.values() for form in forms)
        return len(self._given) > GIVEN_MAX or size > GIVEN_CHARACTERS_MAX

    def _value(self, reference: Reference) -> str:
        if reference.source is ReferenceSource.SECRET:
            return self._secret(reference.name).value
        return self._variable(reference)

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
                f"a plan may not read `{reference}`; a person can allow it in config.toml: "
                f'[secrets] env = ["{reference.name}"]',
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


def _hosts(args: Mapping[str, Any]) -> Collection[str]:
    """The host of a request, without its port and with it."""
    found = _URL.fullmatch(str(args.get("url", "")))
    if found is None:
        return ()
    host = found[1].lower()
    return (host, f"{host}{found[2]}") if found[2] else (host,)


def _how_to_allow(reference: Reference, secret: Secret, call: ToolCall) -> str:
    """Why a tool may not have a secret, and the command that allows it."""
    tool = call.tool
    if tool == HTTP:
        # From the plan's own text: with references filled in, the address may contain a secret itself.
        tool = f"{HTTP}:{next(iter(_hosts(call.args)), 'HOST')}"
    allowed = " ".join(f"--for {shlex.quote(pattern)}" for pattern in (*secret.given_to, tool))
    return (
        f"`{reference}` may not be given to {tool}; a person can allow it: "
        f"`handrail secrets set {reference.name} --keep {allowed}`"
    )


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
