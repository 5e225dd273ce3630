"""Any study on two file systems in turn: every cell on both in every block, so that what slows a block slows both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.findings.cell import Cell
from strakes.findings.portrait import Figure, Finding, Headline, Setting, SkippedCell
from strakes.findings.results import Measured, Results
from strakes.statistics.comparison import Judged, block_scores, common_correlation, judge, within_blocks
from strakes.statistics.contrast import Verdict, bonferroni
from strakes.statistics.interval import smallest_runs
from strakes.studies.compose import interval_of
from strakes.studies.study import Context, Study

PREFIX = "against:"
# Differences within it are called the same.
MARGIN = 0.05
_MOST_RUNS_FOR_ALL = 12
_MOST_LINES = 3


class Against(Study):
    """Two cells for each of the inner study's.

    ``A`` on the file system measured, ``B`` on the one it is measured against.
    """

    def __init__(self, inner: Study) -> None:
        self.inner = inner
        self.name = f"{PREFIX}{inner.name}"
        self.title = f"{inner.title}: A against B"
        self.question = inner.question
        self.source = inner.source
        self.needs_pilot = inner.needs_pilot
        self.needs_description = inner.needs_description
        self.interrupts_service = inner.interrupts_service

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return every cell of the inner study twice, once on each file system."""
        cells: list[Cell | SkippedCell] = []
        inner = self.inner.cells(context)
        measures = sum(
            not measure.is_side
            for inner_cell in inner
            if isinstance(inner_cell, Cell)
            for measure in inner_cell.measures
        )
        # So many that every cell may be judged among all of them, as far as that is worth its time.
        least = min(_MOST_RUNS_FOR_ALL, smallest_runs(bonferroni(0.9, max(1, measures))))
        for cell in inner:
            if isinstance(cell, SkippedCell):
                cells.append(replace(cell, study=self.name))
                continue
            runs = max(cell.least_runs, least)
            for side, place in (("A", cell.place), ("B", replace(cell.place, target="against"))):
                settings = {**cell.settings, "target": side}
                cells.append(
                    replace(
                        cell, study=self.name, key=f"{side}/{cell.key}", settings=settings, place=place, least_runs=runs
                    )
                )
        return cells

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the inner study's, with the series of both."""
        of_a, of_b = self.inner.figures(self._side(results, "A")), self.inner.figures(self._side(results, "B"))
        figures = []
        for a in of_a:
            b = next((figure for figure in of_b if figure.title == a.title), None)
            theirs = b.series if b else ()
            # Many lines, and every one twice, are not to be told apart: then every line has a figure of its own.
            names = [series.name for series in a.series] if len(a.series) > _MOST_LINES else [""]
            for name in names:
                lines = tuple(
                    replace(series, name=f"{side}: {series.name}")
                    for side, group in (("A", a.series), ("B", theirs))
                    for series in group
                    if name in ("", series.name)
                )
                title = ": ".join(filter(None, (a.title, name, "A against B")))
                figures.append(replace(a, study=self.name, title=title, series=lines))
        return figures

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return the ratio of both sides, in all and per measure, with the summaries of each side."""
        pairs = self._pairs(results)
        if not pairs:
            return []
        alike = common_correlation([(a.by_block(), b.by_block()) for a, b in pairs])
        ratios = [
            within_blocks(a.by_block(), b.by_block(), lower_is_better=a.lower_is_better, correlation=alike)
            for a, b in pairs
        ]
        judgements = judge(ratios, results.confidence, MARGIN)
        each = [
            replace(
                finding,
                id=f"{self.name}-{side}-{finding.id}",
                study=self.name,
                statement=f"{side}: {finding.statement}",
            )
            for side in ("A", "B")
            for finding in self.inner.summaries(self._side(results, side))
        ]
        cells = [self._cell(a, b, judgement, len(pairs)) for (a, b), judgement in zip(pairs, judgements, strict=True)]
        return [self._overall(pairs, results), *each, *cells]

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the inner study's headlines of both sides."""
        return [
            replace(headline, label=f"{side}: {headline.label}")
            for side in ("A", "B")
            for headline in self.inner.headlines(self._side(results, side))
        ]

    def _pairs(self, results: Results) -> list[tuple[Measured, Measured]]:
        of_b = {cell.id.removeprefix("B/"): cell for cell in results.where(target="B")}
        pairs = [(cell, of_b.get(cell.id.removeprefix("A/"))) for cell in results.where(target="A")]
        return [(a, b) for a, b in pairs if b is not None and a.by_block().keys() & b.by_block().keys()]

    def _side(self, results: Results, side: Setting) -> Results:
        """One side's results, as if they were the inner study's own."""
        own = tuple(
            replace(cell, study=self.inner.name) for cell in results.measured if cell.settings.get("target") == side
        )
        return Results(own, results.confidence, results.facts)

    def _overall(self, pairs: Sequence[tuple[Measured, Measured]], results: Results) -> Finding:
        a, b = (
            block_scores([(pair[side].by_block(), pair[side].lower_is_better) for pair in pairs]) for side in (0, 1)
        )
        evidence = results.ids(cell for pair in pairs for cell in pair)
        if not a.keys() & b.keys():
            text = f"B against A over all {len(pairs)} cells: INCONCLUSIVE."
            needs = "a larger --budget, so that blocks measure every cell"
            return self.finding("overall", text, "inconclusive", evidence, needs=needs)
        alike = common_correlation([(first.by_block(), other.by_block()) for first, other in pairs])
        (judgement,) = judge([within_blocks(a, b, correlation=alike)], results.confidence, MARGIN)
        return self._judged("overall", f"B against A over all {len(pairs)} cells", judgement, evidence, "")

    def _cell(self, a: Measured, b: Measured, judgement: Judged, comparisons: int) -> Finding:
        name = a.id.removeprefix("A/")
        together = "" if comparisons == 1 else f", one of {comparisons} judged together"
        return self._judged(name, f"B against A, {name}", judgement, (a.id, b.id), together)

    def _judged(self, name: str, what: str, judgement: Judged, evidence: tuple[str, ...], together: str) -> Finding:
        text = (
            f"{what}: {judgement.verdict}, {judgement.ratio.median:.3f} times as good (SAME is within {100 * MARGIN:g} "
            "%)."
        )
        interval = judgement.ratio.interval
        shown = None if interval is None else interval_of(interval, f"B over A, paired{together}")
        if judgement.verdict is Verdict.INCONCLUSIVE:
            return self.finding(name, text, "inconclusive", evidence, shown, judgement.needs)
        return self.finding(name, text, "measured", evidence, shown)
