"""A tool server that ends at once while a file is there, also in the middle of a call. Not a test."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from interfaces import branch_server

gone, kept = Path(sys.argv[2]), branch_server.called


def called(params: dict[str, object], file: Path) -> dict[str, object]:
    if gone.exists():
        sys.exit("gone")
    return kept(params, file)


if __name__ == "__main__":
    if gone.exists():
        sys.exit("gone")
    branch_server.called = called
    branch_server.main()
