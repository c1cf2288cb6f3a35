"""`handrail demo`: a tour in a temporary folder, with real files, a real server, a real journal and an attack on it."""

from __future__ import annotations

import asyncio
import contextlib
import select
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from handrail.assembly.opening import Assembly, open_assembly, open_reader
from handrail.domain.plural import plural
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import WaitingFor
from handrail.engine.running.answers import AnswerGiven
from handrail.engine.stream_pages import entries_of
from handrail.interfaces.cli.demo.plan import MISTAKES, NEW_VERSION, OLD_VERSION, RELEASE
from handrail.interfaces.cli.demo.registry import HOST, DemoRegistry, demo_registry
from handrail.interfaces.cli.program import reports_errors, settings_of
from handrail.interfaces.cli.run.story import timed_line
from handrail.interfaces.cli.run.watch import LineView, watch
from handrail.interfaces.cli.words.finding_view import print_findings
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.workflow.definitions import load_file, load_valid
from handrail.interfaces.pictures.terminal import terminal_picture
from handrail.logs import start_logging
from handrail.settings import Settings, read_settings

ACTOR: Final = "agent:demo"
"""Who starts and undoes the runs: a script."""
PERSON: Final = "person:you"
"""Who answers: without an answer of a person, nothing is approved."""
CONSOLE: Final = "handrail.interfaces.cli.demo.console"
PAUSE_S: Final = 1.5
ANSWER_S: Final = 20.0
"""How long the demo waits for a yes or no before it goes on without one."""
HIDDEN: Final = (b"403 from", b"200 from")
"""The failure in the journal, and what an attacker writes over it: the same length, so the file stays readable."""


@click.command()
@click.option("--console", "shows", is_flag=True, help="Then show it all in a browser, until Ctrl-C; needs a terminal.")
@click.option("--yes", "says_yes", is_flag=True, help="Answer yes to the question of the tour.")
@click.pass_context
@reports_errors
async def command(ctx: click.Context, shows: bool, says_yes: bool) -> None:
    """A one-minute tour: check a plan, run it, undo it after a failure, approve, succeed, and detect an attack.

    It works in a temporary folder, and leaves nothing behind. It never answers for you: without an answer, or
    --yes, the last run keeps waiting for one."""
    if shows:
        _require_terminal()
    with tempfile.TemporaryDirectory(prefix="handrail-demo-") as folder:
        async with demo_registry() as registry:
            settings = _settings(settings_of(ctx), Path(folder), registry)
            start_logging(
                None, level=settings.choices.log_level, days=1
            )  # the demo must not write to the user's own logs
            file = Path(folder) / "release.yaml"
            _check(file, settings)
            await _pause()
            undone = await _tour(file, settings, registry, says_yes=says_yes)
            await _attack(settings)
            if shows:
                _title("8. All of it in the console; the attack is undone first")
                # Imported late: the server takes three times as long to import as all of the tour.
                await import_module(CONSOLE).show_console(settings, undone)
    _title("The demo's folder is deleted. Next:")
    say("  handrail workflow validate FILE    check a definition of yours")
    say("  handrail run start FILE --watch    run it; `handrail run list` and `handrail run show RUN --full`")
    say("  handrail tools list                list the tools that plans can call")


def _require_terminal() -> None:
    """Refuse before the tour: without a terminal the link is not seen, and Ctrl-C can not be pressed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            "--console needs a terminal: it shows a link and serves until Ctrl-C. Leave it out, or run "
            "`handrail serve` with a folder of your own."
        )


def _settings(own: Settings, folder: Path, registry: DemoRegistry) -> Settings:
    project = folder / "project"
    project.mkdir()
    (project / "VERSION").write_text(f"{OLD_VERSION}\n", encoding="utf-8")
    (project / "NEWS.md").write_text(f"{OLD_VERSION} is out.\n", encoding="utf-8")
    allowed = {"http": {"allow": [f"{HOST}:{registry.port}"]}}
    # Not the user's own configuration: their witnesses, passphrase and servers have no part in a tour.
    fresh = read_settings({"home": str(folder / "home"), "project": str(project)}, {})
    return replace(fresh, tables=allowed, choices=replace(fresh.choices, log_level=own.choices.log_level))


def _title(text: str) -> None:
    say(f"\n{text}", fg="cyan", bold=True)


def _check(file: Path, settings: Settings) -> None:
    _title("1. A plan with two mistakes: both are found at once, with their place and a fix")
    broken = RELEASE
    for right, wrong in MISTAKES:
        broken = broken.replace(right, wrong)
    file.write_text(broken, encoding="utf-8")
    loaded = load_file(str(file), settings)
    print_findings(loaded.findings)  # with their full path: the excerpt is read from the file
    _title("2. Fixed, and drawn")
    file.write_text(RELEASE, encoding="utf-8")
    definition, _ = load_valid(str(file), settings)
    say(terminal_picture(definition, width=90).rstrip("\n"))


async def _tour(file: Path, settings: Settings, registry: DemoRegistry, *, says_yes: bool) -> str:
    """The whole tour; returns the run that was undone."""
    async with open_assembly(settings, picks_up=False) as parts:
        await parts.writer.plans.save(load_valid(str(file), settings)[0], actor=ACTOR, note="first try")
        undone = await _fail(file, parts, registry)
        run = await _succeed(file, parts, registry, says_yes=says_yes)
        _title("6. The journal of the second run, and the proof that no event was changed")
        for entry in await entries_of(parts.writer.reader.store, run.id):
            say(f"  {timed_line(entry)}")
        say(f"  receipt: {run.receipt}")
    async with open_reader(settings) as look:
        verdict = await look.verify(replay=True)
    signed = f"{verdict.signed_events:,} signed by a checkpoint"
    say(f"  journal verified: {plural(verdict.events, 'event')}, {signed}", fg="green")
    return undone


async def _fail(file: Path, parts: Assembly, registry: DemoRegistry) -> str:
    _title("3. It runs: two writes in parallel, a retry, and a permanent failure")
    _print_files(parts, "before")
    run = await _started(file, parts, registry)
    seen = await _watched(parts, run.id)
    failure = (await _lookout(parts).status(run.id)).failure
    _print_files(parts, "now")
    say("  The run stopped and asks what to do.", fg="yellow")
    for option in failure.options if failure else ():
        say(f"    {option.action.value:12} {option.means}")
    await _pause()
    _title("4. We choose `compensate`: what was done is undone, newest first")
    await parts.control.act(run.id, Action.COMPENSATE, actor=ACTOR, reason="no permission to publish")
    await _watched(parts, run.id, after=seen)
    _print_files(parts, "after")
    await _pause()
    return run.id


async def _watched(parts: Assembly, run_id: str, *, after: int = 0) -> int:
    """Print the events of a run until it stops; returns the number of its last event."""
    until = asyncio.ensure_future(parts.worker.settled(run_id))
    await watch(_lookout(parts), run_id, LineView(err=False, indent="  "), until, after=after)
    return until.result().n


async def _succeed(file: Path, parts: Assembly, registry: DemoRegistry, *, says_yes: bool) -> Run:
    _title("5. The token gets permission, the plan runs again, and asks for approval before the announcement")
    registry.takes_packages = True
    run = await _started(file, parts, registry)
    run = await parts.worker.settled(run.id)
    (asked,) = (await _lookout(parts).status(run.id)).waiting_for
    say(f"  {run.id} is waiting for approval: {asked.text}")
    answer = (Action.APPROVE, "yes, said beforehand by --yes") if says_yes else await _answer()
    if answer is None:
        say("  No answer, so no approval: the run keeps waiting, and nothing is announced.", fg="yellow")
    else:
        run = await _answered(parts, run.id, asked, *answer)
        color = "green" if run.status is RunStatus.COMPLETED else "magenta"
        published = ", ".join(registry.published) or "nothing"
        say(f"  {run.id} is {run.status.value}; published on the server: {published}", fg=color)
    _print_files(parts, "after")
    await _pause()
    return run


async def _answered(parts: Assembly, run_id: str, asked: WaitingFor, action: Action, reason: str) -> Run:
    given = AnswerGiven(channel="terminal", digest=asked.digest)
    await parts.control.act(run_id, action, actor=PERSON, reason=reason, step=asked.step, given=given)
    if action is Action.REJECT:
        await parts.control.act(run_id, Action.COMPENSATE, actor=ACTOR, reason="rejected: undo all of it")
    return await parts.worker.settled(run_id)


async def _pause() -> None:
    """Wait a moment at a terminal, so that people can read."""
    await asyncio.sleep(PAUSE_S if sys.stdout.isatty() else 0)


async def _started(file: Path, parts: Assembly, registry: DemoRegistry) -> Run:
    definition, _ = load_valid(str(file), parts.writer.reader.settings)
    inputs = {"version": NEW_VERSION, "registry": registry.address}
    return await parts.worker.start(definition, inputs, actor=ACTOR)


async def _answer() -> tuple[Action, str] | None:
    """The answer typed at the terminal; None if there is no terminal, or none came in time."""
    if not sys.stdin.isatty() or sys.platform == "win32":
        say("  There is no terminal to ask at; `handrail demo --yes` answers yes.")
        return None
    say(f"  your answer? [Y/n] (the tour goes on without one after {ANSWER_S:.0f} s) ", nl=False)
    text = await asyncio.to_thread(_typed)
    if not text:  # nothing at all: an empty line has its line break
        say("")
        return None
    is_no = text.strip().lower().startswith("n")
    return (Action.REJECT, "not today") if is_no else (Action.APPROVE, "looks good")


def _typed() -> str | None:
    # With a time limit, so that an unattended demo ends.
    with contextlib.suppress(OSError, ValueError):
        if select.select([sys.stdin], [], [], ANSWER_S)[0]:
            return sys.stdin.readline()
    return None


def _lookout(parts: Assembly) -> RunReader:
    return parts.run_reader


def _print_files(parts: Assembly, when: str) -> None:
    project = parts.writer.reader.settings.project
    for file in sorted(path for path in project.iterdir() if path.is_file()):
        last_line = file.read_text(encoding="utf-8").splitlines()[-1]
        say(f"  {when:7} {file.name:10} {last_line}", bold=True)


async def _attack(settings: Settings) -> None:
    _title("7. An attacker edits the journal's file: the failure `403` becomes `200`")
    content = settings.journal.read_bytes()
    settings.journal.write_bytes(content.replace(*HIDDEN))
    async with open_reader(settings) as look:
        verdict = await look.verify(replay=True)
    settings.journal.write_bytes(content)
    for broken in verdict.breaks[:2]:
        say(f"  detected: {broken.stream} #{broken.n}: {broken.reason}", fg="red")
    if verdict.ok:
        raise click.ClickException("the attack was not detected: please report this")
