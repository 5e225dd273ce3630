"""Base class of two studies that compare an application's usual way of I/O with other ways. Tian et al. (2020, S1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from strakes.base.language import gettext, ngettext
from strakes.base.units import MIB
from strakes.model.answers import Question
from strakes.model.cell import Cell, Measure
from strakes.model.plan import Phase
from strakes.model.portrait import Setting
from strakes.model.results import Measured, Results
from strakes.studies.compose import ask
from strakes.studies.study import Context, Study
from strakes.targets.description import Layout


class Scenario(Study):
    """A study of ways of I/O. The key of a cell contains the number of ranks per node that do I/O, or a name.

    ``names``: key -> label; the key "0" is the usual way. ``numbers``: labels for numbers of ranks, by whether several
    nodes take part.
    """

    source = "S1"
    names: ClassVar[Mapping[str, str]]
    numbers: ClassVar[Mapping[bool, tuple[str, str]]]

    def way(
        self,
        context: Context,
        key: str,
        settings: Mapping[str, Setting],
        phases: Sequence[Phase],
        measures: Sequence[Measure],
        stripes: int | None,
    ) -> Cell:
        """Return the cell for one way of I/O. ``stripes``: stripe count of the files, None for the default layout."""
        if stripes is None:
            return self.cell(context, key, settings, phases, measures)
        settings, layout = {**settings, "stripe_count": stripes}, Layout(stripe_size_bytes=MIB, stripe_count=stripes)
        return self.cell(context, f"{key}-on-{stripes}", settings, phases, measures, layout=layout)

    def label(self, cell: Measured, results: Results) -> str:
        """Return the label of the way of I/O of a measured cell."""
        name, _, stripes = _key(cell).partition("-on-")
        if name in self.names:
            way = gettext(self.names[name])
        else:
            way = ngettext(*self.numbers[bool(results.facts.get("nodes"))], int(name))
        return gettext("{way}, stripe count {stripe_count}", way=way, stripe_count=stripes) if stripes else way

    def usual(self, results: Results, operation: str) -> list[Measured]:
        """Return the cells with the usual way of I/O."""
        return [cell for cell in results.where(operation=operation) if _key(cell) == "0"]

    def ask_way(self, title: str, operation: str, results: Results) -> list[Question]:
        """Return the questions which way is fastest, and how much faster each other way is than the usual way.

        ``title``: in English, because the title is also a part of an id.
        """
        before = self.usual(results, operation)
        others = [cell for cell in results.where(operation=operation) if cell not in before]
        questions = [
            question
            for after in others
            for usual in before
            for question in ask(
                self.name,
                f"{after.id.split('/', 1)[1]}-speed-up",
                gettext("{title}: speed-up", title=gettext(title)),
                [(self.label(usual, results), [usual]), (self.label(after, results), [after])],
                advises=False,
            )
        ]
        every = [(self.label(cell, results), [cell]) for cell in (*before, *others)]
        return [*ask(self.name, f"best-{title}", gettext(title), every), *questions]


def _key(cell: Measured) -> str:
    return cell.id.rpartition("/")[2].partition(":")[0]
