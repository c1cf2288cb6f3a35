"""The inbox of the writer thread: a queue of jobs to write, limited in number and bytes.

Event loops add jobs; one thread takes all that arrived since it last looked. Nothing is written here."""

from __future__ import annotations

from collections import deque
from threading import Condition, Lock
from typing import Final, Generic, TypeVar

from handrail.domain.errors import Limited
from handrail.storage.admission import closed

JOBS_MAX: Final = 10_000
BYTES_MAX: Final = 64_000_000
BATCH_JOBS_MAX: Final = 512
BATCH_BYTES_MAX: Final = 4_000_000

Job = TypeVar("Job")


class Inbox(Generic[Job]):
    """A queue that returns all its jobs at once, up to the size of a batch."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: deque[tuple[Job, int]] = deque()
        self._bytes = 0
        self._lock = Lock()
        self._filled = Condition(self._lock)
        self._is_idle = False
        self._is_closed = False

    def put(self, job: Job, size: int) -> None:
        """Queue a job; Limited at once if too many are waiting already."""
        with self._lock:
            if self._is_closed:
                raise closed(self._name)
            # Refused at once instead of waiting: a caller that can repeat is better off than one whose memory fills up.
            if len(self._waiting) >= JOBS_MAX or self._bytes > BYTES_MAX:
                raise Limited(
                    f"{len(self._waiting)} appends already wait for {self._name}", hint="repeat the call in a moment"
                )
            self._waiting.append((job, size))
            self._bytes += size
            if self._is_idle:
                # Only a thread that sleeps is woken: under load, that is one switch for a batch instead of one for each
                # job.
                self._is_idle = False
                self._filled.notify()

    def take(self) -> list[Job]:
        """The next jobs in order, at most a batch; waits until there are some; none once closed and empty."""
        with self._lock:
            while not self._waiting and not self._is_closed:
                self._is_idle = True
                self._filled.wait()
            batch: list[Job] = []
            size = 0
            while self._waiting and len(batch) < BATCH_JOBS_MAX and size < BATCH_BYTES_MAX:
                job, job_size = self._waiting.popleft()
                batch.append(job)
                size += job_size
            self._bytes -= size
            return batch

    def close(self) -> None:
        """Accept no more jobs; those that wait can still be taken."""
        with self._lock:
            self._is_closed = True
            self._filled.notify()
