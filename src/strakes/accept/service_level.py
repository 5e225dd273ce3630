"""Service levels: ``p99 of create <= 20 ms in 99 % of minutes``, and what is left of the error budget."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from strakes.errors import BadInputError
from strakes.units import counted, format_seconds, parse_seconds

_LEVEL = re.compile(
    r"^\s*p(\d+(?:\.\d+)?)\s+of\s+(\S+)\s*(?:<=|≤)\s*(\d+(?:\.\d+)?\s*\S+)\s+in\s+(\d+(?:\.\d+)?)\s*%\s+of\s+minutes\s*$"
)
_REMEDY = "Write, for example: p99 of create <= 20 ms in 99 % of minutes"


class LatencyCounts(Protocol):
    """Of one operation in one minute."""

    @property
    def count(self) -> int:
        """Return how many there are."""

    def percentile(self, share: float) -> float:
        """Return the one that ``share`` of all do not exceed, in seconds."""


class Minute(Protocol):
    """What was seen for ``seconds``: figure -> latencies."""

    @property
    def seconds(self) -> float:
        """Return its length."""

    @property
    def figures(self) -> Mapping[str, LatencyCounts]:
        """Return what was seen; figures of the probe end with its operation."""


@dataclass(frozen=True)
class ServiceLevel:
    """``percentile`` of ``operation`` is at most ``most_s`` in the share ``of_minutes`` of all minutes."""

    text: str
    percentile: float
    operation: str
    most_s: float
    of_minutes: float


@dataclass(frozen=True)
class Kept:
    """``bad`` of ``minutes`` were beyond.

    ``budget_left``: of those that may be, 1 when none was, below 0 when it is spent.
    """

    level: ServiceLevel
    minutes: float
    bad: float

    @property
    def kept(self) -> bool | None:
        """Tell whether it is kept; None where nothing was measured."""
        return None if not self.minutes else self.bad <= (1 - self.level.of_minutes) * self.minutes

    @property
    def budget_left(self) -> float:
        """Return the share of the error budget that is left."""
        allowed = (1 - self.level.of_minutes) * self.minutes
        return 1 - self.bad / allowed if allowed else float(self.bad == 0)

    def __str__(self) -> str:
        """Return it in words."""
        if self.kept is None:
            return f"{self.level.text}: UNKNOWN, nothing was measured"
        seen = f"exceeded in {self.bad:,.0f} of {counted(self.minutes, 'minute')}"
        if self.kept:
            return f"{self.level.text}: PASS, {seen}, {self.budget_left:.0%} of the error budget is left"
        allowed = (1 - self.level.of_minutes) * self.minutes
        return f"{self.level.text}: FAIL, {seen}, and the error budget allows no more than {allowed:.3g}"


def parse_service_level(text: str) -> ServiceLevel:
    """Read one. Raises BadInputError.

    >>> level = parse_service_level("p99 of create <= 20 ms in 99 % of minutes")
    >>> level.percentile, level.operation, level.most_s, level.of_minutes
    (0.99, 'create', 0.02, 0.99)
    """
    match = _LEVEL.match(text)
    if not match:
        raise BadInputError(f"not a service level: {text!r}", remedy=_REMEDY)
    percentile, share = float(match[1]) / 100, float(match[4]) / 100
    if not 0 < percentile < 1 or not 0 < share <= 1:
        raise BadInputError(f"not a service level: {text!r}", why="shares are between 0 and 100 %", remedy=_REMEDY)
    most_s = parse_seconds(match[3].replace(" ", ""))
    plain = f"p{match[1]} of {match[2]} <= {format_seconds(most_s).replace('.0 ', ' ')} in {match[4]} % of minutes"
    return ServiceLevel(plain, percentile, match[2], most_s, share)


def judge(level: ServiceLevel, rows: Iterable[Minute]) -> Kept:
    """Count the minutes beyond. A row of ten minutes that is beyond counts as ten."""
    minutes = bad = 0.0
    for row in rows:
        for name, histogram in row.figures.items():
            if name.endswith(f"probe {level.operation}") and histogram.count:
                minutes += row.seconds / 60
                bad += row.seconds / 60 * (histogram.percentile(level.percentile) > level.most_s)
    return Kept(level, minutes, bad)
