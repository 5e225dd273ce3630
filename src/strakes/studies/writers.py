"""writers: how many of the ranks should write, the others handing their data over, for little and for much data. S1."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.plan import Plan, TransferPhase
from strakes.portrait.model import Figure, Finding, Reference, Setting, SkippedCell
from strakes.studies.base import Advice, Cell, Context, Measure, Study
from strakes.studies.compose import ratio_finding, saturation_advice, saturation_finding, series
from strakes.studies.results import Measured, Results
from strakes.units import KIB, MIB, format_bytes

_SIZES = (64 * KIB, MIB, 8 * MIB)
_FULL_SIZES = (64 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB)


class Writers(Study):
    """A file for each writer, which merges what its group hands over; gathering is part of the time."""

    name = "writers"
    title = "Writers"
    question = "How many of the processes of a node should write, for how much data each?"
    source = "S1"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        ranks = 16 if context.full else 8
        cells: list[Cell | SkippedCell] = []
        for size in _FULL_SIZES if context.full else _SIZES:
            for writers in [2**power for power in range(ranks.bit_length())]:
                settings: dict[str, Setting] = {"writers": writers, "data_bytes": size, "ranks": ranks}
                if ranks * size > context.max_bytes:
                    reason = f"{format_bytes(ranks * size)} are more than may be used here"
                    cells.append(SkippedCell(self.name, settings, reason))
                    continue
                # As many writers as ranks: nobody hands anything over.
                phase = TransferPhase(
                    "write",
                    "write",
                    "file-per-process" if writers == ranks else "file-per-writer",
                    "segmented",
                    min(size, MIB),
                    size,
                    writers=0 if writers == ranks else writers,
                    sync="fsync",
                    stop=context.stonewall(),
                )
                measures = (Measure("write", "bytes_per_s", {"operation": "write"}),)
                key = f"{self.name}/{size}/{writers}"
                cells.append(Cell(self.name, key, settings, Plan(ranks, (phase,), context.seed), measures))
        return cells

    def figures(self, results: Results) -> Sequence[Figure]:
        lines = tuple(
            line
            for size in results.levels("data_bytes")
            for line in series(f"{format_bytes(float(size))} of each rank", results.where(data_bytes=size), "writers")
        )
        theirs = Reference(
            "S1",
            "S1: at most 1,000 writers in all and 16 times the stripe count, about 8 of a node; with 1 GiB of each process 256 were best",
            8,
            32,
        )
        ranks = "writers of this node"
        return [Figure(self.name, self.title, self.question, ranks, "", "log", "bandwidth of all ranks", "B/s", lines, (theirs,))]

    def findings(self, results: Results) -> Sequence[Finding]:
        found: list[Finding] = []
        for size in results.levels("data_bytes"):
            cells = results.where(data_bytes=size)
            each = format_bytes(float(size))
            found += saturation_finding(f"{self.name}-{size}", f"writes of {each} by each rank", cells, "writers", results)
            fewer, everybody = _best_of_few(cells), cells[-1]
            if fewer is not None:
                number = fewer.settings["writers"]
                text = f"With {each} of each rank, {number} writers are {{ratio}} times as fast as every rank for itself."
                found.append(ratio_finding(f"{self.name}-{size}-few-to-all", text, fewer, everybody, results))
        return found

    def advice(self, results: Results) -> Sequence[Advice]:
        return [
            advice
            for size in results.levels("data_bytes")
            for advice in saturation_advice(
                f"writers of a node, {format_bytes(float(size))} of each rank",
                "writes",
                results.where(data_bytes=size),
                "writers",
                results,
            )
        ]


def _best_of_few(cells: Sequence[Measured]) -> Measured | None:
    """The number of writers below all ranks with the highest median."""
    return max(cells[:-1], key=lambda one: one.estimate.median if one.estimate else 0.0, default=None)
