"""What a watch reads and what it says, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
# What an event is about.
Kind = Literal[
    "level", "early-warning", "slow-target", "saturation", "fail-over", "no-answer", "heavy", "service-level", "gap"
]
# The subject of what is told of the clock of this machine.
CLOCK = "clock"


@dataclass(frozen=True)
class WatchedSeries:
    """One figure over time, oldest first; NaN: not known.

    ``causes``: columns that may explain it, each as long as ``values``.
    """

    name: str
    times: Numbers
    values: Numbers
    causes: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True)
class ShiftedLevel:
    """The level of a series changed at index ``since`` and was told at ``told``; ``ratio`` is after / before.

    ``low`` to ``high`` holds the ratio with 90 %.
    """

    since: int
    told: int
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class WatchEvent:
    """Something that an operator is told. Times are Unix time; ``ended_s`` is None while it lasts or is not known.

    ``size`` with its interval is in ``unit`` ("ratio": after / before; "difference": after - before). ``sure``: from 0
    to 1, None where the fact was read and not inferred. ``cause`` is empty where no column explains it; an event with a
    cause raises no alarm.
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
        """Tell whether somebody is to be told."""
        return not self.cause and self.kind not in ("gap", "early-warning")

    @property
    def key(self) -> tuple[str, str, float]:
        """Return what stays the same when the event is told again because it is over."""
        return self.kind, self.subject, self.began_s
