"""processes-per-node: when does a node saturate, and what limits it. S1 section 3.3."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.plan import Plan, TransferPhase
from strakes.portrait.model import Figure, Finding, Headline, Reference, SkippedCell
from strakes.studies.base import Advice, Cell, Context, Measure, Study, power_of_two_at_most
from strakes.studies.compose import saturation_advice, saturation_finding, series
from strakes.studies.results import Results
from strakes.units import KIB, MIB, format_bytes

_SURVEY_LEVELS = (1, 2, 4, 8)
_FULL_LEVELS = (1, 2, 4, 8, 16, 32, 64)
_TRANSFER = 64 * KIB  # as S1 did


class ProcessesPerNode(Study):
    """Ranks on this node against its total bandwidth, the same amount in total, 64 KiB per call."""

    name = "processes-per-node"
    title = "Processes per node"
    question = "How many processes of one node should do I/O?"
    source = "S1"
    in_survey = True

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        cells: list[Cell | SkippedCell] = []
        levels = _FULL_LEVELS if context.full else _SURVEY_LEVELS
        total = context.amount_bytes(1, multiple_of=max(levels) * MIB)
        for ranks in levels:
            amount = power_of_two_at_most(total / ranks)
            if amount < _TRANSFER:
                cells.append(
                    SkippedCell(self.name, {"ranks": ranks}, f"only {format_bytes(total)} in total fit the budget and the free space")
                )
            else:
                cells.append(self._cell(context, ranks, amount))
        return cells

    def _cell(self, context: Context, ranks: int, amount: int) -> Cell:
        write = TransferPhase("write", "write", "file-per-process", "segmented", _TRANSFER, amount, sync="fsync", stop=context.stonewall())
        read = TransferPhase("read", "read", "file-per-process", "segmented", _TRANSFER, amount, cache="drop", stop=context.stonewall())
        return Cell(
            self.name,
            f"{self.name}/{ranks}",
            {"ranks": ranks, "transfer_bytes": _TRANSFER},
            Plan(ranks, (write, read), context.seed),
            (Measure("write", "bytes_per_s", {"operation": "write"}), Measure("read", "bytes_per_s", {"operation": "read"})),
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        lines = [line for operation in ("write", "read") for line in series(operation, results.where(operation=operation), "ranks")]
        theirs = Reference("S1", "S1: 8 processes always good, 8 - 32 fine; its node link (9.785 GB/s) was full from 8 on", 8, 32)
        return [
            Figure(
                self.name,
                self.title,
                self.question,
                "processes on this node",
                "",
                "log",
                "bandwidth of the node",
                "B/s",
                tuple(lines),
                (theirs,),
            )
        ]

    def findings(self, results: Results) -> Sequence[Finding]:
        found = [
            finding
            for operation in ("write", "read")
            for finding in saturation_finding(
                f"{self.name}-{operation}", f"{operation}s of this node", results.where(operation=operation), "ranks", results
            )
        ]
        cells = results.ids(results.where(operation="write"))
        if cells:
            found.append(self._bottleneck(results, cells))
        return found

    def _bottleneck(self, results: Results, cells: tuple[str, ...]) -> Finding:
        """S1's test x < y*n compares the node link with the data targets behind a file's stripes."""
        identifier = f"{self.name}-bottleneck"
        if not results.facts.get("remote", False):
            statement = (
                "The test x < y*n (node link against data targets) does not apply: this file system is local, no link is in its path."
            )
            return Finding(identifier, self.name, statement, "unknown", cells, needs="a file system that is reached over a network")
        statement = "Whether the node link is the bottleneck (x < y*n) is unknown: neither the link nor one data target was measured alone."
        return Finding(
            identifier,
            self.name,
            statement,
            "unknown",
            cells,
            needs="the rate of each data target alone and the link measured between nodes",
        )

    def advice(self, results: Results) -> Sequence[Advice]:
        return [
            advice
            for operation in ("write", "read")
            for advice in saturation_advice(
                f"processes per node, {operation}s", f"{operation}s", results.where(operation=operation), "ranks", results
            )
        ]

    def headlines(self, results: Results) -> Sequence[Headline]:
        return ()
