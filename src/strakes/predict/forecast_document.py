"""Forecasts as a JSON document: what is sealed, and what ``--json`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from strakes.predict.asked import Asked, Stated
from strakes.predict.forecasts import FigureForecast
from strakes.predict.inputs import file_system_of
from strakes.predict.model import COVERAGE
from strakes.store import Run
from strakes.version import __version__

SCHEMA = 1


def forecast_document(
    runs: Sequence[Run], asked: Asked, stated: Stated, forecasts: Sequence[FigureForecast], now: datetime | None = None
) -> dict[str, Any]:
    """Return forecasts, inputs and date."""
    return {
        "schema": SCHEMA,
        "created": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "strakes": __version__,
        "interval": COVERAGE,
        "asked": dict(asked.counts),
        "stated": [
            {"part": part, "unit": unit, "capacity": capacity} for (part, unit), capacity in stated.capacities.items()
        ],
        "runs": [
            {"id": run.id, "status": run.manifest["status"], "file_system": asdict(file_system_of(run))} for run in runs
        ],
        "figures": [_figure(each) for each in forecasts],
    }


def _figure(each: FigureForecast) -> dict[str, Any]:
    forecast = each.forecast
    ends = None if forecast is None else {name: getattr(forecast, name) for name in ("median", "low", "high")}
    likely = None if forecast is None else forecast.likely
    return {
        "figure": each.figure.name,
        "study": each.figure.study,
        "unit": each.figure.unit,
        "measured": [{**asdict(level), "left_out": level in each.figure.left_out} for level in each.figure.levels],
        "scale": asdict(each.scale),
        "forecast": ends,
        "unknown_because": each.why,
        "notes": list(each.notes),
        "saturates": None if likely is None else {"part": likely[0], "probability": likely[1]},
    }
