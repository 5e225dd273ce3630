"""Report how much work phases did and how long they took, and warn of too little work. All functions are pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from strakes.base.language import gettext
from strakes.base.units import format_bytes, format_seconds, typed_bytes
from strakes.model.portrait import RunWarning
from strakes.model.results import Measured, Results
from strakes.model.sample import Sample
from strakes.stats.interval import median
from strakes.studies.compose import from_memory
from strakes.survey.analysis_answers import bursts
from strakes.survey.analysis_warning_texts import warning

# Minimum seconds of a phase for a sustained rate. Shorter phases end before write-back reaches a steady state.
_BURST_S = 0.5
# A short phase also counts as sustained if its rate is at most this multiple of the rate with four times the work.
_SUSTAINED_TIMES = 1.25
# Minimum data as a multiple of a server's memory, so that a server's cache holds at most 50 % of the data.
_TIMES_MEMORY = 2
_LONGER_PLAN = "Give the phases of the plan more to do: more items or larger blocks, or a time as their stop rule."


def amounts_of(results: Results) -> str:
    """Return a text with the range of phase lengths, and of the data and files of a phase (total and per rank)."""
    samples = [sample for cell in results.measured if not cell.is_side for sample in _samples(cell)]
    if not samples:
        return gettext("nothing was measured")
    seconds = sorted(sample.elapsed_s for sample in samples)
    short, long = format_seconds(seconds[len(seconds) // 20]), format_seconds(seconds[-1 - len(seconds) // 20])
    parts = [gettext("90 % of the phases took {shortest} to {longest}", shortest=short, longest=long)]
    moving = [(sample.bytes, sample.bytes / len(sample.ranks)) for sample in samples if _moves_data(sample)]
    operating = [sample for sample in samples if sample.kind == "metadata"]
    worked = [(sample.operations, sample.operations / len(sample.ranks)) for sample in operating]
    if moving:
        amount, each = (_span(*map(format_bytes, (min(part), max(part)))) for part in zip(*moving, strict=True))
        parts.append(gettext("data phases moved {amount} ({each} per process)", amount=amount, each=each))
    if worked:
        numbers, each = (_span(f"{min(part):,.0f}", f"{max(part):,.0f}") for part in zip(*worked, strict=True))
        message = "metadata phases worked on {numbers} files ({each} per process)"
        parts.append(gettext(message, numbers=numbers, each=each))
    return gettext(", ").join(parts)


def too_short(results: Results) -> dict[str, float]:
    """Return measurement -> median seconds of its phases, for phases that are too short for a sustained rate.

    Left out: operations on names that this node's cache served, and operations that are as fast with more work.
    """
    longer = results.facts.get("longer", {}).items()
    sustained = {name for name, (times, long_s) in longer if times <= _SUSTAINED_TIMES and long_s >= _BURST_S}
    lengths = {
        cell.id: median([sample.elapsed_s for sample in samples])
        for cell in results.measured
        if not cell.is_side and not from_memory(cell, results.facts) and (samples := _samples(cell))
        if cell.settings.get("operation") not in sustained
    }
    return {name: seconds for name, seconds in lengths.items() if seconds < _BURST_S}


def amount_warnings(results: Results) -> list[RunWarning]:
    """Return warnings about short phases, data that fit into servers' memory, and names read from a cache."""
    facts = results.facts
    return [*_cached_names(results), *_bursts(results), *_short(results), *_fits_memory(results, facts)]


def _samples(cell: Measured) -> list[Sample]:
    return [seen.sample for seen in cell.observations if seen.purpose == "measure" and seen.sample.ranks]


def _moves_data(sample: Sample) -> bool:
    return bool(sample.bytes) and sample.kind != "metadata"


def _cached_names(results: Results) -> list[RunWarning]:
    cells = [cell for cell in results.measured if not cell.is_side and from_memory(cell, results.facts)]
    if not cells:
        return []
    quick = max(cells, key=lambda cell: cell.estimate.median if cell.estimate and cell.unit == "op/s" else 0.0)
    operation = quick.settings.get("operation", quick.id)
    return [warning("names-from-memory", [cell.id for cell in cells], operation=operation)]


def _bursts(results: Results) -> list[RunWarning]:
    found = bursts(results.facts)
    cells = [cell.id for cell in results.measured if cell.settings.get("operation") in found]
    parts = (
        gettext("{times} times slower ({operation})", times=f"{times:.2g}", operation=gettext(operation))
        for operation, times in found.items()
    )
    return [warning("burst", cells, slower=gettext(", ").join(parts))] if found else []


def _short(results: Results) -> list[RunWarning]:
    short = too_short(results)
    if not short:
        return []
    figures = sum(not cell.is_side and bool(_samples(cell)) for cell in results.measured)
    values = {"short": len(short), "figures": figures, "limit": format_seconds(_BURST_S)}
    found = warning("short-phases", list(short), **values, shortest=format_seconds(min(short.values())))
    if all(cell.study == "plan" for cell in results.measured):
        return [replace(found, remedy=gettext(_LONGER_PLAN))]
    return [found]


def _fits_memory(results: Results, facts: Mapping[str, Any]) -> list[RunWarning]:
    """Warn if phases moved less than twice a server's memory. Assume that servers have as much memory as this node."""
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
    each = typed_bytes(_TIMES_MEMORY * memory // ranks)
    return [warning("fits-servers-memory", list(moved), most=format_bytes(most), each=each)]


def _span(low: str, high: str) -> str:
    return low if low == high else gettext("{low} to {high}", low=low, high=high)
