"""Collect the facts about run, file system and machine for the top of each form of the report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from strakes.base.language import gettext
from strakes.base.units import format_bytes, format_seconds
from strakes.model.portrait import CellEstimate, Headline, Portrait
from strakes.report.numbers import when

_ENDED = {
    "interrupted": "This run was interrupted. The report shows its samples up to then.",
    "partial": "Part of this run could not be measured. The report shows the rest.",
    "failed": "This run failed. The report shows its samples up to then.",
}


def title_of(portrait: Portrait) -> str:
    """Return the title of the report: the measured directory as the user wrote it."""
    return str(portrait.target.get("path") or portrait.run.get("target") or gettext("unknown target"))


def ended_early(portrait: Portrait) -> str:
    """Return a sentence on how an incomplete run ended, or "" for a complete run."""
    return gettext(_ENDED.get(str(portrait.run.get("status", "")), ""))


def created(portrait: Portrait) -> str:
    """Return the time at which the run began, or "" if unknown."""
    return when(portrait.run["created"]) if "created" in portrait.run else ""


# Caution about data from this node's page cache -> codes of the warnings that cause it.
_UNSYNCED = "perhaps still in this node's memory"
_MEMORY = {
    "from this node's memory, at least in part": {"cache-suspect", "names-from-memory"},
    "perhaps from this node's memory": {"cache-below", "cache-unseen"},
    _UNSYNCED: {"unsynced"},
}
MEMORY_CODES = frozenset().union(*_MEMORY.values())


def source_of(portrait: Portrait, cells: Collection[str]) -> str:
    """Return a caution if this node's page cache served, or may have served, the operations of ``cells``, else "".

    On a file system in memory, such as tmpfs, the caution is always "", because the top of the report already warns.
    """
    if any(warning.code == "memory-file-system" for warning in portrait.warnings):
        return ""
    return caution_of({code for cell in cells for code in portrait.warned.get(cell, ())})


def caution_of(codes: AbstractSet[str]) -> str:
    """Return the caution about cached data that warnings with these ``codes`` require, or ""."""
    return next((gettext(text) for text, shown_by in _MEMORY.items() if codes & shown_by), "")


def heading_of(source: str) -> str:
    """Return a heading that contains the caution ``source`` and says for which data the results hold."""
    message = "{source}: valid only for data that the node has just used"
    if source == gettext(_UNSYNCED):
        message = "{source}: valid only for amounts of data that fit there"
    return gettext(message, source=source[:1].upper() + source[1:])


def headlines_of(portrait: Portrait) -> list[tuple[Headline, CellEstimate]]:
    """Return the main results, each with its measured values. Results from a cache come last."""
    cells = {cell.id: cell for cell in portrait.cells}
    found = [(headline, cells[headline.cell]) for headline in portrait.headlines if headline.cell in cells]
    return sorted(found, key=lambda pair: source_of(portrait, [pair[1].id]))


def size_of(target: Mapping[str, Any]) -> str:
    """Return size and free space of the file system as text, as far as they are known.

    >>> size_of({"total_bytes": 2**40, "free_bytes": 2**39}), size_of({})
    ('1 TiB, 512 GiB free', '')
    """
    total, free = target.get("total_bytes"), target.get("free_bytes")
    parts = [format_bytes(total)] if isinstance(total, (int, float)) else []
    if isinstance(free, (int, float)):
        parts.append(gettext("{amount} free", amount=format_bytes(free)))
    return gettext(", ").join(parts)


def felt_by_others(portrait: Portrait) -> str:
    """Return a text on latencies of other users, as measured by --neighbour, or "" without a measurement."""
    felt = portrait.run.get("neighbour")
    if not felt:
        return ""
    times = [felt[moment].get("p99_s") for moment in ("before", "during")]
    before, during = (gettext("unknown") if p99 is None else format_seconds(p99) for p99 in times)
    message = "99th percentile of latencies: {before} before the run, {during} during it, limit {limit}"
    return gettext(message, before=before, during=during, limit=format_seconds(felt["limit_s"]))


def begun_together(portrait: Portrait) -> str:
    """Return as text the start skew of phases (time from first to last start of a rank), or "" if unknown."""
    begun = portrait.run.get("begun_together")
    if not begun:
        return ""
    values = {"usual": format_seconds(begun["median_s"]), "worst": format_seconds(begun["worst_s"])}
    message = "all ranks within {usual} (median of {phases} phases; worst {worst})"
    return gettext(message, phases=f"{begun['phases']:,}", **values)


def taken_in_turn(portrait: Portrait) -> str:
    """Return the directories over which ranks are distributed, as text, or "" for a single directory."""
    beside = [f"{further['path']} ({further['file_system']})" for further in portrait.target.get("beside", ())]
    return ", ".join([str(portrait.target.get("path")), *beside]) if beside else ""


def sides_of(portrait: Portrait) -> str:
    """Return as text the two file systems or settings, A and B, that the run compares, or "" if it compares none."""
    if other := portrait.target.get("against"):
        return f"A: {portrait.target.get('path')}, B: {other.get('path')} ({other.get('file_system')})"
    settings = [cell.settings for cell in portrait.cells]
    a, b = (next((one for one in settings if one.get("side") == side), {}) for side in "AB")
    # A and B measure the same settings in the same order, so compare their first settings.
    changed = [name for name in a if name != "side" and name in b and a[name] != b[name]]
    return ", ".join(f"{side}: {name}={one[name]}" for name in changed for side, one in (("A", a), ("B", b)))


def facts_of(portrait: Portrait) -> tuple[tuple[str, str], ...]:
    """Return the known facts about a run as (name, value) pairs. Callers translate the English names."""
    target, machine = portrait.target, portrait.environment
    rows = (
        ("A and B", sides_of(portrait)),
        ("Ranks alternate between", taken_in_turn(portrait)),
        ("File system", target.get("file_system")),
        ("Device", target.get("device")),
        ("Mounted at", target.get("mount_point")),
        ("Size", size_of(target)),
        ("Measured from", machine.get("host")),
        ("Kernel", machine.get("kernel")),
        ("Date", created(portrait)),
        ("Other users", felt_by_others(portrait)),
        ("Phases started", begun_together(portrait)),
        ("Run", portrait.run.get("id")),
    )
    return tuple((name, str(value)) for name, value in rows if value)


def no_headline(portrait: Portrait) -> str:
    """Return a text for a run without main results: number of values in the report, and of runs for each value."""
    if not portrait.cells:
        return gettext("nothing was measured")
    runs = [cell.runs for cell in portrait.cells]
    times = f"{min(runs)}" if min(runs) == max(runs) else gettext("{low} to {high}", low=min(runs), high=max(runs))
    message = "no main results; number of values in the report: {figures}; runs for each value: {times}"
    return gettext(message, figures=len(runs), times=times)
