"""stream: sequential bandwidth as dd measures it, by block size and number of ranks. Source: StorNext (2011)."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.base.language import gettext, ngettext
from strakes.base.units import KIB, MIB, format_bytes
from strakes.model.answers import Question
from strakes.model.phases import StreamPhase
from strakes.model.portrait import Figure, Setting
from strakes.model.results import Results
from strakes.studies.compose import WRITE_AND_READ, ask_level, bars
from strakes.studies.study import BANDWIDTH, Cells, Context, Study

_SURVEY_BLOCKS = (KIB, 16 * MIB)
_FULL_BLOCKS = (KIB, 4 * KIB, 64 * KIB, MIB, 16 * MIB)
# Published rates in B/s (StorNext, 2011) of one and of five clients: first with blocks of 1 KB, then of 16 MB.
_THEIRS = {"write": ((214e6, 1070e6), (274e6, 1370e6)), "read": ((117e6, 585e6), (395e6, 1975e6))}
_FIGURES = {"write": "Streams, as dd makes them: writes", "read": "Streams, as dd makes them: reads"}
_BLOCKS = {"write": "block size, writes", "read": "block size, reads"}
_RANKS = {"write": "ranks, writes of {size}", "read": "ranks, reads of {size}"}


class Stream(Study):
    """Bandwidth of one file per rank, written and read sequentially in blocks of 1 KiB to 16 MiB."""

    name = "stream"
    title = "Streams, as dd makes them"
    question = "How fast are sequential reads and writes, with small and with large blocks, alone and together?"
    source = "S3"

    def cells(self, context: Context) -> Cells:
        for ranks in sorted({1, context.team, *((2 * context.team,) if context.full else ())}):
            amount = context.amount_bytes(ranks, 16 * MIB)
            for block in _FULL_BLOCKS if context.full else _SURVEY_BLOCKS:
                settings: dict[str, Setting] = {"block_bytes": block, "ranks": ranks}
                if block > amount:
                    yield self.skipped(context.too_little(block, ranks), **settings)
                    continue
                count, stop = amount // block, context.stonewall()
                write = StreamPhase("write", "write", block, count, sync="fsync", stop=stop)
                read = StreamPhase("read", "read", block, count, cache="drop", stop=stop)
                yield self.cell(context, f"{ranks}/{block}", settings, (write, read), WRITE_AND_READ)

    def figures(self, results: Results) -> Sequence[Figure]:
        figures = []
        for operation in ("write", "read"):
            drawn = [
                bars(
                    ngettext("{count} rank", "{count} ranks together", int(ranks)),
                    results.where(operation=operation, ranks=ranks),
                    lambda cell: format_bytes(float(cell.settings["block_bytes"])),
                )
                for ranks in results.levels("ranks")
            ]
            who = gettext("one client"), gettext("five clients together")
            theirs = (
                self.published(
                    gettext(
                        "StorNext (2011; dd, 5 clients), {who}: {small} MB/s in blocks of 1 KB, {large} MB/s in "
                        "blocks of 16 MB",
                        who=clients,
                        small=f"{small / 1e6:.0f}",
                        large=f"{large / 1e6:.0f}",
                    ),
                    what=clients,
                    points=(("1 KiB", small), ("16 MiB", large)),
                )
                for clients, small, large in zip(who, *_THEIRS[operation], strict=True)
            )
            title, x = gettext(_FIGURES[operation]), gettext("block size")
            figures.append(self.figure(drawn, (x, "", "category"), BANDWIDTH, *theirs, title=title))
        return figures

    def questions(self, results: Results) -> Sequence[Question]:
        ranks, blocks = results.levels("ranks"), results.levels("block_bytes")
        questions: list[Question] = []
        for operation in ("write", "read") if ranks else ():
            cells = results.where(operation=operation, ranks=ranks[-1])
            title = gettext(_BLOCKS[operation])
            questions += ask_level(self.name, f"{operation}-block", title, cells, "block_bytes")
            for block in dict.fromkeys((blocks[0], blocks[-1])):
                title = gettext(_RANKS[operation], size=format_bytes(float(block)))
                cells = results.where(operation=operation, block_bytes=block)
                questions += ask_level(self.name, f"{operation}-{block}-ranks", title, cells, "ranks")
        return questions
