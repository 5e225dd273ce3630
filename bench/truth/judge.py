"""What a portrait of a planted truth says that is false, found from its structure; its sentences are looked at only for what has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.truth.named import amounts_in_its_place, named_falsely
from bench.truth.newest import truth_named
from bench.truth.noise import Noise
from bench.truth.planted import Truth
from strakes.findings.claims import Claim
from strakes.findings.portrait import CellEstimate, Portrait
from strakes.plan import MixedPhase, Phase
from strakes.statistics.interval import far_apart, most_of
from strakes.store import Run

# States of a file system that differ by less are not worth a word.
ALIKE = 1.25
# A phase whose rate is within this of a state's met that state alone; a state that so few met alone is not to be told of.
AS_GOOD_AS, OFTEN = 0.1, 0.2
# What a claim may be off by without being called false: figures are sizes of samples, too.
SLACK = 1e-6
CACHE = "cache-suspect"
CHANGED = "not-stationary"


@dataclass(frozen=True)
class Verdict:
    """The false sentences of one survey, whether it told the truth or its cause, and how much of use it said.

    ``intervals``: how many intervals of single figures there were, of which ``held`` hold the true value.
    """

    false: tuple[str, ...]
    told: bool
    decided: int
    confirmed: int
    intervals: int = 0
    held: int = 0


@dataclass(frozen=True)
class _Measure:
    phase: Phase
    ranks: int
    unit: str


def judge(run: Run, portrait: Portrait, truth: Truth, noise: Noise) -> Verdict:
    """Every sentence with a structure, held against the truth."""
    measures = dict(_measures(run))
    flagged = {
        code: {cell for one in portrait.warnings if one.code == code for cell in one.cells} for code in (CACHE, CHANGED)
    }
    false = [*_claims(portrait, measures, truth, flagged[CACHE]), *_tones(portrait)]
    false += _warnings(measures, flagged, truth, noise)
    in_levels = {cell.id for cell in portrait.cells if cell.levels}
    false += _figures(portrait, measures, flagged[CHANGED] | in_levels, truth)
    if not noise.changes:
        whole = truth_named(truth.name)
        false += _same_throughout(portrait, measures, whole)
        if len(whole.states) > 1:
            phases = {name: (measure.phase, measure.ranks) for name, measure in measures.items()}
            false += named_falsely(portrait, phases, whole)
    false += _absolutes(portrait, measures, truth)
    intervals = list(_intervals(portrait, measures, flagged[CHANGED], truth, noise))
    texts = [*(one.statement for one in portrait.findings if one.verdict != "inconclusive")]
    texts += [f"{one.code} {one.text}" for one in portrait.warnings]
    texts += [f"{one.setting} = {one.value}" for one in portrait.recommendations if one.confirmed]
    stayed = len(truth.states) < len(truth_named(truth.name).states)
    told = stayed or not truth.told_by or any(part in text for part in truth.told_by for text in texts)
    decided = sum(bool(one.claims) for one in portrait.findings)
    return Verdict(tuple(false), told, decided, len(portrait.recommendations), len(intervals), sum(intervals))


def _measures(run: Run) -> Iterator[tuple[str, _Measure]]:
    units = {"bytes_per_s": "B/s", "operations_per_s": "op/s", "seconds_per_item": "s"}
    for cell in run.cells:
        phases = {phase.name: phase for phase in cell.plan.phases}
        for measure in cell.measures:
            if measure.metric in units:
                phase = phases[measure.phase]
                yield cell.measure_id(measure.suffix), _Measure(phase, cell.plan.ranks, units[measure.metric])


def _claims(portrait: Portrait, measures: dict[str, _Measure], truth: Truth, cached: set[str]) -> Iterator[str]:
    stated = [
        (one.statement, claim) for one in portrait.findings if one.verdict != "inconclusive" for claim in one.claims
    ]
    stated += [
        (f"{one.setting} = {one.value}: {one.reason}", claim)
        for one in portrait.recommendations
        for claim in one.claims
    ]
    for text, claim in stated:
        of, to = measures[claim.of], measures[claim.to]
        for state in truth.states:
            ratio = truth.value(of.phase, of.ranks, state, of.unit) / truth.value(to.phase, to.ranks, state, to.unit)
            if of.unit == "s":
                ratio = 1 / ratio
            if not _holds(claim, ratio):
                yield f"{text} [{claim}], in truth {ratio:.3f}"
                break
            alike = amounts_in_its_place(text, (of.phase, of.ranks), (to.phase, to.ranks), state, truth)
            if alike is not None and not _holds(claim, alike):
                yield f"{text} [{claim}], with as much for each rank {alike:.3f}"
                break
        for measure, cell in ((of, claim.of), (to, claim.to)):
            if not isinstance(measure.phase, MixedPhase) and truth.from_cache(measure.phase) > 0 and cell not in cached:
                yield f"{text}: a cache answered {cell}, and nobody says so"


def _holds(claim: Claim, ratio: float) -> bool:
    # A bound of 1 alone says that one is better: like ones are not.
    slack = -SLACK if (claim.low, claim.high) in ((1.0, None), (None, 1.0)) else SLACK
    over = claim.low is None or ratio >= claim.low * (1 - slack)
    return over and (claim.high is None or ratio <= claim.high * (1 + slack))


def _tones(portrait: Portrait) -> Iterator[str]:
    """No planted truth does badly at anything beyond what processors and one queue explain."""
    return (f"does badly: {one.statement}" for one in portrait.findings if one.tone == "bad")


def _warnings(measures: dict[str, _Measure], flagged: dict[str, set[str]], truth: Truth, noise: Noise) -> Iterator[str]:
    for cell in flagged[CACHE]:
        if truth.from_cache(measures[cell].phase) == 0:
            yield f"a cache is said to have answered {cell}"
    # A state that the survey met for a moment only may be told as well as not.
    if len(truth_named(truth.name).states) == 1 and not noise.changes and flagged[CHANGED]:
        yield f"said to change: {', '.join(sorted(flagged[CHANGED])[:3])}"


def _figures(portrait: Portrait, measures: dict[str, _Measure], changed: set[str], truth: Truth) -> Iterator[str]:
    """One median for a figure that differs between the states of the file system, and no word of what most runs were."""
    cells = {cell.id: cell for cell in portrait.cells}
    for line in portrait.headlines:
        measure = measures[line.cell]
        values = [truth.value(measure.phase, measure.ranks, state, measure.unit) for state in truth.states]
        if (
            max(values) / min(values) > ALIKE
            and line.cell not in changed
            and _of_both(measure, truth)
            and not _told_beside(cells[line.cell], values)
        ):
            yield f"one figure for {line.label}, of {min(values):.4g} and {max(values):.4g}"


def _same_throughout(portrait: Portrait, measures: dict[str, _Measure], truth: Truth) -> Iterator[str]:
    """A figure is told as one that changed, and is the same in all states."""
    cells = {cell.id: cell for cell in portrait.cells}
    for line in portrait.headlines:
        measure, cell = measures[line.cell], cells[line.cell]
        values = [truth.value(measure.phase, measure.ranks, state, measure.unit) for state in truth.states]
        by_noise = cell.by_turns and len(truth.states) == 1
        if cell.levels and not by_noise and max(values) <= min(values) * (1 + SLACK):
            yield f"{line.label} is said to have changed, and did not"


def _told_beside(cell: CellEstimate, values: Sequence[float]) -> bool:
    """Whether the report says beside the median between which values most runs lie, and all states are among these."""
    if not far_apart(cell.values):
        return False
    low, high = most_of(cell.values)
    return low <= min(values) * (1 + AS_GOOD_AS) and high >= max(values) / (1 + AS_GOOD_AS)


def _of_both(measure: _Measure, truth: Truth) -> bool:
    """Whether the phases of a figure met each of two passing states alone often enough to be told of both.

    A phase that is as long as a state met both, and so did all others: its rate is that of the mixture.
    """
    if not truth.passing:
        return True
    rates = truth.found[measure.phase, measure.ranks]
    levels = [truth.rate(measure.phase, measure.ranks, state) for state in truth.states]
    return all(
        sum(abs(rate / level - 1) < AS_GOOD_AS for rate in rates) >= OFTEN * len(rates)
        for level in (min(levels), max(levels))
    )


def _absolutes(portrait: Portrait, measures: dict[str, _Measure], truth: Truth) -> Iterator[str]:
    """A finding that states a figure of cells which the file system changed under."""
    for finding in portrait.findings:
        if finding.verdict != "measured" or finding.claims or "op/s" not in finding.statement:
            continue
        of = [measures[cell] for cell in finding.evidence if cell in measures]
        values = [sum(truth.value(one.phase, one.ranks, state, one.unit) for one in of) for state in truth.states if of]
        if values and max(values) / min(values) > ALIKE and any(_of_both(one, truth) for one in of):
            yield f"one figure for what changed: {finding.statement}"


def _intervals(
    portrait: Portrait, measures: dict[str, _Measure], changed: set[str], truth: Truth, noise: Noise
) -> Iterator[bool]:
    """Whether the interval of each figure holds its true value, where there is one."""
    if noise.changes or len(truth.states) > 1:
        return
    for cell in portrait.cells:
        if cell.low is None or cell.high is None or cell.id not in measures or cell.id in changed:
            continue
        measure = measures[cell.id]
        value = truth.value(measure.phase, measure.ranks, truth.states[0], measure.unit)
        value *= 1 / noise.median if measure.unit == "s" else noise.median
        yield cell.low * (1 - SLACK) <= value <= cell.high * (1 + SLACK)
