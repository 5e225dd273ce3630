"""Results of a comparison, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strakes.model.portrait import Setting
from strakes.stats.ratios import Verdict


@dataclass(frozen=True)
class CellVerdict:
    """Verdict on one cell. ``ratio``: rate in B divided by rate in A, or time in A divided by time in B.

    ``low``, ``high``: interval of the ratio (None: too few runs). All intervals together have the stated confidence.
    ``grade``: certainty of the verdict or, if INCONCLUSIVE, of the statement that one run is faster.
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
    """Verdict on all measurements together, by the geometric mean of their ratios."""

    verdict: Verdict
    ratio: float | None
    low: float | None
    high: float | None
    needs: str = ""
    grade: str = ""


@dataclass(frozen=True)
class Unlike:
    """A measurement that cannot be compared, and the reason."""

    id: str
    why: str


@dataclass(frozen=True)
class Comparison:
    """Comparison of run B with run A.

    ``confidence``: confidence of the ``overall`` interval, and of the intervals of all ``cells`` together. ``differs``:
    differences of machine, versions and file system. ``caution``: reasons to distrust the verdicts.
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
