"""Common functions of studies: figures, questions, titles, and detection of cached results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from strakes.base.language import gettext
from strakes.base.units import format_value
from strakes.model.answers import Mean, Option, Question
from strakes.model.cell import Measure
from strakes.model.portrait import CellEstimate, IntervalOf, Point, Series, Setting
from strakes.model.results import Measured
from strakes.model.setting_text import level_text
from strakes.stats.interval import Interval, median
from strakes.targets.mountinfo import own_cache


def bandwidths(*phases: str) -> tuple[Measure, ...]:
    """Return the definition of a measured quantity for each phase: the rate in bytes per second."""
    return tuple(Measure(name, "bytes_per_s", {"operation": name}) for name in phases)


def rates(*phases: str) -> tuple[Measure, ...]:
    """Return the definition of a measured quantity for each phase: the rate in operations per second."""
    return tuple(Measure(name, "operations_per_s", {"operation": name}) for name in phases)


WRITE_AND_READ = bandwidths("write", "read")


def lines(factor: str, named: Iterable[tuple[str, Iterable[Measured]]]) -> list[Series]:
    """Return the lines of a figure: name -> points. The x axis is the numeric setting ``factor``."""
    drawn = [
        Series(name, tuple(Point(float(cell.settings[factor]), cell.id) for cell in cells)) for name, cells in named
    ]
    return [line for line in drawn if line.points]


def operation_of(cell: Measured) -> str:
    """Return the name of the measured operation, for use as a label in figures."""
    return gettext(str(cell.settings["operation"]))


def bars(name: str, cells: Iterable[Measured], label: Callable[[Measured], str] = operation_of) -> Series:
    """Return a series of bars, one for each measurement."""
    return Series(name, tuple(Point(label(cell), cell.id) for cell in cells))


def log_values(cell: Measured) -> dict[int, float]:
    """Return round -> log(value), or -log(value) for times, so that larger is better. Values of 0 are omitted."""
    return {block: cell.direction * math.log(value) for block, value in cell.by_block().items() if value > 0}


def mean_log_values(cells: Sequence[Measured], mean: Mean) -> dict[int, float]:
    """Return round -> logarithm of the mean of several measurements. Incomplete rounds are omitted."""
    values = [log_values(cell) for cell in cells]
    common = sorted(set.intersection(*map(set, values)))
    if mean == "arithmetic":
        return {block: math.log(fmean(math.exp(each[block]) for each in values)) for block in common}
    middle = median if mean == "median" else fmean
    return {block: middle([each[block] for each in values]) for block in common}


def ask(
    study: str,
    name: str,
    title: str,
    options: Sequence[tuple[str, Sequence[Measured]]],
    *,
    ordered: bool = False,
    alike: str = "",
    advises: bool = True,
    mean: Mean | None = None,
    remark: str = "",
) -> list[Question]:
    """Return the question "which option is best?", or no question for fewer than two options.

    ``mean``: how to average the measurements of an option. Without ``mean``, only its first measurement counts.
    """
    measured = tuple(
        Option(label, tuple(cell.id for cell in (cells if mean else cells[:1])), mean or "geometric")
        for label, cells in options
        if cells
    )
    if len(measured) < 2:
        return []
    return [Question(f"{study}-{name}", study, title, measured, ordered, alike, advises, remark)]


def ask_level(
    study: str, name: str, title: str, measured: Sequence[Measured], factor: str, *, advises: bool = True
) -> list[Question]:
    """Return the question "which value of ``factor`` is enough?", or no question for fewer than two values."""
    cells = sorted(measured, key=lambda cell: float(cell.settings[factor]))
    options = [(_value_text(factor, cell.settings[factor]), [cell]) for cell in cells]
    return ask(study, name, title, options, ordered=True, advises=advises)


def interval_of(interval: Interval, of: str, unit: str) -> IntervalOf:
    """Convert an interval to the interval type of reports. ``of``: the quantity as text."""
    return IntervalOf(interval.low, interval.high, interval.confidence, of, unit)


def interval_in(estimate: CellEstimate) -> Interval | None:
    """Return the confidence interval of an estimate, or None if the estimate has no interval."""
    if estimate.low is None or estimate.high is None:
        return None
    return Interval(estimate.low, estimate.high, estimate.confidence)


# Minimum seconds for a request to a metadata server. A faster operation was served by the client's cache.
_ROUND_TRIP_S = 10e-6
# A read counts as cached if the servers sent less than this share of the data.
_SERVED_SHARE = 0.5
_ON_NAMES = ("file-stat", "dir-stat", "file-open-close", "file-getxattr", "read 4 KiB", "open and close")
_ON_DIRECTORIES = ("list", "list-stat", "find")


def from_memory(cell: Measured, facts: Mapping[str, Any]) -> bool:
    """Return whether this node served the metadata operations from its dentry or inode cache.

    On a local file system, the result is True, because strakes does not drop these caches. On a remote one, it is True
    if an operation takes less than 10 us, except for listings, because one reply of a server has many entries.
    """
    operation = cell.settings.get("operation")
    objects = any(seen.sample.effective.get("backend") == "s3" for seen in cell.observations)
    if objects or operation not in (*_ON_NAMES, *_ON_DIRECTORIES) or cell.estimate is None:
        return False
    if not facts.get("remote") and not str(facts.get("file_system", "")).startswith("fuse"):
        return "file_system" in facts
    if operation in _ON_DIRECTORIES:
        return False
    ranks = max((len(seen.sample.ranks) for seen in cell.observations), default=0)
    each_s = cell.estimate.median if cell.unit == "s" else ranks / max(cell.estimate.median, 1e-9)
    return 0 < each_s < _ROUND_TRIP_S


def from_own_cache(cell: Measured, facts: Mapping[str, Any]) -> bool:
    """Return whether a cache of this node's client served most of the data of a read.

    With server counters: return whether the servers sent less than half of the data in the median trial. Otherwise:
    return whether there is a cache that cannot be dropped, and the read does not bypass it.
    """
    if cell.settings.get("operation") != "read" or cell.elsewhere:
        return False
    shares = [
        sum(sent) / min(seen.sample.bytes, seen.sample.cache.file_bytes or seen.sample.bytes)
        for seen in cell.observations
        if seen.sample.bytes
        and (sent := [counts["data.read_bytes"] for counts in seen.servers.values() if "data.read_bytes" in counts])
    ]
    if shares:
        return median(shares) < _SERVED_SHARE
    return bool(own_cache(str(facts.get("file_system", "")), cell.settings.get("io")))


def title_of(cell: Measured) -> str:
    """Return the title of a measurement: its operation and its settings."""
    levels = {name: value for name, value in cell.settings.items() if name not in ("side", "axis")}
    ordered = sorted(levels, key=lambda name: name != "operation")
    return ", ".join(level_text(name, levels[name]) for name in ordered)


def _value_text(factor: str, value: Setting) -> str:
    return format_value(float(value), "B") if factor.endswith("_bytes") else str(value)
