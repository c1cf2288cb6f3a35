"""A child process that is there under a name until somebody ends it; it says so on its standard output.

`forks`: a child of its own, made by a plain fork, lives on for long; `starts`: another program does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from handrail.storage.presence import ProcessPresence


def main(folder: str, owner: str, what: str = "") -> None:
    ProcessPresence.enter(Path(folder), owner)
    child = 0
    if what == "forks":
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(there, b".")
            time.sleep(60)
            os._exit(0)
        os.read(here, 1)  # the child has begun
    if what == "starts":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False).pid
    sys.stdout.write(f"{child}\n")
    sys.stdout.flush()
    time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
