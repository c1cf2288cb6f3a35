"""The `.mcpb` manifest checked by its own validator, where Node can be installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from outside.nodejs import installed
from tidy.yardstick import ROOT

MANIFEST = ROOT / "docs" / "clients" / "mcpb" / "manifest.json"


@pytest.fixture(scope="module")
def judge() -> list[str]:
    """The judge, as the lock names it."""
    return installed("mcpb").script("@anthropic-ai/mcpb/dist/cli/cli.js")


def validated(judge: list[str], manifest: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*judge, "validate", str(manifest)], capture_output=True, text=True, timeout=60)


def test_the_judge_accepts_the_manifest(judge: list[str]) -> None:
    result = validated(judge, MANIFEST)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_judge_refuses_a_manifest_without_a_server(judge: list[str], tmp_path: Path) -> None:
    wrong = tmp_path / "manifest.json"
    wrong.write_text(MANIFEST.read_text(encoding="utf-8").replace('"server"', '"servant"'), encoding="utf-8")
    assert validated(judge, wrong).returncode != 0
