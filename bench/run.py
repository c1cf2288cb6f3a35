"""Runs every bench, one after the other, each in a process of its own: `make bench`.

One file answers one question; each prints its figures beside their targets. Compare ratios, not milliseconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHES = (
    "loading.py",
    "language.py",
    "journal.py",
    "figures.py",
    "tracing.py",
    "backup.py",
    "retention.py",
    "engines.py",
    "fleet.py",
    "placing.py",
    "before.py",
    "agents.py",
    "guidance.py",
    "tools.py",
    "gates.py",
    "caches.py",
    "console.py",
)


def main() -> int:
    missed = 0
    for bench in BENCHES:
        print(f"==> bench/{bench}", flush=True)
        missed |= subprocess.run([sys.executable, HERE / bench], check=False).returncode
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
