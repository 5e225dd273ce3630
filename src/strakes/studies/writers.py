"""writers: how many of the ranks should write, the others handing their data over, for little and for much data. S1."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.findings.answers import Question
from strakes.findings.cell import Cell, Measure
from strakes.findings.portrait import Figure, Reference, Setting, SkippedCell
from strakes.findings.results import Measured, Results
from strakes.plan import Plan, TransferPhase
from strakes.studies.compose import ask_level, series
from strakes.studies.study import Context, Study, power_of_two_at_most
from strakes.units import KIB, MIB, format_bytes

_SIZES = (64 * KIB, MIB, 8 * MIB)
_FULL_SIZES = (64 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB)
# Other numbers of ranks in total, with the amount of each that S1's rules are about.
_FULL_TEAMS, _TEAM_BYTES = (4, 64), MIB


class Writers(Study):
    """A file for each writer, which merges what its group hands over; gathering is part of the time."""

    name = "writers"
    title = "Writers"
    question = "How many processes of a node should write, depending on how much data each has?"
    source = "S1"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell per number of writers among the ranks; those that do not fit are skipped."""
        ranks = 16 if context.full else 8
        each = ranks
        if len(context.nodes) > 1:
            each = power_of_two_at_most(min(context.nodes.values()))
            ranks = each * len(context.nodes)
        cells: list[Cell | SkippedCell] = []
        levels = [(ranks, each, size) for size in (_FULL_SIZES if context.full else _SIZES)]
        if each == ranks:
            levels += [(team, team, _TEAM_BYTES) for team in (_FULL_TEAMS if context.full else ())]
        for ranks, each, size in levels:
            for writers in [2**power for power in range(each.bit_length())]:
                settings: dict[str, Setting] = {"writers": writers, "data_bytes": size, "ranks": ranks}
                if ranks * size > context.max_bytes:
                    reason = f"{format_bytes(ranks * size)} are more than strakes may use here"
                    cells.append(self.skipped(reason, **settings))
                    continue
                # As many writers as ranks of a node: nobody hands anything over.
                phase = TransferPhase(
                    "write",
                    "write",
                    "file-per-process" if writers == each else "file-per-writer",
                    "segmented",
                    min(size, MIB),
                    size,
                    writers=0 if writers == each else writers,
                    sync="fsync",
                    stop=context.stonewall(),
                )
                measures = (Measure("write", "bytes_per_s", {"operation": "write"}),)
                other = f"/of-{ranks}" if ranks != levels[0][0] else ""
                key = f"{self.name}/{size}/{writers}{other}"
                plan = Plan(ranks, (phase,), context.seed, each if each < ranks else None)
                cells.append(Cell(self.name, key, settings, plan, measures, priority=2 if other else 1))
        return cells

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return bandwidth by writers, with S1's advice."""
        lines = tuple(
            line
            for ranks, size in _groups(results)
            for line in series(
                f"{format_bytes(float(size))} of each of {ranks} ranks", _along(results, ranks, size), "writers"
            )
        )
        theirs = Reference(
            "S1",
            "S1: at most 1,000 writers in all and 16 times the stripe count, about 8 of a node; with 1 GiB of each "
            "process 256 were best",
            8,
            32,
        )
        writers = "writers of each node" if results.facts.get("nodes") else "writers of this node"
        return [self.figure(lines, (writers, "", "log"), ("bandwidth of all ranks", "B/s"), theirs)]

    def questions(self, results: Results) -> Sequence[Question]:
        """Return how many writers are enough for each amount of data, and whether more ranks write faster."""
        questions = [
            question
            for ranks, size in _groups(results)
            for question in ask_level(
                self.name,
                f"{size}-of-{ranks}",
                f"writers, {format_bytes(float(size))} of each of {ranks} ranks",
                _along(results, ranks, size),
                "writers",
            )
        ]
        everybody = [
            cell for cell in results.where(data_bytes=_TEAM_BYTES) if cell.settings["writers"] == cell.settings["ranks"]
        ]
        title = f"ranks, {format_bytes(_TEAM_BYTES)} of each, all write"
        return [*questions, *ask_level(self.name, "all-ranks", title, everybody, "ranks")]


def _groups(results: Results) -> list[tuple[Setting, Setting]]:
    """Numbers of ranks, and amounts of each, that were measured together."""
    return list(dict.fromkeys((cell.settings["ranks"], cell.settings["data_bytes"]) for cell in results.where()))


def _along(results: Results, ranks: Setting, size: Setting) -> list[Measured]:
    return results.where(ranks=ranks, data_bytes=size)
