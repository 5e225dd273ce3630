"""target-baseline: every metadata target and every data target alone, to find one that is slow or broken.

Step 1 of S4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from strakes.findings.cell import Cell, Measure
from strakes.findings.place import Place
from strakes.findings.portrait import Figure, Finding, IntervalOf, Point, Reference, Series, SkippedCell
from strakes.findings.results import Results
from strakes.plan import AMOUNT, MetadataPhase, Plan
from strakes.plan.phases import MetadataOperation
from strakes.statistics.comparison import block_scores
from strakes.statistics.contrast import bonferroni, paired_ratio
from strakes.studies.compose import WRITE_AND_READ, write_and_read
from strakes.studies.study import Context, Study
from strakes.targets.description import DataTarget, Description, Layout, Placement
from strakes.units import MIB

# A target below this share of what the others do is called slow.
SLOW_SHARE = 0.8
# All operations together.
ALL = "all operations"
_PAIR = 2
# A slow target, which is what is looked for, may not use up the time in which all are measured often enough.
_STOP = 1
_OPERATIONS: tuple[MetadataOperation, ...] = ("file-create", "file-stat", "file-remove")
_TRANSFERS: tuple[Literal["write", "read"], ...] = ("write", "read")


# Of each target its value in every block.
Scores = Mapping[str, Mapping[int, float]]


class TargetBaseline(Study):
    """The same work on one target after the other.

    Each is held against a usual one, block by block, in all and in each operation.
    """

    name = "target-baseline"
    title = "Each target alone"
    question = "Is any metadata or data target slower than the others?"
    source = "S4"
    needs_description = True

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell per metadata target and data target; kinds that are not visible are skipped."""
        parts = context.description or Description("", "")
        metadata = [(part.name, part.index) for part in parts.metadata_targets if part.index is not None]
        cells: list[Cell | SkippedCell] = []
        if not metadata:
            cells.append(self.skipped(f"no metadata targets are visible here ({context.file_system})", kind="metadata"))
        if not parts.data_targets:
            cells.append(self.skipped(f"no data targets are visible here ({context.file_system})", kind="data"))
        cells += [self._metadata_cell(context, name, index) for name, index in metadata]
        for target in parts.data_targets:
            layout = layout_on(target, parts, context.file_system)
            if layout is None:
                reason = "files cannot be put on this target alone, because it has no pool of its own"
                cells.append(self.skipped(reason, kind="data", target=target.name))
            else:
                cells.append(self._data_cell(context, target.name, layout))
        return cells

    def _metadata_cell(self, context: Context, name: str, index: int) -> Cell:
        ranks, items = context.team, context.items(context.team)
        stop = context.stonewall(_STOP)
        phases = tuple(
            # What a rank made is looked at by another one, whose client has to ask for it.
            MetadataPhase(
                operation,
                operation,
                "unique",
                items,
                rank_shift=int(operation == "file-stat"),
                stop=AMOUNT if operation == "file-remove" else stop,
            )
            for operation in _OPERATIONS
        )
        return Cell(
            self.name,
            f"{self.name}/metadata/{name}",
            {"kind": "metadata", "target": name, "ranks": ranks},
            Plan(ranks, phases, context.seed),
            tuple(Measure(phase.name, "operations_per_s", {"operation": phase.name}) for phase in phases),
            place=Place(
                placement=Placement("manual", (index,)),
                entries={f"items.{rank}.tree": Placement("inherit") for rank in range(ranks)},
                kept=f"metadata-{index}",
            ),
        )

    def _data_cell(self, context: Context, name: str, layout: Layout) -> Cell:
        ranks, amount, stop = context.team, context.amount_bytes(context.team), context.stonewall(_STOP)
        return Cell(
            self.name,
            f"{self.name}/data/{name}",
            {"kind": "data", "target": name, "ranks": ranks},
            Plan(ranks, write_and_read(context, min(MIB, amount), amount, stop=stop), context.seed),
            WRITE_AND_READ,
            layout=layout,
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the rates of each target, metadata and data apart."""
        figures = []
        for kind, label, unit in (("metadata", "operations a second", "op/s"), ("data", "bandwidth", "B/s")):
            cells = results.where(kind=kind)
            lines = tuple(
                Series(
                    str(operation),
                    tuple(
                        Point(str(cell.settings["target"]), cell.id)
                        for cell in cells
                        if cell.settings["operation"] == operation
                    ),
                )
                for operation in dict.fromkeys(cell.settings["operation"] for cell in cells)
            )
            if lines:
                theirs = Reference(
                    "S4", "S4 found its five metadata targets equally fast before it compared placements"
                )
                title = f"{self.title}: {kind} targets"
                figures.append(
                    self.figure(lines, (f"{kind} target", "", "category"), (label, unit), theirs, title=title)
                )
        return figures

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return which targets are slow and which keep up with the others, per kind."""
        return [finding for kind in ("metadata", "data") for finding in self._of_kind(kind, results)]

    def _of_kind(self, kind: str, results: Results) -> list[Finding]:
        cells = results.where(kind=kind)
        targets = list(dict.fromkeys(str(figure.settings["target"]) for figure in cells))
        if len(targets) == 1:
            text = (
                f"Whether the {kind} target {targets[0]} is slow is unknown, because there is no other to compare "
                "it with."
            )
            return [self.finding(f"{kind}", text, "unknown", results.ids(cells), needs=f"a second {kind} target")]
        scores: dict[str, dict[str, Mapping[int, float]]] = {ALL: {}}
        for name in targets:
            scores[ALL][name] = block_scores(
                [(figure.by_block(), False) for figure in cells if figure.settings["target"] == name]
            )
        for cell in cells:
            scores.setdefault(str(cell.settings["operation"]), {})[str(cell.settings["target"])] = cell.by_block()
        confidence = bonferroni(results.confidence, _comparisons(len(targets), len(scores) - 1))
        return [self._judge(kind, name, scores, confidence, results) for name in targets]

    def _judge(
        self, kind: str, name: str, scores: Mapping[str, Scores], confidence: float, results: Results
    ) -> Finding:
        identifier, evidence = f"{kind}-{name}", results.ids(results.where(kind=kind))
        open_claim = f"Whether the {kind} target {name} keeps up with the others"
        ratios = {
            what: ratio_of for what, scores_of in scores.items() if (ratio_of := _ratio(name, scores_of, confidence))
        }
        if ALL not in ratios:
            needs = "three blocks that measure all targets"
            return self.finding(identifier, f"{open_claim} is not known.", "inconclusive", evidence, needs=needs)
        slow = {what: ratio for what, (ratio, interval) in ratios.items() if interval.high < SLOW_SHARE}
        slowest = sorted(slow, key=lambda what: slow[what])
        shown = slowest[0] if slow and ALL not in slow else ALL
        ratio, interval = ratios[shown]
        if slow:
            where = ", ".join(f"{what} {slow[what]:.2f}" for what in slowest if what != shown)
            at = "" if shown == ALL else f" at {shown}"
            text = (
                f"The {kind} target {name} is slow{at}: {ratio:.2f} times the rate of the "
                f"others{where and f' ({where})'}."
            )
            return self.finding(identifier, text, "does-not", evidence, interval, tone="bad")
        rate = f"{ratio:.2f} times their rate (slow is below {SLOW_SHARE})"
        if interval.low >= SLOW_SHARE:
            claim = f"The {kind} target {name} keeps up with the others"
            return self.finding(identifier, f"{claim}: {rate}.", "holds", evidence, interval, tone="good")
        needs = "a narrower interval: give a larger --budget"
        text = f"{open_claim} is undecided: {rate}."
        return self.finding(identifier, text, "inconclusive", evidence, interval, needs)


def _comparisons(targets: int, operations: int) -> int:
    """How many things are said at once: of every target how it does each operation, and all of them."""
    return max(1, targets * (operations + 1))


def _ratio(name: str, scores: Scores, confidence: float) -> tuple[float, IntervalOf] | None:
    """How a target compares with a usual one, block by block: the median of all, or of two the other.

    None with too few blocks.
    """
    usual = {}
    for block in scores[name]:
        values = [
            score[block] for other, score in scores.items() if block in score and (len(scores) > _PAIR or other != name)
        ]
        if len(values) == len(scores) - (len(scores) == _PAIR):
            usual[block] = median(values)
    if not usual:
        return None
    ratio = paired_ratio(scores[name], usual, confidence)
    if ratio.interval is None:
        return None
    of = "ratio to the median of all" if len(scores) > _PAIR else "ratio to the other"
    return ratio.median, IntervalOf(ratio.interval.low, ratio.interval.high, confidence, of, "times")


def layout_on(target: DataTarget, parts: Description, file_system: str) -> Layout | None:
    """One stripe on this target.

    By its number where the file system lets one choose it, else by a pool that holds it alone.
    """
    if file_system == "lustre" and target.index is not None:
        return Layout(stripe_count=1, first_target=target.index)
    for pool in target.pools:
        if sum(pool in other.pools for other in parts.data_targets) == 1:
            return Layout(pool=pool)
    return None
