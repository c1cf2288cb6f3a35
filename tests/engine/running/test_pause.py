"""The pause of a run: each one longer than the last, until something succeeds."""

from __future__ import annotations

import asyncio

from handrail.engine.running.alarm import Alarm
from handrail.engine.running.pause import PAUSE_S_FIRST, PAUSE_S_MAX, Pause


async def test_each_pause_is_twice_as_long_as_the_last_up_to_a_limit() -> None:
    pause = Pause(Alarm())
    lengths = []
    for _ in range(8):
        lengths.append(pause.next_s)
        pause.start(lambda: None)
    assert lengths[:3] == [PAUSE_S_FIRST, 2 * PAUSE_S_FIRST, 4 * PAUSE_S_FIRST]
    assert lengths[-1] == PAUSE_S_MAX
    pause.reset()
    assert pause.next_s == PAUSE_S_FIRST


async def test_a_pause_is_over_before_it_is_said() -> None:
    alarm = Alarm()
    pause, over = Pause(alarm), asyncio.get_running_loop().create_future()
    pause.start(lambda: over.set_result((pause.is_on, alarm.is_set)))
    assert pause.is_on
    assert await over == (False, False)


async def test_a_pause_whose_alarm_is_cleared_does_not_end() -> None:
    alarm = Alarm()
    pause = Pause(alarm)
    pause.start(lambda: None)
    alarm.clear()
    assert (pause.is_on, alarm.is_set) == (True, False)
