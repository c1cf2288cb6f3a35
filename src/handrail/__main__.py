"""The program's entrance. A server for agents must start in a blink: `mcp` is looked for here, before click is."""

from __future__ import annotations

import sys

from handrail.interfaces.mcp.stdio.arguments import is_for_mcp


def main() -> None:
    """Run the command line."""
    # Imported when it is known which is wanted: each would cost the other's start 30 ms and more.
    if is_for_mcp(sys.argv[1:]):
        from handrail.interfaces.mcp.stdio.program import run

        sys.exit(run(sys.argv[1:]))
    from handrail.interfaces.cli.program import program

    program(prog_name="handrail")


if __name__ == "__main__":
    main()
