"""Which targets are told in one event: those of one server that are away at the same time, as when it restarts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# Clients find back later than the target is there; what they tell until then belongs to it. Others that are back are
# waited for as long again.
PATIENCE_S = 30.0
# One that is away for so long is told before it is back.
LONG_S = 60.0
_MOST_NAMES = 12


@dataclass(frozen=True)
class Span:
    """From when to when a target was away. ``over_s``: when its clients were back, too."""

    source: str
    missed_s: float
    back_s: float | None
    over_s: float | None

    def overlaps(self, other: Span) -> bool:
        """Tell whether both are of one source, and were away at some time."""
        endless = float("inf")
        return (
            self.source == other.source
            and self.missed_s <= (other.back_s or endless)
            and other.missed_s <= (self.back_s or endless)
        )

    def is_over(self, now_s: float) -> bool:
        """Tell whether nothing more is to come."""
        return self.over_s is not None and now_s >= self.over_s + PATIENCE_S


@dataclass(frozen=True)
class Told:
    """An event of targets that are still away."""

    subject: str
    began_s: float


class Together:
    """What is told of targets that are away. ``spans``: of all that are, or were until a moment ago."""

    def __init__(self) -> None:
        self._told: dict[str, Told] = {}

    def over(self, spans: Mapping[str, Span], now_s: float) -> Iterator[tuple[Told | None, list[str]]]:
        """Return the targets to be told as back, those of one event together, with what was told of them before.

        Others of an event that was told before stay away, and are to be told anew.
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
        """Return the targets to be told as being away for long, those of one event together."""
        left = {target: span for target, span in spans.items() if target not in self._told and span.back_s is None}
        for target, span in list(left.items()):
            if target in left and now_s - span.missed_s >= LONG_S:
                mates = [mate for mate, other in left.items() if span.overlaps(other)]
                for mate in mates:
                    del left[mate]
                yield mates

    def tell(self, targets: Sequence[str], began_s: float) -> Told:
        """Keep that an event was told of targets that are still away."""
        told = Told(names(targets), began_s)
        self._told |= dict.fromkeys(targets, told)
        return told


def names(targets: Sequence[str]) -> str:
    """Return the names of targets, but not of very many.

    >>> names(["b", "a"]), names([f"t{number:02}" for number in range(15)])[-19:]
    ('a, b', 't10, t11 and 3 more')
    """
    most = sorted(targets)[:_MOST_NAMES]
    more = len(targets) - len(most)
    return ", ".join(most) + (f" and {more} more" if more else "")
