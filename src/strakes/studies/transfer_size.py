"""transfer-size: bandwidth by bytes per call. Source: Tian et al. (2020), section 3.1."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.base.language import gettext
from strakes.base.units import KIB, MIB, format_bytes, typed_bytes
from strakes.model.answers import Question
from strakes.model.cell import Cell
from strakes.model.portrait import Figure, Setting
from strakes.model.results import Measured, Results
from strakes.studies.compose import WRITE_AND_READ, ask, ask_level, lines
from strakes.studies.study import BANDWIDTH, Cells, Context, Study
from strakes.targets.description import Layout
from strakes.targets.mountinfo import own_cache

SURVEY_LEVELS = (4 * KIB, 64 * KIB, MIB, 8 * MIB)
# Stripe sizes to measure in addition to the default layout, if layouts can be set.
_SURVEY_STRIPES = (64 * KIB, 4 * MIB)
_FULL_STRIPES = (64 * KIB, MIB, 4 * MIB, 16 * MIB)
# Minimum number of calls per rank. Half the number would double the share of open and fsync in the time.
FEWEST_CALLS = 4
# Priorities in a survey (1: measured first). Other transfer sizes have priority 4.
_FIRST = {("buffered", 64 * KIB): 1, ("buffered", 8 * MIB): 1, ("direct", 8 * MIB): 1, ("buffered", MIB): 2}
_STRIPED_TRANSFERS = (64 * KIB, 8 * MIB)
_FULL_LEVELS = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 8 * MIB, 16 * MIB, 64 * MIB)
_FIGURES = {"write": "Transfer size: writes", "read": "Transfer size: reads"}
_LEVELS = {
    ("write", "buffered"): "transfer size, buffered writes",
    ("write", "O_DIRECT"): "transfer size, O_DIRECT writes",
    ("read", "buffered"): "transfer size, buffered reads",
    ("read", "O_DIRECT"): "transfer size, O_DIRECT reads",
}
_OF_SIZE = {"write": "writes of {size}", "read": "reads of {size}"}
_STRIPES = {"write": "stripe size, writes of {size}", "read": "stripe size, reads of {size}"}


class TransferSize(Study):
    """Bandwidth by bytes per read() or write(), buffered and with O_DIRECT. For buffered calls, also by stripe size."""

    name = "transfer-size"
    title = "Transfer size"
    question = "How many bytes should one read() or write() call move?"
    source = "S1"

    def cells(self, context: Context) -> Cells:
        ranks = context.team
        amount = context.amount_bytes(ranks, FEWEST_CALLS * 8 * MIB if context.full else 8 * MIB)
        for direct in (False, True):
            io = "direct" if direct else "buffered"
            if direct and not context.direct_io:
                yield self.skipped(f"O_DIRECT is refused by this file system ({context.file_system})", io=io)
                continue
            for transfer in _FULL_LEVELS if context.full else SURVEY_LEVELS:
                if FEWEST_CALLS * transfer > amount:
                    yield self.skipped(
                        f"{format_bytes(amount)} per rank fit into the budget, the memory and the free space, "
                        f"too few for {FEWEST_CALLS} calls; --data-per-rank {typed_bytes(8 * transfer)} is enough",
                        transfer_bytes=transfer,
                        io=io,
                        ranks=ranks,
                    )
                else:
                    yield self.cell_of(context, transfer, amount, direct=direct)
        yield from self._striped(context, amount)

    def _striped(self, context: Context, amount: int) -> list[Cell]:
        if context.striping is None or context.striping.data_targets < 2:
            return []
        transfers = _FULL_LEVELS if context.full else _STRIPED_TRANSFERS
        return [
            self.cell_of(context, transfer, amount, layout=Layout(stripe, context.striping.data_targets))
            for stripe in (_FULL_STRIPES if context.full else _SURVEY_STRIPES)
            for transfer in transfers
            if FEWEST_CALLS * transfer <= amount and stripe % context.striping.unit_bytes == 0
        ]

    def cell_of(
        self, context: Context, transfer: int, amount: int, *, direct: bool = False, layout: Layout | None = None
    ) -> Cell:
        """Return a measurement with ``transfer`` bytes per call and ``amount`` bytes per rank."""
        io = "direct" if direct else "buffered"
        settings: dict[str, Setting] = {"transfer_bytes": transfer, "io": io, "ranks": context.team}
        key = f"{io}/{transfer}"
        if layout is not None:
            assert layout.stripe_size_bytes is not None and layout.stripe_count is not None
            settings |= {"stripe_bytes": layout.stripe_size_bytes, "stripe_count": layout.stripe_count}
            key += f"/{layout.stripe_count}x{layout.stripe_size_bytes}"
        phases = context.write_and_read(transfer, amount, direct=direct, rank_shift=context.shift)
        return self.cell(
            context,
            key,
            settings,
            phases,
            WRITE_AND_READ,
            ranks_per_node=context.shift or None,
            priority=2 if layout is not None else _priority(context, io, transfer, amount),
            layout=layout,
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        groups = (("write",), ("read",)) if results.levels("stripe_bytes") else (("write", "read"),)
        return [self._figure(results, operations) for operations in groups]

    def _figure(self, results: Results, operations: tuple[str, ...]) -> Figure:
        named = [
            (gettext("{operation}, {io}", operation=gettext(operation), io=gettext(io)), _usual(results, operation, io))
            for operation in operations
            for io in ("buffered", "direct")
        ]
        of_stripes = "{operation}, stripes of {size}"
        named += [
            (
                gettext(of_stripes, operation=gettext(operation), size=format_bytes(float(stripe))),
                results.where(operation=operation, stripe_bytes=stripe),
            )
            for operation in operations
            for stripe in results.levels("stripe_bytes")
        ]
        title = "" if len(operations) > 1 else gettext(_FIGURES[operations[0]])
        text = gettext(
            "Tian et al. (2020; 96 OSTs) advise 64 KiB to 8 MiB: write rates grew over the whole range, read rates "
            "peaked near 8 MiB"
        )
        theirs = self.published(text, 64 * KIB, 8 * MIB)
        drawn = lines("transfer_bytes", named)
        return self.figure(drawn, (gettext("transfer size"), "B", "log"), BANDWIDTH, theirs, title=title)

    def questions(self, results: Results) -> Sequence[Question]:
        questions: list[Question] = []
        for operation in ("write", "read"):
            both = [_usual(results, operation, io) for io in ("buffered", "direct")]
            for io, cells in zip(("buffered", "O_DIRECT"), both, strict=True):
                title = gettext(_LEVELS[operation, io])
                questions += ask_level(self.name, f"{operation}-{io}", title, cells, "transfer_bytes")
            largest = [cells[-1:] for cells in both]
            if all(largest):
                size = format_bytes(float(largest[0][0].settings["transfer_bytes"]))
                title = gettext(_OF_SIZE[operation], size=size)
                options = list(zip((gettext("buffered"), "O_DIRECT"), largest, strict=True))
                questions += ask(self.name, f"{operation}-io", title, options)
            questions += self._on_stripes(operation, results)
        return questions

    def _on_stripes(self, operation: str, results: Results) -> list[Question]:
        striped = [cell for cell in results.where(operation=operation) if "stripe_bytes" in cell.settings]
        transfers = sorted({float(cell.settings["transfer_bytes"]) for cell in striped})
        return [
            question
            for transfer in dict.fromkeys(transfers[:1] + transfers[-1:])
            for question in ask_level(
                self.name,
                f"{operation}-stripe-{transfer:.0f}",
                gettext(_STRIPES[operation], size=format_bytes(transfer)),
                [cell for cell in striped if float(cell.settings["transfer_bytes"]) == transfer],
                "stripe_bytes",
            )
        ]


def _priority(context: Context, io: str, transfer: int, amount: int) -> int:
    if context.full or (transfer == MIB and FEWEST_CALLS * SURVEY_LEVELS[-1] > amount):
        return 1
    # A client's cache may serve buffered reads, so only O_DIRECT shows which transfer size is enough.
    if io == "direct" and transfer == 64 * KIB and not context.shift and own_cache(context.file_system):
        return 1
    return _FIRST.get((io, transfer), 4)


def _usual(results: Results, operation: str, io: str) -> list[Measured]:
    return [cell for cell in results.where(operation=operation, io=io) if "stripe_bytes" not in cell.settings]
