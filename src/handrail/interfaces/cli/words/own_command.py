"""The one place where commands are made that a person may type next: they work as they stand where this one was typed.

Who chose a folder with --project, HANDRAIL_PROJECT or --home has to choose it again the next time. Texts of other rooms
(hints of errors) name commands in backquotes without knowing how this one was called: `localized` completes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from handrail.domain.project import PROGRAM, quoted
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.settings import Settings

_named: Final = re.compile(rf"`{PROGRAM} (?=(--project )?[a-z-])")


def own_program(project: str = "") -> str:
    """The first words of a command in the project of this one, or in the one in another folder."""
    settings = _settings()
    if settings is None:
        return PROGRAM + _option("--project", project)
    return PROGRAM + _home(settings) + _option("--project", project or _chosen_project(settings))


def own_command(words: str) -> str:
    """A command in the project of this one."""
    return f"{own_program()} {words}"


def localized(text: str) -> str:
    """A string in which every command in backquotes works where this one was typed."""
    settings = _settings()
    if settings is None:
        return text
    home = _home(settings)
    both = home + _option("--project", _chosen_project(settings))
    # As functions: a folder may have backslashes, which mean something in a replacement.
    return _named.sub(lambda found: f"`{PROGRAM}{home if found[1] else both} ", text)


def advise(text: str) -> None:
    """Say what to do next, beside the data that a command prints."""
    say(localized(text), err=True)


def _home(settings: Settings) -> str:
    # A variable is still there the next time; --project is treated differently, because it is set for one command.
    return _option("--home", str(settings.home) if settings.origins.get("home") == "--home" else "")


def _chosen_project(settings: Settings) -> str:
    is_default = settings.origins.get("project") == "default" or settings.project == Path.cwd()
    return "" if is_default else str(settings.project)


def _option(name: str, folder: str) -> str:
    return f" {name} {quoted(folder)}" if folder else ""


def _settings() -> Settings | None:
    """The settings of the command that runs; None outside of one."""
    context = click.get_current_context(silent=True)
    return context.find_object(Settings) if context is not None else None
