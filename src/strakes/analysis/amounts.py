"""How much each phase moved, and what its figures can therefore show. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strakes.findings.portrait import RunWarning
from strakes.findings.results import Measured, Results
from strakes.findings.sample import Sample
from strakes.statistics.interval import median
from strakes.studies.compose import from_memory
from strakes.units import counted, format_bytes, format_seconds, typed_bytes

# A phase of less is a burst, over before write-back, a server or a device has settled: whoever streams for hours meets
# other limits.
_BURST_S = 0.5
# Data of this many times the memory cannot be answered from memory (S3).
_TIMES_MEMORY = 2


def amounts_of(results: Results) -> str:
    """Return how long phases were, and how much data each rank moved and how many files it made in them."""
    samples = [sample for cell in results.measured if not cell.is_side for sample in _samples(cell)]
    if not samples:
        return "nothing was measured"
    seconds = sorted(sample.elapsed_s for sample in samples)
    short, long = format_seconds(seconds[len(seconds) // 20]), format_seconds(seconds[-1 - len(seconds) // 20])
    parts = [f"9 of 10 phases took {short} to {long}"]
    data = sorted(sample.bytes / len(sample.ranks) for sample in samples if _moves_data(sample))
    files = sorted(sample.operations / len(sample.ranks) for sample in samples if sample.kind == "metadata")
    if data:
        parts.append(f"each rank moved {_span(format_bytes(data[0]), format_bytes(data[-1]))}")
    if files:
        numbers = _span(f"{files[0]:,.0f}", f"{files[-1]:,.0f}")
        several = files[-1] != 1
        parts.append(f"{'and ' if data else 'each rank '}worked on {numbers} {'files' if several else 'file'}")
    return ", ".join(parts) + _of_bursts(results)


def _of_bursts(results: Results) -> str:
    """Return how many figures come from phases too short to show a sustained rate, as text; empty if none does."""
    short = len(bursts(results))
    if not short:
        return ""
    return (
        f"; {short} of {_figures(results)} figures {'comes' if short == 1 else 'come'} from phases shorter than "
        f"{format_seconds(_BURST_S)}, which show bursts, not sustained rates"
    )


def bursts(results: Results) -> dict[str, float]:
    """Return the figures of phases too short to show what lasts, with how long each phase usually took, in seconds.

    Names that this node remembers are no work of the file system, however long it goes on.
    """
    lengths = {
        cell.id: median([sample.elapsed_s for sample in samples])
        for cell in results.measured
        if not cell.is_side and not from_memory(cell, results.facts) and (samples := _samples(cell))
    }
    return {name: seconds for name, seconds in lengths.items() if seconds < _BURST_S}


def amount_warnings(results: Results) -> list[RunWarning]:
    """Return warnings of phases that are too short, of data that memory can hold, and of names that it held."""
    facts = results.facts
    return [*_cached_names(results), *_short(results), *_fits_memory(results, facts)]


def _samples(cell: Measured) -> list[Sample]:
    return [seen.sample for seen in cell.observations if seen.purpose == "measure" and seen.sample.ranks]


def _figures(results: Results) -> int:
    return sum(not cell.is_side and bool(_samples(cell)) for cell in results.measured)


def _moves_data(sample: Sample) -> bool:
    return bool(sample.bytes) and sample.kind != "metadata"


def _cached_names(results: Results) -> list[RunWarning]:
    cells = [cell for cell in results.measured if not cell.is_side and from_memory(cell, results.facts)]
    if not cells:
        return []
    quick = max(cells, key=lambda cell: cell.estimate.median if cell.estimate and cell.unit == "op/s" else 0.0)
    at_rate = f" at {quick.estimate.median:,.0f}/s" if quick.estimate and quick.unit == "op/s" else ""
    text = (
        f"{quick.settings.get('operation', quick.id)}{at_rate} was answered from the names and attributes that this "
        "node's kernel has kept in memory since it created the files, not by the file system."
    )
    remedy = (
        "Read it as the rate for a process that uses its own new files again. It says nothing about servers or "
        "devices; for those, see the rates of creating and removing files."
    )
    return [RunWarning("names-from-memory", text, remedy, tuple(cell.id for cell in cells))]


def _short(results: Results) -> list[RunWarning]:
    short = bursts(results)
    if not short:
        return []
    text = (
        f"For {len(short)} of {counted(_figures(results), 'figure')} the phases took less than "
        f"{format_seconds(_BURST_S)} (the shortest: {format_seconds(min(short.values()))}). Phases so short show how "
        "work begins, not a sustained rate."
    )
    remedy = (
        "Give --phase 1s with a larger --budget, or measure one study alone: strakes study NAME DIR --phase 1s. "
        "More files: --files 100000."
    )
    if all(cell.study == "plan" for cell in results.measured):
        remedy = "Give the phases of the plan more to do: more items or larger blocks, or a time as their stop rule."
    return [RunWarning("short-phases", text, remedy, tuple(short))]


def _fits_memory(results: Results, facts: Mapping[str, Any]) -> list[RunWarning]:
    """Warn where the data that was moved fits into the memory of a server like this node.

    Writes end with fsync, which a battery-backed cache may answer; reads follow recent writes.
    """
    memory = int(facts.get("memory_bytes", 0))
    moving = [
        cell for cell in results.measured if cell.settings.get("operation") in ("write", "read") and not cell.is_side
    ]
    moved = {
        cell.id: (sample.bytes, len(sample.ranks))
        for cell in moving
        for sample in _samples(cell)
        if _moves_data(sample)
    }
    if not facts.get("remote") or not memory or not moved:
        return []
    most, ranks = max(moved.values())
    if most >= _TIMES_MEMORY * memory:
        return []
    text = (
        f"No phase moved more than {format_bytes(most)} of data. Server caches can hold that much: they may have "
        "absorbed the writes, fsync included, and answered reads of data that had just been written."
    )
    remedy = (
        f"strakes study data-per-process DIR --data-per-rank {typed_bytes(_TIMES_MEMORY * memory // ranks)} moves "
        "twice the memory of this node. Give more where servers have more memory, and give the budget "
        "that it then asks for."
    )
    return [RunWarning("fits-servers-memory", text, remedy, tuple(moved))]


def _span(low: str, high: str) -> str:
    """Return both ends, once where they are alike.

    >>> _span("8 MiB", "8 MiB"), _span("1", "2")
    ('8 MiB', '1 to 2')
    """
    return low if low == high else f"{low} to {high}"
