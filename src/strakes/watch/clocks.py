"""Detects stops of this process and steps of the wall clock, with a monotonic clock as the reference."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

# Tolerances: a busy machine wakes a process late, and NTP slews the wall clock.
_LATE_S, _STEP_S = 5.0, 2.0


@dataclass(frozen=True)
class Break:
    """Seconds that this process was stopped, and seconds that the wall clock was set forward (negative: back)."""

    stopped_s: float = 0.0
    stepped_s: float = 0.0


NO_BREAK = Break()


class Clocks:
    """Compares both clocks. ``steady`` must also count while the machine is suspended."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._steady, self._sleep = clock, steady, sleep
        self._apart_s = clock() - steady()

    def rest(self, seconds: float) -> Break:
        """Sleep; return the stops and clock steps during the sleep.

        >>> steady, clock = iter([0.0, 1.0, 2.0, 60.0, 257.0]), iter([100.0, 7302.0, 7557.0])
        >>> clocks = Clocks(lambda: next(clock), lambda: next(steady), lambda _: None)
        >>> clocks.rest(1.0), clocks.rest(1.0)
        (Break(stopped_s=0.0, stepped_s=7200.0), Break(stopped_s=196.0, stepped_s=0.0))
        """
        began_s = self._steady()
        self._sleep(seconds)
        now_s = self._steady()
        late_s, apart_s = now_s - began_s - seconds, self._clock() - now_s
        stepped_s, self._apart_s = apart_s - self._apart_s, apart_s
        return Break(late_s if late_s > _LATE_S else 0.0, stepped_s if abs(stepped_s) > _STEP_S else 0.0)
