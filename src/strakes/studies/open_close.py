"""open-close: time to open and close files in parallel, by number of ranks. Source: Tian et al. (2020), figure 9."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.base.language import gettext, ngettext
from strakes.model.answers import Question
from strakes.model.cell import Measure
from strakes.model.phases import MetadataPhase
from strakes.model.portrait import Figure
from strakes.model.results import Results
from strakes.studies.compose import ask, lines
from strakes.studies.study import Cells, Context, Study

_SURVEY_LEVELS = (1, 2, 4, 8, 16)
# Number of ranks that is measured even with a short budget.
_MIDDLE_RANKS = 4
_FULL_LEVELS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_CREATE, _OPEN = "create and close", "open and close"
_QUESTIONS = {
    _CREATE: ("create", "time to create and close a file each"),
    _OPEN: ("open", "time to open and close a file each"),
}


class OpenClose(Study):
    """Seconds in which all ranks open and close one file each, new or existing, in a shared directory."""

    name = "open-close"
    title = "Opening and closing files in parallel"
    question = "How long does it take every rank to open and close one file?"
    source = "S1"

    def cells(self, context: Context) -> Cells:
        measures = (
            Measure("create", "seconds_per_item", {"operation": _CREATE}),
            Measure("reopen", "seconds_per_item", {"operation": _OPEN}),
        )
        for ranks in _FULL_LEVELS if context.full else _SURVEY_LEVELS:
            if context.max_items < 8 * ranks:
                yield self.too_few_files(context, ranks=ranks)
                continue
            items, stop = context.items(ranks), context.stonewall()
            phases = (
                MetadataPhase("create", "file-create", "shared", items, stop=stop),
                MetadataPhase("reopen", "file-open-close", "shared", items, stop=stop),
            )
            outer = context.full or ranks in (_SURVEY_LEVELS[0], _SURVEY_LEVELS[-1])
            priority = 1 if outer else 3 if ranks == _MIDDLE_RANKS else 4
            yield self.cell(context, f"{ranks}", {"ranks": ranks}, phases, measures, priority=priority)

    def figures(self, results: Results) -> Sequence[Figure]:
        drawn = lines("ranks", ((gettext(each), results.where(operation=each)) for each in (_CREATE, _OPEN)))
        theirs = gettext("Tian et al. (2020): above 1,024 processes, not in this figure, the time grew fast")
        y = gettext("time until each rank is done with one file"), "s"
        return [self.figure(drawn, (gettext("ranks"), "", "log"), y, self.published(theirs))]

    def questions(self, results: Results) -> Sequence[Question]:
        return [
            question
            for operation, (name, title) in _QUESTIONS.items()
            if len(cells := results.where(operation=operation)) >= 2
            for question in ask(
                self.name,
                name,
                gettext(title),
                [
                    (ngettext("{count} rank", "{count} ranks", int(cell.settings["ranks"])), [cell])
                    for cell in (cells[0], cells[-1])
                ],
                advises=False,
            )
        ]
