"""access-patterns: SFWA, MFWA and SFSA, strided and not. S5, with its statements tested as claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strakes.findings.cell import Cell, Measure
from strakes.findings.portrait import Figure, Finding, Headline, Reference, Setting, SkippedCell
from strakes.findings.results import Measured, Results
from strakes.plan import Plan, TransferPhase
from strakes.report.words import PATTERNS
from strakes.studies.compose import (
    NO_COST,
    PROMISING,
    WRITE_AND_READ,
    Tone,
    better_ratio,
    ratio_finding,
    series,
    write_and_read,
)
from strakes.studies.seven import seven_findings
from strakes.studies.study import BANDWIDTH, Advice, Context, Study
from strakes.units import KIB, MIB, counted, format_bytes

_SURVEY_SIZES = (64 * KIB, MIB)
_FULL_SIZES = (4 * KIB, 64 * KIB, MIB, 4 * MIB)
_FULL_CLIENTS = (1, 2, 4, 8, 16)
# S5's clients wrote and read 32 objects each; whole reads of one file were repeated to 5 %.
_OBJECTS = 32
_WHOLE_PRECISION = 0.05
_NAMES = {name: f"{name}: {PATTERNS[name]}" for name in ("SFWA", "MFWA", "SFSA", "SFSA strided")}


@dataclass(frozen=True)
class _Claim:
    """The ratio of two cells, each by pattern, operation and request size."""

    identifier: str
    text: str
    first: tuple[str, str, Setting]
    second: tuple[str, str, Setting]
    tone: Tone | None = None


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
    in_survey = True

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

    def _pick(self, results: Results, pattern: str, operation: str, size: Setting) -> Measured | None:
        cells = results.where(pattern=pattern, operation=operation, transfer_bytes=size, axis="requests")
        return cells[0] if cells else None

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return S5's statements as tested claims, and the seven patterns where clients vary."""
        sizes = _sizes(results)
        if not sizes:
            return []
        findings = []
        for claim in _claims(sizes[0], sizes[-1]):
            a, b = self._pick(results, *claim.first), self._pick(results, *claim.second)
            if a is not None and b is not None:
                identifier = f"{self.name}-{claim.identifier}"
                findings.append(ratio_finding(identifier, claim.text, a, b, results, tone=claim.tone))
        judged = seven_findings(results)
        if results.where(axis="clients"):
            return [*judged, *findings]
        # A survey does not vary the clients: what it did not ask is nothing it has to answer.
        return [*findings, *(finding for finding in judged if finding.verdict != "unknown")]

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

    def advice(self, results: Results) -> Sequence[Advice]:
        """Return which file layout to use for reads and for writes, at the largest transfer size."""
        sizes = _sizes(results)
        advice = []
        for operation in ("write", "read"):
            own = self._pick(results, "MFWA", operation, sizes[-1]) if sizes else None
            shared = self._pick(results, "SFSA", operation, sizes[-1]) if sizes else None
            if own is not None and shared is not None:
                advice += _choose(
                    f"file layout, {operation}s",
                    operation,
                    ("a file per process", own),
                    ("segments of one shared file", shared),
                    results,
                )
        return advice


def _sizes(results: Results) -> list[Setting]:
    return sorted({cell.settings["transfer_bytes"] for cell in results.where(axis="requests")}, key=float)


def _claims(small: Setting, large: Setting) -> list[_Claim]:
    """Return what is worth a figure: pattern, operation and request size against another."""
    claims = [
        _Claim(
            "read-to-write",
            "Reads are {ratio} times as fast as writes to fsync (MFWA; S5: about 1.2).",
            ("MFWA", "read", large),
            ("MFWA", "write", large),
        )
    ]
    for operation, doing in (("read", "Reading"), ("write", "Writing")):
        theirs = " (S5: about 1.2)" if operation == "read" else ""
        claims += [
            _Claim(
                f"strided-{operation}",
                f"Strided {operation}s of a shared file are {{ratio}} times as fast as contiguous ones.",
                ("SFSA strided", operation, small),
                ("SFSA", operation, small),
                tone=Tone(good=NO_COST, praise="Strides cost little."),
            ),
            _Claim(
                f"shared-to-own-{operation}",
                f"{doing} segments of one shared file is {{ratio}} times as fast as a file per rank{theirs}.",
                ("SFSA", operation, large),
                ("MFWA", operation, large),
                tone=Tone(good=NO_COST, praise="Sharing one costs little."),
            ),
        ]
    return claims


def _choose(
    setting: str, operation: str, a: tuple[str, Measured], b: tuple[str, Measured], results: Results
) -> list[Advice]:
    """Propose whichever seems faster by a margin; nothing when neither does."""
    ratio = better_ratio(a[1], b[1], results.confidence)
    if ratio is None or PROMISING <= ratio.median <= 1 / PROMISING:
        return []
    winner, loser = (a, b) if ratio.median > 1 else (b, a)
    reason = f"{operation}s are faster than with {loser[0]}"
    return [Advice(setting, winner[0], reason, winner[1].id, loser[1].id, 1.0, (winner[1].id, loser[1].id))]
