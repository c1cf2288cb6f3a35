"""What does an abandoned HTTP session cost? Clients that say `initialize` to `handrail serve` and never come back.

    python bench/sessions.py [--sessions 1000]

Each is a real request to a real process, without the notification that completes the handshake. The memory is the
process's own (VmRSS), so this needs Linux; the limit of sessions is reached and passed, and all are still answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Final

import httpx

WARM: Final = 200
SESSION_KB_MAX: Final = 20
HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


def main() -> int:
    options = ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=1_000)
    count = options.parse_args().sessions
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HANDRAIL_HOME": str(Path(folder) / "home"), "HANDRAIL_PROJECT": folder}
        command = [sys.executable, "-m", "handrail", "serve", "--port", "0", "--json", "--no-token"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=folder)
        try:
            return measure(server, count)
        finally:
            server.terminate()
            server.wait(10)


def measure(server: subprocess.Popen[bytes], count: int) -> int:
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    headers = {"accept": "application/json, text/event-stream"}
    with httpx.Client(headers=headers, trust_env=False, timeout=30) as client:
        abandon(client, url, WARM)
        before = memory_kb(server.pid)
        began = time.perf_counter()
        abandon(client, url, count)
        each_ms = (time.perf_counter() - began) * 1_000 / count
        each_kb = (memory_kb(server.pid) - before) / count
    print(f"{count:,} abandoned sessions: {each_kb:.1f} kB and {each_ms:.1f} ms each (limit: {SESSION_KB_MAX} kB)")
    return 0 if each_kb <= SESSION_KB_MAX else 1


def abandon(client: httpx.Client, url: str, count: int) -> None:
    for _ in range(count):
        client.post(url, json=HELLO).raise_for_status()


def memory_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    sys.exit(main())
