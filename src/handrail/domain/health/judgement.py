"""From what levels on something is unhealthy, and the words for it: the one place for `doctor` and `/healthz`.

Pure: values in, a check out. Who reads the values: interfaces/health/."""

from __future__ import annotations

from typing import Final

from handrail.domain.errors import HandrailError
from handrail.domain.health.check import HealthCheck, fail, ok, warn
from handrail.domain.instant import instant_text
from handrail.domain.plural import plural
from handrail.domain.scheduling.breaker import Breaker, BreakerStatus

FREE_BYTES_WARN: Final = 1_000_000_000
FREE_BYTES_FAIL: Final = 50_000_000
AHEAD_MS_MAX: Final = 5_000
JUMP_MS_MAX: Final = 1_000
EARLIEST_MS: Final = 1_750_000_000_000
"""Handrail did not exist before this time: a clock that shows less is wrong."""
STALLED_MS: Final = 30_000
"""How long the loop of a worker may need for one round before it counts as stalled."""
FAILING_MS: Final = 300_000
"""How long a channel may fail before that is worth a warning."""
SET_CLOCK: Final = "set the system clock"


def disk_check(free: int) -> HealthCheck:
    """Whether there is room for the journal to grow."""
    words = f"{free / 1e9:.1f} GB free"
    if free < FREE_BYTES_FAIL:
        return fail("disk", words, "free some space: handrail stops rather than lose data")
    return warn("disk", words, "free some space") if free < FREE_BYTES_WARN else ok("disk", words)


def clock_check(*, now: int, jump_ms: int, last_event: int | None) -> HealthCheck:
    """Whether the clock can be right; `jump_ms` is how far it moved against a steady one while it was watched."""
    if now < EARLIEST_MS:
        return fail("clock", f"shows {instant_text(now)}, which is in the past", SET_CLOCK)
    if abs(jump_ms) > JUMP_MS_MAX:
        return warn("clock", f"jumped by {jump_ms / 1_000:.1f} s while it was watched", "use a time service")
    if last_event is not None and last_event > now + AHEAD_MS_MAX:
        return warn("clock", f"the last event is from {instant_text(last_event)}, which is in the future", SET_CLOCK)
    return ok("clock", "steady, and no event is in the future")


def store_check(events: int, problem: HandrailError | None, *, age_ms: int) -> HealthCheck:
    """A store that can be read; `problem` is why the last write failed, `age_ms` for how long that is so, or how long
    ago the last write was."""
    if problem is not None:
        message = f"{plural(events, 'event')} can be read, but nothing can be written: {problem}"
        return fail("store", message, problem.hint, age_ms=age_ms)
    return ok("store", f"{plural(events, 'event')}, read and written", age_ms=age_ms)


def worker_check(problem: HandrailError | None, *, age_ms: int) -> HealthCheck:
    """The loop of a worker: `age_ms` is how long ago it last came round."""
    if problem is not None:
        return warn("worker", f"it can't look for work: {problem}", problem.hint, age_ms=age_ms)
    if age_ms > STALLED_MS:
        words = f"it has not looked for work for {age_ms // 1_000} s"
        return fail("worker", words, "restart this process; its runs go on by themselves", age_ms=age_ms)
    return ok("worker", "looks for work", age_ms=age_ms)


def checkpoint_check(problem: HandrailError | None, *, unsigned: int, signed: int | None, now: int) -> HealthCheck:
    """Whether events are signed; `signed` is when the last checkpoint was, `unsigned` are the events since."""
    age_ms = None if signed is None else max(0, now - signed)
    if problem is not None:
        words = f"no checkpoint can be signed: {problem}; {plural(unsigned, 'event')} are not signed"
        return warn("checkpoints", words, problem.hint, age_ms=age_ms)
    if signed is None:
        return ok("checkpoints", "nothing is signed yet")
    waiting = f"; {plural(unsigned, 'event')} since then" if unsigned else ""
    return ok("checkpoints", f"the last was signed at {instant_text(signed)}{waiting}", age_ms=age_ms)


def channel_check(name: str, *, dead: int, waiting: int, failing_ms: int | None, why: str) -> HealthCheck:
    """A channel that is notified: what could not be delivered, and for how long nothing was."""
    check = f"channel {name}"
    if dead:
        words = f"{plural(dead, 'dead letter')}{f': {why}' if why else ''}"
        return warn(check, words, f"`handrail webhooks list --dead {name}`, then `webhooks resend` or `discard`")
    if failing_ms is not None and failing_ms > FAILING_MS:
        words = f"nothing arrives for {failing_ms // 60_000} minutes, {waiting} waiting: {why}"
        return warn(check, words, f"`handrail webhooks test {name}`; it is tried again by itself", age_ms=failing_ms)
    return ok(check, f"{waiting} waiting")


def server_check(breaker: Breaker) -> HealthCheck:
    """A tool server, by its circuit breaker."""
    name = f"tool server {breaker.server}"
    if breaker.status is BreakerStatus.CLOSED:
        return ok(name, "no call to it is held back")
    words = f"it failed {plural(breaker.failures, 'time')} in a row, so that its steps wait: {breaker.message}"
    return warn(name, words, f"`handrail tools check {breaker.server}` shows more; it is tried again by itself")
