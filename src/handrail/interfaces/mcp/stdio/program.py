"""`handrail mcp` from first to last: claim the wire, answer from the snapshot, load the SDK, serve, end.

What is imported here stands between the start and the first answer; a test guards the list. What costs more is
imported when the first answers are out: `session` and the server take 0.7 s, the first answers 0.05 s, measured."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from handrail.interfaces.mcp.stdio.arguments import HELP, Options, Usage, read_options
from handrail.interfaces.mcp.stdio.clerk import Clerk
from handrail.interfaces.mcp.stdio.front import Front
from handrail.interfaces.mcp.stdio.places import find_places
from handrail.interfaces.mcp.stdio.reading import start_reading
from handrail.interfaces.mcp.stdio.signals import heed_signals
from handrail.interfaces.mcp.stdio.snapshot import Snapshot
from handrail.interfaces.mcp.stdio.wire import claim_wire

SERVING: Final = "handrail.interfaces.mcp.serving"
SESSION: Final = "handrail.interfaces.mcp.stdio.session"
FAILURE: Final = "handrail.interfaces.mcp.stdio.failure"
FIRST_ANSWERS_S: Final = 0.15
"""How long the imports wait for the first answers: both need the interpreter, and the answers are quick."""
SWITCH_S: Final = 0.001
"""How soon the reader gets its turn while the imports run."""
FLUSH_S: Final = 5.0
AT_A_TERMINAL: Final = """\
handrail mcp is an MCP server. Clients (Claude Code, Cursor, VS Code, ...) start
it and talk to it on stdin and stdout; there is nothing to type here.
It is serving now. Press Ctrl-D to leave.

  handrail init    add it to the settings of your clients
  handrail demo    a one-minute tour in this terminal
"""
FAILED_S: Final = 5.0
"""How long a server that can't serve stays, to tell its client why."""


def run(words: Sequence[str], serving: str = SERVING) -> int:
    """Serve a client on stdin and stdout; the exit code."""
    try:
        options = read_options(words, os.environ)
    except Usage as error:
        sys.stderr.write(f"Usage: handrail mcp [OPTIONS]\nTry 'handrail mcp --help' for help.\n\nError: {error}\n")
        return 2
    if options is None:
        sys.stdout.write(HELP)
        return 0
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(AT_A_TERMINAL)
    heed_signals(lambda: sys.exit(0))  # until there is something to end in order
    wire = claim_wire()
    snapshot = Snapshot(find_places(options.flags, os.environ), options.toolsets)
    answers = snapshot.load()
    front = Front(wire.writing, Clerk(answers) if answers else None)
    start_reading(wire.reading, front)
    front.needs_sdk.wait(FIRST_ANSWERS_S)
    if front.ending and front.is_idle:
        return 0
    code = _serve(front, options, None if answers else snapshot, serving)
    front.outlet.flush(FLUSH_S)
    return code


def _serve(front: Front, options: Options, unrecorded: Snapshot | None, serving: str) -> int:
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    gc.disable()  # what is imported stays: to look for garbage in it takes a quarter of the time, measured
    try:
        session, server = import_module(SESSION), import_module(serving)
        sys.setswitchinterval(usual_s)
        gc.freeze()
        gc.enable()
        session.serve(front, options, unrecorded, server.served)
    except Exception as error:  # whatever it is: the client's user must see a reason
        front.fail(import_module(FAILURE).tell(error))
        front.wait_for_end(FAILED_S)
        return 1
    return 0
