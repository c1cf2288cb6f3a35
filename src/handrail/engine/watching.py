"""Watching runs: who wants to see every change of one, as a type."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from handrail.domain.run.state import Run

Watcher: TypeAlias = Callable[[Run, Collection[str] | None, int], None]
"""Called with every change of a run that is synced: the run after it, the steps that it concerns (None if the run was
read again, so that anything may have changed), and the event that it follows."""
