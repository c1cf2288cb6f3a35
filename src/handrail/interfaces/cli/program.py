"""The program's command tree. A command's module is imported only when that command is called.

Global options (folders, log level) are read here, once, and passed to the command as Settings."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, ParamSpec

import click
from click.shell_completion import CompletionItem

from handrail.domain.errors import HandrailError, Unavailable
from handrail.foundation.visible_text import visible
from handrail.interfaces.cli.words.answer import fail
from handrail.logs import start_logging
from handrail.settings import Settings, local_person, read_settings

P = ParamSpec("P")

log = logging.getLogger(__name__)

COMMANDS: Final[Mapping[str, str]] = {
    "approvals": "list pending approvals of all open runs",
    "approve": "approve a step of a run",
    "cache": "show, fill and empty the caches, and what they bring",
    "config": "show the settings and where each comes from",
    "db": "operate the journal: back up, restore, share it between machines",
    "demo": "a one-minute tour, offline; leaves nothing behind",
    "doctor": "check the installation and say how to fix problems",
    "init": "add handrail to the settings of your clients, or remove it",
    "journal": "show, export, verify, checkpoint and erase",
    "logs": "show and follow what handrail logged here",
    "mcp": "the stdio server that clients start",
    "nodes": "list who executes runs here, pause and resume a node",
    "open": "open the console in a browser",
    "plan": "check, save, list, show and retire plans",
    "project": "list projects, join, move or forget one, and adopt runs",
    "reject": "reject a step of a run",
    "rules": "list, write and check the rules of checks",
    "run": "start, list, show, watch, submit and control runs",
    "schema": "print the JSON Schema of definitions",
    "secrets": "store, list and remove secrets for tools",
    "serve": "MCP, the API and the console over HTTP, on this machine",
    "status": "show how everything is here: health, open runs, pending approvals",
    "tools": "list, check and call the tools of plans, with statistics",
    "trust": "decide whether a project's own settings and servers count",
    "webhooks": "list, test, disable and resend to the channels that are notified",
    "worker": "start another worker, for one project or several",
    "workflow": "find, write, check, draw and test workflows",
}
GROUPS: Final = frozenset({"db", "demo", "journal", "rules", "run", "tools", "workflow"})
"""Commands that have a folder of their own."""
EPILOG: Final = """\
Shell completion (also zsh_source, fish_source):

  eval "$(_HANDRAIL_COMPLETE=bash_source handrail)\""""


LOOKS_AROUND: Final = "doctor"
"""The command that runs although the project's settings are wrong, and reports it."""
FLAW: Final = "handrail.flaw"


class LazyGroup(click.Group):
    """A group whose commands are modules beside this one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(COMMANDS)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """The context of the program; what is wrong with its options is said visibly."""
        with _visible_errors():
            _require_text(kwargs.get("args") or args[1])
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what is wrong with its options is said visibly."""
        with _visible_errors():
            return super().invoke(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module = f"{cmd_name}.group" if cmd_name in GROUPS else cmd_name
        command: click.Command = import_module(f"handrail.interfaces.cli.{module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command named by the first word; click itself suggests only commands that are imported already."""
        if args and args[0] not in COMMANDS and args[0][:1].isalnum() and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """The commands or options that start with what was typed, without importing any command."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands: list[CompletionItem[str]] = [CompletionItem(name, help=COMMANDS[name]) for name in names]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


def _require_text(words: Sequence[str]) -> None:
    """No command takes a word that is not text: it could neither be stored nor shown."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise click.UsageError(f"{word!a} is not valid UTF-8: nothing was done") from error


@contextmanager
def _visible_errors() -> Iterator[None]:
    """Click prints its errors itself, and they quote what was typed, perhaps by a script: nothing in it may hide."""
    try:
        yield
    except click.ClickException as error:
        error.message = visible(error.message)  # type: ignore[misc]  # final for subclasses, not for us
        raise


@click.group(
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
)
@click.option("--home", metavar="FOLDER", help="Where all state is kept (HANDRAIL_HOME).")
@click.option("--project", metavar="FOLDER", help="The project's folder (HANDRAIL_PROJECT; default: here).")
@click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error (HANDRAIL_LOG_LEVEL).")
@click.version_option(package_name="handrail")
@click.pass_context
def program(ctx: click.Context, home: str | None, project: str | None, log_level: str | None) -> None:
    """Guide AI agents through workflows, execute plans and record everything in one journal."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    flags = {"home": home, "project": project, "log_level": log_level}
    try:
        ctx.obj = _read(ctx, flags)
    except HandrailError as error:
        fail(error, as_json=False)
    start_logging(ctx.obj.home / "logs", level=ctx.obj.choices.log_level, days=ctx.obj.choices.log_days)


def _read(ctx: click.Context, flags: Mapping[str, str | None]) -> Settings:
    try:
        return read_settings(flags, os.environ)
    except HandrailError as error:
        if ctx.invoked_subcommand != LOOKS_AROUND:
            raise
        settings = read_settings(flags, os.environ, with_project=False)
        ctx.meta[FLAW] = error
        return settings


def flaw_of(ctx: click.Context) -> HandrailError | None:
    """What is wrong with the project's own settings, for the command that runs all the same."""
    return ctx.meta.get(FLAW)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Answer with JSON on stdout.")(command)


def reports_errors(command: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run an async command; print its errors as text or JSON, and exit with their code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        started = time.perf_counter()
        try:
            asyncio.run(command(*args, **kwargs))  # type: ignore[arg-type]
        except HandrailError as error:
            level = logging.INFO if isinstance(error, Unavailable) else logging.DEBUG  # `fail` prints it on stderr
            log.log(level, "%s: %s", error.name, error)
            fail(error, as_json=bool(kwargs.get("as_json")))
        finally:
            took_ms = round(1_000 * (time.perf_counter() - started), 1)
            log.debug("command %s", command.__name__, extra={"duration_ms": took_ms})

    return run


def settings_of(ctx: click.Context) -> Settings:
    """The settings that program() has read."""
    settings = ctx.find_object(Settings)
    assert settings is not None, "program() sets it before any command runs"  # noqa: S101
    return settings


def person() -> str:
    """The actor in the journal for commands of this user."""
    return local_person()
