"""Histories of figures over stored runs, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from strakes.model.portrait import Setting

# NO CHANGE SHOWN: the runs suffice to find a shift of the size ``seen_from``. INCONCLUSIVE: too few runs.
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
    """A level shift at ``run``, from the median ``before`` to ``after``.

    ``ratio``: how many times better ``after`` is.
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

    ``left_out``: number of runs with other amounts of work than the newest run.
    ``seen_from``: smallest lasting rise in the middle of the series, as a share of the level, that is found in at least
    four of five series with this noise, if the noise is log-normal. A fall has the same size on a logarithmic scale.
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
        """Whether smaller values are better."""
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
        """Return the command that repeats the measurement, without the program's name."""
        return f"{self.kind if self.kind == self.name else f'{self.kind} {self.name}'} {self.target}"
