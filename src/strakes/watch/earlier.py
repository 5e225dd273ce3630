"""Open alarms of the previous watch: they stay open until this watch confirms or ends them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from strakes.watch.values import WatchEvent

# A restarted watch detects a lasting problem again within this time.
_LOOK_S = 900.0
# It detects an outage sooner; a later outage is a new one.
_OUTAGE_S = 60.0
# The previous watch may not have reported an outage that ended this long before itself.
_UNTOLD_S = 120.0
# After a longer pause each alarm is a new one.
PAUSE_S = 3600.0


class Earlier:
    """Open alarms of the previous watch. Each is detected again and keeps its onset, or ends."""

    def __init__(self, events: Iterable[WatchEvent], kept_until_s: float, now_s: float) -> None:
        self._held = {_same(event): event for event in events}
        self._kept_until_s, self._began_at_s, self._until_s = kept_until_s, now_s, now_s + _LOOK_S
        # Key in this watch -> onset in the previous watch.
        self._began_s: dict[tuple[str, str, float], float] = {}

    def known(self, event: WatchEvent) -> WatchEvent:
        """Return an event, with the onset of the previous watch if that reported it."""
        another = event.kind in ("fail-over", "no-answer") and event.began_s > self._began_at_s + _OUTAGE_S
        held = None if another else self._held.pop(_same(event), None)
        if held is not None and event.alarm:
            self._began_s[event.key] = held.began_s
        began_s = self._began_s.get(event.key)
        if event.ended_s is not None:
            self._began_s.pop(event.key, None)
        return event if began_s is None else replace(event, began_s=began_s)

    def over(self, now_s: float) -> list[WatchEvent]:
        """Return, once, the alarms that were not detected again."""
        if now_s < self._until_s:
            return []
        events = [ended(event, self._kept_until_s) for event in self._held.values()]
        self._held.clear()
        return events


def _same(event: WatchEvent) -> tuple[str, str, str]:
    """Return the identity of an alarm; the unit of a fail-over is known only at its end."""
    return event.kind, event.subject, "" if event.kind == "fail-over" else event.unit


def untold_since_s(events: Iterable[WatchEvent], kept_until_s: float) -> float:
    """Return the earliest onset of outages whose end the previous watch did not report."""
    lasting = (event.began_s for event in events if event.kind == "fail-over" and event.ended_s is None)
    return min([kept_until_s, *lasting]) - _UNTOLD_S


def ended(event: WatchEvent, kept_until_s: float) -> WatchEvent:
    """Return the end of an event of the previous watch."""
    text = event.text if event.kind == "gap" else f"{event.text} (the watch ended before it was over)"
    return replace(event, ended_s=max(kept_until_s, event.told_s), text=text)
