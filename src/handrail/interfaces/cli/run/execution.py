"""Executing runs from the command line: until nothing is left to execute, watched or not, and stopped by a signal.

A released run is not lost: the next worker continues it. view.py prints the status at the end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import Final, NoReturn

from handrail.assembly.opening import Assembly
from handrail.engine.reading.run_view import Status
from handrail.engine.reading.step_view import LiveState
from handrail.interfaces.cli.run.guided_view import print_how_to_submit
from handrail.interfaces.cli.run.view import EXIT_OF_STATUS, print_status, status_data
from handrail.interfaces.cli.run.watch import run_viewer, watch
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.own_command import own_program
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.runs import settle

STOPPED_BY_SIGNAL: Final = 128
"""What shells add to a signal's number."""


class Stopped(Exception):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def stoppable() -> Iterator[asyncio.Future[None]]:
    """A future that fails with Stopped at the first SIGINT or SIGTERM; the second one ends the process as usual."""
    loop = asyncio.get_running_loop()
    stop = loop.create_future()

    def on_signal(number: int) -> None:
        for one in caught:
            loop.remove_signal_handler(one)
        if not stop.done():
            stop.set_exception(Stopped(number))

    caught: list[int] = []
    with contextlib.suppress(
        NotImplementedError, RuntimeError, ValueError
    ):  # Windows, or not the main thread: Ctrl-C ends the process
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, on_signal, number)
            caught.append(number)
    try:
        yield stop
    finally:
        for one in caught:
            loop.remove_signal_handler(one)
        if stop.done():
            stop.exception()  # retrieved, or asyncio logs that it never was
        else:
            stop.cancel()


async def execute(working: Assembly, run_id: str, *, is_watched: bool, as_json: bool, after: int = 0) -> Status:
    """Execute a run until nothing is left to execute: its status then. Ctrl-C releases it, and ends this process."""
    run_reader = working.run_reader
    worker = working.worker

    def within() -> LiveState:
        return worker.within(run_id)

    with stoppable() as stop:
        # Beside the view, not inside it: a view that fails or is slow must not stop the run.
        task = asyncio.ensure_future(settle(run_id, run_reader, worker))
        until = asyncio.ensure_future(first_of(task, stop))
        try:
            if is_watched:
                with run_viewer(err=as_json, within=within) as shown:
                    await watch(run_reader, run_id, shown, until, after=after)
            await until
        except Stopped as stopped:
            _print_released(run_id)
            sys.exit(STOPPED_BY_SIGNAL + stopped.number)
        finally:
            for one in (task, until):
                one.cancel()
            # Cancelled and awaited here: leaving them to the loop would print "never retrieved" after the answer.
            await asyncio.wait({task, until})
    return await run_reader.status(run_id)


async def first_of(task: asyncio.Future[None], stop: asyncio.Future[None]) -> None:
    """Wait for the first of the two; raises its error."""
    done, _ = await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()


def _print_released(run_id: str) -> None:
    say(f"\n{run_id} is released, not lost: the next worker continues it", err=True)
    say(f"  {own_program()} run resume {run_id}    continue here", err=True)
    say(f"  {own_program()} run cancel {run_id} --reason '...'    end it", err=True)


def end_with(status: Status, *, as_json: bool) -> NoReturn:
    """Print the status of a run, and end with its exit code."""

    def print_text() -> None:
        print_status(status)
        print_how_to_submit(status)

    answer(status_data(status), as_json=as_json, as_text=print_text)
    sys.exit(EXIT_OF_STATUS[status.status])
