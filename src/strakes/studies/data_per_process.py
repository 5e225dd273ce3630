"""data-per-process: at how much data writes saturate and reads no longer fit the cache. S1 section 3.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.base.language import gettext
from strakes.base.units import GIB, KIB, MIB, format_bytes
from strakes.model.answers import Question
from strakes.model.cell import Cell, Measure
from strakes.model.phases import TransferPhase
from strakes.model.plan import Plan
from strakes.model.portrait import Figure, Finding, Reference, SkippedCell
from strakes.model.results import Measured, Results
from strakes.stats.interval import median
from strakes.studies.compose import ask, ask_level, series, uncached
from strakes.studies.study import BANDWIDTH, Context, Study

_LEVELS = (256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB)
_TRANSFER = 256 * KIB
# Reads count as uncached if the page cache held less than this share of the data.
_OUT_OF_CACHE = 0.5


class DataPerProcess(Study):
    """Bandwidth by bytes per rank: writes with fsync, reads with the cache as written, reads after dropping it."""

    name = "data-per-process"
    title = "Data per process"
    question = "At how much data per process do writes saturate, and when do reads no longer come from the cache?"
    source = "S1"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell for each amount of data; skip amounts beyond the usable space."""
        cells: list[Cell | SkippedCell] = []
        ranks = context.team
        for level in _levels(context):
            if level * ranks > context.max_bytes:
                reason = (
                    f"{format_bytes(level * ranks)} is more than strakes may use here "
                    f"({format_bytes(context.max_bytes)})"
                )
                cells.append(self.skipped(reason, data_bytes=level, ranks=ranks))
            else:
                cells.append(self._cell(context, level))
        return cells

    def _cell(self, context: Context, level: int) -> Cell:
        write = TransferPhase(
            "write", "write", "file-per-process", "segmented", min(_TRANSFER, level), level, sync="fsync"
        )
        cached = replace(write, name="read-cached", operation="read", sync="close")
        dropped = replace(cached, name="read-dropped", cache="drop")
        return Cell(
            self.name,
            f"{self.name}/{level}",
            {"data_bytes": level, "ranks": context.team},
            Plan(context.team, (write, cached, *uncached(context, dropped)), context.seed),
            (
                Measure("write", "bytes_per_s", {"operation": "write"}),
                Measure("read-cached", "bytes_per_s", {"operation": "read", "cache": "as written"}),
                Measure("read-dropped", "bytes_per_s", {"operation": "read", "cache": "dropped"}),
            ),
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return bandwidth by data per rank, with separate lines for cached and uncached reads, and S1's advice."""
        lines = [
            *series(gettext("write (to fsync)"), results.where(operation="write"), "data_bytes"),
            *series(gettext("read, cache as written"), results.where(cache="as written"), "data_bytes"),
            *series(gettext("read, cache dropped"), results.where(cache="dropped"), "data_bytes"),
        ]
        theirs = Reference(
            "S1",
            gettext(
                "S1 advises 64 MiB - 1 GiB on its machine: writes saturated above 64 MiB, reads below 1 GiB came from "
                "the page cache"
            ),
            64 * MIB,
            GIB,
        )
        return [self.figure(lines, (gettext("data per process"), "B", "log"), BANDWIDTH, theirs)]

    def questions(self, results: Results) -> Sequence[Question]:
        """Ask how much data per process is enough for writes, and how much faster cached reads are."""
        questions = ask_level(
            self.name, "write", gettext("data per process, writes"), results.where(operation="write"), "data_bytes"
        )
        cached, dropped = results.where(cache="as written"), results.where(cache="dropped")
        if cached and dropped:
            size = format_bytes(float(cached[-1].settings["data_bytes"]))
            title = gettext("reads of {size} per rank", size=size)
            options = [(gettext("cache dropped"), dropped[-1:]), (gettext("as written"), cached[-1:])]
            questions += ask(self.name, "cache", title, options, advises=False)
        return questions

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return the amount of data at which reads leave the page cache."""
        cached = results.where(cache="as written")
        return [self._knee(results, cached)] if cached else []

    def _knee(self, results: Results, cached: Sequence[Measured]) -> Finding:
        """Return the amount at which less than half of the data was in the page cache before the read.

        It is unknown if residency cannot be read; it is not estimated from the size of the memory.
        """
        identifier, evidence = "knee", results.ids(cached)
        shares = [(figure, share) for figure in cached if (share := _resident_share(figure)) is not None]
        left = next((index for index, (_, share) in enumerate(shares) if share < _OUT_OF_CACHE), None)
        if left is None:
            memory = format_bytes(2 * float(results.facts.get("memory_bytes", 0)))
            needs = gettext("a study with more than {memory} of data (S3 asks for twice the memory)", memory=memory)
            if not shares:
                text = gettext(
                    "Where reads leave the cache is unknown, because this file system does not report its cached data."
                )
            else:
                largest, share = shares[-1]
                each = format_bytes(float(largest.settings["data_bytes"]))
                text = gettext(
                    "Where reads leave the cache is unknown: with {size} per rank {share} of the written data was "
                    "still cached.",
                    size=each,
                    share=f"{share:.0%}",
                )
            return self.finding(identifier, text, "unknown", evidence, needs=needs)
        cell, share = shares[left]
        at = format_bytes(float(cell.settings["data_bytes"]))
        if left == 0:
            text = gettext(
                "Hardly any newly written data is in this node's page cache even with {size} per rank: {share}.",
                size=at,
                share=f"{share:.0%}",
            )
        else:
            before, share_before = shares[left - 1]
            fits = format_bytes(float(before.settings["data_bytes"]))
            text = gettext(
                "Reads leave the page cache between {low} and {high} per rank: {before} of the newly written data was "
                "still cached, then {after} (S1: below 1 GiB reads came from the cache).",
                low=fits,
                high=at,
                before=f"{share_before:.0%}",
                after=f"{share:.0%}",
            )
        return self.finding(identifier, text, "measured", evidence)


def _levels(context: Context) -> list[int]:
    """Return the amounts per rank in bytes, up to --data-per-rank if it was given."""
    asked = context.data_per_rank
    return list(_LEVELS) if asked is None else [*(level for level in _LEVELS if level < asked), asked]


def _resident_share(cell: Measured) -> float | None:
    """Return the median share of the data that was in the page cache before the read, or None if it is unknown."""
    samples = [seen.sample for seen in cell.observations]
    known = [
        sample.cache.resident_before_bytes / sample.bytes
        for sample in samples
        if sample.bytes and sample.cache.method != "none"
    ]
    return median(known) if known else None
