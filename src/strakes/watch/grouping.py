"""Groups simultaneous outages of targets of one server, as in a restart, into one event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# Clients reconnect after the target is back, and their reports belong to the same outage. Other targets of the group
# get the same time again to return.
PATIENCE_S = 30.0
# A longer outage is reported before it ends.
LONG_S = 60.0
_MOST_NAMES = 12


@dataclass(frozen=True)
class Span:
    """An outage of a target. ``over_s``: when its clients had reconnected."""

    source: str
    missed_s: float
    back_s: float | None
    over_s: float | None

    def overlaps(self, other: Span) -> bool:
        """Return whether both have the same source and overlap in time."""
        endless = float("inf")
        return (
            self.source == other.source
            and self.missed_s <= (other.back_s or endless)
            and other.missed_s <= (self.back_s or endless)
        )

    def is_over(self, now_s: float) -> bool:
        """Return whether the outage is complete."""
        return self.over_s is not None and now_s >= self.over_s + PATIENCE_S


@dataclass(frozen=True)
class Told:
    """The report of an outage that had not ended."""

    subject: str
    began_s: float


class Together:
    """Groups outages. ``spans``: current and recent outages by target."""

    def __init__(self) -> None:
        self._told: dict[str, Told] = {}

    def over(self, spans: Mapping[str, Span], now_s: float) -> Iterator[tuple[Told | None, list[str]]]:
        """Yield the targets of each ended event, with its earlier report if any.

        Targets of that report that are still unavailable are reported again.
        """
        left = dict(spans)
        for target, span in spans.items():
            if target not in left or not span.is_over(now_s):
                continue
            mates = [mate for mate, other in left.items() if span.overlaps(other)]
            late = [mate for mate in mates if not left[mate].is_over(now_s)]
            assert span.over_s is not None
            if any(left[mate].back_s is not None for mate in late) and now_s < span.over_s + 2 * PATIENCE_S:
                continue
            by_event: dict[Told | None, list[str]] = {}
            for mate in mates:
                if mate not in late:
                    by_event.setdefault(self._told.pop(mate, None), []).append(mate)
                    del left[mate]
            self._told = {mate: told for mate, told in self._told.items() if told not in by_event}
            yield from by_event.items()

    def long(self, spans: Mapping[str, Span], now_s: float) -> Iterator[list[str]]:
        """Yield the targets of each long outage that was not reported yet."""
        left = {target: span for target, span in spans.items() if target not in self._told and span.back_s is None}
        for target, span in list(left.items()):
            if target in left and now_s - span.missed_s >= LONG_S:
                mates = [mate for mate, other in left.items() if span.overlaps(other)]
                for mate in mates:
                    del left[mate]
                yield mates

    def tell(self, targets: Sequence[str], began_s: float) -> Told:
        """Store and return the report of an outage that has not ended."""
        told = Told(names(targets), began_s)
        self._told |= dict.fromkeys(targets, told)
        return told


def names(targets: Sequence[str]) -> str:
    """Return the names of at most 12 targets.

    >>> names(["b", "a"]), names([f"t{number:02}" for number in range(15)])[-19:]
    ('a, b', 't10, t11 and 3 more')
    """
    most = sorted(targets)[:_MOST_NAMES]
    more = len(targets) - len(most)
    return ", ".join(most) + (f" and {more} more" if more else "")
