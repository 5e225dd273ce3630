"""small-files: the steps of Postmark on pools of small files: fill, transactions, remove. After StorNext (2011), S3."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.base.language import gettext, ngettext
from strakes.model.answers import Question
from strakes.model.cell import Measure
from strakes.model.portrait import Figure, Finding, Headline, IntervalOf
from strakes.model.results import Measured, Results
from strakes.studies.compose import ask, ask_level, bars, operation_of
from strakes.studies.pools import (
    AFTER_PER_HOUR,
    BEFORE_PER_HOUR,
    HOUR_S,
    NEEDED_PER_HOUR,
    files_that_fit,
    pool_phase,
)
from strakes.studies.study import NARROWER, OPERATIONS, Cells, Context, Study

_PHASES = {"fill": "create and write", "transactions": "transactions", "remove": "remove"}


class SmallFiles(Study):
    """Rates of creating, using and removing files of 2 to 6 KiB, with one pool per rank."""

    name = "small-files"
    title = "Floods of small files"
    question = "How many small files per hour can be written, used and removed?"
    source = "S3"

    def cells(self, context: Context) -> Cells:
        """Return a cell for each number of ranks; skip a cell if fewer than 8 files per rank may be created."""
        measures = [Measure(name, "operations_per_s", {"operation": text}) for name, text in _PHASES.items()]
        for ranks in sorted({1, context.team, *((2 * context.team, 10) if context.full else ())}):
            files = files_that_fit(context.max_bytes, context.max_items, ranks, context.items(ranks))
            if files < 8:
                yield self.too_few_files(context, ranks=ranks)
                continue
            phases = (
                pool_phase("fill", "accumulate", files=files, stop=context.stonewall()),
                pool_phase("transactions", "transactions", transactions=files, stop=context.stonewall()),
                pool_phase("remove", "remove"),
            )
            yield self.cell(context, f"{ranks}", {"ranks": ranks}, phases, measures)

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the rate of each step by number of ranks, with the published results."""
        drawn = [
            bars(ngettext("{count} rank", "{count} ranks", int(ranks)), results.where(ranks=ranks))
            for ranks in results.levels("ranks")
        ]
        theirs = (
            self.published(
                gettext(
                    "StorNext (2011; Postmark, 5 clients x 2 processes, 10 million files), {when}: {rate} million "
                    "files an hour",
                    when=when,
                    rate=f"{rate / 1e6:g}",
                ),
                what=when,
                points=((gettext(_PHASES["fill"]), rate / HOUR_S),),
            )
            for when, rate in (
                (gettext("before tuning"), BEFORE_PER_HOUR),
                (gettext("after tuning"), AFTER_PER_HOUR),
            )
        )
        return [self.figure(drawn, (gettext("operation"), "", "category"), OPERATIONS, *theirs)]

    def findings(self, results: Results) -> Sequence[Finding]:
        """Compare the files per hour with the rate that the published system needed."""
        ranks = results.levels("ranks")
        if not ranks:
            return []
        fill = results.where(ranks=ranks[-1], operation=_PHASES["fill"])
        return [self._per_hour(fill[0], int(ranks[-1]))] if fill else []

    def questions(self, results: Results) -> Sequence[Question]:
        """Return the questions how many ranks are enough, and whether removing is as fast as writing."""
        ranks = results.levels("ranks")
        if not ranks:
            return []
        fill, remove = (results.where(ranks=ranks[-1], operation=_PHASES[name]) for name in ("fill", "remove"))
        writing = results.where(operation=_PHASES["fill"])
        both = [(gettext("write"), fill), (gettext("remove"), remove)]
        return [
            *ask_level(self.name, "scaling", gettext("ranks that write small files"), writing, "ranks"),
            *ask(self.name, "remove-to-fill", gettext("small files"), both, advises=False),
        ]

    def _per_hour(self, cell: Measured, ranks: int) -> Finding:
        """Compare the files per hour of one cell with the rate that the published system needed."""
        assert cell.estimate is not None
        rate = f"{cell.estimate.median * HOUR_S / 1e6:,.3g}"
        if cell.estimate.low is None or cell.estimate.high is None:
            one = "{count} rank of one node writes: {rate} million files an hour."
            several = "{count} ranks of one node write: {rate} million files an hour."
            statement = ngettext(one, several, ranks, rate=rate)
            needs = gettext("more runs: give a larger --budget")
            return self.finding("per-hour", statement, "inconclusive", (cell.id,), needs=needs)
        low, high = cell.estimate.low * HOUR_S / 1e6, cell.estimate.high * HOUR_S / 1e6
        interval = IntervalOf(low, high, cell.estimate.confidence, gettext("rate of files"), "million files/h")
        needed = NEEDED_PER_HOUR / 1e6
        statement = ngettext(
            "{count} rank of one node writes: {rate} million files an hour; StorNext (2011) needed {needed} million, "
            "from 100 clients or more.",
            "{count} ranks of one node write: {rate} million files an hour; StorNext (2011) needed {needed} million, "
            "from 100 clients or more.",
            ranks,
            rate=rate,
            needed=f"{needed:g}",
        )
        if low >= needed:
            return self.finding("per-hour", statement, "holds", (cell.id,), interval, tone="good")
        if high < needed:
            return self.finding("per-hour", statement, "does-not", (cell.id,), interval, tone="bad")
        return self.finding("per-hour", statement, "inconclusive", (cell.id,), interval, gettext(NARROWER))

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rate of each step with the most ranks."""
        ranks = results.levels("ranks")
        one, several = "small files: {operation}, {count} rank", "small files: {operation}, {count} ranks"
        return [
            Headline(ngettext(one, several, int(ranks[-1]), operation=operation_of(cell)), cell.id)
            for cell in (results.where(ranks=ranks[-1]) if ranks else ())
        ]
