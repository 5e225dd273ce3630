"""Compare forecasts from small scales with measurements at large ones, on a CephFS with throttled metadata servers."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.predict.asked import Asked, Stated
from strakes.predict.forecasts import forecast_figures
from strakes.predict.levels import FigureLevels, MeasuredLevel, Scale

_KEPT = Path(__file__).with_suffix(".json")
_SERVERS = 3
CLOSE = 0.2


@dataclass(frozen=True)
class Score:
    """A forecast with its interval, and the measurement."""

    forecast: float
    low: float
    high: float
    measured: float

    @property
    def covered(self) -> bool:
        return self.low <= self.measured <= self.high


def forecast_again() -> list[Score]:
    """Return the score of each figure at 4 and 8 clients, forecast from 1 and 2 clients with 1 and 2 servers."""
    scores = []
    for entry in _kept():
        levels = tuple(MeasuredLevel(**{**level, "scale": Scale(**level["scale"])}) for level in entry["levels"])
        figure = FigureLevels("namespace-scaling", entry["figure"], "op/s", {}, levels, rank_is_client=True)
        for clients, measured in entry["measured"].items():
            (said,) = forecast_figures([figure], Asked({"clients": int(clients), "mdts": _SERVERS}), Stated())
            assert said.forecast is not None
            scores.append(Score(said.forecast.median, said.forecast.low, said.forecast.high, float(measured)))
    return scores


def is_close(score: Score) -> bool:
    """Return whether a forecast is within 20 % of the measurement."""
    return abs(math.log(score.forecast / score.measured)) <= math.log(1 + CLOSE)


def expected_close() -> float:
    """Return the expected number of close forecasts of a perfect model whose input and results have errors.

    If both have the error e, their difference has s = sqrt(2) e, and P(abs(x) < a) = erf(a / (sqrt(2) s)).
    """
    errors = [entry["levels"][-1]["log_error"] for entry in _kept() for _ in entry["measured"]]
    return sum(math.erf(math.log(1 + CLOSE) / (2 * error)) for error in errors)


def _kept() -> Any:
    return json.loads(_KEPT.read_text(encoding="utf-8"))["figures"]
