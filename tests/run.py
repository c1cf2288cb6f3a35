"""Runs all tests on every core with branch coverage, and holds the coverage to its limits.

python tests/run.py [pytest arguments]      with arguments: only those tests, and no limits

Many tests start real servers, browsers and databases beside each other. If at most AGAIN_MAX of all tests fail, these
run once more, alone: a test that fails again fails the run, one that passes is named at the end, to be looked at."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
DATA = ROOT / "build" / "coverage"
ROOMS = ("foundation", "domain", "engine", "storage", "tools", "rules")
CACHE = ROOT / "build" / "pytest"
"""As pyproject.toml says."""
TESTS_FAILED = 1
AGAIN_MAX = 3
MINUTES_MAX = 60
"""Of the whole run: a hang that the limit of a single test did not end is an error, not a wait without end."""
LIMITS = {**{f"src/handrail/{room}/": 95 for room in ROOMS}, "src/handrail/": 90}


def main(arguments: list[str]) -> int:
    shutil.rmtree(DATA, ignore_errors=True)
    shutil.rmtree(CACHE, ignore_errors=True)
    DATA.mkdir(parents=True)
    workers = ["-n", str(os.cpu_count() or 1), "--dist", "loadfile", "--no-loadscope-reorder"]
    try:
        if arguments:
            return tests([*workers, *arguments])
        status = tests(workers)
        failed = failures()
        if status == TESTS_FAILED and 0 < len(failed) <= AGAIN_MAX:
            sys.stdout.write(f"==> {len(failed)} of all tests failed; again, alone: {', '.join(failed)}\n")
            sys.stdout.flush()
            status = tests(["--last-failed", "--last-failed-no-failures=none"])
    except subprocess.TimeoutExpired:
        sys.stdout.write(f"the tests did not end within {MINUTES_MAX} minutes\n")
        return 1
    if status:
        return status
    coverage("combine", "--quiet")
    coverage("json", "--quiet", "-o", str(DATA / "report.json"))
    status = judge(json.loads((DATA / "report.json").read_text()))
    for test in failed:
        sys.stdout.write(f"failed beside other tests, passed alone: {test}\n")
    return status


def tests(arguments: list[str]) -> int:
    """The exit code of pytest."""
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-rs", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False, timeout=MINUTES_MAX * 60).returncode


def failures() -> list[str]:
    """The tests that failed in the run before."""
    remembered = CACHE / "v" / "cache" / "lastfailed"
    return sorted(json.loads(remembered.read_text())) if remembered.exists() else []


def coverage(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=True)


def judge(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> int:
    """Print the branch coverage of each room beside its limit; 1 if a limit is missed."""
    missed = 0
    for folder, limit in LIMITS.items():
        sums = [file["summary"] for name, file in report["files"].items() if name.replace("\\", "/").startswith(folder)]
        covered = sum(one["covered_lines"] + one["covered_branches"] for one in sums)
        wanted = sum(one["num_statements"] + one["num_branches"] for one in sums)
        share = 100 * covered / wanted
        verdict = "ok" if share >= limit else "TOO LOW (see: coverage report)"
        missed |= share < limit
        sys.stdout.write(f"coverage of {folder:24} {share:5.1f}% (at least {limit}%)  {verdict}\n")
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
