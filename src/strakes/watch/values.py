"""Input and output of a watch, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Kind = Literal["level", "early-warning", "slow-target", "saturation", "outage", "heavy", "service-level", "gap"]
# Subject of events about the clock of this machine.
CLOCK = "clock"


@dataclass(frozen=True)
class WatchedSeries:
    """One figure over time, oldest first; NaN is a missing value."""

    name: str
    times: Numbers
    values: Numbers


@dataclass(frozen=True)
class WatchEvent:
    """An event for the operator. Times are Unix time; ``ended_s`` is None while it lasts or if the end is unknown.

    ``size`` with its interval is in ``unit`` ("ratio": after / before; "difference": after - before). ``sure``: a
    probability, or None for a fact that was read and not inferred. ``cause``: explanation, or "". An event with a cause
    raises no alarm.
    """

    kind: Kind
    subject: str
    began_s: float
    told_s: float
    text: str
    ended_s: float | None = None
    size: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    sure: float | None = None
    cause: str = ""
    evidence: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def alarm(self) -> bool:
        """Return whether the event is an alarm."""
        return not self.cause and self.kind not in ("gap", "early-warning")

    @property
    def key(self) -> tuple[str, str, float]:
        """Return the identity of the event, which its end shares."""
        return self.kind, self.subject, self.began_s
