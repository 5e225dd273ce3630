"""small-files: the steps of Postmark on pools of small files: fill, transactions, remove. Source: StorNext (2011)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from strakes.base.language import gettext, ngettext
from strakes.model.answers import Question
from strakes.model.cell import Measure
from strakes.model.phases import AMOUNT, SmallFilesPhase, Stop
from strakes.model.portrait import Figure, Finding, IntervalOf
from strakes.model.results import Measured, Results
from strakes.studies.compose import ask, ask_level, bars, interval_in
from strakes.studies.study import NARROWER, OPERATIONS, Cells, Context, Study

# Settings of Postmark, as published (StorNext, 2011).
LOW_BYTES, HIGH_BYTES = 2048, 6144
UNIT_BYTES = 1024
# Number of directories in a pool, as published (StorNext, 2011).
SUBDIRECTORIES = 16
# Published files per hour (StorNext, 2011): the required rate, and the rates before and after tuning.
NEEDED_PER_HOUR = 2_000_000
BEFORE_PER_HOUR, AFTER_PER_HOUR = 500_000, 4_600_000
HOUR_S = 3600.0
_PHASES = {"fill": "create and write", "transactions": "transactions", "remove": "remove"}


class SmallFiles(Study):
    """Rates of creating, using and removing files of 2 to 6 KiB. Each rank has a separate pool of files."""

    name = "small-files"
    title = "Floods of small files"
    question = "How many small files per hour can be written, used and removed?"
    source = "S3"

    def cells(self, context: Context) -> Cells:
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
            for when, rate in ((gettext("before tuning"), BEFORE_PER_HOUR), (gettext("after tuning"), AFTER_PER_HOUR))
        )
        return [self.figure(drawn, (gettext("operation"), "", "category"), OPERATIONS, *theirs)]

    def findings(self, results: Results) -> Sequence[Finding]:
        ranks = results.levels("ranks")
        if not ranks:
            return []
        fill = results.where(ranks=ranks[-1], operation=_PHASES["fill"])
        return [self._per_hour(fill[0], int(ranks[-1]))] if fill else []

    def questions(self, results: Results) -> Sequence[Question]:
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
        assert cell.estimate is not None
        needed, scale, evidence = NEEDED_PER_HOUR / 1e6, HOUR_S / 1e6, (cell.id,)
        statement = ngettext(
            "{count} rank of one node writes {rate} million files an hour; StorNext (2011) needed {needed} million, "
            "from 100 clients or more.",
            "{count} ranks of one node write {rate} million files an hour; StorNext (2011) needed {needed} million, "
            "from 100 clients or more.",
            ranks,
            rate=f"{cell.estimate.median * scale:,.3g}",
            needed=f"{needed:g}",
        )
        known = interval_in(cell.estimate)
        if known is None:
            needs = gettext("more runs: give a larger --budget")
            return self.finding("per-hour", statement, "inconclusive", evidence, needs=needs)
        of = gettext("rate of files")
        interval = IntervalOf(known.low * scale, known.high * scale, known.confidence, of, "million files/h")
        if interval.low >= needed:
            return self.finding("per-hour", statement, "holds", evidence, interval, tone="good")
        if interval.high < needed:
            return self.finding("per-hour", statement, "does-not", evidence, interval, tone="bad")
        return self.finding("per-hour", statement, "inconclusive", evidence, interval, gettext(NARROWER))


def pool_phase(
    name: str,
    mode: Literal["accumulate", "transactions", "remove"],
    *,
    files: int = 0,
    transactions: int = 0,
    stop: Stop = AMOUNT,
    syncfs: bool = False,
) -> SmallFilesPhase:
    """Return a phase on a pool with Postmark's published settings: files of 2,048 to 6,144 bytes, 1,024 per call."""
    return SmallFilesPhase(
        name,
        mode,
        LOW_BYTES,
        HIGH_BYTES,
        files_per_rank=files,
        subdirectories=SUBDIRECTORIES,
        read_unit_bytes=UNIT_BYTES,
        write_unit_bytes=UNIT_BYTES,
        transactions=transactions,
        stop=stop,
        syncfs=syncfs,
    )


def files_that_fit(max_bytes: int, max_items: int, ranks: int, wanted: int) -> int:
    """Return the number of files per rank, at most ``wanted``. Transactions may double the files, so leave room."""
    room = min(max_bytes // (2 * HIGH_BYTES), (max_items - ranks * (2 + SUBDIRECTORIES)) // 2)
    return max(0, min(wanted, room // ranks))
