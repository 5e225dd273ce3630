"""replication-cost: cost of synchronous replication of metadata. Source: Zeng et al. (2021), section 3.2.

DIR is on a replicated device. If ``--against`` names a directory on an equal device without replication, the study
reports the cost as a ratio with an interval. On DRBD, it also reports the bytes sent to the other node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.base.language import gettext, ngettext
from strakes.base.units import MIB
from strakes.model.cell import Measure
from strakes.model.literature import (
    BYTES_PER_FILE,
    CONFIGURED_MB_PER_S,
    MEASURED_S,
    replicated_megabytes,
    replication_disagreement,
)
from strakes.model.phases import MetadataPhase
from strakes.model.portrait import Figure, Finding, IntervalOf, Setting
from strakes.model.results import Measured, Results
from strakes.stats.interval import median, median_interval
from strakes.studies.compose import bars, operation_of
from strakes.studies.straight_line import forecast
from strakes.studies.study import NARROWER, Cells, Context, Study

SENT = "data.replicated_bytes"
_BATCH, _SYNCED, _WRITTEN = "batch of empty files", "empty file, synced", "4 KiB file, synced"
_SMALL_BYTES = 4096
_WAIT = "wait for the batch"
_TIME_OF = "time of {files} files"
_MADE = {
    (False, False): "{files} files are created and synced after {time} s.",
    (True, False): "{files} files are created and synced after {time} s, and {sent} MiB are sent to the peer.",
    (False, True): "{files} files are created and synced after {time} s (published by Zeng et al.: "
    "{published} s for {amount} MiB).",
    (True, True): "{files} files are created and synced after {time} s, and {sent} MiB are sent to the peer "
    "(published by Zeng et al.: {published} s for {amount} MiB).",
}
# Numbers of files from the published table that are measured by default. Larger numbers take minutes.
_ROWS = (10_000, 100_000)
_FORECAST_FILES = 10_000_000
# Maximum number of creates with fsync per rank. Each create waits for two disks and the network.
_MOST_SYNCED_FILES = 200


class ReplicationCost(Study):
    """Rates of creating files with an fsync per file, and with a single fsync per batch of files."""

    name = "replication-cost"
    title = "Cost of replicating metadata"
    question = (
        "How many files per second are created with replication, how many bytes are replicated per file, and how "
        "many files are created without it?"
    )
    source = "S2"
    alone = "Without --against DIR2 (not replicated) this gives rates and bytes sent, but not what replication costs."

    def cells(self, context: Context) -> Cells:
        batch = (_creating(_BATCH), Measure("wait", "elapsed_s", {"operation": _WAIT}))
        stop, settings = context.stonewall(), dict[str, Setting]
        for ranks in (1, context.team):
            if context.max_items < 16 * ranks:
                yield self.too_few_files(context, ranks=ranks)
                continue
            items = min(replace(context, files=None).items(ranks), _MOST_SYNCED_FILES)
            for operation, size in ((_SYNCED, 0), (_WRITTEN, _SMALL_BYTES)):
                create = MetadataPhase("create", "file-create", "unique", items, file_bytes=size, fsync=True, stop=stop)
                key = f"{operation}/{ranks}"
                yield self.cell(context, key, settings(ranks=ranks), (create,), (_creating(operation),))
        for files in sorted({*_ROWS, context.files or _ROWS[0]}):
            if context.max_items < 2 * files:
                why = f"only {context.max_items:,} files may be created here"
                yield self.skipped(why, operation=_BATCH, files=files)
                continue
            # A local file system commits files in order of creation, so an fsync of the last file commits all files.
            phases = (
                MetadataPhase("create", "file-create", "unique", -(-files // context.team)),
                MetadataPhase("wait", "file-create", "unique", 1, files="last", fsync=True),
            )
            of_batch, priority = settings(ranks=context.team, files=files), 1 + (files > _ROWS[0])
            yield self.cell(context, f"batch/{files}", of_batch, phases, batch, priority=priority)

    def figures(self, results: Results) -> Sequence[Figure]:
        drawn = [
            bars(ngettext("{count} rank", "{count} ranks", int(ranks)), cells)
            for ranks in results.levels("ranks")
            if (cells := [one for name in (_SYNCED, _WRITTEN) for one in results.where(ranks=ranks, operation=name)])
        ]
        return [self.figure(drawn, (gettext("operation"), "", "category"), (gettext("files a second"), "op/s"))]

    def findings(self, results: Results) -> Sequence[Finding]:
        text = gettext("The speed-up without replication is unknown.")
        needs = gettext("a second directory, on a device of the same kind without replication: --against DIR2")
        return [*self.summaries(results), self.finding("ratio", text, "unknown", (), needs=needs)]

    def summaries(self, results: Results) -> Sequence[Finding]:
        cells = results.where()
        servers = [counters for cell in cells for seen in cell.observations for counters in seen.servers.values()]
        if cells and not any(SENT in counters for counters in servers):
            text = gettext("This directory is not on a replicated device, or the device does not count sent bytes.")
            needs = gettext("a DRBD 8.4 device on this machine")
            return [self.finding("device", text, "unknown", results.ids(cells), needs=needs), *self._table(results)]
        of_bytes = (self._bytes(cell, results.confidence) for cell in cells if _bytes_per_file(cell))
        return [*self._table(results), *of_bytes, *self._arithmetic(results)]

    def _bytes(self, cell: Measured, confidence: float) -> Finding:
        what = _by_ranks(cell)
        if "files" in cell.settings:
            files = f"{cell.settings['files']:,}"
            what = gettext("{operation} of {files}", operation=operation_of(cell), files=files)
        identifier = f"bytes-{cell.id.split('/', 1)[1].rpartition(':')[0]}"
        each = _bytes_per_file(cell)
        text = gettext(
            "For each file, {bytes} bytes are replicated ({what}). Zeng et al. published {published}.",
            bytes=f"{median(each):,.0f}",
            what=what,
            published=f"{BYTES_PER_FILE:,.0f}",
        )
        interval, of = median_interval(each, confidence), gettext("replicated for a file")
        return self.estimated(identifier, text, (cell.id,), interval, of, "bytes", gettext(NARROWER))

    def _arithmetic(self, results: Results) -> list[Finding]:
        synced = [cell for cell in results.where(operation=_SYNCED) if _bytes_per_file(cell)]
        if not synced:
            return []
        own = median([value for cell in synced for value in _bytes_per_file(cell)])
        files, measured_s = next(iter(MEASURED_S.items()))
        expected_s = replicated_megabytes(files) / CONFIGURED_MB_PER_S
        own_s = files * own / MIB / CONFIGURED_MB_PER_S
        text = gettext(
            "With the counted bytes per synced file, replicating {files} files at {rate} MB/s would take {time} s. "
            "Zeng et al. predicted {predicted} s and measured {measured} s.",
            files=f"{files:,}",
            rate=f"{CONFIGURED_MB_PER_S:.0f}",
            time=f"{own_s:.3f}",
            predicted=f"{expected_s:.3f}",
            measured=measured_s,
        )
        return [self.finding("arithmetic", f"{text} {replication_disagreement()}", "measured", results.ids(synced))]

    def _table(self, results: Results) -> list[Finding]:
        published = MEASURED_S
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
                amount=f"{replicated_megabytes(files):,.1f}",
            )
            interval, of = median_interval(times, results.confidence), gettext(_TIME_OF, files=f"{files:,}")
            cells = (create.id, wait.id)
            rows.append(self.estimated(f"table-{files}", text, cells, interval, of, "s", gettext(NARROWER)))
        found = forecast(batches, _FORECAST_FILES, results.confidence)
        if found is not None:
            text = gettext(
                "{files} files would take {time} s, extrapolated with a straight line from {batches} batches. Zeng "
                "et al. published {published} s.",
                files=f"{_FORECAST_FILES:,}",
                time=f"{found.value:,.0f}",
                batches=f"{len(batches):,}",
                published=published[_FORECAST_FILES],
            )
            of = gettext(_TIME_OF, files=f"{_FORECAST_FILES:,}")
            shown = IntervalOf(max(0.0, found.low), found.high, found.confidence, of, "s")
            rows.append(self.finding("table-forecast", text, "forecast", tuple(evidence), shown))
        return rows


def _creating(operation: str) -> Measure:
    return Measure("create", "operations_per_s", {"operation": operation})


def _by_ranks(cell: Measured) -> str:
    one, several = "{operation}, {count} rank", "{operation}, {count} ranks"
    return ngettext(one, several, int(cell.settings["ranks"]), operation=operation_of(cell))


def _bytes_per_file(cell: Measured) -> list[float]:
    if cell.settings["operation"] == _WAIT:
        return []
    sent = [
        (seen.sample.operations, [counters[SENT] for counters in seen.servers.values() if SENT in counters])
        for seen in cell.observations
    ]
    return [sum(counts) / files for files, counts in sent if files and counts]
