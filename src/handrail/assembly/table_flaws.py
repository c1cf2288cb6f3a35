"""What is wrong inside the tables of the config files: asked of each part that reads one, without opening anything.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from handrail.assembly.backups.schedule import rules_of
from handrail.assembly.caching.shared import cache_table
from handrail.assembly.checks import sandbox_of, shell_of
from handrail.assembly.notify.keeping import settings_of_notices
from handrail.assembly.people import policy_of
from handrail.assembly.retention import archives
from handrail.assembly.secrets import allowed_env
from handrail.assembly.witnesses import witnesses_named
from handrail.domain.errors import HandrailError
from handrail.library.models import models_of
from handrail.settings import Settings
from handrail.tools.configuration import tool_configuration
from handrail.tools.shell import shell_configuration


def table_flaws(settings: Settings) -> list[HandrailError]:
    """Every table that its part would refuse; of a project that is not trusted, too: it may count tomorrow."""
    found: dict[str, HandrailError] = {}
    for read in _readers(settings):
        try:
            read()
        except HandrailError as error:
            found.setdefault(str(error), error)
    return list(found.values())


def _readers(settings: Settings) -> Iterator[Callable[[], Any]]:
    own = settings.project_tables
    yield lambda: shell_of(settings)
    yield lambda: shell_configuration(own)
    yield lambda: tool_configuration(settings.tables)
    yield lambda: tool_configuration(own)
    yield lambda: models_of(settings.tables.get("models", {}))
    yield lambda: models_of(own.get("models", {}))
    yield lambda: sandbox_of(settings)
    yield lambda: policy_of(settings)
    yield lambda: allowed_env(settings)
    yield lambda: witnesses_named(settings)
    yield lambda: rules_of(settings)
    yield lambda: archives.rules_of(settings)
    yield lambda: settings_of_notices(settings)
    yield lambda: cache_table(settings)
