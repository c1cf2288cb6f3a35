"""The reference pages say what the code says."""

from __future__ import annotations

import runpy

import pytest

from tidy.yardstick import ROOT

PAGES: dict[str, str] = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_equals_the_code(name: str) -> None:
    written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert written == PAGES[name], "run: python docs/generate.py"


def test_groups_that_do_something_by_themselves_are_described_too() -> None:
    lines = PAGES["command-line.md"].splitlines()
    for command in ("handrail trust", "handrail trust list", "handrail approvals", "handrail approvals passphrase"):
        assert f"## {command}" in lines
    assert any("--revoke" in line for line in lines)


def test_no_page_is_left_that_nothing_generates() -> None:
    assert {file.name for file in (ROOT / "docs" / "reference").iterdir()} == set(PAGES)
