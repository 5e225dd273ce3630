"""Pieces that several studies compose: series, questions, and where reads came from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from strakes.findings.answers import Mean, Option, Question
from strakes.findings.cell import Measure
from strakes.findings.portrait import IntervalOf, Point, Series, Setting
from strakes.findings.results import Measured
from strakes.plan import Stop, TransferPhase, WholePhase
from strakes.plan.phases import Access, Sharing
from strakes.statistics.interval import Interval, median
from strakes.studies.study import Context
from strakes.targets.caches import own_cache
from strakes.units import MIB, format_value

# A cache with no more than this of a file was dropped.
_HARDLY = 0.05
# What is measured of the two phases of ``write_and_read``.
WRITE_AND_READ = tuple(Measure(operation, "bytes_per_s", {"operation": operation}) for operation in ("write", "read"))


def write_and_read(
    context: Context,
    transfer: int,
    amount: int,
    files: Sharing = "file-per-process",
    access: Access = "segmented",
    segments: int = 1,
    *,
    direct: bool = False,
    rank_shift: int = 0,
    stop: Stop | None = None,
) -> tuple[WholePhase, ...]:
    """Return a phase that writes ``amount`` bytes a rank to fsync, and one that reads as much from the servers."""
    stop = stop or context.stonewall()
    write = TransferPhase(
        "write", "write", files, access, transfer, amount, segments, direct=direct, sync="fsync", stop=stop
    )
    read = replace(write, name="read", operation="read", sync="close", cache="drop", rank_shift=rank_shift)
    return (write, *uncached(context, read))


def uncached(context: Context, read: TransferPhase) -> tuple[TransferPhase, ...]:
    """Return a read that the client's memory cannot answer, with the phase that it needs before it.

    The page cache is dropped. A cache that the client cannot drop never held data written with O_DIRECT.
    """
    if read.direct or read.rank_shift or not bypasses_cache(context):
        return (read,)
    each = read.block_bytes * read.segments
    make = TransferPhase(
        "make", "write", read.layout, "segmented", min(each, MIB), each, files="made", direct=True, sync="fsync"
    )
    return make, replace(read, files="made")


def bypasses_cache(context: Context) -> bool:
    """Tell whether studies read data that was written with O_DIRECT, because the client's cache cannot be dropped."""
    return context.full and bool(context.direct_io) and bool(own_cache(context.file_system))


def first(cells: Sequence[Measured]) -> Measured | None:
    """Return the first one; None where there is none."""
    return cells[0] if cells else None


def series(name: str, measured: Sequence[Measured], factor: str) -> list[Series]:
    """Draw a line over one factor; nothing when nothing was measured."""
    points = tuple(Point(_axis(cell.settings[factor]), cell.id) for cell in measured if cell.estimate is not None)
    return [Series(name, points)] if points else []


def _axis(value: Setting) -> float | str:
    return value if isinstance(value, str) else float(value)


def log_values(cell: Measured) -> dict[int, float]:
    """Return the logarithm of how good each block was, larger is better; values that are not positive are left out."""
    sign = -1.0 if cell.lower_is_better else 1.0
    return {block: sign * math.log(value) for block, value in cell.by_block().items() if value > 0}


def mean_log_values(cells: Sequence[Measured], mean: Mean) -> dict[int, float]:
    """Return the logarithm of the mean of all cells by block; blocks that lack one of them are left out."""
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
) -> list[Question]:
    """Return the question which of the options is best; empty where fewer than two of them were measured.

    Of an option with several cells their ``mean`` counts, or without one the first cell.
    """
    measured = tuple(
        Option(label, tuple(cell.id for cell in (cells if mean else cells[:1])), mean or "geometric")
        for label, cells in options
        if cells
    )
    if len(measured) < 2:
        return []
    return [Question(f"{study}-{name}", study, title, measured, ordered, alike, advises)]


def ask_level(
    study: str, name: str, title: str, measured: Sequence[Measured], factor: str, *, advises: bool = True
) -> list[Question]:
    """Return the question which level of a factor is enough; empty with fewer than two levels."""
    cells = sorted(measured, key=lambda cell: float(cell.settings[factor]))
    options = [(_value_text(factor, cell.settings[factor]), [cell]) for cell in cells]
    return ask(study, name, title, options, ordered=True, advises=advises)


def interval_of(interval: Interval, of: str, unit: str = "times", per: float = 1.0) -> IntervalOf:
    """Return an interval, divided by ``per``, with what it is of."""
    return IntervalOf(interval.low / per, interval.high / per, interval.confidence, of, unit)


def read_from(cell: Measured, facts: Mapping[str, Any]) -> str:
    """Say where reads of data that had just been written came from, as far as the client can tell."""
    if cell.elsewhere:
        return "written by another node"
    if own_cache(str(facts.get("file_system", ""))) and cell.settings.get("io") != "direct":
        return "whatever cache answered"
    caches = [seen.sample.cache for seen in cell.observations]
    read = sum(cache.file_bytes or 0 for cache in caches)
    if not read or not all(cache.method == "cachestat" for cache in caches):
        return "whatever cache answered"
    resident = sum(cache.resident_before_bytes for cache in caches)
    return "after cache drop" if resident <= _HARDLY * read else "partly from this node's cache"


# A request to a server and back takes longer than this on any network.
_ROUND_TRIP_S = 10e-6
_FROM_SERVERS = 0.5
# Operations on names that the phases before them made.
_ON_NAMES = ("file-stat", "dir-stat", "file-open-close", "file-getxattr", "read 4 KiB", "open and close")
# Of those that go over directories one request brings many entries, so that behind a network an entry may take no time.
_ON_DIRECTORIES = ("list", "list-stat", "find")


def from_memory(cell: Measured, facts: Mapping[str, Any]) -> bool:
    """Tell whether this node's kernel answered from what it remembers of files that it has just made.

    On a local file system it always does, since nothing drops names between two phases; behind a network it does where
    an operation took less than any request to a server.
    """
    operation = cell.settings.get("operation")
    if operation not in (*_ON_NAMES, *_ON_DIRECTORIES) or cell.estimate is None:
        return False
    if not facts.get("remote"):
        return "file_system" in facts
    if operation in _ON_DIRECTORIES:
        return False
    ranks = max((len(seen.sample.ranks) for seen in cell.observations), default=0)
    each_s = cell.estimate.median if cell.unit == "s" else ranks / max(cell.estimate.median, 1e-9)
    return 0 < each_s < _ROUND_TRIP_S


def from_own_cache(cell: Measured, facts: Mapping[str, Any]) -> bool:
    """Tell whether what was read says nothing of the file system: a cache of this node's client had most of it.

    Where servers count, they sent less than half of what the files have; they are looked at before and after a visit,
    and count all that was read in it. Where none does, the client may have kept what it had just written.
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
        return median(shares) < _FROM_SERVERS
    return cell.settings.get("io") != "direct" and bool(own_cache(str(facts.get("file_system", ""))))


def level_text(factor: str, value: Setting) -> str:
    """One level for people.

    >>> level_text("transfer_bytes", 65536), level_text("ranks", 2), level_text("io", "direct")
    ('64 KiB transfers', '2 ranks', 'direct')
    """
    if factor.endswith("_bytes") and not isinstance(value, str):
        return f"{format_value(float(value), 'B')} {_NOUNS.get(factor, factor.removesuffix('_bytes'))}"
    if factor == "stripe_count":
        return f"stripe count {value}"
    if factor in _COUNTED:
        return f"{value} {_COUNTED[factor]}" if value == 1 else f"{value} {_COUNTED[factor]}s"
    return str(value)


_COUNTED = {
    "ranks": "rank",
    "files": "file",
    "nodes": "node",
    "requests": "request",
    "clients": "client",
    "writers": "writer",
    "metadata_targets": "metadata target",
}
_NOUNS = {"transfer_bytes": "transfers", "data_bytes": "per rank", "file_bytes": "files", "stripe_bytes": "stripes"}


def _value_text(factor: str, value: Setting) -> str:
    return format_value(float(value), "B") if factor.endswith("_bytes") else str(value)
