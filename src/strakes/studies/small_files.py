"""small-files: Postmark's steps on pools of small files: fill, transactions, remove. S3."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.findings.answers import Question
from strakes.findings.cell import Cell, Measure
from strakes.findings.portrait import Figure, Finding, Headline, IntervalOf, Point, Reference, Series, SkippedCell
from strakes.findings.results import Measured, Results
from strakes.plan import Plan
from strakes.studies.compose import ask, ask_level
from strakes.studies.pools import (
    AFTER_PER_HOUR,
    BEFORE_PER_HOUR,
    HOUR_S,
    NEEDED_PER_HOUR,
    files_that_fit,
    pool_phase,
)
from strakes.studies.study import NARROWER, Context, Study
from strakes.units import counted

_PHASES = {"fill": "create and write", "transactions": "transactions", "remove": "remove"}


class SmallFiles(Study):
    """Rates of creating, using and removing files of 2 to 6 KiB, with one pool per rank."""

    name = "small-files"
    title = "Floods of small files"
    question = "How many small files per hour can be written, used and removed?"
    source = "S3"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell for each number of ranks; skip a cell if fewer than 8 files per rank may be created."""
        cells: list[Cell | SkippedCell] = []
        for ranks in sorted({1, context.team, *((2 * context.team, 10) if context.full else ())}):
            files = files_that_fit(context.max_bytes, context.max_items, ranks, context.items(ranks))
            if files < 8:
                reason = f"only {context.max_items} files may be created here"
                cells.append(self.skipped(reason, ranks=ranks))
                continue
            phases = (
                pool_phase("fill", "accumulate", files=files, stop=context.stonewall()),
                pool_phase("transactions", "transactions", transactions=files, stop=context.stonewall()),
                pool_phase("remove", "remove"),
            )
            measures = tuple(Measure(name, "operations_per_s", {"operation": text}) for name, text in _PHASES.items())
            cells.append(
                Cell(self.name, f"{self.name}/{ranks}", {"ranks": ranks}, Plan(ranks, phases, context.seed), measures)
            )
        return cells

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the rate of each step by number of ranks, with S3's results."""
        lines = []
        for ranks in results.levels("ranks"):
            points = tuple(Point(str(cell.settings["operation"]), cell.id) for cell in results.where(ranks=ranks))
            lines.append(Series("1 rank" if ranks == 1 else f"{ranks} ranks", points))
        theirs = tuple(
            Reference(
                "S3",
                f"S3 (StorNext, Postmark, 5 clients x 2 processes, 10 million files), {when}: {rate / 1e6:g} million "
                "files an hour",
                label=f"S3, published: {when}",
                points=(("create and write", rate / HOUR_S),),
            )
            for when, rate in (("before tuning", BEFORE_PER_HOUR), ("after tuning", AFTER_PER_HOUR))
        )
        return [self.figure(lines, ("operation", "", "category"), ("operations a second", "op/s"), *theirs)]

    def findings(self, results: Results) -> Sequence[Finding]:
        """Compare files per hour with the rate that S3 required."""
        ranks = results.levels("ranks")
        if not ranks:
            return []
        findings = []
        fill = results.where(ranks=ranks[-1], operation="create and write")
        if fill:
            findings.append(
                self._per_hour(
                    fill[0], f"{counted(float(ranks[-1]), 'rank')} of one node write{'s' if ranks[-1] == 1 else ''}"
                )
            )
        return findings

    def questions(self, results: Results) -> Sequence[Question]:
        """Ask how many ranks are enough, and whether removing is as fast as writing."""
        ranks = results.levels("ranks")
        if not ranks:
            return []
        fill, remove = (results.where(ranks=ranks[-1], operation=_PHASES[name]) for name in ("fill", "remove"))
        writing = results.where(operation=_PHASES["fill"])
        return [
            *ask_level(self.name, "scaling", "ranks that write small files", writing, "ranks"),
            *ask(self.name, "remove-to-fill", "small files", [("write", fill), ("remove", remove)], advises=False),
        ]

    def _per_hour(self, cell: Measured, what: str) -> Finding:
        """Compare one cell's files per hour with the rate that S3 required."""
        assert cell.estimate is not None
        rate = cell.estimate.median * HOUR_S
        statement = f"{what}: {rate / 1e6:,.3g} million files an hour"
        if cell.estimate.low is None or cell.estimate.high is None:
            needs = "more runs: give a larger --budget"
            return self.finding("per-hour", f"{statement}.", "inconclusive", (cell.id,), needs=needs)
        low, high = cell.estimate.low * HOUR_S / 1e6, cell.estimate.high * HOUR_S / 1e6
        interval = IntervalOf(low, high, cell.estimate.confidence, "rate of files", "million files/h")
        needed = NEEDED_PER_HOUR / 1e6
        statement += f"; S3 needed {needed:g} million, from 100 clients or more."
        if low >= needed:
            return self.finding("per-hour", statement, "holds", (cell.id,), interval, tone="good")
        if high < needed:
            return self.finding("per-hour", statement, "does-not", (cell.id,), interval, tone="bad")
        return self.finding("per-hour", statement, "inconclusive", (cell.id,), interval, NARROWER)

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rate of each step with the most ranks."""
        ranks = results.levels("ranks")
        return [
            Headline(f"small files: {cell.settings['operation']}, {counted(float(ranks[-1]), 'rank')}", cell.id)
            for cell in (results.where(ranks=ranks[-1]) if ranks else ())
        ]
