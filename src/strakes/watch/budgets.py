"""Remaining error budgets of service levels, and alarms on their burn rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.accept.service_level import Kept, ServiceLevel, judge, used_up_too_fast
from strakes.watch.ring import Ring, RingRow
from strakes.watch.values import WatchEvent

# Period of the budget, and interval between full evaluations of the store; in between, minutes are added.
_OVER_S = 30 * 86400.0
_ANEW_S = 300.0


class Budgets:
    """Error budgets; ``kept`` has the result of each service level."""

    def __init__(self, levels: Sequence[ServiceLevel], ring: Ring) -> None:
        self._levels, self._ring = levels, ring
        self.kept: list[Kept] = []
        self._failing: dict[str, WatchEvent] = {}
        self._judged_s = 0.0

    def go_on_with(self, event: WatchEvent) -> bool:
        """Adopt an alarm of the previous watch; return whether its level is watched."""
        watched = any(level.text == event.subject for level in self._levels)
        if watched:
            self._failing[event.subject] = event
        return watched

    def add(self, row: RingRow, now_s: float) -> list[WatchEvent]:
        """Add a stored minute; return the alarms that begin or end."""
        if not self._levels:
            return []
        if 0 <= now_s - self._judged_s < _ANEW_S:
            self.kept = [kept + judge(kept.level, [row]) for kept in self.kept]
            return []
        self._judged_s = now_s
        rows = list(self._ring.rows(now_s - _OVER_S))
        self.kept = [judge(level, rows) for level in self._levels]
        events = []
        for kept in self.kept:
            level = kept.level.text
            too_fast = used_up_too_fast(kept.level, rows, now_s)
            if too_fast and level not in self._failing:
                self._failing[level] = WatchEvent(
                    "service-level", level, now_s, now_s, too_fast, size=kept.budget_left, unit="budget left"
                )
                events.append(self._failing[level])
            elif not too_fast and level in self._failing:
                failed = self._failing.pop(level)
                text = f"{kept}; lately it is exceeded no more often than it may be"
                events.append(replace(failed, told_s=now_s, ended_s=max(now_s, failed.began_s), text=text))
        return events
