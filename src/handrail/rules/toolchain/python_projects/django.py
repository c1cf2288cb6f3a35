"""Projects of Django: their tests are started by manage.py, which names the settings. Pure, but for reading files."""

from __future__ import annotations

import re

from msgspec import Struct

from handrail.rules.toolchain.site import Site

DEPTH_MAX = 3
"""How deep in a project manage.py may be."""

_settings = re.compile(r"DJANGO_SETTINGS_MODULE['\"]\s*,\s*['\"]([\w.]{1,200})['\"]")


class Django(Struct, frozen=True):
    """Where manage.py is, and the settings that it names."""

    folder: str
    settings: str


def django_at(site: Site) -> Django | None:
    """The project of Django in a folder, the one that is least deep; None if there is none."""
    found = [name for name in site.sources("manage.py") if name.rpartition("/")[2] == "manage.py"]
    for name in sorted(found, key=lambda name: (name.count("/"), name)):
        if name.count("/") < DEPTH_MAX and (named := _settings.search(site.text(name))):
            return Django(name.rpartition("/")[0], named[1])
    return None
