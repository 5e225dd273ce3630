"""Series (input) and events (output) of a watch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from strakes.base.foreign_text import for_terminal
from strakes.base.units import Share, UnixTime, format_duration
from strakes.stats.change import Numbers

Kind = Literal["level", "early-warning", "slow-target", "saturation", "outage", "heavy", "service-level", "gap"]
_MOST_CHARACTERS = 4000  # Maximum length of a text. In the store, whose lines are limited, a character takes 6 bytes.
CLOCK = "clock"  # Subject of events about this machine's clock.


@dataclass(frozen=True)
class WatchedSeries:
    """One metric over time, oldest value first. ``times``: Unix time. NaN: a missing value."""

    name: str
    times: Numbers
    values: Numbers


@dataclass(frozen=True)
class WatchEvent:
    """Event for the operator. Times are Unix times. ``ended_s``: None if the event lasts or its end is unknown.

    ``size``, ``low``, ``high``: estimate and its bounds, as a "ratio" (after / before) or a "difference" (after -
    before). ``sure``: probability that the event is real, or None for an observed fact. ``gain``: an improvement, which
    raises no alarm.
    """

    kind: Kind
    subject: str
    began_s: UnixTime
    told_s: UnixTime
    text: str
    ended_s: UnixTime | None = None
    size: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    sure: Share | None = None
    gain: bool = False
    evidence: Mapping[str, float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cut = {key: one[:_MOST_CHARACTERS] if isinstance(one, str) else one for key, one in self.evidence.items()}
        for name, value in (("subject", self.subject[:_MOST_CHARACTERS]), ("text", self.text[:_MOST_CHARACTERS])):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "evidence", cut)

    @property
    def alarm(self) -> bool:
        """Return whether the event is an alarm."""
        return not self.gain and self.kind not in ("gap", "early-warning")

    @property
    def key(self) -> tuple[str, str, float]:
        """Return the key that the begin and the end of an event share."""
        return self.kind, self.subject, self.began_s

    @property
    def certainty(self) -> str:
        """Return the probability in percent (at most 99.9 %), or "" for an observed fact."""
        return "" if self.sure is None else f"{min(int(self.sure * 1000), 999) / 10:g} %"


def line(event: WatchEvent) -> str:
    """Return an event as a line of text."""
    when = datetime.fromtimestamp(event.began_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    parts = [f"{when} {event.kind:<11} {for_terminal(event.text)}"]
    if event.ended_s is not None and event.kind != "gap" and (event.low is None) == (event.high is None):
        parts.append(f"lasted about {format_duration(max(0.0, event.ended_s - event.began_s))}")
    if event.gain:
        parts.append("a gain")
    if event.sure is not None:
        parts.append(f"{event.certainty} sure")
    return "; ".join(parts)
