"""Pieces that several studies compose: series, ratio findings, saturation findings and the advice that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from strakes.findings.cell import Measure
from strakes.findings.claims import Claim
from strakes.findings.portrait import Finding, IntervalOf, Point, Series, Setting
from strakes.findings.results import Measured, Results
from strakes.plan import Stop, TransferPhase
from strakes.plan.phases import Access, Sharing
from strakes.statistics.contrast import paired_logs, paired_ratio
from strakes.statistics.interval import Estimate, Interval, median, smallest_runs
from strakes.statistics.saturation import Level, Saturation, saturation
from strakes.studies.study import Advice
from strakes.targets.caches import own_cache
from strakes.units import counted, format_value

# A setting that surely keeps this much of the best is as good as the best: as exact as cells are usually measured (±10
# %).
SATURATED = 0.9
# A cache with no more than this of a file was dropped.
_HARDLY = 0.05
# What seems to reach this much of the best is worth testing for SATURATED.
PROMISING = 0.95
# Two settings whose ratio surely lies between these are alike.
ALIKE = (1 / 1.1, 1.1)
# What differs by no more than this is worth saying, too, with its bounds.
NEARLY_ALIKE = (0.8, 1.25)
# More runs than this, beyond those made, are no advice to anybody.
_MOST_RUNS = 60
# A habit of applications that costs less than a tenth is served well.
NO_COST = (0.9, math.inf)

# Ranks that have less than so many times as much data as others have as much.
_AS_MUCH = 1.1

# What is measured of the two phases of ``write_and_read``.
WRITE_AND_READ = tuple(Measure(operation, "bytes_per_s", {"operation": operation}) for operation in ("write", "read"))


def write_and_read(
    transfer: int,
    amount: int,
    stop: Stop,
    files: Sharing = "file-per-process",
    access: Access = "segmented",
    segments: int = 1,
    *,
    direct: bool = False,
    rank_shift: int = 0,
) -> tuple[TransferPhase, TransferPhase]:
    """Return a phase that writes ``amount`` bytes a rank to fsync, and one that reads them when caches are dropped."""
    whole = TransferPhase("write", "write", files, access, transfer, amount, segments, direct=direct, stop=stop)
    read = replace(whole, name="read", operation="read", cache="drop", rank_shift=rank_shift)
    return replace(whole, sync="fsync"), read


def first(cells: Sequence[Measured]) -> Measured | None:
    """Return the first one; None where there is none."""
    return cells[0] if cells else None


def series(name: str, measured: Sequence[Measured], factor: str) -> list[Series]:
    """Draw a line over one factor; nothing when nothing was measured."""
    points = tuple(Point(_axis(cell.settings[factor]), cell.id) for cell in measured if cell.estimate is not None)
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
    return paired_ratio(first, second, confidence, max(a.correlation, b.correlation)).beyond(step_between(a, b))


def ratio_logs(a: Measured, b: Measured) -> list[float]:
    """Return the logarithm of how many times better ``a`` was than ``b`` in each block; none where one has none."""
    first, second = a.by_block(), b.by_block()
    if a.lower_is_better:
        first, second = second, first
    return paired_logs(first, second) or []


def interval_of(interval: Interval, of: str, unit: str = "times", per: float = 1.0) -> IntervalOf:
    """Return an interval, divided by ``per``, with what it is of."""
    return IntervalOf(interval.low / per, interval.high / per, interval.confidence, of, unit)


def step_between(*measured: Measured) -> float:
    """Return the share by which a ratio of two may be off because clocks step: half a step of the coarsest two."""
    return sum(sorted((cell.step for cell in measured), reverse=True)[:2]) / 2


@dataclass(frozen=True)
class Tone:
    """Ratios that speak well of a file system, and ratios that speak badly of it; what lies between says nothing.

    What processors and the kernel of the client cost anyway speaks badly of no file system: there ``bad`` has to be
    left out. ``praise``: what a good ratio means, where a ratio near 1 does not say it by itself.
    """

    good: tuple[float, float]
    bad: tuple[float, float] = (math.inf, -math.inf)
    praise: str = ""

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
    tone: Tone | None = None,
) -> Finding:
    """Return the ratio of ``a`` to ``b``; ``statement`` has one ``{ratio}`` for the median."""
    evidence = (a.id, b.id)
    ratio = better_ratio(a, b, results.confidence)
    if ratio is None or ratio.interval is None:
        needs = f"at least {smallest_runs(results.confidence)} blocks that measure both cells: give a larger --budget"
        text = f"N is not known: {statement.format(ratio='N')}"
        return Finding(finding_id, a.study, text, "inconclusive", evidence, needs=needs)
    low, high = ratio.interval.low, ratio.interval.high
    interval = interval_of(ratio.interval, f"ratio of {describe(a)} to {describe(b)}")
    text = statement.format(ratio=f"{ratio.median:.2f}")
    if not (low > 1 or high < 1 or (low >= ALIKE[0] and high <= ALIKE[1])):
        bounds = useful_bounds(low, high)
        if bounds is None:
            text, needs = f"Not shown either way: {text}", "a narrower interval: a larger --budget"
            return Finding(finding_id, a.study, text, "inconclusive", evidence, interval, needs)
        text = statement.format(ratio=bounds)
    judged = tone.of(low, high) if tone else "neutral"
    if tone and judged == "good" and tone.praise:
        text = f"{text} {tone.praise}"
    return Finding(
        finding_id, a.study, text, "measured", evidence, interval, tone=judged, claims=(Claim(a.id, b.id, low, high),)
    )


def useful_bounds(low: float, high: float) -> str | None:
    """Return in words what an interval that holds 1 rules out, where that is of use: a loss, a gain, much of both."""
    if NEARLY_ALIKE[0] <= low and high <= NEARLY_ALIKE[1]:
        return f"{low:.2f} to {high:.2f}"
    if low >= ALIKE[0]:
        return f"at least {low:.2f}"
    return f"at most {high:.2f}" if high <= ALIKE[1] else None


def describe(cell: Measured) -> str:
    """Return a cell in a few words: the levels of its factors."""
    return ", ".join(level_text(name, value) for name, value in cell.settings.items() if name != "axis")


def read_from(cell: Measured, facts: Mapping[str, Any]) -> str:
    """Say where reads of data that had just been written came from, as far as the client can tell."""
    if cell.elsewhere:
        return "written by another node"
    if own_cache(str(facts.get("file_system", ""))) and cell.settings.get("io") != "direct":
        return "whatever cache answered"
    caches = [seen.sample.cache for seen in cell.observations]
    read = sum(cache.file_bytes or 0 for cache in caches)
    if not read or not all(cache.method == "cachestat" for cache in caches):
        return "whatever cache answered"
    resident = sum(cache.resident_before_bytes for cache in caches)
    return "after cache drop" if resident <= _HARDLY * read else "partly from this node's cache"


# A request to a server and back takes longer than this on any network.
_ROUND_TRIP_S = 10e-6
_FROM_SERVERS = 0.5
# Operations on names that the phases before them made.
_ON_NAMES = ("file-stat", "dir-stat", "file-open-close", "file-getxattr", "read 4 KiB", "open and close")
# Of those that go over directories one request brings many entries, so that behind a network an entry may take no time.
_ON_DIRECTORIES = ("list", "list-stat", "find")


def from_memory(cell: Measured, facts: Mapping[str, Any]) -> bool:
    """Tell whether this node's kernel answered from what it remembers of files that it has just made.

    On a local file system it always does, since nothing drops names between two phases; behind a network it does where
    an operation took less than any request to a server.
    """
    operation = cell.settings.get("operation")
    if operation not in (*_ON_NAMES, *_ON_DIRECTORIES) or cell.estimate is None:
        return False
    if not facts.get("remote"):
        return "file_system" in facts
    if operation in _ON_DIRECTORIES:
        return False
    ranks = max((len(seen.sample.ranks) for seen in cell.observations), default=0)
    each_s = cell.estimate.median if cell.unit == "s" else ranks / max(cell.estimate.median, 1e-9)
    return 0 < each_s < _ROUND_TRIP_S


def from_own_cache(cell: Measured, facts: Mapping[str, Any]) -> bool:
    """Tell whether what was read says nothing of the file system: a cache of this node's client had most of it.

    Where servers count, they sent less than half; they are looked at before and after a visit, and count all that was
    read in it. Where none does, the client may have kept what it had just written.
    """
    if cell.settings.get("operation") != "read" or cell.elsewhere:
        return False
    shares = [
        sum(sent) / seen.sample.bytes
        for seen in cell.observations
        if seen.sample.bytes
        and (sent := [counts["data.read_bytes"] for counts in seen.servers.values() if "data.read_bytes" in counts])
    ]
    if shares:
        return median(shares) < _FROM_SERVERS
    return cell.settings.get("io") != "direct" and bool(own_cache(str(facts.get("file_system", ""))))


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
    """Return the smallest level that is as good as the best; None with fewer than two levels."""
    levels = [Level(float(cell.settings[factor]), cell.by_block()) for cell in measured if cell.by_block()]
    correlation = max((cell.correlation for cell in measured), default=0.0)
    step = step_between(*measured)
    return saturation(levels, confidence, SATURATED, correlation, step) if len(levels) >= 2 else None


def data_of_rank(cell: Measured) -> float:
    """Return how many bytes each rank moves in a run of the cell, at the median; 0 where none does."""
    moved = [seen.sample.bytes / len(seen.sample.ranks) for seen in cell.observations if seen.sample.ranks]
    return median(moved) if moved else 0.0


def _with_more_data(cell: Measured, other: Measured, factor: str) -> str:
    """Return how many times as much data each rank has than with another number of ranks; empty where that is alike.

    Where all ranks share one amount, their number comes with that, and nobody can tell which of the two matters.
    """
    own, of_other = data_of_rank(cell), data_of_rank(other)
    if factor != "ranks" or min(own, of_other) <= 0 or 1 / _AS_MUCH < own / of_other < _AS_MUCH:
        return ""
    return f"{own / of_other:.3g} times as much data as with {level_text(factor, other.settings[factor])}"


def _comes_with(cell: Measured, other: Measured, factor: str) -> str:
    """Return a sentence on what else differs between two numbers of ranks; empty where nothing does."""
    more = _with_more_data(cell, other, factor)
    return f" Each rank then has {more}, which may be the reason." if more else ""


def saturation_finding(
    finding_id: str, noun: str, measured: Sequence[Measured], factor: str, results: Results
) -> list[Finding]:
    """Where a rate stops growing with ``factor``, as one finding; nothing when there is nothing to compare."""
    saturation = find_saturation(measured, factor, results.confidence)
    if saturation is None:
        return []
    evidence = results.ids(measured)
    study = measured[0].study
    if (
        saturation.x is None
        or saturation.rival_x is None
        or saturation.ratio is None
        or saturation.ratio.interval is None
    ):
        if (partly := _partly_known(finding_id, noun, measured, factor, saturation)) is not None:
            return [partly]
        statement = f"Where {noun} saturate is not known: the intervals are too wide to tell the levels apart."
        needs = (
            f"about {counted(saturation.more_runs, 'more run')} of each level"
            if saturation.more_runs and saturation.more_runs <= _MOST_RUNS
            else "runs that scatter less: longer phases (--phase with a larger --budget), or a quieter time"
        )
        return [Finding(finding_id, study, statement, "inconclusive", evidence, needs=needs)]
    by_level = {float(cell.settings[factor]): cell for cell in measured}
    chosen, hardest = by_level[saturation.x], by_level[saturation.rival_x]
    level, rival = (level_text(factor, cell.settings[factor]) for cell in (chosen, hardest))
    interval = interval_of(saturation.ratio.interval, f"ratio to {rival}")
    others = [cell for cell in by_level.values() if cell is not chosen]
    times = f"{saturation.ratio.median:.2f} times those at {rival}"
    if saturation.verdict == "grows":
        text = (
            f"{_upper(noun)} still grow at the largest setting measured, {level}: {times}, the setting hardest to beat."
        )
        text += _comes_with(chosen, hardest, factor)
        claims = tuple(Claim(chosen.id, cell.id, 1.0) for cell in others)
        return [Finding(finding_id, study, text, "measured", evidence, interval, claims=claims)]
    claims = tuple(Claim(chosen.id, cell.id, SATURATED) for cell in others)
    enough = f"at least {SATURATED:.0%} of any other setting"
    text = (
        f"{level} suffice for {noun} ({enough}): {times}, the setting hardest to match"
        if level.endswith("s")
        else f"{level} suffices for {noun} ({enough}): {times}, the setting hardest to match"
    )
    if saturation.below_x is None:
        text += "; nothing smaller was measured"
    elif saturation.verdict == "saturated" and saturation.gain is not None and saturation.gain.interval is not None:
        below = by_level[saturation.below_x]
        claims = (*claims, Claim(chosen.id, below.id, 1.0))
        gain = saturation.gain.interval
        text = (
            f"{_upper(noun)} saturate at {level} ({enough}): {times}, the setting hardest to match, "
            f"and {saturation.gain.median:.2f} "
        )
        text += f"[{gain.low:.2f} - {gain.high:.2f}] times those at {level_text(factor, below.settings[factor])}"
    else:
        text += "; whether less does is not known"
    text = f"{text}.{_comes_with(chosen, hardest, factor)}"
    return [Finding(finding_id, study, text, "measured", evidence, interval, claims=claims)]


def _partly_known(
    finding_id: str, noun: str, measured: Sequence[Measured], factor: str, saturation: Saturation
) -> Finding | None:
    """State what is shown where it is not known which level suffices: which do not, or how little all differ."""
    by_level = {float(cell.settings[factor]): cell for cell in measured}
    evidence, study = tuple(cell.id for cell in measured), measured[0].study
    gain, ratio = saturation.gain, saturation.ratio
    if saturation.too_little_x is not None and saturation.better_x is not None and gain is not None and gain.interval:
        better, worse = by_level[saturation.better_x], by_level[saturation.too_little_x]
        much, little = (level_text(factor, cell.settings[factor]) for cell in (better, worse))
        text = (
            f"{_upper(noun)} need more than {little}: {much} give {gain.median:.2f} times as much. What suffices is "
            "not known."
        )
        text += _comes_with(better, worse, factor)
        interval = interval_of(gain.interval, f"ratio of {much} to {little}")
        claims = tuple(Claim(better.id, cell.id, 1.0) for x, cell in by_level.items() if x <= saturation.too_little_x)
        return Finding(finding_id, study, text, "measured", evidence, interval, claims=claims)
    if saturation.rival_x is None or ratio is None or not ratio.interval or ratio.interval.low < NEARLY_ALIKE[0]:
        return None
    smallest, low = by_level[min(by_level)], ratio.interval.low
    hardest = by_level[saturation.rival_x]
    least, rival = (level_text(factor, cell.settings[factor]) for cell in (smallest, hardest))
    text = f"{_upper(noun)}: {least} reach at least {low:.0%} of the rate of any other setting measured."
    text += _comes_with(smallest, hardest, factor)
    interval = interval_of(ratio.interval, f"ratio to {rival}")
    claims = tuple(Claim(smallest.id, cell.id, low) for cell in by_level.values() if cell is not smallest)
    return Finding(finding_id, study, text, "measured", evidence, interval, claims=claims)


def saturation_advice(
    setting: str, noun: str, measured: Sequence[Measured], factor: str, results: Results
) -> list[Advice]:
    """Propose the smallest level that seems as good as any, to be tested on fresh runs.

    It is tested against its rival and the level below.

    Nothing where a level below seems as good for all that can be told: fresh runs could not show that less is worse.
    """
    levels = [cell for cell in measured if cell.estimate is not None]
    if len(levels) < 2:
        return []
    best = max(levels, key=_goodness)
    seeming = [_seeming(cell, best, results) for cell in levels]
    place = next(place for place, ratio in enumerate(seeming) if ratio >= PROMISING)
    chosen, below = levels[place], levels[place - 1] if place else None
    if below is not None and seeming[place] < seeming[place - 1] / SATURATED:
        return []
    rival = best if best is not chosen else max((cell for cell in levels if cell is not chosen), key=_goodness)
    if below is not None:
        reason = f"the smallest setting whose {noun} reach {SATURATED:.0%} of those at any other"
        reason += f"; {noun} are slower with {level_text(factor, below.settings[factor])}"
    else:
        reason = (
            f"it need not be larger: {noun} reach {SATURATED:.0%} of those at any other at the smallest setting "
            "measured"
        )
    if more := _with_more_data(chosen, below or rival, factor):
        reason = f"{reason}; each rank then has {more}, which may be the reason"
    value = _value_text(factor, chosen.settings[factor])
    return [
        Advice(
            setting,
            value,
            reason,
            chosen.id,
            rival.id,
            SATURATED,
            results.ids(measured),
            below=below.id if below is not None else "",
        )
    ]


def _seeming(cell: Measured, best: Measured, results: Results) -> float:
    """How near a level seems to come to the best: what to test, not what is shown."""
    ratio = better_ratio(cell, best, results.confidence) if cell is not best else None
    return ratio.median if ratio is not None else float(cell is best)


def _value_text(factor: str, value: Setting) -> str:
    return format_value(float(value), "B") if factor.endswith("_bytes") else str(value)


def _goodness(cell: Measured) -> float:
    assert cell.estimate is not None
    return -cell.estimate.median if cell.lower_is_better else cell.estimate.median


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
