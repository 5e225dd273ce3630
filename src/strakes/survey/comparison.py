"""Results of a comparison, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strakes.model.portrait import Setting
from strakes.stats.ratios import Verdict


@dataclass(frozen=True)
class CellVerdict:
    """One cell in both runs. ``ratio``: how many times better B is than A (for seconds: how many times shorter).

    The intervals ``low`` to ``high`` of all cells together are correct with the comparison's confidence; with too few
    runs they are None. ``median_a`` and ``median_b`` are in ``unit``. ``grade``: sure, alike or, for an INCONCLUSIVE
    verdict, the grade of the ratio's direction: likely, leaning, or "" if nothing is claimed.
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
    """The verdict and grade of all cells together, by the geometric mean of all cells of each run."""

    verdict: Verdict
    ratio: float | None
    low: float | None
    high: float | None
    needs: str = ""
    grade: str = ""


@dataclass(frozen=True)
class Unlike:
    """A cell that cannot be compared, and the reason."""

    id: str
    why: str


@dataclass(frozen=True)
class Comparison:
    """Comparison of run B with run A. ``confidence`` applies to ``overall``, and to all ``cells`` together.

    ``differs``: other differences of the runs (machine, versions, target), as text. ``caution``: reasons to
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
