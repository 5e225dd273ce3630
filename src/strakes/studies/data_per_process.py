"""data-per-process: data sizes at which writes saturate and reads leave the cache. Source: Tian et al. (2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.base.language import gettext
from strakes.base.units import GIB, KIB, MIB, format_bytes
from strakes.model.answers import Question
from strakes.model.cell import Measure
from strakes.model.phases import TransferPhase
from strakes.model.portrait import Figure, Finding
from strakes.model.results import Measured, Results
from strakes.stats.interval import median
from strakes.studies.compose import ask, ask_level, lines
from strakes.studies.study import BANDWIDTH, PER_RANK_STEP, Cells, Context, Study

_LEVELS = (256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB)
# A read counts as uncached if the page cache held less than this share of the data before the read.
_CACHED_SHARE = 0.5


class DataPerProcess(Study):
    """Bandwidth by bytes per rank: writes with fsync, reads just after them, and reads with a dropped cache."""

    name = "data-per-process"
    title = "Data per process"
    question = "At how much data per process do writes saturate, and when do reads no longer come from the cache?"
    source = "S1"

    def cells(self, context: Context) -> Cells:
        measures = (
            Measure("write", "bytes_per_s", {"operation": "write"}),
            Measure("read-cached", "bytes_per_s", {"operation": "read", "cache": "as written"}),
            Measure("read-dropped", "bytes_per_s", {"operation": "read", "cache": "dropped"}),
        )
        for level in _levels(context):
            needed, most = level * context.team, context.max_bytes
            if needed > most:
                reason = f"{format_bytes(needed)} is more than strakes may use here ({format_bytes(most)})"
                yield self.skipped(reason, data_bytes=level, ranks=context.team)
                continue
            write = TransferPhase(
                "write", "write", "file-per-process", "segmented", min(PER_RANK_STEP, level), level, sync="fsync"
            )
            cached = replace(write, name="read-cached", operation="read", sync="close")
            dropped = replace(cached, name="read-dropped", cache="drop")
            phases = (write, cached, *context.uncached(dropped))
            yield self.cell(context, f"{level}", {"data_bytes": level, "ranks": context.team}, phases, measures)

    def figures(self, results: Results) -> Sequence[Figure]:
        drawn = lines(
            "data_bytes",
            (
                (gettext("write (to fsync)"), results.where(operation="write")),
                (gettext("read, cache as written"), results.where(cache="as written")),
                (gettext("read, cache dropped"), results.where(cache="dropped")),
            ),
        )
        theirs = gettext(
            "Tian et al. (2020) advise 64 MiB to 1 GiB per process on their machine: writes saturated above 64 MiB, "
            "and reads of less than 1 GiB came from the page cache"
        )
        reference = self.published(theirs, 64 * MIB, GIB)
        return [self.figure(drawn, (gettext("data per process"), "B", "log"), BANDWIDTH, reference)]

    def questions(self, results: Results) -> Sequence[Question]:
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
        cached = results.where(cache="as written")
        return [self._knee(results, cached)] if cached else []

    def _knee(self, results: Results, cached: Sequence[Measured]) -> Finding:
        evidence = results.ids(cached)
        shares = [
            (format_bytes(float(cell.settings["data_bytes"])), share)
            for cell in cached
            if (share := _resident_share(cell)) is not None
        ]
        left = next((index for index, (_, share) in enumerate(shares) if share < _CACHED_SHARE), None)
        if left is None:
            memory = format_bytes(2 * float(results.facts.get("memory_bytes", 0)))
            needs = gettext("a study with more than {memory} of data (twice this node's memory)", memory=memory)
            if not shares:
                text = gettext(
                    "It is unknown how much data the page cache holds: this file system does not report cached data."
                )
            else:
                largest, share = shares[-1]
                text = gettext(
                    "It is unknown how much data the page cache holds: with {size} per rank, {share} of the written "
                    "data was still cached.",
                    size=largest,
                    share=f"{share:.0%}",
                )
            return self.finding("knee", text, "unknown", evidence, needs=needs)
        at, share = shares[left]
        if left == 0:
            text = gettext(
                "Even with {size} per rank, only {share} of the newly written data is in this node's page cache.",
                size=at,
                share=f"{share:.0%}",
            )
        else:
            fits, share_before = shares[left - 1]
            text = gettext(
                "With {high} instead of {low} per rank, the cached share of written data falls from {before} to "
                "{after}. Larger reads come from storage (Tian et al.: reads above 1 GiB).",
                low=fits,
                high=at,
                before=f"{share_before:.0%}",
                after=f"{share:.0%}",
            )
        return self.finding("knee", text, "measured", evidence)


def _levels(context: Context) -> list[int]:
    if context.data_per_rank is None:
        return list(_LEVELS)
    asked = context.amount_bytes(1, PER_RANK_STEP)
    return [*(level for level in _LEVELS if level < asked), asked]


def _resident_share(cell: Measured) -> float | None:
    known = [
        seen.sample.cache.resident_before_bytes / seen.sample.bytes
        for seen in cell.observations
        if seen.sample.bytes and seen.sample.cache.method != "none"
    ]
    return median(known) if known else None
