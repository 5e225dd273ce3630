"""Format values and facts as text for all forms of the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from strakes.base.language import gettext
from strakes.base.units import KIB, format_value
from strakes.model.portrait import CellEstimate, IntervalOf
from strakes.model.setting_text import label_of, level_of
from strakes.stats.interval import far_apart, most_of

# From this number of runs on, ranges omit the lowest and the highest 10 % of the runs.
_FEWEST_FOR_SHARE = 5
_WORDS = ("times", "million files/h")  # Units to translate, because they are words.


def show(value: float, unit: str) -> str:
    """Return a measured value as text. Small values are not rounded to "0.00", unlike in ``format_value``.

    >>> show(1048576 * 1234.0, "B/s"), show(2000.0, "B/s"), show(0.0021, "op/s"), show(0.0, "s"), show(0.125, "share")
    ('1,234 MiB/s', '1.95 KiB/s', '0.0021 op/s', '0 s', '12.5 %')
    """
    if not math.isfinite(value):
        return gettext("not a number") if math.isnan(value) else gettext("no bound")
    unit = gettext(unit) if unit in _WORDS else unit
    if value == 0:
        return f"0 {unit}".rstrip()
    if unit == "B/s" and abs(value) < 100 * KIB:
        return f"{value:.3g} B/s" if abs(value) < KIB else f"{value / KIB:.3g} KiB/s"
    if unit == "share":
        return f"{100 * value:.3g} %"
    if unit not in ("B/s", "s", "B") and abs(value) < 0.1:
        return f"{value:.2g} {unit}".rstrip()
    return format_value(value, unit)


def show_range(low: float, high: float, unit: str, beside: str = "", dash: str = "–") -> str:
    """Return a range as text. Omit the unit if the adjacent text ``beside`` has the same unit.

    >>> show_range(0.0012, 0.0013, "s"), show_range(0.0009, 0.0013, "s")
    ('1.20–1.30 ms', '900 us – 1.30 ms')
    >>> show_range(90.0, 110.0, "op/s", beside="100 op/s"), show_range(0.12, 0.14, "million files/h")
    ('90.0–110', '0.12–0.14 million files/h')
    """
    left, right = show(low, unit), show(high, unit)
    left_number, _, left_unit = left.partition(" ")
    right_number, _, right_unit = right.partition(" ")
    if left_unit != right_unit or not math.isfinite(low):
        return f"{left} {dash.strip()} {right}"
    shown_unit = "" if beside.partition(" ")[2] == left_unit else left_unit
    return f"{left_number}{dash}{right_number} {shown_unit}".rstrip()


def show_interval(cell: CellEstimate, dash: str = "–") -> str:
    """Return the confidence interval of a median as text, or the reason for its absence."""
    if cell.low is None or cell.high is None:
        return gettext("imported, no interval") if cell.imported else gettext("too few runs")
    return show_range(cell.low, cell.high, cell.unit, beside=show(cell.median, cell.unit), dash=dash)


def show_remarks(cell: CellEstimate, dash: str = "–") -> str:
    """Return as text the range of the runs if they vary widely, and the rate of the first files if it differs."""
    remarks = []
    low, high = most_of(cell.values)
    if far_apart(cell.values) and (cell.low is None or cell.high is None or low < cell.low or high > cell.high):
        most = show_range(low, high, cell.unit, show(cell.median, cell.unit), dash)
        few = len(cell.values) < _FEWEST_FOR_SHARE
        remarks.append(gettext("all runs {range}" if few else "80 % of runs {range}", range=most))
    if cell.fresh is not None:
        remarks.append(gettext("the first files {rate}", rate=show(cell.fresh, cell.unit)))
    return listed(*remarks)


def listed(*texts: str) -> str:
    """Return all texts except empty ones, joined by commas."""
    return gettext(", ").join(filter(None, texts))


def show_bounds(interval: IntervalOf, dash: str = "–") -> str:
    """Return the bounds of an interval as text with the unit.

    >>> show_bounds(IntervalOf(0.956, 1.034, 0.9, "ratio of 1 MiB to 4 KiB", "times"), " - ")
    '0.96 - 1.03 times'
    """
    return show_range(interval.low, interval.high, interval.unit, dash=dash)


def show_interval_of(interval: IntervalOf) -> str:
    """Return an interval as text: bounds, confidence level and estimated quantity.

    >>> show_interval_of(IntervalOf(1.314, 12.0, 0.9, "ratio of 1 MiB to 4 KiB", "times"))
    '1.31–12.0 times (90 %): ratio of 1 MiB to 4 KiB'
    """
    return f"{show_bounds(interval)} ({percent(interval.confidence)}): {interval.of}"


def percent(share: float) -> str:
    """Return a share as text in percent."""
    return f"{100 * share:.4g} %"


def when(created: object) -> str:
    """Return a stored time (ISO text or Unix seconds) as text, precise to the minute.

    >>> when("2026-11-21T06:25:31+00:00"), when(0), when(10**17)
    ('2026-11-21 06:25 UTC', '1970-01-01 00:00 UTC', '100000000000000000')
    """
    try:
        if isinstance(created, (int, float)) and not isinstance(created, bool):
            moment = datetime.fromtimestamp(created, UTC)
        else:
            moment = datetime.fromisoformat(str(created))
    except (OSError, OverflowError, ValueError):
        return str(created)
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".rstrip()


def flat_facts(facts: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested facts as rows of name and value, without empty values.

    >>> list(flat_facts({"cpu": {"model": "x", "count": 2}, "memory_bytes": 1024, "notes": []}))
    [('cpu, model', 'x'), ('cpu, count', '2'), ('memory', '1 KiB')]
    """
    for key, value in facts.items():
        if value is None or value in ("", [], {}):
            continue
        name = f"{prefix}{label_of(key)}"
        if isinstance(value, Mapping):
            yield from flat_facts(value, f"{name}, ")
        elif key.endswith("_unix_s"):
            yield name, when(value)
        else:
            values = value if isinstance(value, (list, tuple)) else [value]
            yield name, ", ".join(level_of(key, one) if isinstance(one, (int, float)) else str(one) for one in values)
