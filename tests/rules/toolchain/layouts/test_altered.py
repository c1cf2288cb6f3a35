"""A runner of tests that was edited after it was installed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from handrail.rules.toolchain.installed.altered import altered
from rules.toolchain.environments import PACKAGES, PYTEST, install


def test_a_file_that_is_not_as_it_was_installed_is_found(tmp_path: Path) -> None:
    assert altered([PACKAGES]) is None, "these tests' own runner is as it was"
    install(tmp_path, PYTEST)
    assert altered([tmp_path / "none", tmp_path]) is None
    file = tmp_path / "_pytest" / "python.py"
    file.write_text(file.read_text(encoding="utf-8") + "\n\nFunction.runtest = None\n", encoding="utf-8")
    assert altered([tmp_path]) == file
    shutil.rmtree(next(tmp_path.glob("pytest-*.dist-info")))
    assert altered([tmp_path]) is None, "nothing says how it was"


@pytest.mark.skipif(sys.platform == "win32", reason="devices are POSIX's")
def test_a_link_to_a_device_in_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    install(tmp_path, PYTEST)
    file = tmp_path / "_pytest" / "python.py"
    file.unlink()
    file.symlink_to("/dev/zero")
    assert altered([tmp_path]) == file
