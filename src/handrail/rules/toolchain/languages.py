"""All languages, and which of them a project is written in."""

from __future__ import annotations

from typing import Final

from handrail.rules.toolchain.c import C
from handrail.rules.toolchain.go import GO
from handrail.rules.toolchain.java import JAVA
from handrail.rules.toolchain.javascript import JAVASCRIPT, TYPESCRIPT
from handrail.rules.toolchain.python import PYTHON
from handrail.rules.toolchain.rust import RUST
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import Language

LANGUAGES: Final = {one.name: one for one in (PYTHON, JAVASCRIPT, TYPESCRIPT, GO, RUST, JAVA, C)}


def detected(site: Site) -> tuple[Language, ...]:
    """The languages of the project by its build files; if there are none, by its sources."""
    marked = [one for one in LANGUAGES.values() if any(map(site.has, one.markers))]
    endings = {name[name.rfind(".") :] for name in site.files} if not marked else set()
    found = marked or [one for one in LANGUAGES.values() if endings.intersection(one.suffixes)]
    if TYPESCRIPT in found and JAVASCRIPT in found:  # one project with one runner: tsc handles both
        found.remove(JAVASCRIPT)
    return tuple(found)
