"""Run a study on two file systems, or with two values of a setting, in alternation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.base.language import gettext
from strakes.model.answers import Claim, Part, Question
from strakes.model.portrait import Figure, Finding, Headline, Point, Setting, SkippedCell
from strakes.model.results import Measured, Results
from strakes.studies.compose import ask, title_of
from strakes.studies.study import Cells, Context, Study

PREFIX = "against:"
_SIDE = "side"
_MOST_LINES = 3


class Against(Study):
    """A study that alternates between two sides, A and B. On each side, it measures the cells of another study.

    Side A is the measured file system, and side B is that of --against. With ``knob``, the sides differ only in the
    file system setting of this name: ``before`` on side A, ``after`` on side B.
    """

    def __init__(self, inner: Study, knob: str = "", before: str = "", after: str = "") -> None:
        self.inner = inner
        self._knob, self._values = knob, {"A": before, "B": after}
        self.varied = [{knob: value} for value in (before, after) if knob]
        self.name = f"{PREFIX}{inner.name}"
        self.title = inner.title
        self.question = inner.question
        self.source = inner.source
        self.needs_pilot = inner.needs_pilot
        self.needs_description = inner.needs_description
        self.interrupts_service = inner.interrupts_service

    @property
    def identity(self) -> str:
        return " ".join(filter(None, (self.name, self._knob, *self._values.values())))

    def cells(self, context: Context) -> Cells:
        for cell in self.inner.cells(context):
            if isinstance(cell, SkippedCell):
                yield replace(cell, study=self.name)
                continue
            for side, value in self._values.items():
                settings = {**cell.settings, _SIDE: side}
                own = replace(cell, study=self.name, key=f"{side}/{cell.key}", settings=settings)
                if self._knob:
                    own = replace(own, settings={**settings, self._knob: value}, knobs={self._knob: value})
                elif side == "B":
                    own = replace(own, place=replace(cell.place, target="against"))
                yield own

    def figures(self, results: Results) -> Sequence[Figure]:
        figures = []
        for figure in self.inner.figures(self._side(results, "A")):
            if len(figure.series) > _MOST_LINES:
                for line in figure.series:
                    title = gettext("{title}: {line}: A and B", title=figure.title, line=line.name)
                    figures.append(self._with_both(replace(figure, title=title, series=(line,)), results))
            else:
                title = gettext("{title}: A and B", title=figure.title)
                figures.append(self._with_both(replace(figure, title=title), results))
        return figures

    def _with_both(self, figure: Figure, results: Results) -> Figure:
        measured = {cell.id for cell in results.measured if cell.estimate is not None}
        others = []
        for line in figure.series:
            points = [(point.x, f"B/{point.cell.removeprefix('A/')}") for point in line.points]
            others.append(replace(line, points=tuple(Point(x, cell) for x, cell in points if cell in measured)))
        lines = [(_side_text("A", line.name), line) for line in figure.series]
        lines += [(_side_text("B", line.name), line) for line in others if line.points]
        return replace(figure, study=self.name, series=tuple(replace(line, name=name) for name, line in lines))

    def questions(self, results: Results) -> Sequence[Question]:
        pairs = self._pairs(results)
        each: list[Question] = []
        for a, b in pairs:
            common = {name: value for name, value in a.settings.items() if b.settings.get(name) == value}
            title = title_of(replace(a, settings=common))
            each += ask(self.name, a.id.removeprefix("A/"), title, [("A", [a]), ("B", [b])], advises=False)
        means: list[Question] = []
        for name, (title, cells) in self.inner.means(self._side(results, "A")).items():
            sides = [("A", cells), ("B", [b for cell in cells for a, b in pairs if a.id == cell.id])]
            if len(sides[0][1]) == len(sides[1][1]):
                means += ask(self.name, f"mean-{name}", title, sides, advises=False, mean="arithmetic")
        both = [("A", [a for a, _ in pairs]), ("B", [b for _, b in pairs])]
        title = gettext("geometric mean of all {count} measurements", count=len(pairs))
        overall = ask(self.name, "overall", title, both, advises=False, mean="geometric") if len(pairs) > 1 else []
        of_sides = [
            replace(
                question,
                id=f"{self.name}-{side}-{question.id}",
                study=self.name,
                title=_side_text(side, question.title),
            )
            for side in ("A", "B")
            for question in self.inner.questions(self._side(results, side))
        ]
        return [*means, *each, *of_sides, *overall]

    def claims(self, results: Results) -> Sequence[Claim]:
        means = self.inner.means(self._side(results, "A"))
        if not means or self.inner.published_ratio is None or self._knob:
            return ()
        title, cells = next(iter(means.values()))
        pairs = [(a.id, b.id) for a, b in self._pairs(results) if a.id in {cell.id for cell in cells}]
        if len(pairs) < len(cells):
            return ()
        a, b = zip(*pairs, strict=True)
        part = Part(gettext("{title}, A to B", title=title), a, b, *self.inner.published_ratio, "arithmetic")
        low, high = (f"{end:.3g}" for end in self.inner.published_ratio)
        text = gettext("the ratio of the means is in the published range of {low} to {high}", low=low, high=high)
        return [Claim(f"{self.name}-published-mean", self.name, text, (part,))]

    def findings(self, results: Results) -> Sequence[Finding]:
        return [
            replace(
                finding,
                id=f"{self.name}-{side}-{finding.id}",
                study=self.name,
                statement=_side_text(side, finding.statement),
            )
            for side in ("A", "B")
            for finding in self.inner.summaries(self._side(results, side))
        ]

    def headlines(self, results: Results) -> Sequence[Headline]:
        return [
            replace(headline, label=_side_text(side, headline.label))
            for side in ("A", "B")
            for headline in self.inner.headlines(self._side(results, side))
        ]

    def _pairs(self, results: Results) -> list[tuple[Measured, Measured]]:
        of_b = {cell.id.removeprefix("B/"): cell for cell in results.where(side="B")}
        pairs = [(cell, of_b.get(cell.id.removeprefix("A/"))) for cell in results.where(side="A")]
        return [(a, b) for a, b in pairs if b is not None]

    def _side(self, results: Results, side: Setting) -> Results:
        changed = {name for a, b in self._pairs(results)[:1] for name, _ in a.settings.items() ^ b.settings.items()}
        own = tuple(
            replace(
                cell,
                study=self.inner.name,
                settings={name: value for name, value in cell.settings.items() if name == _SIDE or name not in changed},
            )
            for cell in results.measured
            if cell.settings.get(_SIDE) == side
        )
        return Results(own, results.confidence, results.facts)


def _side_text(side: str, text: str) -> str:
    return gettext("{side}: {text}", side=side, text=text)
