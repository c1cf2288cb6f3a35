"""The program's entrance. A server for agents must start in a blink: `mcp` will be looked for here, before click."""

from __future__ import annotations

from handrail.interfaces.cli.program import program


def main() -> None:
    """Run the command line."""
    program(prog_name="handrail")


if __name__ == "__main__":
    main()
