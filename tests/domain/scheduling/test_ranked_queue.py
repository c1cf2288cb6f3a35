"""The queue by rank, and the timers: what is looked at stays, what was replaced is gone."""

from __future__ import annotations

from random import Random

from handrail.domain.scheduling.ranked_queue import RankedQueue
from handrail.domain.scheduling.timers import Timers


def test_a_queue_is_in_order_whatever_was_added_and_removed_and_looking_takes_nothing_off() -> None:
    random, queue, wanted = Random(7), RankedQueue[int](), dict[str, int]()
    for _ in range(2_000):
        path, rank = f"s{random.randrange(50)}", random.randrange(20)
        if random.random() < 0.4:
            queue.discard(path)
            wanted.pop(path, None)
        else:
            queue.add(path, rank)
            wanted.setdefault(path, rank)
        assert list(queue) == list(queue) == sorted(wanted, key=lambda one: (wanted[one], one))
        assert len(queue) == len(wanted)


def test_only_the_last_time_of_a_step_counts() -> None:
    timers = Timers()
    timers.set("a", 5)
    timers.set("b", 7)
    timers.set("a", 9)
    timers.set("c", 1)
    timers.set("c", None)
    assert timers.next_due() == 7
    assert timers.take_due(8) == ["b"]
    assert (timers.take_due(8), timers.next_due(), list(timers)) == ([], 9, ["a"])
