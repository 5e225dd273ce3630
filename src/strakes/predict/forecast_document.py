"""Forecasts as a JSON document: what is sealed, and what ``--json`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from strakes.predict.asked import Asked, Stated
from strakes.predict.file_system import contents_of, file_system_of
from strakes.predict.forecasts import FigureForecast
from strakes.predict.model import COVERAGE, Forecast
from strakes.store import Run
from strakes.version import __version__

SCHEMA = 1
# Counts up with every change that makes other forecasts of the same runs.
MODEL = 8


def forecast_document(
    runs: Sequence[Run], asked: Asked, stated: Stated, forecasts: Sequence[FigureForecast], now: datetime | None = None
) -> dict[str, Any]:
    """Return forecast, model, inputs and date."""
    return {
        "schema": SCHEMA,
        "created": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "strakes": __version__,
        "model": MODEL,
        "interval": COVERAGE,
        "asked": {**asked.counts, **({"link_bytes_per_s": asked.link_bytes_per_s} if asked.link_bytes_per_s else {})},
        "stated": [
            {"part": part, "unit": unit, "capacity": capacity} for (part, unit), capacity in stated.capacities.items()
        ],
        "runs": [
            {
                "id": run.id,
                "target": run.manifest["target"],
                "status": run.manifest["status"],
                "file_system": asdict(file_system_of(run)),
                "contents": contents_of(run),
            }
            for run in runs
        ],
        "figures": [_figure(each) for each in forecasts],
    }


def _figure(each: FigureForecast) -> dict[str, Any]:
    return {
        "figure": each.figure.name,
        "study": each.figure.study,
        "unit": each.figure.unit,
        "measured": [{**asdict(level), "left_out": level in each.figure.left_out} for level in each.figure.levels],
        "scale": asdict(each.scale),
        "forecast": {**_interval(each.forecast), "measurement": each.forecast.measurement} if each.forecast else None,
        "unknown_because": each.why,
        "notes": list(each.notes),
        "saturates": _saturates(each.forecast),
        "would_help": [{"what": addition.what, **_interval(addition.gain)} for addition in each.help],
        "curve": [{"scale": asdict(point.scale), **_interval(point.forecast)} for point in each.curve],
        "families": dict(each.families or {}),
    }


def _interval(forecast: Forecast) -> dict[str, float]:
    return {"median": forecast.median, "low": forecast.low, "high": forecast.high}


def _saturates(forecast: Forecast | None) -> Mapping[str, Any] | None:
    if forecast is None or forecast.likely is None:
        return None
    parts, sure = forecast.likely
    return {"parts": list(parts), "probability": sure}
