"""replication-cost: cost of synchronous replication of metadata. S2 section 3.2.

DIR is on the replicated device. ``--against DIR2`` on an equal device without replication gives the cost as a ratio
with an interval. DRBD counts the bytes that it sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.base.language import gettext, ngettext
from strakes.model.cell import Cell, Measure
from strakes.model.literature_replication import (
    BYTES_PER_FILE,
    CONFIGURED_MB_PER_S,
    MEASURED,
    MIB,
    disagreements,
    predicted,
)
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.model.portrait import Figure, Finding, Headline, IntervalOf, Point, Series, Setting, SkippedCell
from strakes.model.results import Measured, Results
from strakes.stats.interval import median, median_interval
from strakes.stats.straight_line import forecast
from strakes.studies.compose import interval_of
from strakes.studies.study import NARROWER, Context, Study, Verdict

SENT = "data.replicated_bytes"
_BATCH, _SYNCED, _WRITTEN = "batch of empty files", "empty file, synced", "4 KiB file, synced"
_SMALL_BYTES = 4096
_WAIT = "wait for the batch"
# By whether bytes sent were counted, and whether S2 published the time for as many files.
_MADE = {
    (False, False): "{files} files are made and on the device after {time} s.",
    (True, False): "{files} files are made and on the device after {time} s, {sent} MiB of them sent to the peer.",
    (False, True): "{files} files are made and on the device after {time} s (S2, published: {published} s for {amount} "
    "MiB).",
    (True, True): "{files} files are made and on the device after {time} s, {sent} MiB of them sent to the peer (S2, "
    "published: {published} s for {amount} MiB).",
}
# Rows of S2's table to measure. Larger ones take minutes and need --files.
_ROWS = (10_000, 100_000)
_FORECAST_FILES = 10_000_000
# Limit of synchronous creates per rank: each waits for two disks and the network, so more would use up the budget.
_MOST_SYNCED = 200


class ReplicationCost(Study):
    """Creation rates of files synchronised one by one, and of batches that are synchronised once."""

    name = "replication-cost"
    title = "Cost of replicating metadata"
    question = (
        "How many files per second are created with replication, how many bytes are replicated per file, and how "
        "many files are created without it?"
    )
    source = "S2"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return cells of synchronised creates by number of ranks, and a batch for each measured row of S2's table."""
        stop = context.stonewall()
        cells: list[Cell | SkippedCell] = []
        for ranks in (1, context.team):
            if context.max_items < 16 * ranks:
                cells.append(self.skipped(f"only {context.max_items} files may be created here", ranks=ranks))
                continue
            items = min(replace(context, files=None).items(ranks), _MOST_SYNCED)
            for operation, file_bytes in ((_SYNCED, 0), (_WRITTEN, _SMALL_BYTES)):
                create = MetadataPhase(
                    "create", "file-create", "unique", items, file_bytes=file_bytes, fsync=True, stop=stop
                )
                cells.append(self._cell(context, operation, ranks, (create,), key=f"{operation}/{ranks}"))
        for files in sorted({*_ROWS, context.files or _ROWS[0]}):
            ranks = context.team
            if context.max_items < 2 * files:
                why = f"only {context.max_items:,} files may be created here"
                cells.append(self.skipped(why, operation=_BATCH, files=files))
                continue
            # The journal is written in order, so an fsync of the last file also commits all files created before it.
            phases = (
                MetadataPhase("create", "file-create", "unique", -(-files // ranks)),
                MetadataPhase("wait", "file-create", "unique", 1, files="last", fsync=True),
            )
            cells.append(self._cell(context, _BATCH, ranks, phases, key=f"batch/{files}", files=files))
        return cells

    def _cell(
        self, context: Context, operation: str, ranks: int, phases: tuple[MetadataPhase, ...], key: str, **more: Setting
    ) -> Cell:
        measures = [Measure("create", "operations_per_s")]
        if len(phases) > 1:
            measures.append(Measure("wait", "elapsed_s", {"operation": _WAIT}))
        settings: dict[str, Setting] = {"operation": operation, "ranks": ranks, **more}
        plan = Plan(ranks, phases, context.seed)
        priority = 1 if int(more.get("files", 0)) <= _ROWS[0] else 2
        return Cell(self.name, f"{self.name}/{key}", settings, plan, tuple(measures), priority=priority)

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return synchronised files per second by operation and number of ranks."""
        lines = [
            Series(
                ngettext("{count} rank", "{count} ranks", int(ranks)),
                tuple(Point(gettext(str(one.settings["operation"])), one.id) for one in cells),
            )
            for ranks in results.levels("ranks")
            if (cells := [one for name in (_SYNCED, _WRITTEN) for one in results.where(ranks=ranks, operation=name)])
        ]
        return [
            self.figure(lines, (gettext("operation"), "", "category"), (gettext("files a second"), "op/s")),
        ]

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return the summaries, and a note that the cost as a ratio needs ``--against``."""
        return [
            *self.summaries(results),
            self.finding(
                "ratio",
                gettext("The speed-up without replication is unknown."),
                "unknown",
                (),
                needs=gettext("--against a directory on a device of the same kind without replication"),
            ),
        ]

    def summaries(self, results: Results) -> Sequence[Finding]:
        """Return the bytes replicated per file, S2's calculation with them, and the measured rows of S2's table."""
        devices = sorted(
            {
                name
                for cell in results.where()
                for seen in cell.observations
                for name, counters in seen.servers.items()
                if SENT in counters
            }
        )
        if not devices and results.where():
            text = gettext("This directory is not on a replicated device with a counter of bytes sent.")
            needs = gettext("a DRBD 8.4 device on this machine")
            return [
                self.finding("device", text, "unknown", results.ids(results.where()), needs=needs),
                *self._table(results),
            ]
        return [
            *(self._bytes(cell, results.confidence) for cell in results.where() if _bytes_per_file(cell)),
            *self._arithmetic(results),
            *self._table(results),
        ]

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rate of synchronised empty files for each number of ranks."""
        return [Headline(_by_ranks(cell), cell.id) for cell in results.where(operation=_SYNCED)]

    def _bytes(self, cell: Measured, confidence: float) -> Finding:
        what = _by_ranks(cell)
        if "files" in cell.settings:
            operation = gettext(str(cell.settings["operation"]))
            what = gettext("{operation} of {files}", operation=operation, files=f"{cell.settings['files']:,}")
        identifier = f"bytes-{cell.id.split('/', 1)[1].rpartition(':')[0]}"
        each = _bytes_per_file(cell)
        interval = median_interval(each, confidence)
        text = gettext(
            "{bytes} bytes are replicated for a file ({what}); S2: {published}, published.",
            bytes=f"{median(each):,.0f}",
            what=what,
            published=f"{BYTES_PER_FILE:,.0f}",
        )
        if interval is None:
            return self.finding(identifier, text, "inconclusive", (cell.id,), needs=gettext(NARROWER))
        shown = interval_of(interval, gettext("replicated for a file"), "bytes")
        return self.finding(identifier, text, "measured", (cell.id,), shown)

    def _arithmetic(self, results: Results) -> list[Finding]:
        """Return S2's calculation with the measured bytes per synchronised file; S2 acknowledged every file."""
        synced = [cell for cell in results.where(operation=_SYNCED) if _bytes_per_file(cell)]
        if not synced:
            return []
        own = median([value for cell in synced for value in _bytes_per_file(cell)])
        files, measured_s = MEASURED[0]
        expected_s = predicted(files)[1]
        own_s = files * own / MIB / CONFIGURED_MB_PER_S
        text = gettext(
            "{files} files at {rate} MB/s: {time} s by the bytes of a synced file counted here; published, S2: "
            "{predicted} s predicted, {measured} s measured.",
            files=f"{files:,}",
            rate=f"{CONFIGURED_MB_PER_S:.0f}",
            time=f"{own_s:.3f}",
            predicted=f"{expected_s:.3f}",
            measured=measured_s,
        )
        return [self.finding("arithmetic", " ".join((text, *disagreements())), "measured", results.ids(synced))]

    def _table(self, results: Results) -> list[Finding]:
        """Return the rows of S2's table: the time until all files of a batch are on the device and its peer."""
        published = dict(MEASURED)
        rows: list[Finding] = []
        batches: list[tuple[float, float]] = []
        evidence: list[str] = []
        for create in results.where(operation=_BATCH):
            files = int(create.settings["files"])
            (wait,) = results.where(operation=_WAIT, files=files)
            waited = {(seen.block, seen.purpose): seen.sample.elapsed_s for seen in wait.observations}
            times = [
                seen.sample.elapsed_s + waited[seen.block, seen.purpose]
                for seen in create.observations
                if (seen.block, seen.purpose) in waited
            ]
            batches += [(float(files), seconds) for seconds in times]
            evidence += [create.id, wait.id]
            sent = _bytes_per_file(create)
            text = gettext(
                _MADE[bool(sent), files in published],
                files=f"{files:,}",
                time=f"{median(times):.3g}",
                sent=f"{median(sent) * files / MIB:,.1f}" if sent else "",
                published=published.get(files),
                amount=f"{predicted(files)[0]:,.1f}",
            )
            interval = median_interval(times, results.confidence)
            of = gettext("time of {files} files", files=f"{files:,}")
            shown = interval_of(interval, of, "s") if interval else None
            verdict: Verdict = "measured" if interval else "inconclusive"
            needs = "" if interval else gettext(NARROWER)
            rows.append(self.finding(f"table-{files}", text, verdict, (create.id, wait.id), shown, needs))
        found = forecast(batches, _FORECAST_FILES, results.confidence)
        if found is not None:
            text = gettext(
                "{files} files would take {time} s (straight line through {batches} batches; S2, published: "
                "{published} s).",
                files=f"{_FORECAST_FILES:,}",
                time=f"{found.value:,.0f}",
                batches=f"{len(batches):,}",
                published=published[_FORECAST_FILES],
            )
            of = gettext("time of {files} files", files=f"{_FORECAST_FILES:,}")
            shown = IntervalOf(max(0.0, found.low), found.high, found.confidence, of, "s")
            rows.append(self.finding("table-forecast", text, "forecast", tuple(evidence), shown))
        return rows


def _by_ranks(cell: Measured) -> str:
    return ngettext(
        "{operation}, {count} rank",
        "{operation}, {count} ranks",
        int(cell.settings["ranks"]),
        operation=gettext(str(cell.settings["operation"])),
    )


def _bytes_per_file(cell: Measured) -> list[float]:
    """Return the bytes sent per file, for each visit with a device counter."""
    amounts = []
    for seen in cell.observations:
        sent = sum(counters.get(SENT, 0.0) for counters in seen.servers.values())
        files = seen.sample.operations
        if files and cell.settings["operation"] != _WAIT and any(SENT in counts for counts in seen.servers.values()):
            amounts.append(sent / files)
    return amounts
