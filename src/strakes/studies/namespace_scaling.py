"""namespace-scaling: do metadata operations scale with the metadata targets, placed by hand and automatically?

Steps 2-4 of S4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from strakes.findings.cell import Cell, Measure
from strakes.findings.place import Place
from strakes.findings.portrait import Figure, Finding, Headline, Reference, Setting, SkippedCell
from strakes.findings.results import Measured, Observation, Results
from strakes.plan import AMOUNT, MetadataPhase, Plan
from strakes.statistics.comparison import block_scores
from strakes.statistics.contrast import bonferroni, paired_ratio
from strakes.statistics.interval import Estimate
from strakes.studies.compose import first, interval_of, series
from strakes.studies.metadata_ops import SIX
from strakes.studies.study import NARROWER, Context, Study
from strakes.targets.description import CLIENT, Description, Placement

Way = Literal["manual", "automatic"]
# Lustre offers other ways to spread directories: which, and what is pasted to have it for N metadata targets.
_OTHER_WAYS = {
    "crush": (
        Placement("automatic", count=-1, hash="crush", inherited=True),
        "lfs mkdir -c N -H crush DIR; lfs setdirstripe -D -c N -H crush DIR",
    ),
    "fnv_1a_64": (
        Placement("automatic", count=-1, hash="fnv_1a_64", inherited=True),
        "lfs mkdir -c N -H fnv_1a_64 DIR; lfs setdirstripe -D -c N -H fnv_1a_64 DIR",
    ),
    "striped itself only": (Placement("automatic", count=-1), "lfs mkdir -c N DIR"),
    "subdirectories in turn": (
        Placement("automatic", count=1, inherited=True),
        "lfs setdirstripe -D -c 1 -i -1 --max-inherit=-1 --max-inherit-rr=-1 DIR",
    ),
}
# Automatic placement is recommended when all this is shown of it: it keeps half of what linear scaling would give, and
# four fifths of
# what placing by hand gives.
LEAST_EFFICIENCY, LEAST_OF_MANUAL = 0.5, 0.8
# Fewer requests than this share of the operations, and a cache of the client answered some.
_ALL_SERVED = 0.9


class NamespaceScaling(Study):
    """The six operations in directories spread over 1 to N metadata targets.

    One target for each rank's directory, or a spread one.
    """

    name = "namespace-scaling"
    title = "Metadata operations against metadata targets"
    question = "Do metadata operations scale with the number of metadata targets, placed by hand and automatically?"
    source = "S4"
    needs_description = True

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return cells on growing numbers of metadata targets, placed by hand and automatically."""
        targets = tuple(
            target.index
            for target in (context.description or Description("", "")).metadata_targets
            if target.index is not None
        )
        if len(targets) < 2:
            why = (
                f"{len(targets) or 'no'} metadata target is visible here ({context.file_system}); two or more are "
                "needed"
            )
            return [self.skipped(why)]
        # Every rank has a directory of its own, and every target as many ranks, unless another number is asked for.
        ranks = context.most_ranks or len(targets) * math.ceil(max(4, context.team) / len(targets))
        cells: list[Cell | SkippedCell] = [
            self._cell(context, "manual", targets[:1], ranks, of=len(targets)),
            *(
                self.skipped(f"needs {number} ranks, one for each target", metadata_targets=number)
                for number in range(ranks + 1, len(targets) + 1)
            ),
        ]
        for number in range(2, min(ranks, len(targets)) + 1):
            cells += [
                self._cell(context, way, targets[:number], ranks, of=len(targets)) for way in ("manual", "automatic")
            ]
        if context.file_system == "lustre" and ranks >= len(targets):
            cells += [self._cell(context, way, targets, ranks, of=len(targets)) for way in _OTHER_WAYS]
        return cells

    def _cell(self, context: Context, way: str, targets: tuple[int, ...], ranks: int, of: int) -> Cell:
        items, stop = context.items(ranks), context.stonewall()
        # What a rank made is looked at by another one: its own client would know the answer without asking a server.
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
        if way == "manual":
            by_rank = {
                f"items.{rank}.tree": Placement("manual", (targets[rank % len(targets)],)) for rank in range(ranks)
            }
            place = Place(placement=Placement("manual", targets[:1]), entries=by_rank, kept=f"{way}-{len(targets)}")
        elif way in _OTHER_WAYS:
            below = {f"items.{rank}.tree": Placement("inherit") for rank in range(ranks)}
            place = Place(placement=_OTHER_WAYS[way][0], entries=below, kept=f"{way.replace(' ', '-')}-{len(targets)}")
        else:
            # S4 had the directories below spread too (lfs mkdir -D); where that is not offered they are spread among
            # each other.
            inherited = context.file_system == "lustre"
            spread = Placement("automatic", count=-1 if len(targets) == of else len(targets), inherited=inherited)
            below = {f"items.{rank}.tree": Placement("inherit") for rank in range(ranks)}
            place = Place(placement=spread, entries=below, kept=f"{way}-{len(targets)}")
        settings: dict[str, Setting] = {"placement": way, "metadata_targets": len(targets), "ranks": ranks}
        return Cell(
            self.name,
            f"{self.name}/{way}/{len(targets)}",
            settings,
            Plan(ranks, phases, context.seed),
            tuple(Measure(phase.name, "operations_per_s", {"operation": phase.name}) for phase in phases),
            place=place,
            priority=2 if way in _OTHER_WAYS else 1,
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return each operation's rate by metadata targets, per way of placing, with S4's result."""
        theirs = (
            Reference(
                "S4",
                "S4 (Lustre, 5 metadata targets): by hand it scaled with the number of targets, automatically it did "
                "not",
            ),
        )
        figures = []
        for operation in SIX:
            lines = [
                line
                for way in ("manual", "automatic")
                for line in series(way, _line(results, operation, way), "metadata_targets")
            ]
            if not lines:
                continue
            single = _line(results, operation, "manual")[0].estimate
            assert single is not None
            linear = Reference(
                "linear",
                "Dotted: one metadata target times their number.",
                label="linear",
                points=tuple(
                    (float(number), single.median * float(number)) for number in results.levels("metadata_targets")
                ),
            )
            figures.append(
                self.figure(
                    lines,
                    ("metadata targets", "", "linear"),
                    ("operations a second", "op/s"),
                    *theirs,
                    linear,
                    title=f"{self.title}: {operation}",
                )
            )
        return figures

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return whether rates scale with the targets, by which way, and which targets served."""
        levels = results.levels("metadata_targets")
        if not levels or levels[-1] == 1:
            return []
        most = int(float(levels[-1]))
        ways: tuple[Way, ...] = ("manual", "automatic")
        return [
            self._verdict(most, results),
            *(finding for way in ways for finding in self._served(way, most, results)),
            *(finding for way in ways for finding in self._efficiencies(way, most, results)),
            *(self._other_way(way, most, results) for way in _OTHER_WAYS if _score(results, way, most)),
        ]

    def _other_way(self, way: str, most: int, results: Results) -> Finding:
        """Hold another automatic way against the usual one, all six operations together; says how it is set."""
        identifier, paste = f"{way.replace(' ', '-')}", _OTHER_WAYS[way][1].replace(" N", f" {most}")
        cells = [_at(results, operation, name, most) for operation in SIX for name in (way, "automatic")]
        evidence = tuple(cell.id for cell in cells if cell is not None)
        confidence = bonferroni(results.confidence, len(_OTHER_WAYS))
        ratio = _ratio(_score(results, way, most), _score(results, "automatic", most), confidence)
        subject = f"Directories over {most} metadata targets, {way} ({paste})"
        if ratio is None or ratio.interval is None:
            needs = "three blocks that measure both"
            return self.finding(identifier, f"{subject}: INCONCLUSIVE.", "inconclusive", evidence, needs=needs)
        of = "rate of six operations over that of the usual automatic placement"
        interval = interval_of(ratio.interval, of)
        text = f"{subject}: {ratio.median:.2f} times the rate of the usual automatic placement."
        if interval.low > 1 or interval.high < 1:
            return self.finding(identifier, text, "measured", evidence, interval)
        return self.finding(identifier, f"Not shown either way: {text}", "inconclusive", evidence, interval, NARROWER)

    def _efficiencies(self, way: Way, most: int, results: Results) -> list[Finding]:
        """Rate on all targets over the rate on one, as a share of their number, operation by operation."""
        findings = []
        confidence = bonferroni(results.confidence, len(SIX))
        for operation in SIX:
            few, many = _at(results, operation, "manual", 1), _at(results, operation, way, most)
            if few is None or many is None:
                continue
            identifier = f"{way}-{operation}"
            evidence = (many.id, few.id)
            ratio = _ratio(many.by_block(), few.by_block(), confidence)
            if ratio is None or ratio.interval is None:
                text = f"{operation}, {way} placement over {most} metadata targets: the efficiency is unknown."
                needs = "three blocks that measure both"
                findings.append(self.finding(identifier, text, "inconclusive", evidence, needs=needs))
                continue
            text = (
                f"{operation}, {way} placement over {most} metadata targets: {ratio.median / most:.0%} of linear "
                "scaling."
            )
            interval = interval_of(ratio.interval, "efficiency against linear", "share", per=most)
            findings.append(self.finding(identifier, text, "measured", evidence, interval))
        return findings

    def _verdict(self, most: int, results: Results) -> Finding:
        """S4's decision: is automatic placement to be recommended?"""
        cells = [_at(results, operation, way, number) for operation in SIX for way, number in _decisive(most)]
        evidence = tuple(cell.id for cell in cells if cell is not None)
        scores = {(way, number): _score(results, way, number) for way, number in _decisive(most)}
        if not scores["automatic", most]:
            text = "Whether to recommend automatic placement of directories is unknown."
            needs = "a file system that offers automatic placement"
            return self.finding("verdict", text, "unknown", evidence, needs=needs)
        confidence = bonferroni(results.confidence, 2)
        efficiency = _ratio(scores["automatic", most], scores["manual", 1], confidence)
        of_manual = _ratio(scores["automatic", most], scores["manual", most], confidence)
        if efficiency is None or of_manual is None or efficiency.interval is None or of_manual.interval is None:
            text = "Automatic placement of directories: INCONCLUSIVE."
            needs = "three blocks that measure all of it"
            return self.finding("verdict", text, "inconclusive", evidence, needs=needs)
        share = efficiency.median / most
        of = "efficiency of automatic placement, six operations"
        interval = interval_of(efficiency.interval, of, "share", per=most)
        reason = (
            f"on {most} metadata targets it reaches {share:.0%} of linear scaling and {of_manual.median:.2f} times the "
            f"rate of placement by hand [{of_manual.interval.low:.2f} - {of_manual.interval.high:.2f}]"
        )
        if interval.low >= LEAST_EFFICIENCY and of_manual.interval.low >= LEAST_OF_MANUAL:
            text = f"Automatic placement is RECOMMENDED: {reason}."
            return self.finding("verdict", text, "holds", evidence, interval, tone="good")
        if interval.high < LEAST_EFFICIENCY or of_manual.interval.high < LEAST_OF_MANUAL:
            text = f"Automatic placement is NOT recommended: {reason}."
            return self.finding("verdict", text, "does-not", evidence, interval, tone="bad")
        text = f"Automatic placement: INCONCLUSIVE; {reason}."
        return self.finding("verdict", text, "inconclusive", evidence, interval, NARROWER)

    def _served(self, way: Way, most: int, results: Results) -> list[Finding]:
        """Who served how many metadata requests: by the servers' own counters, else by those of this client."""
        cells = results.where(placement=way, metadata_targets=most)
        if not cells:
            return []
        served, told, silent = _requests(cells[0], _served_requests, most)
        whose = "Requests served"
        if not sum(served.values()):
            served, told, _ = _requests(cells[0], _sent_requests)
            whose = "Requests that this node sent"
        identifier, evidence = f"served-{way}", (cells[0].id,)
        total = sum(served.values())
        if not total:
            text = f"Which metadata target served how many requests is unknown ({way} placement over {most})"
            text += f": no counters of {', '.join(silent)}." if silent else "."
            needs = "counters: root on this client, or --servers"
            return [self.finding(identifier, text, "unknown", evidence, needs=needs)]
        shares = ", ".join(f"{name} {count / total:.0%}" for name, count in sorted(served.items()))
        text = f"{whose}, {way} placement over {most} metadata targets: {shares} of {total:,.0f}"
        counted = {_run(seen) for seen in cells[0].observations if seen.servers}
        if told < counted:
            text += f" (counted in {len(told)} of {len(counted)} runs; no counters of all targets in the others)"
        done = sum(seen.sample.operations for cell in cells for seen in cell.observations if _run(seen) in told)
        if total < _ALL_SERVED * done:
            text += f", for {done:,} operations; the client's cache answered the rest"
        return [self.finding(identifier, f"{text}.", "measured", evidence)]

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return creates at the deciding numbers of metadata targets."""
        levels = results.levels("metadata_targets")
        headlines = []
        for way, number in _decisive(int(float(levels[-1]))) if levels else ():
            cell = _at(results, "file-create", way, number)
            noun, placed = "target" if number == 1 else "targets", "by hand" if way == "manual" else "automatic"
            if cell is not None:
                headlines.append(Headline(f"file-create, {number} metadata {noun}, {placed}", cell.id))
        return headlines


def _requests(
    cell: Measured, count: Callable[[Mapping[str, float]], float | None], least_targets: int = 0
) -> tuple[dict[str, float], set[tuple[int, str, float]], list[str]]:
    """Return what every metadata target counted, the runs it is of, and which targets did not always tell.

    Only runs in which all of them told: a split without one of them (not asked, silent, restarted) is none.
    """
    known = {
        name
        for seen in cell.observations
        for name, counters in seen.servers.items()
        if _served_requests(counters) is not None or _sent_requests(counters) is not None
    }
    requests: dict[str, float] = {}
    told: set[tuple[int, str, float]] = set()
    silent: set[str] = set()
    for seen in cell.observations:
        counted = {name: count(counters) for name, counters in seen.servers.items() if name in known}
        numbers = {name: number for name, number in counted.items() if number is not None}
        silent |= known - numbers.keys()
        if known - numbers.keys() or len(numbers) < least_targets:
            continue
        told.add(_run(seen))
        for name, number in numbers.items():
            requests[name] = requests.get(name, 0.0) + number
    return requests, told, sorted(silent)


def _run(seen: Observation) -> tuple[int, str, float]:
    """Return what is the same for all phases of one run of a cell, whose counters are of all of them together."""
    return seen.block, seen.purpose, seen.at_s


def _served_requests(counters: Mapping[str, float]) -> float | None:
    kinds = {key: value for key, value in counters.items() if key.startswith("md.")}
    return kinds.get("md.requests", sum(kinds.values())) if kinds else None


def _sent_requests(counters: Mapping[str, float]) -> float | None:
    """None for the mount as a whole, which counts calls and not requests to a target."""
    return counters.get(f"{CLIENT}md.requests")


def _decisive(most: int) -> tuple[tuple[Way, int], ...]:
    return (("manual", 1), ("manual", most), ("automatic", most))


def _line(results: Results, operation: str, way: str) -> list[Measured]:
    """One operation over the number of targets; a single target is the same for both ways."""
    single = results.where(operation=operation, placement="manual", metadata_targets=1)
    many = [
        cell for cell in results.where(operation=operation, placement=way) if cell.settings["metadata_targets"] != 1
    ]
    return [*single, *many] if many else []


def _at(results: Results, operation: str, way: str, number: int) -> Measured | None:
    return first(results.where(operation=operation, placement=way, metadata_targets=number))


def _score(results: Results, way: str, number: int) -> dict[int, float]:
    cells = results.where(placement=way, metadata_targets=number)
    return block_scores([(cell.by_block(), False) for cell in cells])


def _ratio(a: dict[int, float], b: dict[int, float], confidence: float) -> Estimate | None:
    return paired_ratio(a, b, confidence) if a.keys() & b.keys() else None
