"""namespace-scaling: metadata rates by number of targets and placement. Source: Booher and Kulkarni, steps 2-4."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from strakes.base.language import gettext
from strakes.model.answers import Question
from strakes.model.cell import Cell, Place
from strakes.model.phases import AMOUNT, MetadataPhase
from strakes.model.portrait import Figure, Finding, Reference, Setting
from strakes.model.results import Measured, Observation, Results
from strakes.studies.compose import ask, ask_level, lines, rates
from strakes.studies.metadata_ops import SIX
from strakes.studies.study import OPERATIONS, Cells, Context, Study
from strakes.targets.description import CLIENT, Description, Placement

Way = Literal["manual", "automatic"]
_LABELS: Mapping[Way, str] = {"manual": "by hand", "automatic": "automatic"}
# Placement by a hash counts as balanced if the busiest target exceeds the mean load by at most this share.
_BALANCED_SHARE = 0.1
_SERVED = "Requests served, {placement} placement over {targets} metadata targets: {shares} of {requests}"
_SENT = "Requests that this node sent, {placement} placement over {targets} metadata targets: {shares} of {requests}"
_UNKNOWN = {
    True: "The requests served by each metadata target are unknown ({placement} placement over {targets}): no "
    "counters of {silent}.",
    False: "The requests served by each metadata target are unknown ({placement} placement over {targets}).",
}
# If the servers got fewer requests per operation than this number, a client's cache served some operations.
_ALL_SERVED_SHARE = 0.9


class NamespaceScaling(Study):
    """Rates of mdtest's six operations in directories on 1 to N metadata targets.

    With manual placement, strakes chooses the target of each rank's directory. Otherwise, the file system does.
    """

    name = "namespace-scaling"
    title = "Metadata operations by number of metadata targets"
    question = "Do metadata operations scale with the number of metadata targets, placed by hand and automatically?"
    source = "S4"
    needs_description = True

    def cells(self, context: Context) -> Cells:
        targets = tuple(
            target.index
            for target in (context.description or Description("", "")).metadata_targets
            if target.index is not None
        )
        most = len(targets)
        if most < 2:
            yield self.skipped(
                f"{most or 'no'} metadata target is visible here ({context.file_system}); two or more are needed"
            )
            return
        ranks = context.most_ranks or most * math.ceil(max(4, context.team) / most)
        yield self._cell(context, "manual", targets[:1], ranks, of=most)
        for number in range(ranks + 1, most + 1):
            yield self.skipped(f"needs {number} ranks, one for each target", metadata_targets=number)
        for number in range(2, min(ranks, most) + 1):
            for way in _LABELS:
                yield self._cell(context, way, targets[:number], ranks, of=most)

    def _cell(self, context: Context, way: Way, targets: tuple[int, ...], ranks: int, of: int) -> Cell:
        items, stop = context.items(ranks), context.stonewall()
        # Clients cache the attributes of their own files, so each rank stats the files of another rank.
        phases = tuple(
            MetadataPhase(
                operation,
                operation,
                "unique",
                items,
                rank_shift=int(operation.endswith("stat")),
                stop=AMOUNT if operation.endswith("remove") else stop,
            )
            for operation in SIX
        )
        number = len(targets)
        directories = [Placement("inherit")] * ranks
        if way == "manual":
            own = Placement("manual", targets[:1])
            directories = [Placement("manual", (targets[rank % number],)) for rank in range(ranks)]
        else:
            # With lfs mkdir -D (as published), Lustre also distributes subdirectories over targets. CephFS does not.
            inherited = context.file_system == "lustre"
            own = Placement("automatic", count=-1 if number == of else number, inherited=inherited)
        entries = {f"items.{rank}.tree": placement for rank, placement in enumerate(directories)}
        place = Place(placement=own, entries=entries, kept=f"{way}-{number}", drawn=way != "manual")
        settings: dict[str, Setting] = {"placement": way, "metadata_targets": number, "ranks": ranks}
        return self.cell(context, f"{way}/{number}", settings, phases, rates(*SIX), place=place)

    def figures(self, results: Results) -> Sequence[Figure]:
        theirs = self.published(
            gettext(
                "Booher and Kulkarni (Lustre): rates grew with the number of metadata targets under manual placement, "
                "but not under automatic placement"
            )
        )
        figures = []
        for operation in SIX:
            drawn = lines("metadata_targets", ((gettext(way), _line(results, operation, way)) for way in _LABELS))
            if not drawn:
                continue
            linear = [
                Reference(
                    "linear",
                    gettext("Dotted line: linear scaling of the rate of one metadata target."),
                    label=gettext("linear"),
                    points=tuple(
                        (float(number), single.estimate.median * float(number))
                        for number in results.levels("metadata_targets")
                    ),
                )
                for single in results.where(operation=operation, placement="manual", metadata_targets=1)
                if single.estimate is not None
            ]
            figures.append(
                self.figure(
                    drawn,
                    (gettext("metadata targets"), "", "linear"),
                    OPERATIONS,
                    theirs,
                    *linear,
                    title=gettext("Rate by number of metadata targets: {operation}", operation=operation),
                )
            )
        return figures

    def questions(self, results: Results) -> Sequence[Question]:
        levels = results.levels("metadata_targets")
        if not levels or levels[-1] == 1:
            return []
        most = int(float(levels[-1]))
        compared = [(gettext(label), way) for way, label in _LABELS.items()]
        title = gettext(
            "placement of directories on {targets} metadata targets, mean rate of six operations", targets=most
        )
        of_way = [(label, _six(results, way, most)) for label, way in compared]
        questions = ask(self.name, "placement", gettext(title, targets=most), of_way, mean="geometric")
        for label, way in compared:
            by_number = [
                (str(number), _six(results, way if number != 1 else "manual", int(float(number)))) for number in levels
            ]
            title = gettext("number of metadata targets (mean rate of six operations), {placement}", placement=label)
            questions += ask(self.name, f"{way}-six", title, by_number, mean="geometric")
            for operation in SIX:
                title = gettext("metadata targets, {operation}, {placement}", operation=operation, placement=label)
                line = _line(results, operation, way)
                questions += ask_level(self.name, f"{way}-{operation}", title, line, "metadata_targets")
        linear = gettext("with linear scaling, the ratio would be {ratio}", ratio=most)
        return [questions[0], *(replace(question, remark=linear) for question in questions[1:])] if questions else []

    def findings(self, results: Results) -> Sequence[Finding]:
        levels = results.levels("metadata_targets")
        most = int(float(levels[-1])) if levels else 1
        return [finding for way in _LABELS for finding in self._served(way, most, results)] if most > 1 else []

    def _served(self, way: Way, most: int, results: Results) -> list[Finding]:
        cells = results.where(placement=way, metadata_targets=most)
        if not cells:
            return []
        by_run, silent, others = _requests(cells[0], _served_requests, most)
        message = _SERVED
        if not by_run:
            by_run, *_ = _requests(cells[0], _sent_requests)
            message = _SENT
        identifier, evidence = f"served-{way}", (cells[0].id,)
        placed = {"placement": gettext(way), "targets": most}
        if not by_run:
            text = gettext(_UNKNOWN[bool(silent)], **placed, silent=", ".join(silent))
            if others:
                counts = ", ".join(f"{name} {number:,.0f}" for name, number in others.items())
                text = gettext("{text} Requests to the other metadata targets: {counts}.", text=text, counts=counts)
            needs = gettext("counters of all targets: run strakes as root on this client, or give --servers")
            return [self.finding(identifier, text, "unknown", evidence, needs=needs)]
        total = sum(sum(counts.values()) for counts in by_run.values())
        names = sorted({name for counts in by_run.values() for name in counts})
        shares = ", ".join(
            f"{name} {sum(counts.get(name, 0.0) for counts in by_run.values()) / total:.0%}" for name in names
        )
        text = gettext(message, **placed, shares=shares, requests=f"{total:,.0f}")
        runs = {_run(seen) for seen in cells[0].observations}
        if by_run.keys() < runs:
            message = "{text} (counted in {counted} of {runs} runs; counters of some targets are missing in the others)"
            text = gettext(message, text=text, counted=len(by_run), runs=len(runs))
        done = sum(seen.sample.operations for cell in cells for seen in cell.observations if _run(seen) in by_run)
        if total < _ALL_SERVED_SHARE * done:
            message = "{text}, for {operations} operations; the client's cache answered the others"
            text = gettext(message, text=text, operations=f"{done:,}")
        busiest = sorted(max(counts.values()) / sum(counts.values()) for counts in by_run.values())
        message = "{text}. The busiest target served {low} to {high} of a run's requests."
        text = gettext(message, text=text, low=f"{busiest[0]:.0%}", high=f"{busiest[-1]:.0%}")
        # Lustre spreads the files of each directory over all targets, so even a few directories are balanced.
        if way == "automatic" and results.facts.get("file_system") != "lustre":
            text = " ".join(filter(None, (text, _imbalance(int(cells[0].settings["ranks"]), most))))
        return [self.finding(identifier, text, "measured", evidence)]


def _imbalance(directories: int, targets: int) -> str:
    load = busiest_load(directories, targets)
    if load <= 1 + _BALANCED_SHARE:
        return ""
    return gettext(
        "If a hash places {directories} directories, the busiest target is expected to hold {share} of them. The "
        "rate is then at most {limit} of the rate of an even split. With {enough} directories, the loss is below "
        "{loss}.",
        directories=directories,
        share=f"{load / targets:.0%}",
        limit=f"{1 / load:.0%}",
        enough=f"{directories_within(_BALANCED_SHARE, targets):,}",
        loss=f"{_BALANCED_SHARE:.0%}",
    )


_Run = tuple[int, str, float]


def _requests(
    cell: Measured, count: Callable[[Mapping[str, float]], float | None], least_targets: int = 0
) -> tuple[dict[_Run, dict[str, float]], list[str], dict[str, float]]:
    known = {
        name
        for seen in cell.observations
        for name, counters in seen.servers.items()
        if _served_requests(counters) is not None or _sent_requests(counters) is not None
    }
    by_run: dict[_Run, dict[str, float]] = {}
    silent: set[str] = set()
    read: dict[_Run, dict[str, float]] = {}
    for seen in cell.observations:
        if not seen.servers:
            continue
        counted = {name: count(counters) for name, counters in seen.servers.items() if name in known}
        numbers = {name: number for name, number in counted.items() if number is not None}
        silent |= known - numbers.keys()
        read[_run(seen)] = numbers
        if numbers.keys() == known and len(numbers) >= least_targets and sum(numbers.values()) > 0:
            by_run[_run(seen)] = numbers
    others = {name: sum(numbers[name] for numbers in read.values()) for name in sorted(known - silent)}
    return by_run, sorted(silent), others


def _run(seen: Observation) -> _Run:
    return seen.block, seen.purpose, seen.at_s


def _served_requests(counters: Mapping[str, float]) -> float | None:
    kinds = {key: value for key, value in counters.items() if key.startswith("md.")}
    return kinds.get("md.requests", sum(kinds.values())) if kinds else None


def _sent_requests(counters: Mapping[str, float]) -> float | None:
    return counters.get(f"{CLIENT}md.requests")


def _line(results: Results, operation: str, way: str) -> list[Measured]:
    single = results.where(operation=operation, placement="manual", metadata_targets=1)
    many = [
        cell for cell in results.where(operation=operation, placement=way) if cell.settings["metadata_targets"] != 1
    ]
    return [*single, *many] if many else []


def _six(results: Results, way: str, number: int) -> list[Measured]:
    cells = results.where(placement=way, metadata_targets=number)
    return cells if len(cells) == len(SIX) else []


def busiest_load(directories: int, targets: int) -> float:
    """Return the expected load of the busiest target, divided by the mean load of all targets.

    Of n directories that a hash distributes, the busiest of m targets gets n / m + c sqrt(n / m), if n is well above m
    (Raab and Steger, RANDOM 1998). c is the expected maximum of m standard normal values (Tippett, 1925).

    >>> round(busiest_load(6, 3), 2), round(busiest_load(600, 3), 2)
    (1.6, 1.06)
    """
    return 1 + _largest_normal(targets) / math.sqrt(directories / targets)


def directories_within(excess: float, targets: int) -> int:
    """Return the fewest directories for which the busiest target has at most 1 + ``excess`` times the mean load.

    >>> directories_within(0.1, 3)
    215
    """
    return math.ceil(targets * (_largest_normal(targets) / excess) ** 2)


def _largest_normal(count: int) -> float:
    import numpy as np
    from scipy.special import ndtr

    x = np.linspace(-8.0, 8.0, 4001)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return float(np.sum(count * x * density * ndtr(x) ** (count - 1)) * (x[1] - x[0]))
