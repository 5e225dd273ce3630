"""From the stored visits of a run to measured results: pure, so that any run can be analysed again years later."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

from strakes.analysis.held_back import under_one_limit
from strakes.analysis.levels import CELLS_TO_PART, kind_of
from strakes.findings.cell import SIDE_METRICS, UNITS, Cell, Measure, Metric
from strakes.findings.portrait import CellEstimate
from strakes.findings.results import Measured, Observation, Results
from strakes.findings.sample import Sample, sample_named
from strakes.plan import MixedPhase, Plan
from strakes.statistics.dependence import (
    FEWEST,
    FEWEST_OF_ONE,
    greatest_correlation,
    mixed_correlation,
    more_than_chance,
    pooled_correlation,
    stretched,
)
from strakes.statistics.interval import median
from strakes.statistics.pooled import pooled_rate
from strakes.statistics.stopping import StoppingRule
from strakes.store.records import Visit
from strakes.studies.registry import study_named

# With fewer cells nothing can be told from what their blocks have in common.
_FEWEST_CELLS = 4
# Fewer mostly show no resemblance where there is much: what there may be at most counts, too small in one case of so
# many.
ENOUGH_CELLS = 8
_UNDERRATED = 0.05
# So many cells show by chance that their runs resemble each other in one run of so many.
_BY_CHANCE = 0.01
# Of so few blocks, what they have in common may scatter by so much more than it seems to (variances).
_SURELY_LESS = 1.5
# Of the runs: fewer with the very same time as another one of their cell may be chance.
_TIES = 0.05
_SAME_S = 1e-9


def metric_value(metric: Metric, sample: Sample, device: str = "") -> float:
    """Return the value of a metric in its unit; ``device``: that of the file system, where it has one here."""
    if metric == "seconds_per_item":
        items_per_rank = sample.operations / len(sample.ranks)
        return sample.elapsed_s / items_per_rank if items_per_rank else float("nan")
    if metric in SIDE_METRICS:
        return _side_value(metric, sample, device)
    return float(getattr(sample, metric))


def _side_value(metric: Metric, sample: Sample, device: str) -> float:
    """Of the node that was measured, or of the accelerators of a training.

    How busy the device is (else the busiest), the share of processor time that waited, memory left.
    """
    counters = sample.counters
    if metric == "utilisation":
        return float(sample.trained["utilisation_percent"])
    if metric == "memory_available":
        return float(counters.get("memory_available_bytes", 0))
    if metric == "device_busy":
        devices = counters.get("devices", {})
        own = [devices[device]] if device in devices else devices.values()
        busiest = max((float(counts["busy_s"]) for counts in own), default=0.0)
        return min(100.0, 100 * busiest / sample.elapsed_s) if sample.elapsed_s else 0.0
    spent = [float(counters.get(f"cpu_{what}_s", 0.0)) for what in ("iowait", "user", "system", "idle")]
    return 100 * spent[0] / sum(spent) if sum(spent) else 0.0


def _memory_of(servers: Mapping[str, Mapping[str, float]]) -> float | None:
    """Return what the servers that tell use together; None where none does."""
    told = [counters["now.memory_bytes"] for counters in servers.values() if "now.memory_bytes" in counters]
    return sum(told) if told else None


def collect(
    cells: Sequence[Cell],
    visits: Sequence[Visit],
    rule: StoppingRule,
    facts: Mapping[str, Any],
) -> Results:
    """Results of all cells; visits that did not end well carry no value, nor do those under another limit than most."""
    by_cell: dict[str, list[Visit]] = {}
    for visit in under_one_limit(visits):
        by_cell.setdefault(visit.cell, []).append(visit)
    measured = [
        _measured(cell, measure, by_cell.get(cell.key, []), rule, _device(cell, facts))
        for cell in cells
        for measure in cell.measures
    ]
    return with_dependence(Results(tuple(_with_steps(measured)), rule.confidence, facts), rule, {})


def _with_steps(measured: Sequence[Measured]) -> list[Measured]:
    """Return the measures with what a step of the clock hides in each.

    Times that step tie, which those of a fine clock never do; a step is then the smallest difference between any two of
    them.
    """
    times = [[seen.sample.elapsed_s for seen in cell.observations if seen.sample.elapsed_s > 0] for cell in measured]
    runs = sum(map(len, times))
    if not runs or sum(len(own) - len(set(own)) for own in times) < _TIES * runs:
        return list(measured)
    every = sorted({time_s for own in times for time_s in own})
    step_s = min((late - early for early, late in pairwise(every) if late - early > _SAME_S), default=0.0)
    return [
        replace(cell, step=step_s / median(own)) if own else cell for cell, own in zip(measured, times, strict=True)
    ]


def with_dependence(
    results: Results,
    rule: StoppingRule,
    moments: Mapping[str, Sequence[float]],
    unlike: Mapping[str, float] | None = None,
) -> Results:
    """Return the results with intervals as wide as runs that resemble the one before make them.

    ``moments``: when measures are known to have changed their level, which is no resemblance. ``unlike``: how much runs
    of a cell may do so by themselves, where cells differ in that.
    """
    single, within = correlations(results.measured, moments)
    unlike = unlike or {}
    measured = []
    for cell in results.measured:
        own = unlike.get(_cell_of(cell), 0.0)
        wider = replace(rule, confidence=stretched(rule.confidence, max(single, own)))
        measured.append(
            replace(cell, estimate=_estimated(cell.estimate, wider, cell.step), correlation=max(within, own))
        )
    return replace(results, measured=tuple(measured), correlation=max(single, *unlike.values(), 0.0))


def unlike_correlations(
    measured: Sequence[Measured], moments: Mapping[str, Sequence[float]], explained: Collection[str]
) -> dict[str, float]:
    """Return how much runs of each cell may resemble the one before, where more cells show that than chance allows.

    Beyond what cells of the same kind of work have in common. What half of the cells do not do shows in no median over
    all of them, and hardly in a dozen runs of one. ``explained``: measures whose levels take turns. Empty where no more
    cells show it than may by chance.
    """
    of_cells: dict[str, list[dict[int, float]]] = {}
    for kind in {kind_of(figure) for figure in measured}:
        cells = _by_cell([each for each in measured if kind_of(each) == kind and each.id not in explained], moments)
        if len(cells) < CELLS_TO_PART:
            continue
        for name, rest in _rests(cells).items():
            of_cells.setdefault(name, []).append(rest)
    series = {
        name: [fmean(rest[block] for rest in rests if block in rest) for block in sorted(set().union(*rests))]
        for name, rests in of_cells.items()
    }
    series = {name: values for name, values in series.items() if len(values) >= FEWEST_OF_ONE}
    called = sum(pooled_correlation([values]) > 0 for values in series.values())
    if not more_than_chance(called, len(series), _BY_CHANCE):
        return {}
    return {name: greatest_correlation([values]) for name, values in series.items()}


def _rests(cells: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    """Return how much better each cell was in each block beyond what the block had in common."""
    by_block: dict[int, list[float]] = {}
    for values in cells.values():
        for block, better in values.items():
            by_block.setdefault(block, []).append(better)
    common = {block: median(values) for block, values in by_block.items()}
    return {name: {block: better - common[block] for block, better in own.items()} for name, own in cells.items()}


def _cell_of(figure: Measured) -> str:
    return figure.id.rsplit(":", 1)[0]


def _estimated(estimate: CellEstimate | None, rule: StoppingRule, step: float) -> CellEstimate | None:
    """Return the estimate with the interval that this rule gives it; of other tools' repetitions there is none.

    Half a step of the clock is added, where there is one.
    """
    if estimate is None or estimate.stopped_because == "imported":
        return estimate
    interval = rule.estimate(estimate.values).beyond(step / 2).interval
    return replace(estimate, low=interval.low if interval else None, high=interval.high if interval else None)


def correlations(measured: Sequence[Measured], moments: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """How much each run resembles its cell's run before it: in all, and beyond what its block has in common.

    Zero where that is not shown. All measures of a visit count as one, because what slowed the visit slowed them all.
    """
    cells = list(_by_cell(measured, moments).values())
    by_block: dict[int, list[float]] = {}
    for values in cells:
        for block, better in values.items():
            by_block.setdefault(block, []).append(better)
    if len(cells) < _FEWEST_CELLS:
        within = pooled_correlation([list(values.values()) for values in cells])
        return within, within
    common = {block: median(values) for block, values in by_block.items()}
    rest = [[better - common[block] for block, better in values.items()] for values in cells]
    within = pooled_correlation(rest)
    if len(cells) < ENOUGH_CELLS and max(map(len, cells)) >= FEWEST:
        within = greatest_correlation(rest, _UNDERRATED)
    blocks = [common[block] for block in sorted(common)]
    shared = pooled_correlation([blocks])
    scatter = median([_spread(list(values.values())) for values in cells])
    part = min(1.0, _SURELY_LESS * (_spread(blocks) / scatter) ** 2) if scatter > 0 else 1.0
    return max(within, mixed_correlation(shared, within, part, len(blocks))), within


def _spread(values: Sequence[float]) -> float:
    middle = median(values)
    return median([abs(value - middle) for value in values])


def wandering(measured: Sequence[Measured]) -> float:
    """Return how much runs may resemble their cell's run before, at most, beyond what all cells of a block do.

    For what would be false of cells that wander: groups of runs, and a trend.
    """
    cells = _by_cell(measured, {})
    if len(cells) < _FEWEST_CELLS or max(map(len, cells.values())) < FEWEST:
        return 0.0
    return greatest_correlation([list(rest.values()) for rest in _rests(cells).values()])


def _by_cell(measured: Sequence[Measured], moments: Mapping[str, Sequence[float]]) -> dict[str, dict[int, float]]:
    """Return for each cell by block how much better its visit was than its median visit, as a logarithm.

    A study that goes on where its last visit ended changes as it should; of what other tools ran the order is not
    known.
    """
    cells: dict[str, dict[int, list[float]]] = {}
    for cell in measured:
        seen = [run for run in cell.observations if run.purpose == "measure"]
        if (
            cell.is_side
            or cell.estimate is None
            or cell.estimate.stopped_because == "imported"
            or study_named(cell.study).visits_in_sequence
            or min(run.value for run in seen) <= 0
        ):
            continue
        levels: dict[int, list[tuple[int, float]]] = {}
        for run in seen:
            level = sum(moment <= run.at_s for moment in moments.get(cell.id, ()))
            better = math.log(run.value) * (-1 if cell.lower_is_better else 1)
            levels.setdefault(level, []).append((run.block, better))
        of_cell = cells.setdefault(_cell_of(cell), {})
        for runs in levels.values():
            middle = median([better for _, better in runs])
            for block, better in runs:
                of_cell.setdefault(block, []).append(better - middle)
    return {
        name: {block: median(of_block) for block, of_block in sorted(values.items())} for name, values in cells.items()
    }


def _device(cell: Cell, facts: Mapping[str, Any]) -> str:
    """Return the device here that the cell's file system is on; empty where there is none."""
    side = facts.get("against", {}) if cell.place.target == "against" else facts
    return str((side.get("block_device") or {}).get("name", ""))


def _measured(cell: Cell, measure: Measure, visits: Sequence[Visit], rule: StoppingRule, device: str) -> Measured:
    asked = 0 if cell.imported else _asked(cell.plan, measure.phase)
    observations = []
    for visit in visits:
        sample = sample_named(visit.samples, measure.phase)
        if sample is None:
            continue
        of_servers = measure.metric == "servers_memory"
        value = _memory_of(visit.servers) if of_servers else metric_value(measure.metric, sample, device)
        if value is not None:
            at_s = visit.started_unix_s or 0.0
            observations.append(Observation(visit.block, visit.purpose, value, asked, sample, visit.servers, at_s))
    identifier = cell.measure_id(measure.suffix)
    settings = {**cell.settings, **measure.settings}
    estimate = _estimate(identifier, cell.study, settings, measure.metric, observations, rule)
    if cell.imported and estimate is not None:
        # Another tool's repetitions: how they were made is not known, so they carry no interval of ours.
        estimate = replace(estimate, low=None, high=None, stopped_because="imported")
    elsewhere = cell.plan.made_elsewhere(measure.phase)
    unit = UNITS[measure.metric]
    return Measured(identifier, cell.study, settings, unit, tuple(observations), estimate, elsewhere=elsewhere)


def _asked(plan: Plan, phase_name: str) -> int:
    parts = [part for phase in plan.phases if isinstance(phase, MixedPhase) for part in phase.parts]
    asked = {part.phase.name: part.operations(plan.ranks) for part in parts}
    return (
        asked[phase_name]
        if phase_name in asked
        else next(phase.operations(plan.ranks) for phase in plan.phases if phase.name == phase_name)
    )


def _estimate(
    identifier: str,
    study: str,
    settings: Mapping[str, Any],
    metric: Metric,
    observations: Sequence[Observation],
    rule: StoppingRule,
) -> CellEstimate | None:
    regular = [seen for seen in observations if seen.purpose == "measure"]
    if not regular:
        return None
    values = [seen.value for seen in regular]
    judgement = rule.judge(values)
    interval = judgement.estimate.interval
    return CellEstimate(
        id=identifier,
        study=study,
        settings=settings,
        median=judgement.estimate.median,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        confidence=rule.confidence,
        runs=len(values),
        unit=UNITS[metric],
        stopped_because=judgement.reason if judgement.stop else "budget-spent",
        values=tuple(values),
        pooled=_pooled(metric, regular),
    )


def _pooled(metric: Metric, observations: Sequence[Observation]) -> float | None:
    work = {"bytes_per_s": "bytes", "operations_per_s": "operations"}.get(metric)
    if work is None or not all(seen.sample.is_measured for seen in observations):
        return None
    amounts = [float(getattr(seen.sample, work)) for seen in observations]
    return pooled_rate(amounts, [seen.sample.elapsed_s for seen in observations])
