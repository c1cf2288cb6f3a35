"""The program's command tree. A command's module is imported only when that command is called.

Global choices (folders, log level) are read here, once, and handed to the command as Settings."""

from __future__ import annotations

import asyncio
import functools
import getpass
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Any, Final, ParamSpec

import click

from handrail.domain.errors import HandrailError, Unavailable
from handrail.interfaces.cli.answer import fail
from handrail.logs import start_logging
from handrail.settings import Settings, read_settings

P = ParamSpec("P")

log = logging.getLogger(__name__)

COMMANDS: Final[Mapping[str, str]] = {
    "approvals": "what people are asked, over all open runs",
    "approve": "say yes to what a run asks",
    "config": "see what is configured, and where each setting comes from",
    "demo": "a one-minute tour, offline; leaves nothing behind",
    "doctor": "start the server as each client would, check everything, and say how to mend it",
    "init": "put handrail into the settings of your clients, or take it out again",
    "journal": "show, export, verify, checkpoint and erase",
    "mcp": "the stdio server that clients start",
    "plan": "check, save, list, show and retire plans",
    "reject": "say no to what a run asks",
    "rules": "see, write and check the rules of checks",
    "run": "start, list, show, watch and control runs",
    "schema": "print the JSON Schema of definitions",
    "secrets": "keep secrets for tools, list and remove them",
    "serve": "MCP over HTTP, on this machine",
    "tools": "list, check, call and see figures of what plans can call",
    "worker": "one more executor on the store",
    "workflow": "find, write, check, draw and test workflows",
}


class LazyGroup(click.Group):
    """A group whose commands are modules beside this one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"handrail.interfaces.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--home", metavar="FOLDER", help="Where all state is kept (HANDRAIL_HOME).")
@click.option("--project", metavar="FOLDER", help="The project's folder (HANDRAIL_PROJECT; default: here).")
@click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error (HANDRAIL_LOG_LEVEL).")
@click.version_option(package_name="handrail")
@click.pass_context
def program(ctx: click.Context, home: str | None, project: str | None, log_level: str | None) -> None:
    """What AI agents hold on to while they climb a long task: guide, run and remember, over one journal."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    try:
        ctx.obj = read_settings({"home": home, "project": project, "log_level": log_level}, os.environ)
    except HandrailError as error:
        fail(error, as_json=False)
    start_logging(ctx.obj.home / "logs", level=ctx.obj.choices.log_level, days=ctx.obj.choices.log_days)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Answer with JSON on stdout.")(command)


def told(command: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run an async command to its end; tell errors in words or JSON, with their exit codes."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        began = time.perf_counter()
        try:
            asyncio.run(command(*args, **kwargs))  # type: ignore[arg-type]
        except HandrailError as error:
            level = logging.INFO if isinstance(error, Unavailable) else logging.DEBUG  # `fail` tells it on stderr
            log.log(level, "%s: %s", error.name, error)
            fail(error, as_json=bool(kwargs.get("as_json")))
        finally:
            took_ms = round(1_000 * (time.perf_counter() - began), 1)
            log.debug("command %s", command.__name__, extra={"duration_ms": took_ms})

    return run


def settings_of(ctx: click.Context) -> Settings:
    """The settings that the program read at its start."""
    settings = ctx.find_object(Settings)
    assert settings is not None, "program() sets it before any command runs"  # noqa: S101
    return settings


def person() -> str:
    """The actor of what is typed at this terminal."""
    return f"person:{getpass.getuser()}"
