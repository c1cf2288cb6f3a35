"""Secrets: where they are stored, which are known, and what keeps them out of logs.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

import os
from collections.abc import Sequence

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
    """All values that must be written nowhere: stored secrets, variables that plans may use, the
    passwords of the store and of the shared cache."""
    given = secret_variables(os.environ, allowed_env(settings))
    shared = settings.home_tables.get("cache", {}).get("shared")
    addresses = (settings.choices.store, shared if isinstance(shared, str) else "")
    of_addresses = dict.fromkeys((one for address in addresses for one in passwords_in(address)), "")
    return KnownSecrets(secrets_of(settings), {**of_addresses, **given})


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
