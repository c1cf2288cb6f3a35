"""Secrets: where they are stored, which are known, and what keeps them out of logs.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from handrail.domain.errors import HandrailError, Invalid
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.secrets import SecretStore
from handrail.foundation.address_text import passwords_in
from handrail.foundation.log_text import clean_logs_with
from handrail.settings import Settings
from handrail.storage.secret_file import SecretFile
from handrail.tools.vault import secret_variables


def secrets_of(settings: Settings) -> SecretStore:
    """The secrets that people have stored for tools."""
    return SecretFile(settings.keys, choice=settings.choices.secrets_in)


def known_secrets_of(settings: Settings) -> KnownSecrets:
    """All values that must be written nowhere: stored secrets, variables that plans may use, passwords in addresses of
    the home's own settings."""
    given = secret_variables(os.environ, allowed_env(settings))
    texts = _texts_in([msgspec.to_builtins(settings.choices), settings.home_tables])
    in_addresses = {one: "" for text in texts if "://" in text for one in passwords_in(text)}
    return KnownSecrets(secrets_of(settings), {**in_addresses, **given})


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts_in(one)


def guard_logs(secrets: KnownSecrets) -> None:
    """Keep these secrets out of every log of this process."""

    def clean(text: str) -> str:
        try:
            return secrets.scrubber().text(text)
        except HandrailError:  # secrets that can't be read: opening the store reports that
            return text

    clean_logs_with(clean)


def allowed_env(settings: Settings) -> Sequence[str]:
    """The environment variables that plans may read."""
    table = settings.home_tables.get("secrets", {})  # not the project's: what was cloned must not help itself
    names = table.get("env", [])
    if set(table) - {"env"} or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Invalid("config.toml: [secrets] takes a list of names: env", hint='write: env = ["GITHUB_TOKEN"]')
    return names
