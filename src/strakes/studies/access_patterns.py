"""access-patterns: SFWA, MFWA and SFSA, strided and not. S5, with its statements tested as claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.findings.answers import Question
from strakes.findings.cell import Cell, Measure
from strakes.findings.portrait import Figure, Finding, Headline, Reference, Setting, SkippedCell
from strakes.findings.results import Measured, Results
from strakes.plan import Plan, TransferPhase
from strakes.report.words import PATTERNS
from strakes.studies.compose import (
    WRITE_AND_READ,
    ask,
    series,
    write_and_read,
)
from strakes.studies.seven import seven_findings
from strakes.studies.study import BANDWIDTH, Context, Study
from strakes.units import KIB, MIB, counted, format_bytes

_SURVEY_SIZES = (64 * KIB, MIB)
_FULL_SIZES = (4 * KIB, 64 * KIB, MIB, 4 * MIB)
_FULL_CLIENTS = (1, 2, 4, 8, 16)
# S5's clients wrote and read 32 objects each; whole reads of one file were repeated to 5 %.
_OBJECTS = 32
_WHOLE_PRECISION = 0.05
_NAMES = {name: f"{name}: {PATTERNS[name]}" for name in ("SFWA", "MFWA", "SFSA", "SFSA strided")}


def _priority(pattern: str, size: int) -> int:
    """Return what a short survey measures first: the ways to lay out files, in large requests."""
    whole = pattern == "SFWA"
    return (4 if whole else 3) if size < _SURVEY_SIZES[-1] else 3 if whole else 1


class AccessPatterns(Study):
    """Single or multiple files, whole or segmented access, strided or not, by request size."""

    name = "access-patterns"
    title = "Access patterns"
    question = "One file or many, contiguous or strided, small or large requests: which is fastest here?"
    source = "S5"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell per pattern and transfer size; sizes above the data of a rank are skipped."""
        cells: list[Cell | SkippedCell] = []
        amount = context.amount_bytes(context.team)
        for size in _FULL_SIZES if context.full else _SURVEY_SIZES:
            for pattern in _NAMES:
                if size > amount:
                    cells.append(
                        self.skipped(
                            f"needs more than the {format_bytes(amount)} per rank that fit",
                            pattern=pattern,
                            transfer_bytes=size,
                        )
                    )
                else:
                    cell = self._cell(context, pattern, size, amount, context.team, "requests")
                    cells.append(cell if context.full else replace(cell, priority=_priority(pattern, size)))
        if context.full:
            # As much for each client, however many there are.
            each = context.amount_bytes(_FULL_CLIENTS[-1])
            size = max(4 * KIB, each // _OBJECTS)
            cells += [
                self._cell(context, pattern, size, each, clients, "clients")
                for clients in _FULL_CLIENTS
                for pattern in _NAMES
                if pattern != "SFWA"
            ]
        return cells

    def _cell(self, context: Context, pattern: str, size: int, amount: int, ranks: int, axis: str) -> Cell:
        settings: dict[str, Setting] = {
            "pattern": pattern,
            "transfer_bytes": size,
            "requests": amount // size,
            "ranks": ranks,
            "axis": axis,
        }
        by = size if axis == "requests" else f"{ranks}-clients"
        key = f"{self.name}/{pattern.lower().replace(' ', '-')}/{by}"
        stop = context.stonewall()
        if pattern == "SFWA":
            # The file is written by all ranks beforehand; its size is one rank's amount, since every rank reads all of
            # it.
            block = max(1, amount // ranks // size) * size
            make = TransferPhase("make", "write", "shared-file", "segmented", size, block, sync="fsync")
            read = TransferPhase("read", "read", "shared-file", "whole", size, block, cache="drop", stop=stop)
            return Cell(
                self.name,
                key,
                settings,
                Plan(ranks, (make, read), context.seed),
                (Measure("read", "bytes_per_s", {"operation": "read"}),),
                precision=_WHOLE_PRECISION if context.full else None,
            )
        if pattern == "SFSA strided":
            phases = write_and_read(size, size, stop, "shared-file", "strided", amount // size)
        else:
            phases = write_and_read(size, amount, stop, "file-per-process" if pattern == "MFWA" else "shared-file")
        return Cell(self.name, key, settings, Plan(ranks, phases, context.seed), WRITE_AND_READ)

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return bandwidth by request size, and by clients where they vary, with what S5 published."""
        theirs = {
            "read": Reference(
                "S5",
                "S5 (Lustre, 40 clients): reads about 20 % faster than writes; SFSA reads about 20 % better than MFWA; "
                "strided worse the finer",
            ),
            "write": Reference(
                "S5", "S5 (Lustre, 40 clients): request size does not matter when contiguous; strided worse the finer"
            ),
        }
        return [
            self.figure(
                [
                    line
                    for pattern, name in _NAMES.items()
                    for line in series(
                        name, results.where(operation=operation, pattern=pattern, axis="requests"), "transfer_bytes"
                    )
                ],
                ("request size", "B", "log"),
                BANDWIDTH,
                theirs[operation],
                title=f"{self.title}: {operation}s",
            )
            for operation in ("write", "read")
        ] + [
            self.figure(
                [
                    line
                    for pattern, name in _NAMES.items()
                    for line in series(
                        name, results.where(operation=operation, pattern=pattern, axis="clients"), "ranks"
                    )
                ],
                ("clients (ranks of this node)", "", "log"),
                ("bandwidth of all clients", "B/s"),
                Reference(
                    "S5",
                    "S5 (1 - 40 clients): a file per client settles; contiguous segments are better, but lose "
                    "with clients",
                ),
                title=f"{self.title}: {operation}s against clients",
                question="How does the rate change as clients are added?",
            )
            for operation in ("write", "read")
            if results.where(axis="clients")
        ]

    def _pick(self, results: Results, pattern: str, operation: str, size: Setting) -> list[Measured]:
        return results.where(pattern=pattern, operation=operation, transfer_bytes=size, axis="requests")

    def questions(self, results: Results) -> Sequence[Question]:
        """Return which files and which access are fastest, for writes and for reads."""
        sizes = _sizes(results)
        if not sizes:
            return []
        questions: list[Question] = []
        for operation in ("write", "read"):
            strided, contiguous = (
                self._pick(results, pattern, operation, sizes[0]) for pattern in ("SFSA strided", "SFSA")
            )
            own, shared = (self._pick(results, pattern, operation, sizes[-1]) for pattern in ("MFWA", "SFSA"))
            small, large = (format_bytes(float(size)) for size in (sizes[0], sizes[-1]))
            questions += ask(
                self.name,
                f"strided-{operation}",
                f"shared file, {operation}s of {small}",
                [("contiguous", contiguous), ("strided", strided)],
                alike="strides cost nothing",
            )
            questions += ask(
                self.name,
                f"files-{operation}",
                f"files, {operation}s of {large}",
                [("one per process", own), ("one shared file", shared)],
                alike="sharing one costs nothing",
            )
        return questions

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return S5's seven statements; without different numbers of clients only those that were measured."""
        judged = seven_findings(results)
        if results.where(axis="clients"):
            return judged
        return [finding for finding in judged if finding.verdict != "unknown"]

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return each pattern's rate at the largest number of clients; none where clients do not vary."""
        clients = sorted({float(cell.settings["ranks"]) for cell in results.where(axis="clients")})
        return [
            Headline(
                f"{cell.settings['pattern']}, {cell.settings['operation']}, "
                f"{counted(float(clients[-1]), 'client')} (ranks)",
                cell.id,
            )
            for cell in (results.where(axis="clients", ranks=clients[-1]) if clients else ())
        ]


def _sizes(results: Results) -> list[Setting]:
    return sorted({cell.settings["transfer_bytes"] for cell in results.where(axis="requests")}, key=float)
