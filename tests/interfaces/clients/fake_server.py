"""A small MCP server over stdio for tests of the doctor: it answers as its first argument says.

well: both eras · legacy: only the handshake · silent: never · crash: ends with words · chatty: prints no protocol ·
stubborn: answers, but does not end when its stdin does"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

TOOLS = [{"name": f"tool_{number}", "description": "x" * 100, "inputSchema": {}} for number in range(3)]


def result_of(method: str, manner: str) -> dict[str, Any] | None:
    about = {"name": "handrail", "version": sys.argv[2]}
    if method == "server/discover" and manner != "legacy":
        return {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": about}}
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": TOOLS}
    return {} if method == "ping" else None


def main(manner: str) -> None:
    if manner == "crash":
        sys.stderr.write("the store is locked by a ghost\n")
        raise SystemExit(3)
    if manner == "chatty":
        sys.stdout.write("Welcome!\n")
    if manner == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or manner == "silent":
            continue
        result = result_of(message["method"], manner)
        answer = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()
    if manner == "stubborn":
        time.sleep(60)


if __name__ == "__main__":
    if sys.argv[3:]:  # what was passed on to it, for the test to see
        seen = {"env": dict(os.environ), "cwd": str(Path.cwd()), "pid": os.getpid()}
        Path(sys.argv[3]).write_text(json.dumps(seen), encoding="utf-8")
    main(sys.argv[1])
