"""striping: stripe count and stripe size for small, medium and large files. Source: Tian et al. (2020), section 3.4."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.base.language import gettext
from strakes.base.units import GIB, KIB, MIB, counted, format_bytes
from strakes.model.answers import Question
from strakes.model.portrait import Figure, Setting
from strakes.model.results import Measured, Results
from strakes.studies.compose import WRITE_AND_READ, ask_level, lines
from strakes.studies.study import BANDWIDTH, Cells, Context, Study
from strakes.targets.description import Layout

# Stripe size of the measurements that vary the stripe count. Tian et al. (2020) found 1 MiB good for all file sizes.
_USUAL_STRIPE = MIB
_STRIPES = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB)
_FILES = (MIB, 128 * MIB, GIB)
_SMALL_FILE = MIB
# Time limit of a phase, as a multiple of its expected duration.
_PATIENCE_TIMES = 3.0
_TITLES = {
    ("write", "stripe_count"): "stripe count, writes of files of {size}",
    ("write", "stripe_bytes"): "stripe size, writes of files of {size}",
    ("read", "stripe_count"): "stripe count, reads of files of {size}",
    ("read", "stripe_bytes"): "stripe size, reads of files of {size}",
}


class StripingStudy(Study):
    """Bandwidth with a file per process: by stripe count at a fixed size, and by stripe size at a fixed count."""

    name = "striping"
    title = "Striping"
    question = "Over how many data targets should a file be striped, and with what stripe size?"
    source = "S1"
    elsewhere = "Give a directory on a file system whose layouts can be set, such as Lustre or CephFS."

    def cells(self, context: Context) -> Cells:
        if context.striping is None:
            why = context.no_striping or f"strakes cannot do that on {context.file_system}"
            yield self.skipped(f"the layout of files cannot be set here: {why}")
            return
        if context.striping.data_targets < 2:
            yield self.skipped("there is only one data target, so files cannot be striped")
            return
        ranks = context.team
        for size, count, stripe in _levels(context, context.striping.data_targets, context.striping.unit_bytes):
            settings: dict[str, Setting] = {
                "file_bytes": size,
                "stripe_count": count,
                "stripe_bytes": stripe,
                "ranks": ranks,
            }
            if size * ranks > context.max_bytes:
                reason = f"{counted(ranks, 'file')} of {format_bytes(size)}: more than strakes may use here"
                yield self.skipped(reason, **settings)
                continue
            planned_s = size * ranks / context.pilot.write_bytes_per_s
            stop = context.stonewall(_PATIENCE_TIMES * max(1.0, planned_s / context.phase_s))
            phases = context.write_and_read(min(MIB, size), size, stop=stop)
            priority = 1 if size > _SMALL_FILE and stripe == _USUAL_STRIPE else 2
            yield self.cell(
                context,
                f"{size}/{count}x{stripe}",
                settings,
                phases,
                WRITE_AND_READ,
                priority=priority,
                layout=Layout(stripe_size_bytes=stripe, stripe_count=count),
            )

    def figures(self, results: Results) -> Sequence[Figure]:
        theirs = gettext(
            "Tian et al. (2020; 96 OSTs) advise a stripe count of 1 for small, 4 for medium and 16 for large files, "
            "and 1 MiB stripes for all"
        )
        of_files = "{operation}, files of {size}"
        groups = [
            (gettext(of_files, operation=gettext(operation), size=format_bytes(float(size))), operation, size)
            for operation in ("write", "read")
            for size in results.levels("file_bytes")
        ]
        return [
            self.figure(drawn, (label, unit, "log"), BANDWIDTH, self.published(theirs), title=title)
            for factor, title, label, unit in (
                ("stripe_count", gettext("Striping: how many stripes"), gettext("stripe count"), ""),
                ("stripe_bytes", gettext("Striping: how large"), gettext("stripe size"), "B"),
            )
            if (drawn := lines(factor, ((name, _along(results, which, size, factor)) for name, which, size in groups)))
        ]

    def questions(self, results: Results) -> Sequence[Question]:
        return [
            question
            for operation in ("write", "read")
            for size in results.levels("file_bytes")
            for factor in ("stripe_count", "stripe_bytes")
            for question in ask_level(
                self.name,
                f"{operation}-{size}-{factor}",
                gettext(_TITLES[operation, factor], size=format_bytes(float(size))),
                _along(results, operation, size, factor),
                factor,
            )
        ]


def _levels(context: Context, targets: int, unit: int) -> list[tuple[int, int, int]]:
    counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if count < targets] + [targets]
    stripes = [size for size in _STRIPES if size % unit == 0]
    levels = []
    for file_bytes in sorted({max(2 * _SMALL_FILE, context.amount_bytes(context.team)), *_FILES}):
        levels += [(file_bytes, count, _USUAL_STRIPE) for count in counts]
        levels += [(file_bytes, targets, size) for size in stripes if size <= file_bytes]
    return list(dict.fromkeys(levels))


def _along(results: Results, operation: str, size: Setting, factor: str) -> list[Measured]:
    cells = results.where(operation=operation, file_bytes=size)
    if factor == "stripe_count":
        cells = [cell for cell in cells if cell.settings["stripe_bytes"] == _USUAL_STRIPE]
    elif cells:
        most = max(float(cell.settings["stripe_count"]) for cell in cells)
        cells = [cell for cell in cells if float(cell.settings["stripe_count"]) == most]
    return sorted(cells, key=lambda cell: float(cell.settings[factor]))
