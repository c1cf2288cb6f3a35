"""Entry point of the `handrail` command. `mcp` must start fast, so it is handled here, before click is imported."""

from __future__ import annotations

import sys

from handrail.interfaces.mcp.stdio.arguments import is_for_mcp


def main() -> None:
    """Run the command line."""
    # Imported only when needed: each would delay the start of the other by 30 ms or more.
    if is_for_mcp(sys.argv[1:]):
        from handrail.interfaces.mcp.stdio.program import run

        sys.exit(run(sys.argv[1:]))
    from handrail.interfaces.cli.program import program

    program(prog_name="handrail")


if __name__ == "__main__":
    main()
