"""target-baseline: every metadata target and every data target alone, to find one that is slow or broken. Step 1 of S4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from strakes.plan import AMOUNT, MetadataPhase, Plan, TransferPhase
from strakes.plan.model import MetadataOperation
from strakes.portrait.model import Figure, Finding, Headline, IntervalOf, Point, Reference, Series, SkippedCell
from strakes.statistics.comparison import block_scores
from strakes.statistics.contrast import bonferroni, paired_ratio
from strakes.statistics.interval import smallest_runs
from strakes.studies.base import Cell, Context, Measure, Study
from strakes.studies.place import Place
from strakes.studies.results import Results
from strakes.targets.model import DataTarget, Description, Layout, Placement
from strakes.units import MIB

# A target below this share of what the others do is called slow.
SLOW_SHARE = 0.8
_OPERATIONS: tuple[MetadataOperation, ...] = ("file-create", "file-stat", "file-remove")


class TargetBaseline(Study):
    """The same work on one target after the other; each is held against the median of the others, block by block."""

    name = "target-baseline"
    title = "Each target alone"
    question = "Is any metadata or data target slower than the others?"
    source = "S4"
    needs_description = True

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        parts = context.description or Description("", "")
        metadata = [(one.name, one.index) for one in parts.metadata_targets if one.index is not None]
        cells: list[Cell | SkippedCell] = []
        if not metadata:
            cells.append(SkippedCell(self.name, {"kind": "metadata"}, f"no metadata targets are told apart here ({context.file_system})"))
        if not parts.data_targets:
            cells.append(SkippedCell(self.name, {"kind": "data"}, f"no data targets are told apart here ({context.file_system})"))
        # Enough runs that every target can be judged among all of them.
        least = smallest_runs(bonferroni(0.9, max(1, len(metadata), len(parts.data_targets)))) + 1
        cells += [self._metadata_cell(context, name, index, least) for name, index in metadata]
        for target in parts.data_targets:
            layout = layout_on(target, parts, context.file_system)
            if layout is None:
                reason = "its files cannot be put on this target alone: it is in no pool by itself"
                cells.append(SkippedCell(self.name, {"kind": "data", "target": target.name}, reason))
            else:
                cells.append(self._data_cell(context, target.name, layout, least))
        return cells

    def _metadata_cell(self, context: Context, name: str, index: int, least: int) -> Cell:
        ranks, items = context.team, context.items(context.team)
        stop = context.stonewall()
        phases = tuple(
            # What a rank made is looked at by another one, whose client has to ask for it.
            MetadataPhase(one, one, "unique", items, rank_shift=int(one == "file-stat"), stop=AMOUNT if one == "file-remove" else stop)
            for one in _OPERATIONS
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
            least_runs=least,
        )

    def _data_cell(self, context: Context, name: str, layout: Layout, least: int) -> Cell:
        ranks, amount, stop = context.team, context.amount_bytes(context.team), context.stonewall()
        transfer = min(MIB, amount)
        phases = (
            TransferPhase("write", "write", "file-per-process", "segmented", transfer, amount, sync="fsync", stop=stop),
            TransferPhase("read", "read", "file-per-process", "segmented", transfer, amount, cache="drop", stop=stop),
        )
        return Cell(
            self.name,
            f"{self.name}/data/{name}",
            {"kind": "data", "target": name, "ranks": ranks},
            Plan(ranks, phases, context.seed),
            tuple(Measure(phase.name, "bytes_per_s", {"operation": phase.name}) for phase in phases),
            layout=layout,
            least_runs=least,
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        figures = []
        for kind, label, unit in (("metadata", "operations a second", "op/s"), ("data", "bandwidth", "B/s")):
            cells = results.where(kind=kind)
            lines = tuple(
                Series(
                    str(operation),
                    tuple(Point(str(one.settings["target"]), one.id) for one in cells if one.settings["operation"] == operation),
                )
                for operation in dict.fromkeys(one.settings["operation"] for one in cells)
            )
            if lines:
                theirs = Reference("S4", "S4 found its five metadata targets equally fast before it compared placements")
                title = f"{self.title}: {kind} targets"
                figures.append(Figure(self.name, title, self.question, f"{kind} target", "", "category", label, unit, lines, (theirs,)))
        return figures

    def findings(self, results: Results) -> Sequence[Finding]:
        return [finding for kind in ("metadata", "data") for finding in self._of_kind(kind, results)]

    def _of_kind(self, kind: str, results: Results) -> list[Finding]:
        cells = results.where(kind=kind)
        targets = list(dict.fromkeys(str(one.settings["target"]) for one in cells))
        if len(targets) == 1:
            text = f"Whether the {kind} target {targets[0]} is slow is unknown: there is no other to hold it against."
            return [Finding(f"{self.name}-{kind}", self.name, text, "unknown", results.ids(cells), needs=f"a second {kind} target")]
        scores = {name: block_scores([(one.by_block(), False) for one in cells if one.settings["target"] == name]) for name in targets}
        confidence = bonferroni(results.confidence, max(1, len(targets)))
        return [self._judge(kind, name, scores, confidence, results) for name in targets]

    def _judge(self, kind: str, name: str, scores: Mapping[str, Mapping[int, float]], confidence: float, results: Results) -> Finding:
        others = {
            block: median(values)
            for block in scores[name]
            if (values := [score[block] for other, score in scores.items() if other != name and block in score])
        }
        identifier = f"{self.name}-{kind}-{name}"
        evidence = results.ids(results.where(kind=kind))
        claim = f"The {kind} target {name} keeps up with the others"
        open_claim = f"Whether the {kind} target {name} keeps up with the others"
        if not scores[name].keys() & others.keys():
            return Finding(
                identifier, self.name, f"{open_claim} is not known.", "inconclusive", evidence, needs="blocks that measure all targets"
            )
        ratio = paired_ratio(scores[name], others, confidence)
        if ratio.interval is None:
            needs = f"at least {smallest_runs(confidence)} blocks"
            return Finding(identifier, self.name, f"{open_claim} is not known.", "inconclusive", evidence, needs=needs)
        low, high = ratio.interval.low, ratio.interval.high
        interval = IntervalOf(low, high, confidence, "ratio to the median of the others, all operations")
        rate = f"{ratio.median:.2f} times their rate (slow is below {SLOW_SHARE})"
        if high < SLOW_SHARE:
            text = f"The {kind} target {name} is slow: {ratio.median:.2f} times the rate of the others."
            return Finding(identifier, self.name, text, "does-not", evidence, interval, tone="bad")
        if low >= SLOW_SHARE:
            return Finding(identifier, self.name, f"{claim}: {rate}.", "holds", evidence, interval, tone="good")
        needs = "a narrower interval: a larger --budget"
        return Finding(identifier, self.name, f"{open_claim} is open: {rate}.", "inconclusive", evidence, interval, needs)

    def headlines(self, results: Results) -> Sequence[Headline]:
        return []


def layout_on(target: DataTarget, parts: Description, file_system: str) -> Layout | None:
    """One stripe on this target: by its number where the file system lets one choose it, else by a pool that holds it alone."""
    if file_system == "lustre" and target.index is not None:
        return Layout(stripe_count=1, first_target=target.index)
    for pool in target.pools:
        if sum(pool in other.pools for other in parts.data_targets) == 1:
            return Layout(pool=pool)
    return None
