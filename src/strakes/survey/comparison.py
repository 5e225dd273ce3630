"""Results of a comparison, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strakes.model.portrait import Setting
from strakes.stats.ratios import Verdict


@dataclass(frozen=True)
class CellVerdict:
    """One cell of both runs. ``ratio``: how many times better B is than A (for seconds: how many times shorter).

    The intervals from ``low`` to ``high`` hold for all cells together at the comparison's confidence; with too few runs
    there is no interval. ``median_a`` and ``median_b`` are in ``unit``. ``grade``: sure, alike or, if the verdict is
    INCONCLUSIVE, how sure the direction of the ratio is: likely, leaning, or "" if nothing is claimed.
    """

    id: str
    settings: Mapping[str, Setting]
    unit: str
    verdict: Verdict
    ratio: float
    low: float | None
    high: float | None
    median_a: float
    median_b: float
    runs_a: int
    runs_b: int
    needs: str = ""
    grade: str = ""


@dataclass(frozen=True)
class Overall:
    """The verdict and grade of all cells together, by the ratio of each run's geometric mean over all cells."""

    verdict: Verdict
    ratio: float | None
    low: float | None
    high: float | None
    needs: str = ""
    grade: str = ""


@dataclass(frozen=True)
class Unlike:
    """A cell that is not compared, and the reason."""

    id: str
    why: str


@dataclass(frozen=True)
class Comparison:
    """Comparison of run B with run A. ``confidence`` applies to ``overall``, and to all ``cells`` together.

    ``differs``: other differences between the runs (machine, versions, target), as text. ``caution``: reasons to
    distrust the verdicts.
    """

    a: Mapping[str, Any]
    b: Mapping[str, Any]
    confidence: float
    margin: float
    overall: Overall
    cells: tuple[CellVerdict, ...]
    unlike: tuple[Unlike, ...]
    differs: tuple[str, ...]
    caution: tuple[str, ...]
