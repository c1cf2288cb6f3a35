"""handrail as a library: a dozen names, and an import that costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import handrail


def test_every_public_name_is_there() -> None:
    for name in handrail.__all__:
        assert getattr(handrail, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        handrail.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, handrail; print(*[name for name in sys.modules if name.startswith('handrail.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


async def test_a_program_loads_saves_runs_and_proves(tmp_path: Path) -> None:
    loaded = handrail.load_definition("{id: hello, steps: [wave, smile]}", name="hello.yaml")
    assert loaded.is_valid
    assert loaded.definition is not None
    settings = handrail.read_settings({"home": str(tmp_path)}, {})
    async with handrail.opened(settings) as program:
        await program.plans.save(loaded.definition, actor="person:ada")
        run = await program.dispatch.start(loaded.definition, {}, actor="person:ada")
    async with handrail.reading(settings) as look:
        assert (await look.verify(replay=True)).ok
        assert [record.kind for record in await look.ledger.of_stream(run.id)] == ["run_started"]
