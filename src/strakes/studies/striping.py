"""striping: stripe count and stripe size for small, medium and large files. S1 section 3.4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strakes.base.language import gettext
from strakes.base.units import GIB, KIB, MIB, counted, format_bytes
from strakes.model.answers import Question
from strakes.model.cell import Cell
from strakes.model.plan import Plan
from strakes.model.portrait import Figure, Headline, Reference, Series, Setting, SkippedCell
from strakes.model.results import Measured, Results
from strakes.studies.compose import (
    WRITE_AND_READ,
    ask_level,
    from_own_cache,
    series,
    write_and_read,
)
from strakes.studies.study import BANDWIDTH, Context, Study
from strakes.targets.description import Layout

# Stripe size while the stripe count varies: S1 found 1 MiB good for files of all sizes.
_USUAL_STRIPE = MIB
_STRIPES = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB)
_FILES = (MIB, 128 * MIB, GIB)
_SMALL_FILE = MIB
# Stop a phase after this multiple of the time that the file takes at the pilot's rate.
_PATIENCE = 3.0
# Titles of questions, by operation and factor.
_TITLES = {
    ("write", "stripe_count"): "stripe count, writes of files of {size}",
    ("write", "stripe_bytes"): "stripe size, writes of files of {size}",
    ("read", "stripe_count"): "stripe count, reads of files of {size}",
    ("read", "stripe_bytes"): "stripe size, reads of files of {size}",
}
_HEADLINES = {
    "write": "best write by layout ({count} x {size} stripes)",
    "read": "best read by layout ({count} x {size} stripes)",
}


@dataclass(frozen=True)
class _Level:
    file_bytes: int
    stripe_count: int
    stripe_bytes: int


class StripingStudy(Study):
    """Bandwidth by stripe count at one stripe size, and by stripe size at one count; one file per process."""

    name = "striping"
    title = "Striping"
    question = "Over how many data targets should a file be striped, and with what stripe size?"
    source = "S1"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell for each layout and file size; skip files that exceed the usable space."""
        if context.striping is None:
            why = context.no_striping or f"strakes cannot do that on {context.file_system}"
            return [self.skipped(f"the layout of files cannot be set here: {why}")]
        if context.striping.data_targets < 2:
            return [self.skipped("there is only one data target, so files cannot be striped")]
        cells: list[Cell | SkippedCell] = []
        for level in _levels(context, context.striping.data_targets, context.striping.unit_bytes):
            settings = _settings(level, context.team)
            if level.file_bytes * context.team > context.max_bytes:
                reason = (
                    f"{counted(context.team, 'file')} of {format_bytes(level.file_bytes)}: more than strakes "
                    "may use here"
                )
                cells.append(self.skipped(reason, **settings))
            else:
                cells.append(self._cell(context, level, settings))
        return cells

    def _cell(self, context: Context, level: _Level, settings: dict[str, Setting]) -> Cell:
        # A phase that ends before the file is complete would measure a smaller file.
        planned_s = level.file_bytes * context.team / context.pilot.write_bytes_per_s
        stop = context.stonewall(_PATIENCE * max(1.0, planned_s / context.phase_s))
        phases = write_and_read(context, min(MIB, level.file_bytes), level.file_bytes, stop=stop)
        return Cell(
            self.name,
            f"{self.name}/{level.file_bytes}/{level.stripe_count}x{level.stripe_bytes}",
            settings,
            Plan(context.team, phases, context.seed),
            WRITE_AND_READ,
            priority=1 if level.file_bytes > _SMALL_FILE and level.stripe_bytes == _USUAL_STRIPE else 2,
            layout=Layout(stripe_size_bytes=level.stripe_bytes, stripe_count=level.stripe_count),
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return two figures: bandwidth by stripe count and by stripe size, with S1's advice."""
        theirs = Reference(
            "S1",
            gettext(
                "S1 (96 OSTs) advises a stripe count of 1 for small, 4 for medium and 16 for large files, and 1 MiB "
                "stripes for all"
            ),
        )
        return [
            self.figure(lines, (label, unit, "log"), BANDWIDTH, theirs, title=title)
            for factor, title, label, unit in (
                ("stripe_count", gettext("Striping: how many stripes"), gettext("stripe count"), ""),
                ("stripe_bytes", gettext("Striping: how large"), gettext("stripe size"), "B"),
            )
            if (
                lines := tuple(
                    line for operation in ("write", "read") for line in self._lines(results, operation, factor)
                )
            )
        ]

    def _lines(self, results: Results, operation: str, factor: str) -> list[Series]:
        return [
            line
            for size in results.levels("file_bytes")
            for line in series(
                gettext("{operation}, files of {size}", operation=gettext(operation), size=format_bytes(float(size))),
                _along(results, operation, size, factor),
                factor,
            )
        ]

    def questions(self, results: Results) -> Sequence[Question]:
        """Ask which stripe count and size are enough, for each file size and operation."""
        return [
            question
            for operation in ("write", "read")
            for size in results.levels("file_bytes")
            for factor in ("stripe_count", "stripe_bytes")
            for question in ask_level(
                self.name,
                f"{operation}-{size}-{factor}",
                gettext(_TITLES[operation, factor], size=format_bytes(float(size))),
                _along(results, operation, size, factor),
                factor,
            )
        ]

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the best write and read rate of the largest files, without reads that this node's cache answered."""
        lines = []
        for operation in ("write", "read"):
            sizes = results.levels("file_bytes")
            cells = results.where(operation=operation, file_bytes=sizes[-1]) if sizes else []
            cells = [cell for cell in cells if cell.estimate and not from_own_cache(cell, results.facts)]
            if cells:
                best = max(cells, key=lambda cell: cell.estimate.median if cell.estimate else 0.0)
                count, size = best.settings["stripe_count"], format_bytes(float(best.settings["stripe_bytes"]))
                lines.append(Headline(gettext(_HEADLINES[operation], count=count, size=size), best.id))
        return lines


def _levels(context: Context, targets: int, unit: int) -> list[_Level]:
    """Return the levels, which vary one factor at a time as in S1.

    Stripe counts vary at 1 MiB stripes, stripe sizes at one stripe per data target.
    """
    counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if count < targets] + [targets]
    stripes = [size for size in _STRIPES if size % unit == 0]
    levels = []
    # Always include the largest file that fits into a phase.
    files = sorted({_largest(context), *_FILES})
    for file_bytes in files:
        levels += [_Level(file_bytes, count, _USUAL_STRIPE) for count in counts]
        # A stripe larger than the file has no further effect.
        levels += [_Level(file_bytes, targets, size) for size in stripes if size <= file_bytes]
    return list(dict.fromkeys(levels))


def _largest(context: Context) -> int:
    return max(2 * _SMALL_FILE, context.amount_bytes(context.team))


def _settings(level: _Level, ranks: int) -> dict[str, Setting]:
    return {
        "file_bytes": level.file_bytes,
        "stripe_count": level.stripe_count,
        "stripe_bytes": level.stripe_bytes,
        "ranks": ranks,
    }


def _along(results: Results, operation: str, size: Setting, factor: str) -> list[Measured]:
    """Return the cells that vary only this factor, ascending."""
    cells = results.where(operation=operation, file_bytes=size)
    if factor == "stripe_count":
        cells = [cell for cell in cells if cell.settings["stripe_bytes"] == _USUAL_STRIPE]
    elif cells:
        most = max(float(cell.settings["stripe_count"]) for cell in cells)
        cells = [cell for cell in cells if float(cell.settings["stripe_count"]) == most]
    return sorted(cells, key=lambda cell: float(cell.settings[factor]))
