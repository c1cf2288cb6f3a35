"""Did handrail on SQLite get slower than it was at an earlier commit?

    python bench/before.py [COMMIT] [ROUNDS]

The code of that commit is unpacked into build/bench/before. Both do the same steps in fresh processes and folders, in
turns; a ratio is the median of the rounds' ratios. The default commit is the last one before stores could be shared."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.bars import at_least, exit_code, left_out  # noqa: E402 - found by the path above

COMMIT, ROUNDS, LEAST = "67acbf1", 9, 0.97
SHAPES = {"pure": ("--runs", "200"), "effect": ("--runs", "200"), "sequential": ("--steps", "1000")}


def unpacked(commit: str) -> Path:
    """The tree of a commit, in a folder of its own."""
    folder = ROOT / "build" / "bench" / "before" / commit
    if not folder.exists():
        folder.mkdir(parents=True)
        archive = subprocess.run(
            ["git", "archive", commit, "src", "bench"], cwd=ROOT, check=True, capture_output=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return folder


def rate(tree: Path, shape: str) -> float:
    """Steps a second of the code in a tree."""
    with tempfile.TemporaryDirectory(dir=ROOT / "build" / "bench") as folder:
        command = [sys.executable, "-m", "bench.handrail_steps", "--shape", shape, *SHAPES[shape]]
        variables = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{tree}"}
        done = subprocess.run(
            [*command, "--db", str(Path(folder) / "journal.db")],
            cwd=tree,
            env=variables,
            check=True,
            capture_output=True,
            text=True,
        )
    said = json.loads(done.stdout.splitlines()[-1])
    return float(said["steps"] / said["seconds"])


def main(commit: str, rounds: int) -> int:
    try:
        before = unpacked(commit)
    except (OSError, subprocess.CalledProcessError) as error:
        left_out(f"SQLite, of {commit}", error)
        return exit_code()
    for shape in SHAPES:
        ratios = []
        for number in range(rounds):
            order = (ROOT, before) if number % 2 else (before, ROOT)
            found = {tree: rate(tree, shape) for tree in order}
            ratios.append(found[ROOT] / found[before])
        at_least(f"SQLite, {shape} steps, of commit {commit}", statistics.median(ratios), LEAST)
    return exit_code()


if __name__ == "__main__":
    given = [*sys.argv[1:], *(COMMIT, str(ROUNDS))[len(sys.argv) - 1 :]]
    raise SystemExit(main(given[0], int(given[1])))
