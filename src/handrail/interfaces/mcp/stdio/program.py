"""`handrail mcp` from start to end: claim stdin and stdout, answer from the snapshot, load the SDK, serve, exit.

Every import here delays the first answer; a test guards the list. Slow modules are imported after the first answers:
measured, `session` and the server take 0.7 s, the first answers 0.05 s."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from handrail.interfaces.mcp.stdio.arguments import HELP, Options, UsageError, read_options
from handrail.interfaces.mcp.stdio.descriptors import claim_stdio
from handrail.interfaces.mcp.stdio.folders import find_folders
from handrail.interfaces.mcp.stdio.front import Front
from handrail.interfaces.mcp.stdio.reader_thread import start_reading
from handrail.interfaces.mcp.stdio.signals import handle_signals
from handrail.interfaces.mcp.stdio.snapshot_answers import SnapshotAnswers
from handrail.interfaces.mcp.stdio.snapshot_file import SnapshotFile

SERVING: Final = "handrail.interfaces.mcp.serving"
SESSION: Final = "handrail.interfaces.mcp.stdio.session"
FAILURE: Final = "handrail.interfaces.mcp.stdio.failure"
FIRST_ANSWERS_S: Final = 0.15
"""How long the imports wait for the first answers: both need the interpreter lock, and the answers are quick."""
SWITCH_S: Final = 0.001
"""How often the interpreter switches threads while imports run, so that the reader thread can still answer."""
FLUSH_S: Final = 5.0
AT_A_TERMINAL: Final = """\
handrail mcp is an MCP server. Clients (Claude Code, Cursor, VS Code, ...) start
it and talk to it on stdin and stdout; there is nothing to type here.
It is serving now. Press Ctrl-D to leave.

  handrail init    add it to the settings of your clients
  handrail demo    a one-minute tour in this terminal
"""
FAILED_S: Final = 5.0
"""How long a server that failed to start keeps running, to send the reason to its client."""


def run(args: Sequence[str], serving: str = SERVING) -> int:
    """Serve a client on stdin and stdout; returns the exit code."""
    try:
        options = read_options(args, os.environ)
    except UsageError as error:
        sys.stderr.write(f"Usage: handrail mcp [OPTIONS]\nTry 'handrail mcp --help' for help.\n\nError: {error}\n")
        return 2
    if options is None:
        sys.stdout.write(HELP)
        return 0
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(AT_A_TERMINAL)
    handle_signals(lambda: sys.exit(0))  # until the session installs its own: nothing needs closing yet
    stdio = claim_stdio()
    snapshot = SnapshotFile(find_folders(options.flags, os.environ), options.toolsets)
    answers = snapshot.load()
    front = Front(stdio.writing, SnapshotAnswers(answers) if answers else None)
    start_reading(stdio.reading, front)
    front.needs_sdk.wait(FIRST_ANSWERS_S)
    if front.ending and front.is_idle:  # the client only wanted a list: the SDK is never loaded
        return 0
    code = _serve(front, options, None if answers else snapshot, serving)
    front.outlet.flush(FLUSH_S)
    return code


def _serve(front: Front, options: Options, unrecorded: SnapshotFile | None, serving: str) -> int:
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    gc.disable()  # modules stay in memory anyway: collecting while they load takes a quarter of the time, measured
    try:
        session, server = import_module(SESSION), import_module(serving)
        sys.setswitchinterval(usual_s)
        gc.freeze()
        gc.enable()
        session.serve(front, options, unrecorded, server.open_server)
    except Exception as error:  # any error: the client's user must see a reason
        front.fail(import_module(FAILURE).report(error))
        front.wait_for_end(FAILED_S)
        return 1
    return 0
