"""How much was measured at a time, and what figures of so much can be figures of: phases, data and files of each rank.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strakes.findings.portrait import RunWarning
from strakes.findings.results import Measured, Results
from strakes.findings.sample import Sample
from strakes.statistics.interval import median
from strakes.studies.compose import from_memory
from strakes.units import format_bytes, format_seconds, typed_bytes

# A phase of less is over before write-back, a server or a device has settled.
_SHORT_S = 0.1
# Whoever wants to be sure that no memory answers moves this many times the memory (S3).
_TIMES_MEMORY = 2


def amounts_of(results: Results) -> str:
    """Return how long phases were, and how much data each rank moved and how many files it made in them."""
    samples = [sample for cell in results.measured if not cell.is_side for sample in _samples(cell)]
    if not samples:
        return "nothing was measured"
    seconds = sorted(sample.elapsed_s for sample in samples)
    short, long = format_seconds(seconds[len(seconds) // 20]), format_seconds(seconds[-1 - len(seconds) // 20])
    parts = [f"phases took {short} to {long} (9 of 10)"]
    data = sorted(sample.bytes / len(sample.ranks) for sample in samples if _moves_data(sample))
    files = sorted(sample.operations / len(sample.ranks) for sample in samples if sample.kind == "metadata")
    if data:
        parts.append(f"each rank moved {_span(format_bytes(data[0]), format_bytes(data[-1]))}")
    if files:
        parts.append(
            f"{'and ' if data else 'each rank '}worked on {_span(f'{files[0]:,.0f}', f'{files[-1]:,.0f}')} files"
        )
    return ", ".join(parts)


def amount_warnings(results: Results) -> list[RunWarning]:
    """Return warnings of phases that are too short, of data that memory can hold, and of names that it held."""
    facts = results.facts
    return [*_cached_names(results), *_short(results), *_fits_memory(results, facts)]


def _samples(cell: Measured) -> list[Sample]:
    return [seen.sample for seen in cell.observations if seen.purpose == "measure" and seen.sample.ranks]


def _moves_data(sample: Sample) -> bool:
    return bool(sample.bytes) and sample.kind != "metadata"


def _cached_names(results: Results) -> list[RunWarning]:
    cells = [cell for cell in results.measured if not cell.is_side and from_memory(cell, results.facts)]
    if not cells:
        return []
    quick = max(cells, key=lambda cell: cell.estimate.median if cell.estimate and cell.unit == "op/s" else 0.0)
    at_rate = f" at {quick.estimate.median:,.0f}/s" if quick.estimate and quick.unit == "op/s" else ""
    text = (
        f"{quick.settings.get('operation', quick.id)}{at_rate} was answered by the names and attributes that this "
        "node's kernel keeps in its memory since it made the files, not by the file system."
    )
    remedy = (
        "Read it as what a process finds that uses its own new files again. It says nothing of servers or devices; "
        "rates of creating and removing do."
    )
    return [RunWarning("names-from-memory", text, remedy, tuple(cell.id for cell in cells))]


def _short(results: Results) -> list[RunWarning]:
    measured = [cell for cell in results.measured if not cell.is_side and not from_memory(cell, results.facts)]
    lengths = {
        cell.id: median([sample.elapsed_s for sample in samples]) for cell in measured if (samples := _samples(cell))
    }
    short = tuple(name for name, seconds in lengths.items() if seconds < _SHORT_S)
    if not short:
        return []
    text = (
        f"Phases of {len(short)} of {len(lengths)} figures took less than {format_seconds(_SHORT_S)} "
        f"({format_seconds(min(lengths[name] for name in short))} at least): so short they show how work begins, "
        "not what lasts."
    )
    remedy = (
        "Give --phase 1s with a larger --budget, or measure one study by itself: strakes study NAME DIR --phase 1s. "
        "More files: --files 100000."
    )
    return [RunWarning("short-phases", text, remedy, short)]


def _fits_memory(results: Results, facts: Mapping[str, Any]) -> list[RunWarning]:
    """Warn where data that was written and read again fits into the memory of a server like this node."""
    memory = int(facts.get("memory_bytes", 0))
    reads = [cell for cell in results.measured if cell.settings.get("operation") == "read" and not cell.is_side]
    moved = {
        cell.id: (sample.bytes, len(sample.ranks)) for cell in reads for sample in _samples(cell) if _moves_data(sample)
    }
    if not facts.get("remote") or not memory or not moved:
        return []
    most, ranks = max(moved.values())
    if most >= _TIMES_MEMORY * memory:
        return []
    text = (
        f"Reads moved at most {format_bytes(most)} at a time, just after it was written: the memory of servers can "
        "hold that, and may have answered."
    )
    remedy = (
        f"strakes study data-per-process DIR --data-per-rank {typed_bytes(_TIMES_MEMORY * memory // ranks)} measures "
        "twice the memory of this node; give more where servers have more, and the budget that it then asks for."
    )
    return [RunWarning("fits-servers-memory", text, remedy, tuple(moved))]


def _span(low: str, high: str) -> str:
    """Return both ends, once where they are alike.

    >>> _span("8 MiB", "8 MiB"), _span("1", "2")
    ('8 MiB', '1 to 2')
    """
    return low if low == high else f"{low} to {high}"
