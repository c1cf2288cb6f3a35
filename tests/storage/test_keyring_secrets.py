"""The platform's keyring: used only if it is a real one, and silent about values when it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from handrail.domain.errors import Unavailable
from handrail.storage.keyring_secrets import SERVICE, open_ring

BACKEND = """
import keyring.backend

class Drawer(keyring.backend.KeyringBackend):
    priority = 5
    values = {}

    def get_password(self, service, username):
        return self.values.get((service, username))

    def set_password(self, service, username, password):
        self.values[service, username] = password

    def delete_password(self, service, username):
        del self.values[service, username]
"""
USE = """
from handrail.storage.keyring_secrets import open_ring
ring = open_ring()
ring.put("key", "hunter22")
print(ring.get("key"), ring.get("other"))
ring.drop("key")
ring.drop("key")
print(ring.get("key"))
"""


class Backend:
    """What the package `keyring` hands out."""

    priority = 5.0

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], str] = {}
        self.failure: Exception | None = None

    def get_password(self, service: str, key: str) -> str | None:
        if self.failure:
            raise self.failure
        return self.values.get((service, key))

    def set_password(self, service: str, key: str, value: str) -> None:
        if self.failure:
            raise self.failure
        self.values[service, key] = value

    def delete_password(self, service: str, key: str) -> None:
        del self.values[service, key]


class PlaintextKeyring(Backend):
    """One of those that write everything into a plain file."""


class Weak(Backend):
    """One that its own package does not recommend."""

    priority = 0.5


class Failing(Backend):
    """What the package hands out where there is no keyring."""


class Chain(Backend):
    """Several, of which the first that can takes the value."""

    def __init__(self, *backends: Backend) -> None:
        super().__init__()
        self.backends = iter(backends)


Failing.__module__ = "keyring.backends.fail"


def loading(backend: Any) -> Any:
    return lambda _name: SimpleNamespace(get_keyring=lambda: backend)


def test_a_real_keyring_keeps_gives_and_forgets() -> None:
    backend = Backend()
    ring = open_ring(loading(backend))
    ring.put("key", "hunter22")
    assert backend.values == {(SERVICE, "key"): "hunter22"}
    assert (ring.get("key"), ring.get("other")) == ("hunter22", None)
    ring.drop("key")
    ring.drop("key")
    assert backend.values == {}


@pytest.mark.parametrize(
    "backend",
    [Failing(), PlaintextKeyring(), Weak(), Chain(), Chain(Backend(), PlaintextKeyring()), Chain(Chain(Backend()))],
    ids=lambda backend: type(backend).__name__,
)
def test_what_is_no_real_keyring_is_not_used(backend: Backend) -> None:
    with pytest.raises(Unavailable, match="no keyring that keeps secrets safe") as refused:
        open_ring(loading(backend))
    assert 'secrets_in = "file"' in refused.value.hint


def test_a_chain_of_real_keyrings_is_used() -> None:
    assert open_ring(loading(Chain(Backend(), Backend())))


def test_without_the_package_the_error_says_how_to_install_it() -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    with pytest.raises(Unavailable, match="not installed") as refused:
        open_ring(missing)
    assert "handrail[keyring]" in refused.value.hint


def test_a_failure_is_reported_without_the_value() -> None:
    backend = Backend()
    ring = open_ring(loading(backend))
    backend.failure = RuntimeError("can't keep hunter22")
    with pytest.raises(Unavailable, match=r"did not accept the secret \(RuntimeError\)") as caught:
        ring.put("key", "hunter22")
    assert "hunter22" not in f"{caught.value}{caught.value.hint}"
    assert caught.value.__cause__ is None
    with pytest.raises(Unavailable, match="did not answer"):
        ring.get("key")


def test_a_keyring_that_is_no_viable_one_is_reported() -> None:
    def broken() -> Any:
        raise RuntimeError("no bus")

    with pytest.raises(Unavailable, match="can't be opened"):
        open_ring(lambda _name: SimpleNamespace(get_keyring=broken))


@pytest.mark.skipif(find_spec("keyring") is None, reason="the optional package `keyring` is not installed")
def test_the_package_itself_works_with_it(tmp_path: Path) -> None:
    (tmp_path / "drawer.py").write_text(BACKEND)
    found = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "PYTHONPATH": found, "PYTHON_KEYRING_BACKEND": "drawer.Drawer"}
    told = subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["hunter22", "None", "None"]
    environment["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
    refused = subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, text=True)
    assert "no keyring that keeps secrets safe" in refused.stderr
