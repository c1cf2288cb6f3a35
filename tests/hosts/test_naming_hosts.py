"""What HANDRAIL_HOST can be, what is said when it can't, and the names that hosts know runs by."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.assembly.hosts import host_state, named_host
from handrail.domain.errors import Invalid
from handrail.engine.running.host import Wake
from handrail.hosts.queue_name import LENGTH_MAX, queue_name
from handrail.settings import Settings, read_settings
from hosts.servers import free_port, missing

NO_TEMPORAL = pytest.mark.skipif(bool(missing("temporal")), reason="temporalio can't be had here")


def settings_of(folder: Path, **variables: str) -> Settings:
    given = {f"HANDRAIL_{name.upper()}": value for name, value in variables.items()}
    return read_settings({"home": str(folder / "home"), "project": str(folder)}, given)


def test_without_a_setting_the_host_is_local_and_nothing_is_asked(tmp_path: Path) -> None:
    assert named_host(settings_of(tmp_path)) == "local"
    assert named_host(settings_of(tmp_path, host="local")) == "local"


@pytest.mark.parametrize("named", ["kubernetes", "temporal", "absurd://x", "https://x/y"])
def test_an_unknown_host_is_refused_with_those_that_there_are(tmp_path: Path, named: str) -> None:
    with pytest.raises(Invalid, match="no such host") as refused:
        named_host(settings_of(tmp_path, host=named))
    assert "temporal://host:7233/namespace" in refused.value.hint


def test_absurd_needs_a_store_in_postgres(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="PostgreSQL"):
        named_host(settings_of(tmp_path, host="absurd"))


@NO_TEMPORAL
@pytest.mark.parametrize("address", ["temporal://", "temporal://h:99999/n", "temporal://me:pw@h/n", "temporal://h/a/b"])
async def test_an_address_that_is_none_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(Invalid, match="not the address of a Temporal server"):
        await host_state(settings_of(tmp_path, host=address))


@NO_TEMPORAL
async def test_a_temporal_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    port = free_port()
    state = await host_state(settings_of(tmp_path, host=f"temporal://127.0.0.1:{port}/runs"))
    assert state is not None
    assert state.name == f"temporal://127.0.0.1:{port}/runs"
    assert "does not answer" in state.problem


@NO_TEMPORAL
def test_a_run_that_may_only_wait_in_a_queue_is_not_signalled() -> None:
    from handrail.hosts.temporal import is_signalled

    asked = [(1, 0), (5, 0), (1, 1), (5, 1), (1, 2), (5, 2)]
    found = [is_signalled(Wake(run="run_a", n=n, again=again)) for n, again in asked]
    assert found == [False, True, False, False, True, True]
    assert is_signalled(Wake(run="run_a", n=5, again=1, needs="gpu"))


def test_queues_differ_by_project_and_needs_and_are_never_too_long() -> None:
    asked = [("p1", ""), ("p2", ""), ("p1", "gpu"), ("p1", "a,b"), ("p1", "a|b"), ("p1", "a_b"), ("p1_a", "b")]
    asked += [("p" * 80, ""), ("p" * 80 + "q", ""), ("P1", ""), ("p1", "gpu/1"), ("p1", "gpu-1"), ("", "")]
    names = [queue_name(project, needs) for project, needs in asked]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= LENGTH_MAX
    assert queue_name("p1", "gpu") == "handrail_p1_gpu"


def test_no_library_of_a_host_is_loaded_unless_one_is_named() -> None:
    code = (
        "import sys, json, handrail.assembly.opening;"
        "print(json.dumps([n for n in ('temporalio', 'asyncpg', 'handrail.hosts.absurd') if n in sys.modules]))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(loaded.stdout) == []
