"""A git repository as witness: commits on refs/handrail/checkpoints, each with the checkpoints that it added.

Made with git's plumbing only: no working tree, index or branch is touched, no hook runs, and the ref moves only if
no other program moved it. Push that ref elsewhere, and protect it there: then it can't be rewritten."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from handrail.domain.errors import Unavailable
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_line
from handrail.foundation.program_search import programs_named
from handrail.storage.witnesses.one_store import require_same_store

REF: Final = "refs/handrail/checkpoints"
FILE: Final = "checkpoints.jsonl"
GIT_S_MAX: Final = 10.0
WHO: Final = {
    "GIT_AUTHOR_NAME": "handrail",
    "GIT_AUTHOR_EMAIL": "handrail@localhost",
    "GIT_COMMITTER_NAME": "handrail",
    "GIT_COMMITTER_EMAIL": "handrail@localhost",
}
OPTIONS: Final = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")


@dataclass(frozen=True)
class GitWitness:
    """A ref in a repository."""

    name: str
    repository: Path

    async def copy(self, sealed: Sequence[SealedCheckpoint]) -> None:
        """Commit these checkpoints."""
        await asyncio.to_thread(self._copy, sealed)

    def _copy(self, sealed: Sequence[SealedCheckpoint]) -> None:
        tip = _tip(self.repository)
        if tip:
            newest = _git(self.repository, "cat-file", "blob", f"{tip}:{FILE}").splitlines()
            require_same_store(newest[-1] if newest else b"", sealed, self.name)
        content = b"".join(map(checkpoint_line, sealed))
        blob = _git(self.repository, "hash-object", "-w", "--stdin", given=content).decode().strip()
        entry = f"100644 blob {blob}\t{FILE}\n".encode()
        tree = _git(self.repository, "mktree", given=entry).decode().strip()
        parents = ("-p", tip) if tip else ()
        numbers = f"{sealed[0].checkpoint.number} to {sealed[-1].checkpoint.number}"
        made = _git(self.repository, "commit-tree", tree, *parents, given=f"checkpoints {numbers}\n".encode())
        _git(self.repository, "update-ref", REF, made.decode().strip(), tip)  # an empty tip: it must be new


def git_lines(repository: Path) -> Iterator[bytes]:
    """All lines of the witness in a repository, oldest first."""
    commits = _git(repository, "rev-list", "--reverse", REF).decode().split()
    wanted = "".join(f"{commit}:{FILE}\n" for commit in commits)
    answer = _git(repository, "cat-file", "--batch", given=wanted.encode())
    while answer:  # for each: a line with its size, the content, a line end
        head, _, answer = answer.partition(b"\n")
        size = int(head.split()[-1]) if head.split()[-1:] != [b"missing"] else -1
        yield from answer[: max(size, 0)].splitlines(keepends=True)
        answer = answer[size + 1 :]


def _tip(repository: Path) -> str:
    """The commit that the ref is at; empty if there is none yet."""
    return _git(repository, "for-each-ref", "--format=%(objectname)", REF).decode().strip()


def _git(repository: Path, *command: str, given: bytes = b"") -> bytes:
    """The output of a git command; Unavailable with what git says if it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    program = next(programs_named("git"), "")
    if not program:
        raise Unavailable("git is not installed here", hint="install git so that it is on PATH")
    try:
        done = subprocess.run(  # noqa: S603 - git itself, with arguments from here
            [program, *OPTIONS, "-C", str(repository), *command],
            input=given,
            capture_output=True,
            timeout=GIT_S_MAX,
            env={**kept, **WHO, "GIT_TERMINAL_PROMPT": "0"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(
            f"git {command[0]} did not work: {error}", hint="install git, or check the repository"
        ) from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[:300]
        raise Unavailable(f"git {command[0]} failed in {repository}: {said}", hint="create it with: git init --bare")
    return done.stdout
