"""Histories of figures over the runs of a store, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from strakes.findings.portrait import Setting

# NO CHANGE SHOWN: enough runs to find one of the size that the series says. INCONCLUSIVE: too few runs to find any.
NO_CHANGE: Final = "NO CHANGE SHOWN"
Verdict = Literal["SLOWER", "FASTER", "NO CHANGE SHOWN", "INCONCLUSIVE"]


@dataclass(frozen=True)
class HistoryPoint:
    """Median and interval of one run, in the unit of the series. ``when`` is ISO 8601 in UTC."""

    run: str
    when: str
    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class RunChange:
    """The level changes with ``run``: from the median ``before`` to ``after``.

    ``ratio`` is how many times better that is.
    """

    run: str
    when: str
    before: float
    after: float
    ratio: float
    p_value: float


@dataclass(frozen=True)
class HistorySeries:
    """One cell over time.

    ``left_out``: how many runs measured other amounts of work than the newest one.
    ``seen_from``: a lasting rise by this share of the level, or a fall back from there, half of the runs ago, would
    have been seen in four of five such series at least, were its scatter that of logarithms of normal ones.
    """

    cell: str
    settings: Mapping[str, Setting]
    unit: str
    points: tuple[HistoryPoint, ...]
    left_out: int = 0
    changes: tuple[RunChange, ...] = ()
    verdict: Verdict = "INCONCLUSIVE"
    needs: str = ""
    seen_from: float | None = None

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller value is the better one."""
        return self.unit == "s"


@dataclass(frozen=True)
class History:
    """All runs of one measurement (one fingerprint), oldest first."""

    fingerprint: str
    kind: str
    name: str
    target: str
    runs: tuple[str, ...]
    series: tuple[HistorySeries, ...]

    @property
    def command(self) -> str:
        """Return the command of such a measurement."""
        return f"{self.kind if self.kind == self.name else f'{self.kind} {self.name}'} {self.target}"
