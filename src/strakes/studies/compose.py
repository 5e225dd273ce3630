"""Pieces that several studies compose: series, ratio findings, saturation findings and the advice that follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from strakes.portrait.model import Finding, IntervalOf, Point, Series, Setting
from strakes.statistics.contrast import paired_ratio
from strakes.statistics.interval import Estimate, smallest_runs
from strakes.statistics.saturation import Level, Saturation, saturation
from strakes.studies.base import Advice
from strakes.studies.results import Measured, Results
from strakes.units import format_value

# A setting that keeps 95 % of the best, lower bound, is as good as the best (DESIGN.md, "Saturation means").
SATURATED = 0.95
# A habit of applications that costs less than a tenth is served well, one that costs more than a fifth is served badly.
NO_COST = (0.9, math.inf)
DEAR = (0.0, 0.8)


def series(name: str, measured: Sequence[Measured], factor: str) -> list[Series]:
    """A line over one factor; nothing when nothing was measured."""
    points = tuple(Point(_axis(one.settings[factor]), one.id) for one in measured if one.estimate is not None)
    return [Series(name, points)] if points else []


def _axis(value: Setting) -> float | str:
    return value if isinstance(value, str) else float(value)


def better_ratio(a: Measured, b: Measured, confidence: float, purpose: str = "measure") -> Estimate | None:
    """How many times better ``a`` is than ``b`` over blocks that measured both; None when no block did."""
    first, second = a.by_block(purpose), b.by_block(purpose)
    if not first.keys() & second.keys():
        return None
    if a.lower_is_better:
        first, second = second, first
    return paired_ratio(first, second, confidence)


@dataclass(frozen=True)
class Tone:
    """Ratios that speak well of a file system, and ratios that speak badly of it; what lies between says nothing."""

    good: tuple[float, float]
    bad: tuple[float, float]

    def of(self, low: float, high: float) -> Literal["good", "bad", "neutral"]:
        """Only when the whole interval is on one side."""
        if self.good[0] <= low and high <= self.good[1]:
            return "good"
        return "bad" if self.bad[0] <= low and high <= self.bad[1] else "neutral"


def ratio_finding(
    finding_id: str,
    statement: str,
    a: Measured,
    b: Measured,
    results: Results,
    *,
    holds_within: tuple[float, float] | None = None,
    tone: Tone | None = None,
) -> Finding:
    """The ratio of ``a`` to ``b``, as a measurement or as a test of a claim.

    ``statement`` has one ``{ratio}`` for the median. With ``holds_within`` the claim is that the ratio lies in that range:
    it holds when the whole interval does, does not when none of it does.
    """
    evidence = (a.id, b.id)
    ratio = better_ratio(a, b, results.confidence)
    if ratio is None or ratio.interval is None:
        needs = f"at least {smallest_runs(results.confidence)} blocks that measure both cells; a larger --budget"
        return Finding(finding_id, a.study, statement.format(ratio="an unknown number of"), "inconclusive", evidence, needs=needs)
    low, high = ratio.interval.low, ratio.interval.high
    verdict: Literal["measured", "holds", "does-not", "inconclusive"] = "measured"
    if holds_within is not None:
        if holds_within[0] <= low and high <= holds_within[1]:
            verdict = "holds"
        elif high < holds_within[0] or low > holds_within[1]:
            verdict = "does-not"
        else:
            verdict = "inconclusive"
    interval = IntervalOf(low, high, ratio.interval.confidence, f"ratio of {describe(a)} to {describe(b)}")
    needs = "" if verdict != "inconclusive" else "a narrower interval: a larger --budget"
    text = statement.format(ratio=f"{ratio.median:.2f}")
    judged = tone.of(low, high) if tone else "neutral"
    return Finding(finding_id, a.study, text, verdict, evidence, interval, needs, judged)


def describe(one: Measured) -> str:
    """A cell in a few words: the levels of its factors."""
    return ", ".join(level_text(name, value) for name, value in one.settings.items() if name != "axis")


def level_text(factor: str, value: Setting) -> str:
    """One level for people.

    >>> level_text("transfer_bytes", 65536), level_text("ranks", 2), level_text("io", "direct")
    ('64 KiB transfers', '2 ranks', 'direct')
    """
    if factor.endswith("_bytes") and not isinstance(value, str):
        return f"{format_value(float(value), 'B')} {_NOUNS.get(factor, factor.removesuffix('_bytes'))}"
    if factor == "stripe_count":
        return f"stripe count {value}"
    if factor in _COUNTED:
        return f"{value} {_COUNTED[factor]}" if value == 1 else f"{value} {_COUNTED[factor]}s"
    return str(value)


_COUNTED = {
    "ranks": "rank",
    "nodes": "node",
    "requests": "request",
    "clients": "client",
    "writers": "writer",
    "metadata_targets": "metadata target",
}
_NOUNS = {"transfer_bytes": "transfers", "data_bytes": "per rank", "file_bytes": "files", "stripe_bytes": "stripes"}


def find_saturation(measured: Sequence[Measured], factor: str, confidence: float) -> Saturation | None:
    """The smallest level that is as good as the best; None with fewer than two levels."""
    levels = [Level(float(one.settings[factor]), one.by_block()) for one in measured if one.by_block()]
    return saturation(levels, confidence, SATURATED) if len(levels) >= 2 else None


def saturation_finding(finding_id: str, noun: str, measured: Sequence[Measured], factor: str, results: Results) -> list[Finding]:
    """Where a rate stops growing with ``factor``, as one finding; nothing when there is nothing to compare."""
    found = find_saturation(measured, factor, results.confidence)
    if found is None:
        return []
    evidence = results.ids(measured)
    study = measured[0].study
    if found.x is None or found.rival_x is None or found.ratio is None or found.ratio.interval is None:
        statement = f"Where {noun} saturate is not shown: the intervals are too wide to tell the levels apart."
        needs = f"about {found.more_runs} more runs of each level" if found.more_runs else "more runs of each level: a larger --budget"
        return [Finding(finding_id, study, statement, "inconclusive", evidence, needs=needs)]
    chosen = level_text(factor, _level_of(measured, factor, found.x))
    rival = level_text(factor, _level_of(measured, factor, found.rival_x))
    if found.verdict == "best-at-the-edge":
        statement = f"{_upper(noun)} still grow at the largest setting measured, {chosen}: {found.ratio.median:.2f} times those at {rival}."
    else:
        statement = f"{_upper(noun)} saturate at {chosen}: {found.ratio.median:.2f} times those at {rival}, the setting hardest to match."
    interval = IntervalOf(found.ratio.interval.low, found.ratio.interval.high, found.ratio.interval.confidence, f"ratio to {rival}")
    return [Finding(finding_id, study, statement, "measured", evidence, interval)]


def saturation_advice(setting: str, noun: str, measured: Sequence[Measured], factor: str, results: Results) -> list[Advice]:
    """Advise the smallest level that is as good as any; where that is not shown, one that is at least shown to beat the smallest."""
    found = find_saturation(measured, factor, results.confidence)
    estimated = [one for one in measured if one.estimate is not None]
    if found is None or len(estimated) < 2:
        return []
    ranked = sorted(estimated, key=_goodness, reverse=True)
    smallest, evidence = estimated[0], results.ids(measured)
    if found.x is None:
        gain = _gain(ranked[0], smallest, factor, results)
        if gain is None or gain[0] <= 1:
            return []
        reason = f"the highest median of the settings measured, {gain[1]}; a smaller one may do as well: the intervals are too wide to tell"
        value = _value_text(factor, ranked[0].settings[factor])
        return [Advice(setting, value, reason, ranked[0].id, smallest.id, 1.0, evidence)]
    chosen = next(one for one in estimated if float(one.settings[factor]) == found.x)
    against = next(one for one in ranked if one is not chosen)
    reason = f"the smallest setting whose {noun} are shown to reach {SATURATED:.0%} of those at every other setting measured"
    gain = _gain(chosen, smallest, factor, results)
    if gain is not None:
        reason += f"; {gain[1]}"
    return [Advice(setting, _value_text(factor, chosen.settings[factor]), reason, chosen.id, against.id, SATURATED, evidence)]


def _gain(chosen: Measured, smallest: Measured, factor: str, results: Results) -> tuple[float, str] | None:
    """How much better than the smallest setting: the lower bound, and the whole of it in words."""
    ratio = better_ratio(chosen, smallest, results.confidence) if chosen is not smallest else None
    if ratio is None or ratio.interval is None:
        return None
    low, high = ratio.interval.low, ratio.interval.high
    return low, f"{ratio.median:.2f} times those at {level_text(factor, smallest.settings[factor])} [{low:.2f} - {high:.2f}]"


def _value_text(factor: str, value: Setting) -> str:
    return format_value(float(value), "B") if factor.endswith("_bytes") else str(value)


def _goodness(one: Measured) -> float:
    assert one.estimate is not None
    return -one.estimate.median if one.lower_is_better else one.estimate.median


def _level_of(measured: Sequence[Measured], factor: str, x: float) -> Setting:
    return next(one.settings[factor] for one in measured if float(one.settings[factor]) == x)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
