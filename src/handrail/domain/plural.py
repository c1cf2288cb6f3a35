"""Counted nouns as English writes them. Pure."""

from __future__ import annotations


def plural(number: int, noun: str, nouns: str = "") -> str:
    """`1 error`, `2 errors`; `nouns` is the plural where an s is not enough (`try`, `tries`)."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def counted_steps(over: int, total: int, skipped: int) -> str:
    """How far a run is, for people and agents alike: of the steps that are over, those that were skipped are apart."""
    apart = f", {skipped:,} skipped" if skipped else ""
    return f"{over - skipped:,} of {plural(total, 'step')} done{apart}"
