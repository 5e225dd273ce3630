"""layouts: rates with progressive, data-on-metadata, overstriped and pool layouts."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.base.language import gettext
from strakes.base.units import KIB, MIB
from strakes.model.answers import Question
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase
from strakes.model.portrait import Figure, Headline, Setting
from strakes.model.results import Measured, Results
from strakes.studies.compose import WRITE_AND_READ, ask, bars, rates
from strakes.studies.study import BANDWIDTH, OPERATIONS, Cells, Context, Study, power_of_two_at_most
from strakes.targets.lustre_layouts import layout_from

_ONE_STRIPE = "one stripe"
# Size of the small files in bytes. Lustre's data-on-metadata layout keeps such files on the metadata target.
_SMALL_BYTES = 64 * KIB
_OPERATIONS = {
    "small-write": "small files written",
    "small-read": "small files read",
    "write": "large files written",
    "read": "large files read",
}


class Layouts(Study):
    """Rates of writing and reading small (64 KiB) and large files, with each layout that the file system supports."""

    name = "layouts"
    title = "Kinds of layouts"
    question = "Which kind of layout suits small files, and which large ones?"
    source = "S1"
    elsewhere = "Give a directory on a file system whose layouts can be set, such as Lustre or CephFS."

    def cells(self, context: Context) -> Cells:
        striping, ranks = context.striping, context.team
        if striping is None or not striping.kinds:
            why = context.no_striping or f"strakes knows of no other layouts on {context.file_system}"
            return [self.skipped(f"no layouts beyond a stripe count and a size can be set here: {why}")]
        small = min(context.items(ranks), context.max_bytes // (2 * ranks * _SMALL_BYTES))
        large = min(context.amount_bytes(ranks), power_of_two_at_most(context.max_bytes / (2 * ranks)))
        if small < 1 or large < _SMALL_BYTES:
            return [self.skipped("the space that strakes may use here is too small for files of all layouts")]
        plain = {_ONE_STRIPE: "-c 1", **({"every target": "-c -1"} if striping.data_targets > 1 else {})}
        return [
            self._cell(context, name, options, small, large) for name, options in (plain | dict(striping.kinds)).items()
        ]

    def _cell(self, context: Context, name: str, options: str, small: int, large: int) -> Cell:
        ranks, stop = context.team, context.stonewall()
        phases = (
            MetadataPhase("small-write", "file-create", "unique", small, file_bytes=_SMALL_BYTES, stop=stop),
            # A client caches its own files, so each rank reads the files of another rank.
            MetadataPhase("small-read", "file-read", "unique", small, file_bytes=_SMALL_BYTES, rank_shift=1, stop=stop),
            MetadataPhase("small-remove", "file-remove", "unique", small, file_bytes=_SMALL_BYTES),
            *context.write_and_read(min(MIB, large), large),
        )
        settings: dict[str, Setting] = {"layout": name, "setstripe": options, "ranks": ranks}
        measures = (*rates("small-write", "small-read"), *WRITE_AND_READ)
        return self.cell(context, name, settings, phases, measures, layout=layout_from(options))

    def figures(self, results: Results) -> Sequence[Figure]:
        return [
            self.figure(
                [bars(gettext(words), cells, lambda cell: gettext(str(cell.settings["layout"])))],
                (gettext("layout"), "", "category"),
                OPERATIONS if operation.startswith("small") else BANDWIDTH,
                title=gettext("Kinds of layouts: {files}", files=gettext(words)),
            )
            for operation, words in _OPERATIONS.items()
            if (cells := results.where(operation=operation))
        ]

    def questions(self, results: Results) -> Sequence[Question]:
        return [
            question
            for operation, words in _OPERATIONS.items()
            for question in ask(
                self.name,
                operation,
                gettext("layout, {files}", files=gettext(words)),
                [
                    (gettext("{layout} ({options})", layout=gettext(name), options=cell.settings["setstripe"]), [cell])
                    for name, cell in _by_layout(results, operation).items()
                ],
            )
        ]

    def headlines(self, results: Results) -> Sequence[Headline]:
        return [
            Headline(gettext("{files}, one stripe", files=gettext(words)), cell.id)
            for operation, words in _OPERATIONS.items()
            if (cell := _by_layout(results, operation).get(_ONE_STRIPE))
        ]


def _by_layout(results: Results, operation: str) -> dict[str, Measured]:
    return {str(cell.settings["layout"]): cell for cell in results.where(operation=operation)}
