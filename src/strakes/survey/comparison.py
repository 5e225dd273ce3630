"""Results of a comparison, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strakes.model.portrait import Setting
from strakes.stats.ratios import Verdict


@dataclass(frozen=True)
class CellVerdict:
    """Verdict on one cell. ``ratio``: rate in B divided by rate in A (for times: time in A divided by time in B).

    ``low`` and ``high``: interval of the ratio, or None with too few runs. The comparison's confidence applies to the
    intervals of all cells jointly. ``median_a`` and ``median_b`` are in ``unit``. ``grade``: "sure" or "alike". For
    INCONCLUSIVE, it grades the ratio's direction: "likely", "leaning" or "".
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
    """Comparison of run B with run A. ``confidence`` applies to ``overall``, and to all ``cells`` together.

    ``differs``: differences of machine, versions and target, as text. ``caution``: reasons to distrust the verdicts.
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
