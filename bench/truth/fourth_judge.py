"""A stranger's judge: every statement of a survey on a truth of :mod:`bench.truth.fourth` is true, false, or cannot be judged.

Fixed before any survey of these truths was seen. Three readings were mended when the first 70 had been read, each in favour of the
survey: a level may be one that the file system had at any moment, not only in runs of that figure; where the work itself makes it slow, a
ratio may be that of runs next to each other, too; and that runs "may" resemble each other cannot be judged.

**What is true.** The noise-free rate of every phase at the moment it was run, times the slow level of the noise at that visit, times
the median of the noise's fast part. Where rates depend on the luck of a visit, the median over all luck. A ratio of two settings
is the ratio of their noise-free rates at one and the same moment; there are as many moments as visits of both.

**False** is
- a figure (headline or not) whose interval lies more than 5 % away from every value that was true of it during the survey. An
  interval that misses the true median of its visits by less counts against coverage only: each holds by itself with 90 %;
- a headline with one interval, for which no warning says that it changes, where a quarter or more of its true values lie outside the
  interval widened by a fifth on both sides; a headline of reads that a cache answered, without cache-suspect;
- levels where the truth took only one, or a level that is more than 30 % beyond everything that was true of any run: levels have no
  intervals, and are of few runs;
- an interval of a ratio that excludes the true ratio. Where that changes: one that excludes the median over the moments by more than
  2 %, or is off by more than a tenth in a quarter or more of the moments, unless the sentence says that it depends;
- "L suffices", "saturates at L", "reaches 90 % of any other": where L truly is below what the sentence promises (half a percent
  is forgiven), in the median of moments or in a quarter of them unless it says that it depends. The report promises 90 %; advice whose
  setting is truly below 95 % of the best is told apart;
- "still grow", "slower with X", "need more than X" where the larger is not truly better by half a percent or more;
- "costs little" where it truly costs more than a tenth; HOLDS or DOES NOT hold, of reads against writes, where it is the other way round;
- a change of level that is not there, is less than half as large (in logarithms), or is more than 8 s from where it is said (counted
  from the first run or from the first of all); a kind of work that is said to have changed and did not; "take turns" where the level
  did not come back, or with a share that is off by more than four times; "drift" where fewer than a third of the figures moved so
  by half as much; two groups of runs that are not where they are said to be; "fresh ... then ..." where that is not so;
- runs that "resemble each other" where neither truth nor noise has any memory; "depends on when it was measured" where nothing does;
- a cache that answered where none did; a server that is slow and is not, or is said to be slower or faster by more than a twentieth
  beyond the interval than it is.
**Cannot be judged**: how many runs would do, what took less than half a second, what was answered from a kernel's memory of names, what a
cache might have done, and settings whose comparison is confounded by the plan itself (told apart).
**Told** is a truth when a sentence that is true matches one of its ``tells``.
**Severe** is what would mislead somebody who buys or configures: wrong settings, wrong causes, wrong servers, wrong figures, a change that
is kept silent. The rest is pedantic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.truth.fourth import Planted
from bench.truth.fourth_noise import Told
from bench.truth.fourth_warnings import warned
from bench.truth.fourth_world import FORGIVEN, NEAR, OFTEN, UNITS, Statement, World, is_cached, seconds, shown, spread
from strakes.findings.portrait import CellEstimate, Finding, Portrait, Recommendation
from strakes.store import Run

# Levels are medians of few runs, and some runs meet two states.
LEVEL_OFF = 1.3
_DEPENDS = "Depends on when it was measured"
_FROM = re.compile(r"From (.+?) after the first run on, and perhaps not before")


@dataclass
class Ruling:
    """``held`` of ``intervals`` hold what was true of them; ``below`` is advice that reaches 90 % and not 95 %."""

    statements: list[Statement] = field(default_factory=list)
    intervals: int = 0
    held: int = 0
    told: bool = False
    confirmed: int = 0
    below: int = 0

    @property
    def false(self) -> list[Statement]:
        return [one for one in self.statements if one.answer == "false"]


def judge(run: Run, portrait: Portrait, truth: Planted, noise: Told) -> Ruling:
    """Judge all that a report says."""
    world, ruling = World(run, truth, noise), Ruling()
    cells = {cell.id: cell for cell in portrait.cells}
    headlines = {headline.cell: headline.label for headline in portrait.headlines}
    for cell in portrait.cells:
        if cell.unit not in ("%", "B"):
            _figure(cell, headlines.get(cell.id, ""), portrait, world, ruling)
    for finding in portrait.findings:
        ruling.statements += _finding(finding, cells, world)
    for advice in portrait.recommendations:
        ruling.statements += _advice(advice, world, ruling)
    for warning in portrait.warnings:
        ruling.statements += warned(warning, cells, world)
    true = [one.text for one in ruling.statements if one.answer == "true"]
    ruling.told = any(re.search(tell, text) for tell in truth.tells for text in true)
    return ruling


# --- Figures. ---------------------------------------------------------------------------------------------------------


def _figure(cell: CellEstimate, label: str, portrait: Portrait, world: World, ruling: Ruling) -> None:
    values = world.values(cell.id, cell.unit)
    if not values:
        return
    lucky = world.values(cell.id, cell.unit, measured=False, luck=True)
    kind = "headline" if label else "figure"
    if cell.levels:
        text = f"{label or cell.id}: levels {' then '.join(f'{level:.4g}' for level in cell.levels)} {cell.unit}"
        text += " by turns" if cell.by_turns else ""
        everything = [*lucky, *_anywhere(cell, world)]
        least, most = min(everything) / LEVEL_OFF, max(everything) * LEVEL_OFF
        off = [level for level in cell.levels if not least <= level <= most]
        if spread(everything) < 1.1:
            ruling.statements.append(
                Statement(f"{kind} changed", text, "false", f"it did not: spread {spread(everything):.3f}", bool(label))
            )
        elif off:
            reason = f"levels {off} are none of {shown(everything)}"
            ruling.statements.append(Statement(f"{kind}'s levels", text, "false", reason, bool(label)))
        else:
            ruling.statements.append(Statement(f"{kind} changed", text, "true"))
        return
    if cell.low is None or cell.high is None:
        return
    text = f"{label or cell.id}: {cell.median:.4g} [{cell.low:.4g} - {cell.high:.4g}] {cell.unit}"
    middle = median(values)
    ruling.intervals += 1
    ruling.held += cell.low * (1 - FORGIVEN) <= middle <= cell.high * (1 + FORGIVEN)
    if cell.high * (1 + NEAR) < min(values) or cell.low * (1 - NEAR) > max(values):
        reason = f"true: {shown(values)}"
        ruling.statements.append(Statement(f"{kind}'s interval", text, "false", reason, severe=True))
        return
    if label:
        outside = sum(not cell.low / 1.2 <= value <= cell.high * 1.2 for value in values) / len(values)
        silent = not any(
            cell.id in warning.cells or not warning.cells
            for warning in portrait.warnings
            if warning.code in ("not-stationary", "drift", "bimodal", "dependent-runs")
        )
        if outside >= OFTEN and silent:
            reason = f"{outside:.0%} of its true values are elsewhere, {shown(values)}, and nobody says so"
            ruling.statements.append(Statement("headline is silent", text, "false", reason, severe=True))
            return
        if is_cached(cell.id, world) and not any(
            cell.id in warning.cells for warning in portrait.warnings if warning.code == "cache-suspect"
        ):
            ruling.statements.append(Statement("headline of a cache", text, "false", "a cache answered", severe=True))
            return
        ruling.statements.append(Statement(kind, text, "true"))


def _anywhere(cell: CellEstimate, world: World) -> list[float]:
    """What would have been true of the same cell at each moment of the survey."""
    first = world.runs(cell.id)[0]
    rates = [
        world.truth.rate(first.phase, first.ranks, one.state) * one.level * world.noise.median for one in world.all
    ]
    return [first.ranks / rate if cell.unit == "s" else rate for rate in rates]


# --- Findings and advice. ---------------------------------------------------------------------------------------------


def _hedged(text: str, world: World) -> tuple[bool, float]:
    """Whether a sentence says that it depends, and from when on it is meant to hold."""
    found = _FROM.search(text)
    return text.startswith(_DEPENDS), world.first_s + seconds(found[1]) if found else 0.0


def _at_least(
    of: str, to: Iterable[str], bound: float, world: World, since_s: float, *, hedged: bool
) -> tuple[bool, str]:
    """Whether one measure truly is so many times as good as each other."""
    for other in to:
        reasons = []
        for ratios in world.readings(of, other, since_s) if other != of else ():
            contrary = sum(ratio < bound - FORGIVEN for ratio in ratios) / len(ratios)
            good = median(ratios) >= bound - FORGIVEN and (contrary < OFTEN or hedged)
            reasons.append("" if good else f"against {other}: {shown(ratios)}, {contrary:.0%} below {bound:g}")
        if reasons and all(reasons):
            return False, reasons[0]
    return True, ""


def _holds(low: float, high: float, readings: Sequence[Sequence[float]], *, hedged: bool) -> tuple[bool, str]:
    """Whether an interval of a ratio is true, in one of its readings."""
    for ratios in readings:
        middle, room = median(ratios), FORGIVEN if spread(ratios) < 1.02 else 0.02
        off = sum(not low * 0.9 <= ratio <= high * 1.1 for ratio in ratios) / len(ratios)
        if low * (1 - room) <= middle <= high * (1 + room) and (off < OFTEN or hedged):
            return True, ""
    return False, f"true ratio {shown(readings[0])}"


def _level_of(text: str, evidence: Sequence[str], cells: dict[str, CellEstimate]) -> str:
    """Return the measure that a level in words is."""
    number, unit = re.findall(r"([\d,]+) (ranks?|[KMG]iB)", text)[0]
    wanted = float(number.replace(",", "")) * (UNITS[f"{unit}/s"] if unit.endswith("iB") else 1)
    factor = "transfer_bytes" if unit.endswith("iB") else "ranks"
    return next((one for one in evidence if one in cells and cells[one].settings.get(factor) == wanted), "")


Say = Callable[..., None]
_LEVEL = r"(\d+ (?:ranks?|[KMG]iB transfers))"


def _finding(finding: Finding, cells: dict[str, CellEstimate], world: World) -> list[Statement]:
    text, evidence = finding.statement, finding.evidence
    told: list[Statement] = []

    def say(kind: str, good: bool, reason: str = "", *, severe: bool = True) -> None:
        shown = (
            text if finding.interval is None else f"{text} [{finding.interval.low:.3f} - {finding.interval.high:.3f}]"
        )
        told.append(Statement(kind, shown, "true" if good else "false", "" if good else reason, severe and not good))

    if text.startswith(_DEPENDS) or "best choice depends on when it was measured" in text:
        changed = [_changes(one, world) for one in evidence if world.runs(one)]
        say("depends on what was done", max(changed, default=1.0) > 1.1, f"spread {changed}", severe=False)
    if "looked best in the blocks, but fresh runs refute it" in text:
        chosen = _chosen(text, evidence, cells)
        good, _ = _at_least(chosen, evidence, 0.95, world, 0.0, hedged=True) if chosen else (False, "")
        say("refuted", not good, "it truly is as good as any", severe=False)
    if finding.verdict in ("unknown", "inconclusive"):
        return told or [Statement("not known", text, "cannot be judged")]
    ids = [one for one in evidence if world.runs(one)]
    _levels(finding, cells, world, say)
    if finding.interval is not None and finding.interval.unit == "times":
        _ratio_of(finding, cells, world, say)
    if finding.id.endswith("-mean"):
        rates = [world.values(one, "op/s", measured=False) for one in ids]
        _mean(finding, rates, say)
    return told or [Statement("other", text, "cannot be judged")]


def _levels(finding: Finding, cells: dict[str, CellEstimate], world: World, say: Say) -> None:
    """Judge what is said of the levels of one factor."""
    text, evidence = finding.statement, finding.evidence
    hedged, since_s = _hedged(text, world)
    ids = [one for one in evidence if world.runs(one)]
    found = re.search(rf"saturate at {_LEVEL} \(", text) or re.search(rf"{_LEVEL} suffices? for", text)
    if found:
        chosen = _level_of(found[1], evidence, cells)
        good, reason = _at_least(chosen, ids, 0.9, world, since_s, hedged=hedged)
        say("suffices", good, reason)
        if gain := re.search(r"and [\d.]+ \[([\d.]+) - ([\d.]+)\] times those at (.+?)\.$", text):
            below = _level_of(gain[3], evidence, cells)
            ratios = world.readings(chosen, below, since_s)
            good, reason = _holds(float(gain[1]), float(gain[2]), ratios, hedged=hedged)
            say("gain over the level below", good, reason, severe=False)
            good, reason = _at_least(chosen, [below], 1.01, world, since_s, hedged=hedged)
            say("less is worse", good, reason)
    elif found := re.search(r"still grow at the largest setting measured, (.+?):", text):
        good, reason = _at_least(_level_of(found[1], evidence, cells), ids, 1.01, world, since_s, hedged=hedged)
        say("still grow", good, reason)
    elif found := re.search(r"need more than (.+?): (.+?) give", text):
        chosen, below = (_level_of(found[index], evidence, cells) for index in (2, 1))
        good, reason = _at_least(chosen, [below], 1.01, world, since_s, hedged=hedged)
        say("need more", good, reason)
    elif found := re.search(r": (.+?) reach at least ([\d.]+) ?% of the rate of any other", text):
        chosen = _level_of(found[1], evidence, cells)
        good, reason = _at_least(chosen, ids, float(found[2]) / 100, world, since_s, hedged=hedged)
        say("reaches", good, reason)
    elif "is enough, and whether less is, too" in text and (chosen := _chosen(text, evidence, cells)):
        good, reason = _at_least(chosen, ids, 0.9, world, since_s, hedged=hedged)
        say("is enough", good, reason)


def _ratio_of(finding: Finding, cells: dict[str, CellEstimate], world: World, say: Say) -> None:
    """Judge the interval of a ratio that a finding has, and what it says of it."""
    assert finding.interval is not None
    text = finding.statement
    hedged, since_s = _hedged(text, world)
    of, to = _pair(finding, cells)
    readings = world.readings(of, to, since_s) if of and to else []
    if not readings:
        return
    ratios = readings[0]
    good, reason = _holds(finding.interval.low, finding.interval.high, readings, hedged=hedged)
    middle = median(ratios)
    far = not finding.interval.low * 0.9 <= middle <= finding.interval.high * 1.1
    say("ratio", good, reason, severe=far)
    if "cost little" in text or "costs little" in text:
        # Of shared to own where the sentence has it the other way round.
        cost = [1 / ratio for ratio in ratios] if "in a directory per rank is" in text else ratios
        if "just been removed" in text or "directory per rank" in text or "shared file" in text:
            contrary = sum(ratio < 0.9 - FORGIVEN for ratio in cost) / len(cost)
            bad = median(cost) < 0.9 - FORGIVEN or (contrary >= OFTEN and not hedged)
            say("costs little", not bad, f"true: {shown(cost)}")
    if finding.id.endswith(("s5-7", "s5-5")) and finding.verdict in ("holds", "does-not"):
        say("S5", (middle > 1) == (finding.verdict == "holds"), f"true ratio {middle:.3f}")


def _pair(finding: Finding, cells: dict[str, CellEstimate]) -> tuple[str, str]:
    """Return which measure's ratio to which other an interval is."""
    assert finding.interval is not None
    of, text, evidence = finding.interval.of, finding.statement, finding.evidence
    if of.startswith("ratio to "):
        to = _level_of(of, evidence, cells)
        found = re.search(rf"(?:saturate at|measured,|: |^) ?{_LEVEL}", text)
        return (_level_of(found[1], evidence, cells), to) if found else ("", "")
    if found := re.fullmatch(r"ratio of (\d+ (?:ranks?|[KMG]iB)[^,]*) to (\d+ (?:ranks?|[KMG]iB)[^,]*)", of):
        return _level_of(found[1], evidence, cells), _level_of(found[2], evidence, cells)
    return (evidence[0], evidence[1]) if len(evidence) == 2 else ("", "")


def _mean(finding: Finding, rates: Sequence[Sequence[float]], say: Say) -> None:
    """The mean of several operations; where they change, any between the means of their least and of their largest."""
    if finding.interval is None or not all(rates):
        return
    low, high = finding.interval.low, finding.interval.high
    least, most = (sum(values) / len(rates) for values in (map(min, rates), map(max, rates)))
    middle = sum(map(median, rates)) / len(rates)
    good = low * 0.98 <= middle <= high * 1.02 if most < 1.05 * least else low <= most * 1.05 and high >= least * 0.95
    say("mean of six", good, f"true {least:.4g} to {most:.4g}, of medians {middle:.4g}", severe=False)


def _changes(measure: str, world: World) -> float:
    """How much a measure truly changed during the survey, pilot included."""
    runs = world.runs(measure)
    states = [one.state for one in world.all]
    rates = [world.truth.typical(runs[0].phase, runs[0].ranks, state) for state in states]
    return max(spread(rates), spread([one.level for one in world.all]))


def _chosen(text: str, evidence: Sequence[str], cells: dict[str, CellEstimate]) -> str:
    found = re.search(r"= (\d+ [KMG]iB|\d+)\b", text)
    if found is None:
        return ""
    return _level_of(found[1] if "iB" in found[1] else f"{found[1]} ranks", evidence, cells)


def _advice(advice: Recommendation, world: World, ruling: Ruling) -> list[Statement]:
    """Advice is judged by what it asserts of its settings, confirmed or not: it stands under "How to use it"."""
    text = f"{advice.setting} = {advice.value}: {advice.reason}"
    hedged, since_s = _hedged(advice.reason, world)
    ruling.confirmed += advice.confirmed
    told: list[Statement] = []
    if world.truth.confounded:
        told.append(Statement("confounded advice", text, "cannot be judged", world.truth.what))
    ids = [one for one in advice.evidence if world.runs(one)]
    chosen = advice.claims[0].of if advice.claims else ids[0]
    good, reason = _at_least(chosen, ids, 0.9, world, since_s, hedged=hedged)
    told.append(Statement("advice", text, "true" if good else "false", reason, not good))
    if good and not _at_least(chosen, ids, 0.95, world, since_s, hedged=True)[0]:
        ruling.below += 1
    for claim in advice.claims:
        ratios = world.ratios(claim.of, claim.to, since_s)
        if ratios and claim.low is not None and claim.low >= 1:
            good, reason = _at_least(claim.of, [claim.to], max(1.01, claim.low), world, since_s, hedged=hedged)
            told.append(Statement("advice: less is worse", text, "true" if good else "false", reason, not good))
    others = [one for one in ids if one != chosen]
    intervals = [world.readings(chosen, one, since_s) for one in others]
    low, high = advice.interval.low, advice.interval.high
    if intervals and not any(_holds(low, high, readings, hedged=True)[0] for readings in intervals):
        reason = f"[{low:.3f} - {high:.3f}]: true {[round(median(readings[0]), 3) for readings in intervals]}"
        told.append(Statement("advice: ratio", text, "false", reason))
    return told
