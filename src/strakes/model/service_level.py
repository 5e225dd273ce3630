"""Parse and judge service levels, such as ``p99 of create <= 20 ms in 99 % of minutes``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from strakes.base.errors import BadInputError
from strakes.base.units import counted, format_seconds, parse_seconds

_LEVEL = re.compile(
    r"^\s*p(\d+(?:\.\d+)?)\s+of\s+(\S+)\s*(?:<=|≤)\s*(\d+(?:\.\d+)?\s*\S+)\s+in\s+(\d+(?:\.\d+)?)\s*%\s+of\s+minutes\s*$"
)
_REMEDY = "Write, for example, 'p99 of create <= 20 ms in 99 % of minutes'"


class LatencyCounts(Protocol):
    """Latency distribution of one operation in one minute."""

    def total(self) -> int:
        """Return the number of latencies."""

    def percentile(self, share: float) -> float:
        """Return a quantile of the latencies, in seconds. ``share``: from 0 to 1."""


@dataclass(frozen=True)
class Minute:
    """Latency distributions in an interval of ``seconds``, usually a minute, that begins at ``time_s`` (Unix time).

    ``figures``: name -> latency distribution. Each name ends with an operation, as in "probe create".
    """

    time_s: float
    seconds: float
    figures: Mapping[str, LatencyCounts]


@dataclass(frozen=True)
class ServiceLevel:
    """A requirement: in a share ``of_minutes`` of minutes, ``percentile`` of ``operation`` is at most ``most_s``."""

    text: str
    percentile: float
    operation: str
    most_s: float
    of_minutes: float


@dataclass(frozen=True)
class Kept:
    """The result for a service level: latencies exceeded the limit in ``bad`` of ``minutes`` minutes."""

    level: ServiceLevel
    minutes: float
    bad: float

    @property
    def kept(self) -> bool | None:
        """Return whether the service level is met, or None without a measured minute.

        One bad minute is tolerated, unless the service level requires 100 % of minutes.
        """
        share = 1 - self.level.of_minutes
        return self.bad <= (max(share * self.minutes, 1.0) if share else 0.0) if self.minutes else None

    def __str__(self) -> str:
        if self.kept is None:
            return f"{self.level.text}: UNKNOWN, nothing was measured"
        verdict = "PASS" if self.kept else "FAIL"
        return f"{self.level.text}: {verdict}, exceeded in {self.bad:,.0f} of {counted(self.minutes, 'minute')}"


def parse_service_level(text: str) -> ServiceLevel:
    """Return the service level that a text describes. Raises BadInputError.

    >>> level = parse_service_level("p99 of create <= 20 ms in 99 % of minutes")
    >>> level.percentile, level.operation, level.most_s, level.of_minutes
    (0.99, 'create', 0.02, 0.99)
    """
    match = _LEVEL.match(text)
    percentile, share = (float(match[1]) / 100, float(match[4]) / 100) if match else (0.0, 0.0)
    why = ""
    if match and (not 0 < percentile < 1 or not 0 < share <= 1):
        why = "shares are between 0 and 100 %"
    elif match and match[3][-1].isdecimal():
        why = f"{match[3]} has no unit"
    if match is None or why:
        raise BadInputError(f"not a service level: {text!r}", why=why, remedy=_REMEDY)
    most_s = parse_seconds(match[3].replace(" ", ""))
    plain = f"p{match[1]} of {match[2]} <= {format_seconds(most_s).replace('.0 ', ' ')} in {match[4]} % of minutes"
    return ServiceLevel(plain, percentile, match[2], most_s, share)


def judge(level: ServiceLevel, rows: Iterable[Minute]) -> Kept:
    """Return the result for a service level. Each of the ``rows`` of latencies may cover several minutes."""
    minutes = bad = 0.0
    for row in rows:
        exceeded = is_exceeded(level, row)
        if exceeded is not None:
            # A period of a little more than 60 s counts as one minute.
            length = min(row.seconds / 60, max(1.0, round(row.seconds / 60)))
            minutes += length
            bad += length * exceeded
    return Kept(level, minutes, bad)


def is_exceeded(level: ServiceLevel, row: Minute) -> bool | None:
    """Return whether latencies exceeded the limit in any probed directory, or None if no directory was probed."""
    probe = f"probe {level.operation}"
    histograms = [one for name, one in row.figures.items() if name.endswith(probe) and one.total()]
    return any(each.percentile(level.percentile) > level.most_s for each in histograms) if histograms else None
