"""The bars that figures are held against: each is printed beside its figure; who misses one exits with 1."""

from __future__ import annotations

_missed: list[str] = []


def at_least(what: str, value: float, limit: float) -> None:
    """Print a figure that must not be below a limit."""
    _judged(what, value, limit, "at least", holds=value >= limit)


def at_most(what: str, value: float, limit: float) -> None:
    """Print a figure that must not be above a limit."""
    _judged(what, value, limit, "at most", holds=value <= limit)


def miss(what: str) -> None:
    """Note that a figure, printed elsewhere, missed its limit."""
    _missed.append(what)


def left_out(what: str, why: object) -> None:
    """Say what was not measured, and why: that is a miss as well: the figure is not known."""
    print(f"  {what}: left out: {why}", flush=True)
    _missed.append(what)


def exit_code() -> int:
    """0 if every bar was met; else 1, and what was missed is named."""
    for what in _missed:
        print(f"missed: {what}", flush=True)
    return int(bool(_missed))


def _judged(what: str, value: float, limit: float, words: str, *, holds: bool) -> None:
    print(f"  {what}: {value:.2f} ({words} {limit:.2f}){'' if holds else '  <- missed'}", flush=True)
    if not holds:
        _missed.append(what)
