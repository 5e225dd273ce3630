"""replication-cost: what it costs that every change of the metadata is on two nodes before it is done. S2 section 3.2.

DIR is on the replicated device; ``--against DIR2``, on a device of the same kind without replication, makes the cost of
it a ratio with an interval. What was sent is counted by DRBD itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from strakes.findings.cell import Cell, Measure
from strakes.findings.portrait import (
    Figure,
    Finding,
    Headline,
    Point,
    Reference,
    Series,
    Setting,
    SkippedCell,
)
from strakes.findings.results import Measured, Results
from strakes.literature.replication import BYTES_PER_FILE, CONFIGURED_MB_PER_S, MEASURED, MIB, disagreements, predicted
from strakes.plan import MetadataPhase, Plan
from strakes.statistics.interval import median, median_interval
from strakes.studies.compose import interval_of
from strakes.studies.study import Context, Study

SENT = "data.replicated_bytes"
_BATCH, _SYNCED, _WRITTEN = "batch of empty files", "empty file, synced", "4 KiB file, synced"
_SMALL_BYTES = 4096
# A synchronous create waits for two disks and a network: few are enough, many would take all the time.
_MOST_SYNCED = 200


class ReplicationCost(Study):
    """Files created in batches, with one wait for the devices at the end, and one by one, with a wait each."""

    name = "replication-cost"
    title = "What replicating metadata costs"
    question = (
        "How many files per second are created with replication, how many bytes are replicated per file, and how "
        "many files are created without it?"
    )
    source = "S2"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell per number of ranks; those with too few files are skipped."""
        cells: list[Cell | SkippedCell] = []
        for ranks in (1, context.team):
            if context.max_items < 16 * ranks:
                cells.append(self.skipped(f"only {context.max_items} files may be created here", ranks=ranks))
                continue
            items = context.items(ranks)
            synced = min(items, _MOST_SYNCED)
            stop = context.stonewall()
            # The wait for one file is a wait for all that were created before it: the file system's journal is written
            # in order.
            wait = MetadataPhase("wait", "file-create", "unique", 1, files="last", fsync=True)
            plans = {
                _BATCH: (MetadataPhase("create", "file-create", "unique", items, stop=stop), wait),
                _SYNCED: (MetadataPhase("create", "file-create", "unique", synced, fsync=True, stop=stop),),
                _WRITTEN: (
                    MetadataPhase(
                        "create", "file-create", "unique", synced, file_bytes=_SMALL_BYTES, fsync=True, stop=stop
                    ),
                ),
            }
            for number, (operation, phases) in enumerate(plans.items()):
                settings: dict[str, Setting] = {"operation": operation, "ranks": ranks}
                measures = (Measure("create", "operations_per_s", {}),)
                cells.append(
                    Cell(
                        self.name,
                        f"{self.name}/{number}/{ranks}",
                        settings,
                        Plan(ranks, phases, context.seed),
                        measures,
                    )
                )
        return cells

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return files per second by operation, per number of ranks, beside S2's."""
        lines = [
            Series(_ranks(ranks), tuple(Point(str(cell.settings["operation"]), cell.id) for cell in cells))
            for ranks in results.levels("ranks")
            if (cells := results.where(ranks=ranks))
        ]
        files, seconds = MEASURED[0]
        expected_s = predicted(files)[1]
        theirs = tuple(
            Reference(
                "S2",
                f"S2 (DRBD, protocol C), {how}: metadata of {files:,} files replicated in {time_s:.3f} s",
                label=f"S2, published: {how}",
                points=((_BATCH, files / time_s),),
            )
            for how, time_s in ((f"predicted at {CONFIGURED_MB_PER_S:.0f} MB/s", expected_s), ("measured", seconds))
        )
        return [self.figure(lines, ("operation", "", "category"), ("files a second", "op/s"), *theirs)]

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return the bytes replicated per file, S2's arithmetic on them, and what it would take to know the ratio."""
        return [
            *(self._bytes(cell, results.confidence) for cell in results.where()),
            *self._arithmetic(results),
            self.finding(
                "ratio",
                "How much faster it is without replication is unknown.",
                "unknown",
                (),
                needs="--against a directory on a device of the same kind without replication",
            ),
        ]

    def summaries(self, results: Results) -> Sequence[Finding]:
        """Bytes per file and S2's arithmetic with them, of the side that has a device which counts."""
        counted = [cell for cell in results.where() if _bytes_per_file(cell)]
        return [*(self._bytes(cell, results.confidence) for cell in counted), *self._arithmetic(results)]

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rate of files that are on disk, per number of ranks."""
        return [
            Headline(f"{_SYNCED}, {_ranks(cell.settings['ranks'])}", cell.id)
            for cell in results.where(operation=_SYNCED)
        ]

    def _bytes(self, cell: Measured, confidence: float) -> Finding:
        operation, ranks = cell.settings["operation"], cell.settings["ranks"]
        identifier = f"bytes-{cell.id.split('/', 1)[1].rpartition(':')[0]}"
        each = _bytes_per_file(cell)
        if not each:
            text = f"How many bytes are replicated for a file is unknown ({operation}, {_ranks(ranks)})."
            needs = "a DRBD 8.4 device on this machine, which counts bytes"
            return self.finding(identifier, text, "unknown", (cell.id,), needs=needs)
        interval = median_interval(each, confidence)
        text = (
            f"{median(each):,.0f} bytes are replicated for a file ({operation}, {_ranks(ranks)}); S2: "
            f"{BYTES_PER_FILE:,.0f}, published."
        )
        if interval is None:
            return self.finding(identifier, text, "inconclusive", (cell.id,), needs="more runs: give a larger --budget")
        shown = interval_of(interval, "replicated for a file", "bytes")
        return self.finding(identifier, text, "measured", (cell.id,), shown)

    def _arithmetic(self, results: Results) -> list[Finding]:
        """Return what the bytes measured here would mean for S2's files, at the rate that it had configured."""
        batches = [each for cell in results.where(operation=_BATCH) if (each := _bytes_per_file(cell))]
        if not batches:
            return []
        own = median([value for each in batches for value in each])
        files, measured_s = MEASURED[0]
        expected_s = predicted(files)[1]
        own_s = files * own / MIB / CONFIGURED_MB_PER_S
        text = (
            f"{files:,} files at {CONFIGURED_MB_PER_S:.0f} MB/s: {own_s:.3f} s by the bytes of a batch counted here; "
            f"published, S2: {expected_s:.3f} s predicted, {measured_s} s measured. {' '.join(disagreements())}"
        )
        evidence = results.ids(results.where(operation=_BATCH))
        return [self.finding("arithmetic", text.strip(), "measured", evidence)]


def _bytes_per_file(cell: Measured) -> list[float]:
    """Of every visit in which a device counted what it sent."""
    amounts = []
    for seen in cell.observations:
        sent = sum(counters.get(SENT, 0.0) for counters in seen.servers.values())
        files = seen.sample.operations
        if files and any(SENT in counters for counters in seen.servers.values()):
            amounts.append(sent / files)
    return amounts


def _ranks(number: Setting) -> str:
    return "1 rank" if number == 1 else f"{number} ranks"
