"""Forecasts for a terminal: what to expect, what is scarce first, what would help, and what is not known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from strakes.predict.figure_levels import FigureLevels
from strakes.predict.forecasts import FigureForecast
from strakes.predict.model import COVERAGE, Forecast
from strakes.predict.scale import PART_NAMES, MeasuredLevel
from strakes.predict.sealed import Record, Score
from strakes.report.numbers import percent, show, show_range
from strakes.units import counted

_MOST_NAMED = 6


def render(forecasts: Sequence[FigureForecast], record: Record) -> str:
    """Return the text; ``record``: how good sealed forecasts were."""
    known = [each for each in forecasts if each.forecast is not None]
    lines = []
    for each in known:
        lines += [*say_figure(each), ""]
    unknown = [each for each in forecasts if each.forecast is None]
    if unknown:
        lines.append("UNKNOWN")
        by_why: dict[str, list[str]] = {}
        for each in unknown:
            by_why.setdefault(each.why, []).append(each.figure.name)
        for why, names in by_why.items():
            lines.append(f"  {why}:")
            lines += [f"    {name}" for name in names[:_MOST_NAMED]]
            if len(names) > _MOST_NAMED:
                lines.append(f"    and {len(names) - _MOST_NAMED} more; --json names all")
        lines.append("")
    if not forecasts:
        lines.append("These runs have no figure whose number of ranks is known: nothing can be forecast.")
    lines.append(say_record(record))
    return "\n".join(lines)


def say_record(record: Record) -> str:
    """Return how good sealed forecasts were so far, in sentences."""
    lines = []
    if record.scores:
        count = len(record.scores)
        inside = percent(round(sum(each.covered for each in record.scores) / count, 2))
        lines.append(
            f"Sealed forecasts so far: {counted(count, 'figure')} scored, half of them off by at most "
            f"{say_off(median(each.factor for each in record.scores))}, {inside} inside their "
            f"{percent(COVERAGE)} intervals for a measurement."
        )
    else:
        lines.append(
            "No sealed forecast has been scored yet. Seal this one with --seal; score it with strakes predict score."
        )
    if record.left_out:
        lines.append(
            f"Left out are {counted(len(record.left_out), 'score')} without the forecast, or damaged: "
            f"{', '.join(record.left_out)}."
        )
    return "\n".join(lines)


def say_off(factor: float) -> str:
    """Return a factor of error as a share.

    >>> say_off(1.24), say_off(3.5)
    ('24 %', '3.5 times')
    """
    return percent(round(factor - 1, 2)) if factor < 2 else f"{factor:.2g} times"


def say_score(score: Score) -> str:
    """Return one figure of a sealed forecast beside what was measured."""
    middle = show(score.forecast, score.unit)
    ends = show_range(score.low, score.high, score.unit, beside=middle)
    inside = "inside" if score.covered else "OUTSIDE"
    return (
        f"{score.figure}: measured {show(score.measured, score.unit)} ({counted(score.runs, 'run')}), {inside} the "
        f"interval for a measurement; forecast {middle} [{ends}], off by {say_off(score.factor)}"
    )


def say_forecast(forecast: Forecast, unit: str) -> str:
    """Return the median and the interval."""
    middle = show(forecast.median, unit)
    return f"{middle} [{show_range(forecast.low, forecast.high, unit, beside=middle)}]"


def say_scarce(forecast: Forecast) -> str:
    """Return what saturates first, and how sure that is."""
    if forecast.likely is None:
        return (
            "What saturates first is not known. Limits of parts without a counter may show it: give them with --system."
        )
    parts, probability = forecast.likely
    names = " or ".join(PART_NAMES[part] for part in parts)
    which = (
        ". Which of them is not known: no counter, no stated limit and no change of their number tells them apart"
        if len(parts) > 1
        else ""
    )
    return f"What saturates first: {names} ({percent(round(min(probability, 0.99), 2))} sure){which}."


def say_figure(each: FigureForecast) -> list[str]:
    """Return the lines on one figure that is not UNKNOWN, the first its name."""
    assert each.forecast is not None
    unit = each.figure.unit
    scale, value = each.measured
    lines = [
        each.figure.name,
        f"  {say_forecast(each.forecast, unit)} with {each.scale.text}",
        *_say_measurement(each.forecast, unit),
        f"  measured: {show(value, unit)} with {scale.text}",
        *(f"  {_say_left_out(level, each.figure)}" for level in each.figure.left_out),
    ]
    lines += [f"  {note}" for note in each.notes]
    if each.figure.local:
        lines.append("  No other node can reach this file system: ranks of this one stand for clients.")
    if not each.figure.is_time:
        lines.append(f"  {say_scarce(each.forecast)}")
    return lines + [f"  With {addition.what}: {_say_gain(addition.gain)}" for addition in each.help]


def _say_measurement(forecast: Forecast, unit: str) -> list[str]:
    """Return the wider interval, by which a run is scored."""
    if forecast.measurement is None:
        return []
    return [f"  to be measured there: {show_range(*forecast.measurement, unit)} in 8 of 10 cases"]


def _say_left_out(level: MeasuredLevel, figure: FigureLevels) -> str:
    what = f"{show(math.exp(level.log_value), figure.unit)} with {level.scale.text}"
    requests, usual = level.requests, figure.outermost.requests
    if not level.from_cache and requests is not None and usual is not None and f"{requests:.2g}" != f"{usual:.2g}":
        return f"left out: {what}: there servers got {requests:.2g} requests for each operation, here {usual:.2g}."
    return f"left out: {what}: clients answered there from their memory, or here; servers answer more slowly."


def _say_gain(gain: Forecast) -> str:
    low, middle, high = (100 * (value - 1) for value in (gain.low, gain.median, gain.high))
    if max(abs(low), abs(high)) < 2:
        return "no change."
    return f"{middle:+.0f} % [{low:+.0f} to {high:+.0f} %]."
