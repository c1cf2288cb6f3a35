"""The commands of the README, typed as they stand there, in an empty folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tidy.yardstick import ROOT


@pytest.mark.skipif(
    shutil.which("sh") is None, reason="the README's commands are for a POSIX shell; there is none here"
)
def test_the_readmes_commands_do_what_it_says(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    script = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HANDRAIL_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    # The README's reader sees the question at a terminal; here there is none, so the digest says what is meant.
    digest = 'handrail approvals --json | sed -n \'s/.*"digest": "\\(.*\\)".*/\\1/p\''
    script += f"\nhandrail approve \"$run\" --reason 'looks good' --digest $({digest})\n"
    done = subprocess.run(
        ["sh", "-e"], input=script, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    signs = ("release.yaml: valid", "notes", "saved ship-release as version 1", "journal verified: ")
    for sign in (*signs, "waiting for approval of look", "completed  3 of 3 steps done", "14 tools"):
        assert sign in done.stdout, sign
    assert (tmp_path / "published.md").exists()
    assert "handrail" in json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]
