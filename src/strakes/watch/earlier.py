"""Alarms that an earlier watch saw no end of: they go on while the watch that follows it looks whether they last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from strakes.watch.values import WatchEvent

# A watch that begins again needs so long to see again what lasts.
_LOOK_S = 900.0
# What does not answer now either is seen again sooner; a later outage is another one.
_OUTAGE_S = 60.0
# What ended so long before the earlier watch did may not be told; a beginning is off by less than that.
_UNTOLD_S = 120.0
# After a longer pause an alarm is a new one.
PAUSE_S = 3600.0


class Earlier:
    """Remembers alarms of the earlier watch; each is seen again, and keeps its beginning, or is over."""

    def __init__(self, events: Iterable[WatchEvent], kept_until_s: float, now_s: float) -> None:
        self._held = {_same(event): event for event in events}
        self._kept_until_s, self._began_at_s, self._until_s = kept_until_s, now_s, now_s + _LOOK_S
        # Key that this watch gives -> beginning that the earlier one has seen.
        self._began_s: dict[tuple[str, str, float], float] = {}

    def known(self, event: WatchEvent) -> WatchEvent:
        """Return an event with the beginning that the earlier watch has seen, if it was told already."""
        another = event.kind in ("fail-over", "no-answer") and event.began_s > self._began_at_s + _OUTAGE_S
        held = None if another else self._held.pop(_same(event), None)
        if held is not None and event.alarm:
            self._began_s[event.key] = held.began_s
        began_s = self._began_s.get(event.key)
        if event.ended_s is not None:
            self._began_s.pop(event.key, None)
        return event if began_s is None else replace(event, began_s=began_s)

    def over(self, now_s: float) -> list[WatchEvent]:
        """Return, once, what was not seen again."""
        if now_s < self._until_s:
            return []
        events = [ended(event, self._kept_until_s) for event in self._held.values()]
        self._held.clear()
        return events


def _same(event: WatchEvent) -> tuple[str, str, str]:
    """Return what is the same of an alarm when it is told again: a fail-over has a length only when it is over."""
    return event.kind, event.subject, "" if event.kind == "fail-over" else event.unit


def untold_since_s(events: Iterable[WatchEvent], kept_until_s: float) -> float:
    """Return from when on targets may have been away of which the earlier watch has not told the end."""
    lasting = (event.began_s for event in events if event.kind == "fail-over" and event.ended_s is None)
    return min([kept_until_s, *lasting]) - _UNTOLD_S


def ended(event: WatchEvent, kept_until_s: float) -> WatchEvent:
    """Return an event that the earlier watch saw no end of."""
    text = event.text if event.kind == "gap" else f"{event.text} (the watch ended before it was over)"
    return replace(event, ended_s=max(kept_until_s, event.told_s), text=text)
