"""Machines of a fleet for tests: each a home and a folder of its own, with real processes, on one PostgreSQL."""

from __future__ import annotations

import asyncio
from pathlib import Path

from interfaces.shell import Shell
from storage.postgres.databases import new_database

LEASE = 'lease = "3s"\n'


class Machine(Shell):
    """A machine that shares its journal with others."""

    def __init__(self, folder: Path, url: str) -> None:
        folder.mkdir(parents=True)
        super().__init__(folder / "project")
        self.folder.mkdir()
        self.home, self.url = folder / "home", url
        self.configure(LEASE)

    @property
    def _chosen(self) -> dict[str, str]:
        return {**super()._chosen, "HANDRAIL_STORE": self.url}


def machines(folder: Path, *names: str) -> list[Machine]:
    """Machines on one store: the first has made it, and admitted the others."""
    url = asyncio.run(new_database(folder, "fleet"))
    made = [Machine(folder / name, url) for name in names]
    first, *others = made
    first.json("plan", "save", first.write(SEED, "seed.yaml"))
    for name, other in zip(names[1:], others, strict=True):
        key = other.json("db", "key")["key"]
        first.json("db", "admit", key, "--name", name)
    return made


def project_of(machine: Machine) -> str:
    """The id of the project in a machine's folder."""
    (here,) = [one["id"] for one in machine.json("project", "list")["projects"] if one.get("is_here")]
    return str(here)


SEED = "id: seed\nsteps:\n  - {id: one, tool: value.set, args: {value: 1}}\n"
