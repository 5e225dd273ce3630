"""processes-per-node: number of processes that saturate a node. Source: Tian et al. (2020), section 3.3."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.base.language import gettext
from strakes.base.units import GIB, KIB, MIB, format_bytes
from strakes.model.answers import Claim, Part, Question
from strakes.model.portrait import Figure, Setting
from strakes.model.results import Measured, Results
from strakes.studies.compose import WRITE_AND_READ, ask_level, lines
from strakes.studies.study import Cells, Context, Study, power_of_two_at_most
from strakes.studies.target_baseline import layout_on
from strakes.targets.description import Description, Layout

_SURVEY_LEVELS = (1, 2, 4, 8)
_FULL_LEVELS = (1, 2, 4, 8, 16, 32, 64)
_TRANSFER = 64 * KIB
# Bytes per process, in calls of 64 KiB (Tian et al., 2020).
_FULL_AMOUNTS = (MIB, 4 * MIB, 8 * MIB, 64 * MIB, 512 * MIB, 2 * GIB)
_STRIPES = 4  # Number of stripes of a file. A stripe has 64 KiB (Tian et al., 2020).
_BEST_RANKS, _BEST_BYTES_PER_S = 32, 9.785e9
# The targets are the bottleneck (not the node) if each added target adds this share of a single target's rate.
_NEARLY_SHARE = 0.9
_ALONE, _TOGETHER = "one data target", "all data targets"
_TITLES = {"write": "processes per node, writes", "read": "processes per node, reads"}


class ProcessesPerNode(Study):
    """Bandwidth of this node by number of ranks. The total amount of data is fixed, in calls of 64 KiB."""

    name = "processes-per-node"
    title = "Processes per node"
    question = "How many processes of one node should do I/O?"
    source = "S1"
    needs_description = True

    def cells(self, context: Context) -> Cells:
        levels = _FULL_LEVELS if context.full else _SURVEY_LEVELS
        total = context.amount_bytes(1, multiple_of=max(levels) * MIB)
        if context.data_per_rank is not None:
            total *= context.team
        most = next(iter(context.nodes.values()), None)
        for ranks in levels:
            amount = power_of_two_at_most(total / ranks)
            if most is not None and ranks > most:
                yield self.skipped(f"{most} ranks are started on each node (--ranks-per-node)", ranks=ranks)
            elif amount < _TRANSFER:
                reason = f"only {format_bytes(total)} in total fit into the budget and the free space"
                yield self.skipped(reason, ranks=ranks)
            else:
                settings: dict[str, Setting] = {"ranks": ranks, "transfer_bytes": _TRANSFER}
                phases = context.write_and_read(_TRANSFER, amount)
                yield self.cell(context, f"{ranks}", settings, phases, WRITE_AND_READ)
        if context.full:
            yield from self._by_amount(context)
            yield from self._by_targets(context)

    def _by_amount(self, context: Context) -> Cells:
        stripes = context.striping
        layout = None
        if stripes is not None and stripes.data_targets > 1 and _TRANSFER % stripes.unit_bytes == 0:
            layout = Layout(_TRANSFER, min(_STRIPES, stripes.data_targets))
        for each in _FULL_AMOUNTS:
            for ranks in _FULL_LEVELS:
                settings: dict[str, Setting] = {"ranks": ranks, "data_bytes": each, "transfer_bytes": _TRANSFER}
                if each * ranks > context.max_bytes:
                    yield self.skipped(f"{format_bytes(each * ranks)} are more than strakes may use here", **settings)
                    continue
                key, phases = f"each-{each}/{ranks}", context.write_and_read(_TRANSFER, each)
                yield self.cell(context, key, settings, phases, WRITE_AND_READ, layout=layout, priority=2)

    def _by_targets(self, context: Context) -> Cells:
        parts = context.description or Description("", "")
        if len(parts.data_targets) < 2:
            yield self.skipped("fewer than two data targets are visible here", on=_ALONE)
            return
        layout = layout_on(parts.data_targets[0], parts, context.file_system)
        if layout is None:
            yield self.skipped("files cannot be put on a single data target here", on=_ALONE)
            return
        ranks = context.team
        phases = context.write_and_read(_TRANSFER, context.amount_bytes(ranks))
        every = Layout(stripe_count=-1) if context.file_system == "lustre" else None
        for on, count, where in ((_ALONE, 1, layout), (_TOGETHER, len(parts.data_targets), every)):
            settings: dict[str, Setting] = {"ranks": ranks, "transfer_bytes": _TRANSFER}
            settings |= {"on": on, "data_targets": count}
            yield self.cell(context, f"on-{count}", settings, phases, WRITE_AND_READ, layout=where)

    def figures(self, results: Results) -> Sequence[Figure]:
        amounts = [(each, format_bytes(float(each))) for each in results.levels("data_bytes")]
        of_node = [(gettext(operation), _of_node(results, operation)) for operation in _TITLES]
        of_amounts = [
            (
                gettext("{operation}, {size} per process", operation=gettext(operation), size=size),
                results.where(operation=operation, data_bytes=each),
            )
            for operation in _TITLES
            for each, size in amounts
        ]
        theirs = self.published(
            gettext("Tian et al. (2020) advise 8 to 32 processes per node; 8 saturate the link (9.785 GB/s)"),
            8,
            32,
            what=gettext("best write rate, {processes} processes with 8 MiB each", processes=_BEST_RANKS),
            points=((float(_BEST_RANKS), _BEST_BYTES_PER_S),) if amounts else (),
        )
        y = gettext("bandwidth of the node"), "B/s"
        drawn = lines("ranks", of_node + of_amounts)
        return [self.figure(drawn, (gettext("processes on this node"), "", "log"), y, theirs)]

    def questions(self, results: Results) -> Sequence[Question]:
        questions = [
            question
            for operation, title in _TITLES.items()
            for question in ask_level(self.name, operation, gettext(title), _of_node(results, operation), "ranks")
        ]
        for each in results.levels("data_bytes"):
            title = gettext("processes per node, writes of {size} each", size=format_bytes(float(each)))
            cells = results.where(operation="write", data_bytes=each)
            questions += ask_level(self.name, f"write-{each}", title, cells, "ranks")
        return questions

    def claims(self, results: Results) -> Sequence[Claim]:
        alone, together = results.where(operation="write", on=_ALONE), results.where(operation="write", on=_TOGETHER)
        if not alone or not together:
            return []
        number = int(together[0].settings["data_targets"])
        text = gettext(
            "This node is the bottleneck of writes, not the {targets} data targets, because writes to all targets "
            "are less than {ratio} times as fast as writes to one (criterion of Tian et al.)",
            targets=number,
            ratio=f"{_NEARLY_SHARE * number:.3g}",
        )
        ratio = gettext("rate with {targets} data targets / rate with one", targets=number)
        part = Part(ratio, (together[0].id,), (alone[0].id,), 0.0, _NEARLY_SHARE * number)
        return [Claim(f"{self.name}-bottleneck", self.name, text, (part,))]


def _of_node(results: Results, operation: str) -> list[Measured]:
    return [cell for cell in results.where(operation=operation) if not cell.settings.keys() & {"data_bytes", "on"}]
