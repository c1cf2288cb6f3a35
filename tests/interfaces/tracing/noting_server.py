"""The branch server, which also notes the `_meta` of each call in a file, and can fail with words. Not a test."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from interfaces import branch_server

kept = branch_server.called
WORDS = "the password is hunter2-of-the-server"


def called(params: dict[str, Any], file: Path) -> dict[str, Any]:
    with file.with_name("meta.jsonl").open("a", encoding="utf-8") as notes:
        notes.write(json.dumps(params.get("_meta", {})) + "\n")
    if params.get("arguments", {}).get("name") == "broken":
        return branch_server.text(WORDS, is_error=True)
    return kept(params, file)


if __name__ == "__main__":
    branch_server.called = called
    branch_server.main()
