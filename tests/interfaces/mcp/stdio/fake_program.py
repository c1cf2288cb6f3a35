"""`handrail mcp` with the fake server instead of the real one: `python fake_program.py mcp ...`."""

from __future__ import annotations

import sys
from pathlib import Path

from handrail.interfaces.mcp.stdio.program import run

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))
    sys.exit(run(sys.argv[1:], serving="interfaces.mcp.stdio.fake_serving"))
