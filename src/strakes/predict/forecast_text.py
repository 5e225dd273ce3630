"""Forecasts for a terminal: what to expect, what is scarce first, what would help, and what is not known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from strakes.predict.figure_levels import FigureLevels
from strakes.predict.forecasts import FigureForecast
from strakes.predict.model import Forecast
from strakes.predict.scale import PART_NAMES, MeasuredLevel, Scale
from strakes.report.numbers import show, show_range
from strakes.units import counted

_MOST_NAMED = 6
_NAMES = {
    "clients": ("client", "clients"),
    "ranks": ("rank", "ranks"),
    "mdts": ("metadata target", "metadata targets"),
    "osts": ("data target", "data targets"),
    "files": ("file", "files"),
}


def render(forecasts: Sequence[FigureForecast], record: tuple[int, float, float] | None) -> str:
    """Return the text; ``record``: figures of sealed forecasts scored, their median factor of error, share inside."""
    known = [each for each in forecasts if each.forecast is not None]
    lines = []
    for each in known:
        lines += [*_lines(each), ""]
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
        lines.append("These runs have no figure: nothing can be forecast.")
    lines.append(say_record(record))
    return "\n".join(lines)


def say_record(record: tuple[int, float, float] | None) -> str:
    """Return how good sealed forecasts were so far, as a sentence."""
    if record is None:
        return "No sealed forecast has been scored yet. Seal this one with --seal; score it with strakes predict score."
    count, factor, inside = record
    return (
        f"Sealed forecasts so far: {counted(count, 'figure')} scored, in the median wrong by a factor of {factor:.2f}, "
        f"{inside:.0%} inside their 80 % intervals."
    )


def say_scale(scale: Scale) -> str:
    """Return a scale in words.

    >>> say_scale(Scale(clients=2000, ranks=16000, mdts=1))
    '2,000 clients, 16,000 ranks, 1 metadata target, 1 data target'
    """
    parts = [
        f"{count:,} {_NAMES[name][count != 1]}"
        for name in ("clients", "ranks", "mdts", "osts", "files")
        if (count := int(getattr(scale, name)))
    ]
    return ", ".join(parts) + (f", links {scale.link:.3g} times as fast" if scale.link != 1 else "")


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
    return f"What saturates first: {names} ({min(probability, 0.99):.0%} sure){which}."


def _lines(each: FigureForecast) -> list[str]:
    assert each.forecast is not None
    unit = each.figure.unit
    scale, value = each.measured
    lines = [
        each.figure.name,
        f"  {say_forecast(each.forecast, unit)} with {say_scale(each.scale)}",
        f"  measured: {show(value, unit)} with {say_scale(scale)}",
        *(f"  {_say_left_out(level, each.figure)}" for level in each.figure.left_out),
    ]
    if each.figure.local:
        lines.append("  No other node can reach this file system: ranks of this one stand for clients.")
    if not each.figure.is_time:
        lines.append(f"  {say_scarce(each.forecast)}")
    return lines + [f"  With {addition.what}: {_say_gain(addition.gain)}" for addition in each.help]


def _say_left_out(level: MeasuredLevel, figure: FigureLevels) -> str:
    what = f"{show(math.exp(level.log_value), figure.unit)} with {say_scale(level.scale)}"
    requests, usual = level.requests, figure.outermost.requests
    if level.from_cache or requests is None or usual is None:
        return f"left out: {what}: there, or with most ranks, an operation took less time than any request to a server."
    return f"left out: {what}: there servers got {requests:.2g} requests for each operation, here {usual:.2g}."


def _say_gain(gain: Forecast) -> str:
    low, middle, high = (100 * (value - 1) for value in (gain.low, gain.median, gain.high))
    if max(abs(low), abs(high)) < 2:
        return "no change."
    return f"{middle:+.0f} % [{low:+.0f} to {high:+.0f} %]."
