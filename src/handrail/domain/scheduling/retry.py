"""Retry: whether another attempt follows a failed one, and when.

Pure. Randomness is passed in. The caller journals the due time first and waits after that."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.model import Category, Retry

WAIT_MS_MAX: Final = 86_400_000
"""No wait is longer than a day, regardless of what a policy or a server asks for."""


class Policy(Struct, frozen=True, kw_only=True):
    """A complete retry policy."""

    attempts: int = 3
    first_ms: int = 1_000
    factor: float = 2.0
    max_ms: int = 60_000
    jitter: bool = True
    on: frozenset[Category] = frozenset({Category.TRANSIENT, Category.TIMEOUT, Category.RATE_LIMITED})


DEFAULT: Final = Policy()


def policy_of(*retries: Retry | None) -> Policy:
    """These policies combined: earlier ones win over later ones, key by key; the default comes last."""
    policy = DEFAULT
    for retry in reversed(retries):
        if retry is not None:
            policy = replace(policy, **_said(retry))
    return policy


def due_of(
    policy: Policy, failures: int, category: Category, *, now: int, random: float, retry_after_ms: int | None = None
) -> int | None:
    """When the next attempt is due after this many failures, the last of this category; None if there is none.

    `random` is uniform in [0, 1): with full jitter the wait is that share of the backoff."""
    if failures >= policy.attempts or category not in policy.on:
        return None
    delay = backoff_ms(policy, failures)
    if policy.jitter:
        delay = int(delay * random)
    # What the server asked for is a minimum; jitter must not go below it.
    return now + min(max(delay, retry_after_ms or 0), WAIT_MS_MAX)


def backoff_ms(policy: Policy, failures: int) -> int:
    """The longest wait after this many failures."""
    delay = float(policy.first_ms)
    for _ in range(min(failures - 1, 64)):  # one multiplication at a time: a power could overflow a float
        delay = min(delay * policy.factor, float(policy.max_ms))
    return int(min(delay, policy.max_ms))


def _said(retry: Retry) -> dict[str, Any]:
    """The fields that a policy sets, named as in a complete one."""
    said = {name: value for name, value in asdict(retry).items() if value is not None}
    if "first" in said:
        said["first_ms"] = duration_ms(said.pop("first"))
    if "max" in said:
        said["max_ms"] = duration_ms(said.pop("max"))
    if "on" in said:
        said["on"] = frozenset(said["on"])
    return said
