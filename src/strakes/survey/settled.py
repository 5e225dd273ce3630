"""Measuring less: a cell whose interval, at either end, would leave every finding and every advice as it is needs no more runs. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from strakes.portrait.model import Finding
from strakes.statistics.interval import Estimate, Interval
from strakes.statistics.stopping import StoppingRule, runs_for
from strakes.studies.base import Study
from strakes.studies.results import Measured, Results

# A ratio of two cells may be this much less precise than they are.
_AS_PRECISE = 2.0


def is_settled(study: Study, results: Results, ids: frozenset[str], precision: float) -> bool:
    """Whether the measures ``ids`` of one cell may stop: their intervals can change nothing that the study says.

    ``results`` are the study's own, ``precision`` the relative half-width of the run. A measure that is a headline is never settled by
    this: its figure is itself what is asked for. Nor is one on which something undecided stands: more runs may decide it.
    """
    cell = [one for one in results.measured if one.id in ids]
    intervals = [one.estimate for one in cell if one.estimate is not None and one.estimate.low is not None and one.estimate.median > 0]
    if len(intervals) < len(cell) or any(line.cell in ids for line in study.headlines(results)):
        return False
    findings = study.findings(results)
    if any(one.verdict == "inconclusive" for one in findings if ids.intersection(one.evidence)):
        return False
    said = _said(study, results, findings, precision)
    for end in ("low", "high"):
        moved = Results(tuple(_moved(one, end) if one.id in ids else one for one in results.measured), results.confidence, results.facts)
        if _said(study, moved, study.findings(moved), precision) != said:
            return False
    return True


def runs_saved(cell: list[Measured], rule: StoppingRule) -> int:
    """About how many more runs the least precise measure of a cell would have taken, to its precision or to the most there may be."""
    saved = 0
    for one in cell:
        estimate = one.estimate
        if estimate is None or estimate.low is None or estimate.high is None:
            continue
        interval = Interval(estimate.low, estimate.high, estimate.confidence)
        needed = runs_for(Estimate(estimate.median, interval, estimate.runs), rule.relative_half_width) or estimate.runs
        saved = max(saved, min(needed, rule.max_runs) - estimate.runs)
    return saved


def _said(study: Study, results: Results, findings: Sequence[Finding], precision: float) -> Hashable:
    """Verdicts, tones and advice, and the figures that are not precise enough yet; other figures in texts are not what decides."""
    told = tuple((one.id, one.verdict, one.tone, None if _precise(one, precision) else one.interval) for one in findings)
    return told, tuple((one.setting, one.value, one.chosen) for one in study.advice(results))


def _precise(finding: Finding, precision: float) -> bool:
    if finding.verdict != "measured" or finding.interval is None:
        return True
    low, high = finding.interval.low, finding.interval.high
    return high - low <= _AS_PRECISE * precision * abs(high + low)


def _moved(one: Measured, end: str) -> Measured:
    """The measure as if its median lay at that end of its interval."""
    estimate = one.estimate
    assert estimate is not None
    bound = estimate.low if end == "low" else estimate.high
    assert bound is not None
    factor = bound / estimate.median
    observations = tuple(replace(seen, value=seen.value * factor) for seen in one.observations)
    return replace(one, observations=observations, estimate=replace(estimate, median=bound))
