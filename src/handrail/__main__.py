"""Entry point of the `handrail` command. `mcp` must start fast, so it is handled here, before click is imported."""

from __future__ import annotations

import os
import sys

if (
    __name__ == "__main__"
    and not sys.flags.safe_path
    and __file__.rsplit("handrail", 1)[0].rstrip("/\\") != sys.path[0]
):
    # `python -m handrail` looks for modules in the current folder first: a project must not bring code in that way.
    del sys.path[0]

from handrail.foundation.home_folder import give_home
from handrail.interfaces.mcp.stdio.arguments import is_for_mcp


def main() -> None:
    """Run the command line."""
    give_home(os.environ)
    # Imported only when needed: each would delay the start of the other by 30 ms or more.
    if is_for_mcp(sys.argv[1:]):
        from handrail.interfaces.mcp.stdio.program import run

        sys.exit(run(sys.argv[1:]))
    from handrail.interfaces.cli.program import program

    program(prog_name="handrail")


if __name__ == "__main__":
    main()
