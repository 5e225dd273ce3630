"""A third set of truths and noises, with a judge of its own; both were committed before a survey of any of them was made.

``python -m bench.truth.third RESULTS [--surveys 12] [--equal 30] [--texts DIRECTORY]`` makes the surveys, one line of JSON each.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.truth.judge import ALIKE, SLACK, _absolutes, _claims, _figures, _holds, _intervals, _Measure, _measures
from bench.truth.noise import Factors, Noise, log_normal
from bench.truth.planted import Rate, State, Truth, equal
from bench.truth.simulated import portrait_of, survey
from strakes.findings.claims import Claim
from strakes.findings.portrait import Finding, Portrait, Recommendation, RunWarning
from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.store import Run
from strakes.studies.registry import SURVEY
from strakes.units import GIB, KIB, MIB, parse_bytes

if TYPE_CHECKING:
    import numpy as np

EQUAL = "all cells equal"
CALL_S, OF_A_RANK, LINK = 0.0003, 200.0 * MIB, 600.0 * MIB
STRIPE = 4 * MIB
REMEMBERED = 8 * MIB
SPREAD_NAMES = 1_500
QUOTA = ((3.0, 0.75), (5.0, 0.55), (7.0, 0.4))
TIERED = 3.0 * GIB
WINDOW_S, OF_A_WINDOW = 10.0, 0.8 * GIB
CHECKPOINT_EVERY, CHECKPOINT_FROM = 12_000.0, 10_000.0
# What a change is told of may be early or late by so much: a round over all cells takes about so long.
NEAR_S, FIRST_RUN_S = 10.0, 4.0
# A level, or how much a change was, may be off by so much; less of a difference between states is none.
OFF, TOUCHED = 1.25, 1.05
ENOUGH = 0.9


@dataclass(frozen=True)
class Planted:
    """A truth, its noise, and what may be said of its changes: (from, to, 1 for faster and -1 for slower), in seconds.

    ``regular``: no kind of warning of dependence, drift or two groups would be true.
    """

    truth: Truth
    noise: Noise
    moments: tuple[tuple[float, float, int], ...] = ()
    regular: bool = True


@dataclass
class Judged:
    """False sentences as (kind, text); ``strict`` are those of warnings that only this judge looks at."""

    false: list[tuple[str, str]] = field(default_factory=list)
    strict: list[tuple[str, str]] = field(default_factory=list)
    told: bool = False
    hinted: bool = False
    claims: int = 0
    false_claims: int = 0
    confirmed: int = 0
    intervals: int = 0
    held: int = 0


def third() -> tuple[Planted, ...]:
    """Return interactions, several optima, edges of the rules' own margins, quotas, tiers, windows, checkpoints, repairs; and noises."""

    def still(name: str, rate: Rate, deviation: float, **more: Any) -> Planted:
        return Planted(Truth(name, rate, **more), log_normal(deviation))

    def changing(
        name: str,
        rate: Rate,
        deviation: float,
        *others: State,
        moments: tuple[tuple[float, float, int], ...] = (),
        **more: Any,
    ) -> Planted:
        truth = Truth(name, rate, (State(), *others), **more)
        return Planted(truth, log_normal(deviation), moments, regular=False)

    return (
        still("each call waits 0.3 ms, a rank and the link have limits", _calls, 0.05),
        still("writes of less than a stripe read first", _partial_stripes, 0.07),
        still("two best settings with a worse one between", _two_best, 0.05),
        still("2 ranks reach 88 %, 8 are 7 % worse than 4", _edge, 0.03),
        still("each doubling of ranks adds 4 %", _creeping, 0.1),
        still("readers of a shared file wait, writers gain", _shared_readers, 0.07),
        still("a server remembers 8 MiB of each rank", _remembered, 0.05, from_cache=_from_memory, remote=True),
        still("directories of 1,500 names are spread", _spread, 0.05),
        still("reads saturate at 2 ranks, writes grow up to 8", _unlike_scaling, 0.07),
        still("strided writers fight for locks", _strided, 0.1),
        still("one lock for the names of a directory", _directory_lock, 0.07),
        still("O_DIRECT 8 % faster", _direct_gains, 0.03),
        changing(
            "quota closes at 3, 5 and 7 GiB",
            _quota,
            0.05,
            *(State(written_bytes=size * GIB) for size, _ in QUOTA),
            moments=((0, 200, -1),),
        ),
        changing(
            "repair slows reads from 30 to 75 s", _repair, 0.05, State(now_s=30.0), moments=((30, 30, -1), (75, 75, 1))
        ),
        changing("scrub for 3 s of each 17", _scrub, 0.07, State(now_s=14.5), passing=True),
        changing(
            "tier takes up what is read, 3 GiB",
            _tiered,
            0.05,
            State(memory=TIERED),
            moments=((0, 70, 1),),
            remember=_read_so_far,
        ),
        changing(
            "0.8 GiB in each window of 10 s",
            _window,
            0.05,
            State(memory=OF_A_WINDOW),
            passing=True,
            remember=_in_window,
        ),
        changing(
            "creates wait for a checkpoint, 2,000 of 12,000", _checkpoint, 0.05, State(made=11_000.0), passing=True
        ),
        changing(
            "calls of 1 MiB at 60 % from 55 s on", _large_calls_down, 0.05, State(now_s=55.0), moments=((55, 55, -1),)
        ),
        changing("a second link from 60 s on", _second_link, 0.07, State(now_s=60.0), moments=((60, 60, 1),)),
        changing(
            "lookups forgotten at 50 s, learnt until 95 s",
            _forgotten,
            0.05,
            State(now_s=50.0),
            moments=((50, 50, -1), (55, 95, 1)),
        ),
        changing(
            "half of the directories at half from 45 s on",
            _half_fails,
            0.05,
            State(now_s=45.0, lot=0.5),
            moments=((45, 45, -1),),
        ),
        Planted(Truth(EQUAL), waves(23, 0.08), regular=False),
        Planted(Truth(EQUAL), shared_by(3, 0.1), regular=False),
        Planted(Truth(EQUAL), tails_of_cells(0.02, 0.12)),
        Planted(Truth(EQUAL), retries(0.15, 0.3), regular=False),
    )


def _data(phase: Phase | None, operation: str = "") -> bool:
    return isinstance(phase, TransferPhase) and operation in ("", phase.operation)


def _by_ranks(factors: Mapping[int, float]) -> Callable[[int], float]:
    return lambda ranks: factors.get(ranks, 1.0)


def _calls(phase: Phase, ranks: int, state: State) -> float:
    if not isinstance(phase, TransferPhase):
        return equal(phase, ranks, state)
    size = phase.transfer_bytes
    return min(LINK, ranks * size / (CALL_S + size / OF_A_RANK))


def _partial_stripes(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    if not isinstance(phase, TransferPhase) or phase.operation != "write" or phase.transfer_bytes >= STRIPE:
        return rate
    return rate * (0.45 if phase.direct else 0.6 if phase.access == "strided" else 1.0)


def _two_best(phase: Phase, ranks: int, state: State) -> float:
    if not isinstance(phase, TransferPhase):
        return equal(phase, ranks, state)
    sizes = {4 * KIB: 0.5, 64 * KIB: 1.0, MIB: 0.75}
    by_size = sizes.get(phase.transfer_bytes, 1.0)
    return equal(phase, ranks, state) * by_size * _by_ranks({1: 0.65, 2: 1.0, 4: 0.75, 8: 1.0})(ranks)


def _edge(phase: Phase, ranks: int, state: State) -> float:
    by_ranks = _by_ranks({1: 0.45, 2: 0.88, 4: 1.0, 8: 0.93})
    return equal(phase, ranks, state) * (by_ranks(ranks) if _data(phase) else 1.0)


def _creeping(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (1.04 ** math.log2(ranks / 8) if _data(phase) else 1.0)


def _shared_readers(phase: Phase, ranks: int, state: State) -> float:
    shared = isinstance(phase, TransferPhase) and phase.layout == "shared-file"
    return equal(phase, ranks, state) * ((0.6 if _data(phase, "read") else 1.12) if shared else 1.0)


def _from_memory(phase: Phase) -> float:
    small = isinstance(phase, TransferPhase) and phase.segments * phase.block_bytes <= REMEMBERED
    return float(small and _data(phase, "read"))


def _remembered(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (2.5 if _from_memory(phase) else 1.0)


def _spread(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    if not isinstance(phase, MetadataPhase):
        return rate
    return rate * (1.7 if phase.items * (ranks if phase.directory == "shared" else 1) > SPREAD_NAMES else 1.0)


def _unlike_scaling(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    return rate * (min(ranks, 2) / 2 if _data(phase, "read") else ranks / 8 if _data(phase) else 1.0)


def _strided(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    if not isinstance(phase, TransferPhase) or phase.operation != "write" or phase.layout != "shared-file":
        return rate
    return rate * (0.25 if phase.access == "strided" else 0.9)


def _directory_lock(phase: Phase, ranks: int, state: State) -> float:
    changes = isinstance(phase, MetadataPhase) and phase.operation.endswith(("create", "remove", "rename"))
    shared = isinstance(phase, MetadataPhase) and phase.directory == "shared"
    return equal(phase, ranks, state) * (1 / 3 if changes and shared else 1.0)


def _direct_gains(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (1.08 if isinstance(phase, TransferPhase) and phase.direct else 1.0)


def _quota(phase: Phase, ranks: int, state: State) -> float:
    left = [factor for size, factor in QUOTA if state.written_bytes >= size * GIB]
    return equal(phase, ranks, state) * (left[-1] if left and _data(phase, "write") else 1.0)


def _repair(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.6 if _data(phase, "read") and 30 <= state.now_s < 75 else 1.0)


def _scrub(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.6 if _data(phase) and math.fmod(state.now_s, 17) >= 14 else 1.0)


def _tiered(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (1 + 0.8 * min(1.0, state.memory / TIERED) if _data(phase, "read") else 1.0)


def _read_so_far(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    del seconds
    return state.memory + (amount if _data(phase, "read") else 0.0)


def _window(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.3 if _data(phase) and state.memory >= OF_A_WINDOW else 1.0)


def _in_window(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    if int(state.now_s // WINDOW_S) != int((state.now_s + seconds) // WINDOW_S):
        return 0.0
    return state.memory + (amount if _data(phase) else 0.0)


def _checkpoint(phase: Phase, ranks: int, state: State) -> float:
    creates = isinstance(phase, MetadataPhase) and phase.operation == "file-create"
    waits = creates and math.fmod(state.made, CHECKPOINT_EVERY) >= CHECKPOINT_FROM
    return equal(phase, ranks, state) * (0.25 if waits else 1.0)


def _large_calls_down(phase: Phase, ranks: int, state: State) -> float:
    large = isinstance(phase, TransferPhase) and phase.transfer_bytes >= MIB
    return equal(phase, ranks, state) * (0.6 if large and state.now_s >= 55 else 1.0)


def _second_link(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (min(ranks, 2 if state.now_s < 60 else 4) / 2 if _data(phase) else 1.0)


def _forgotten(phase: Phase, ranks: int, state: State) -> float:
    looks = isinstance(phase, MetadataPhase) and not phase.operation.endswith(("create", "remove", "rename"))
    knows = 1.0 if state.now_s < 50 else min(1.0, 0.35 + 0.65 * (state.now_s - 50) / 45)
    return equal(phase, ranks, state) * (knows if looks else 1.0)


def _half_fails(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.5 if _data(phase) and state.lot >= 0.5 and state.now_s >= 45 else 1.0)


def waves(visits: int, depth: float) -> Noise:
    """A sine over so many visits, near the length of a round, with 3 % of noise."""

    def start(generator: np.random.Generator) -> Factors:
        angle = float(generator.uniform(0, 2 * math.pi))

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal angle
            angle += 2 * math.pi / visits
            return [math.exp(depth * math.sin(angle) + 0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"a sine of {visits} visits, {100 * depth:.0f} %", start, changes=True)


def shared_by(visits: int, deviation: float) -> Noise:
    """So many visits in a row have one factor, the next ones another."""

    def start(generator: np.random.Generator) -> Factors:
        count, level = 0, 0.0

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal count, level
            if count % visits == 0:
                level = deviation * float(generator.standard_normal())
            count += 1
            return [math.exp(level + 0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"{visits} visits in a row share {100 * deviation:.0f} %", start)


def tails_of_cells(least: float, most: float) -> Noise:
    """Student variables of 3 degrees of freedom, of a scale that each phase of each cell has by itself."""

    def start(generator: np.random.Generator) -> Factors:
        scales: dict[tuple[str, int], float] = {}

        def factors(phases: int, _: float, cell: str) -> list[float]:
            of = [scales.setdefault((cell, number), float(generator.uniform(least, most))) for number in range(phases)]
            return [math.exp(scale * value) for scale, value in zip(of, generator.standard_t(3, phases), strict=True)]

        return factors

    return Noise(f"log of Student t3, {100 * least:.0f} to {100 * most:.0f} % by cell and phase", start)


def retries(longer: float, mean: float) -> Noise:
    """Times have a whole number of retries, a Poisson variable; 3 % of noise."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [
            math.exp(0.03 * value) / (1 + longer * float(count))
            for value, count in zip(generator.standard_normal(phases), generator.poisson(mean, phases), strict=True)
        ]

    # 0.741 of the phases have none; the median lies at the 0.325 quantile of those.
    return Noise(f"retries of {100 * longer:.0f} %", start, median=math.exp(-0.03 * 0.454))


def judge_third(run: Run, portrait: Portrait, planted: Planted, met: Truth) -> Judged:
    """Hold each sentence with a structure, and the texts of warnings about changes, against the truth as it was met."""
    measures = dict(_measures(run))
    judged = Judged(confirmed=len(portrait.recommendations))
    flagged = {code: {cell for one in portrait.warnings if one.code == code for cell in one.cells} for code in CODES}
    noise, still = planted.noise, len(planted.truth.states) == 1
    cached = flagged["cache-suspect"]
    judged.false += [("claim", text) for text in _claims(portrait, measures, met, cached)]
    judged.false += [("no better", text) for text in _no_better(portrait, measures, met)]
    judged.false += [("tone", one.statement) for one in portrait.findings if not _tone_holds(one, measures, met)]
    judged.false += [("advice", text) for text in _advice(portrait, measures, met)]
    judged.false += [
        ("cache", f"said to come from a cache: {cell}")
        for cell in sorted(cached)
        if met.from_cache(measures[cell].phase) == 0
    ]
    if still and not noise.changes:
        judged.false += [("said to change", one.text) for one in portrait.warnings if one.code == "not-stationary"]
    changed = flagged["not-stationary"] | {cell.id for cell in portrait.cells if cell.levels}
    judged.false += [("one figure", text) for text in _figures(portrait, measures, changed, met)]
    judged.false += [("one figure", text) for text in _absolutes(portrait, measures, met)]
    judged.false += [("level", text) for text in _levels(portrait, measures, planted)]
    judged.strict += _strict(portrait, measures, planted)
    stated = list(_stated(portrait))
    judged.claims = len(stated)
    judged.false_claims = sum(not all(_holds(one, ratio) for ratio in _ratios(one, measures, met)) for one in stated)
    held = list(_intervals(portrait, measures, changed, met, noise))
    judged.intervals, judged.held = len(held), sum(held)
    touched = {cell for cell, one in measures.items() if _spread_of(one, planted.truth) > TOUCHED}
    judged.told = bool(touched & flagged["not-stationary"]) or any(
        _tells(one, measures, planted.truth) for one in stated
    )
    if any(met.from_cache(one.phase) for one in measures.values()):
        judged.told = bool(cached)
    if not still:
        judged.told = bool(touched & flagged["not-stationary"])
    judged.hinted = judged.told or (not still and any(one.code in HINTS for one in portrait.warnings))
    return judged


HINTS = ("bimodal", "dependent-runs", "drift")
CODES = ("cache-suspect", "not-stationary", *HINTS)


def _stated(portrait: Portrait) -> Iterator[Claim]:
    decided = (one for one in portrait.findings if one.verdict != "inconclusive")
    yield from (claim for one in decided for claim in one.claims)
    yield from (claim for one in portrait.recommendations for claim in one.claims)


def _ratios(claim: Claim, measures: Mapping[str, _Measure], truth: Truth) -> list[float]:
    """How many times as good, in each state that was met."""
    of, to = measures[claim.of], measures[claim.to]
    return [_good(of, truth, state) / _good(to, truth, state) for state in truth.states]


def _good(measure: _Measure, truth: Truth, state: State) -> float:
    value = truth.value(measure.phase, measure.ranks, state, measure.unit)
    return 1 / value if measure.unit == "s" else value


def _spread_of(measure: _Measure, truth: Truth) -> float:
    values = [_good(measure, truth, state) for state in truth.states]
    return max(values) / min(values)


def _tells(claim: Claim, measures: Mapping[str, _Measure], truth: Truth) -> bool:
    """Whether a claim says of a planted difference on which side of 1 it lies."""
    names = isinstance(measures[claim.of].phase, MetadataPhase)
    if names and measures[claim.of].ranks != measures[claim.to].ranks:
        return False
    ratio = _ratios(claim, measures, truth)[0]
    over, under = claim.low is not None and claim.low >= 1, claim.high is not None and claim.high <= 1
    return (over and ratio > 1.03) or (under and ratio < 1 / 1.03)


def _tone_holds(finding: Finding, measures: Mapping[str, _Measure], truth: Truth) -> bool:
    """Bad: in truth a tenth worse than one queue explains. Good: what is praised is in truth not a quarter worse."""
    if finding.tone == "neutral" or not finding.claims:
        return finding.tone != "bad"
    claim = finding.claims[0]
    queue = 1.0
    if measures[claim.of].unit == "s":
        queue = measures[claim.to].ranks / measures[claim.of].ranks
    ratios = [ratio / queue for ratio in _ratios(claim, measures, truth)]
    if finding.tone == "bad":
        return all(abs(math.log(ratio)) > math.log(1.1) for ratio in ratios)
    if "costs little" not in finding.statement and "cost little" not in finding.statement:
        return True
    # The claim is of a directory per rank to a shared one; of a shared or strided file to the other.
    costs = [ratio if "directory per rank" in finding.statement else 1 / ratio for ratio in ratios]
    return max(costs) <= ALIKE


def _no_better(portrait: Portrait, measures: Mapping[str, _Measure], truth: Truth) -> Iterator[str]:
    """A bound of exactly 1 says "better" or "worse": what is just as good is neither, which the usual judge lets pass."""
    decided = (one for one in portrait.findings if one.verdict != "inconclusive")
    stated = [(one.statement, one.claims) for one in decided]
    stated += [(f"{one.setting} = {one.value}", one.claims) for one in portrait.recommendations]
    for text, claims in stated:
        for claim in claims:
            ratios = _ratios(claim, measures, truth)
            over = claim.low == 1 and min(ratios) <= 1 + SLACK
            if over or (claim.high == 1 and max(ratios) >= 1 - SLACK):
                yield f"{text} [{claim}], in truth {min(ratios):.3f}"


def _advice(portrait: Portrait, measures: Mapping[str, _Measure], truth: Truth) -> Iterator[str]:
    """A value that reaches less than 90 % of another one of its study that was measured; a smaller one that is as good."""
    for one in portrait.recommendations:
        axis = "transfer_bytes" if one.setting.startswith("transfer size") else "ranks"
        if not one.setting.startswith(("transfer size", "processes per node")) or one.evidence[0] not in measures:
            continue
        cells = {cell.id: cell for cell in portrait.cells if cell.id in measures}
        like = cells[one.evidence[0]]
        value = float(one.value) if axis == "ranks" else parse_bytes(one.value)
        settings = dict(like.settings) | {axis: value}
        chosen = next(cell for cell in cells.values() if cell.study == like.study and cell.settings == settings)
        alike = {
            cell.id: float(cell.settings[axis])
            for cell in cells.values()
            if cell.study == chosen.study
            and all(value == cell.settings.get(name) for name, value in chosen.settings.items() if name != axis)
        }
        text = f"{one.setting} = {one.value}"
        for state in truth.states:
            rates = {cell: _good(measures[cell], truth, state) for cell in alike}
            if rates[chosen.id] < ENOUGH * max(rates.values()) * (1 - SLACK):
                yield f"{text} reaches {rates[chosen.id] / max(rates.values()):.3f} of the best"
            smaller = [cell for cell in alike if alike[cell] < alike[chosen.id]]
            if smaller and rates[max(smaller, key=lambda cell: alike[cell])] >= rates[chosen.id] * (1 - SLACK):
                yield f"{text}: the next smaller one is no worse"


def _levels(portrait: Portrait, measures: Mapping[str, _Measure], planted: Planted) -> Iterator[str]:
    """Medians before and after a change that the file system cannot have had."""
    for cell in portrait.cells:
        if not cell.levels or cell.id not in measures:
            continue
        one = measures[cell.id]
        values = [planted.truth.value(one.phase, one.ranks, state, one.unit) for state in planted.truth.states]
        # Of single visits under heavy noise; as steady as the noise is, and a quarter more.
        if any(not min(values) / OFF <= level <= max(values) * OFF for level in cell.levels):
            yield f"{cell.id}: levels {cell.levels}, in truth {min(values):.4g} to {max(values):.4g}"


_CHANGED = re.compile(r"level of (.+?) changed (?:about )?([\d.,]+) s after the first run: then it was ([\d.]+) times")
_STRETCH = re.compile(r"From ([\d.,]+) s to ([\d.,]+) s after the first run, the speed of (.+?) was ([\d.]+) times")
_TURNS = re.compile(r"Two levels of (.+?) take turns: ([\d.]+) times")


def _strict(portrait: Portrait, measures: Mapping[str, _Measure], planted: Planted) -> list[tuple[str, str]]:
    """What warnings say of kinds of work that did not change, of moments and sizes; warnings of what is not there."""
    truth = planted.truth
    found: list[tuple[str, str]] = []
    most = max(_spread_of(one, truth) for one in measures.values())
    changed = {cell for one in portrait.warnings if one.code == "not-stationary" for cell in one.cells}
    found += [
        ("headline said to have changed", line.label)
        for line in portrait.headlines
        if line.cell in changed and _spread_of(measures[line.cell], truth) <= TOUCHED and not planted.noise.changes
    ]
    for one in portrait.warnings:
        if one.code == "server-unlike" and len(set(truth.servers(State()).values())) == 1:
            found.append(("server-unlike", one.text))
        if one.code in HINTS and planted.regular:
            found.append((one.code, one.text))
        if one.code != "not-stationary" or len(truth.states) == 1:
            continue
        untouched = [cell for cell in one.cells if cell in measures and _spread_of(measures[cell], truth) <= TOUCHED]
        if untouched and not planted.noise.changes:
            found.append(("untouched work said to change", f"{one.text} ({', '.join(untouched[:4])})"))
        found += [(kind, one.text) for kind in _wrong_moment(one, planted, most)]
    return found


def _wrong_moment(one: RunWarning, planted: Planted, most: float) -> Iterator[str]:
    times = turns = None
    if told := _CHANGED.search(one.text):
        begin, times = float(told[2].replace(",", "")) + FIRST_RUN_S, float(told[3])
        if not planted.truth.passing and not _near(begin, times, planted):
            yield "moment"
    elif told := _STRETCH.search(one.text):
        begin, end = (float(told[number].replace(",", "")) + FIRST_RUN_S for number in (1, 2))
        times = float(told[4])
        ends = _near(begin, times, planted) and _near(end, 1 / times, planted)
        if not planted.truth.passing and not ends:
            yield "moment"
    elif told := _TURNS.search(one.text):
        times = turns = float(told[2])
    if times is not None and not 1 / most / 1.15 <= times <= most * 1.15:
        yield "size"
    if (
        turns is not None
        and not planted.truth.passing
        and planted.truth.name.startswith(("calls of", "a second link", "quota"))
    ):
        yield "said to take turns"


def _near(moment_s: float, times: float, planted: Planted) -> bool:
    return any(
        begin - NEAR_S <= moment_s <= end + NEAR_S and (times > 1) == (way > 0) for begin, end, way in planted.moments
    )


def record(planted: Planted, seed: int, budget_s: float, texts: Path | None) -> dict[str, Any]:
    """Make a survey, judge it, and keep its text."""
    from strakes.report.summary import render_summary

    with tempfile.TemporaryDirectory() as place:
        run, met = survey(planted.truth, planted.noise, seed, SURVEY, Path(place), budget_s)
        portrait = portrait_of(run)
        judged = judge_third(run, portrait, planted, met)
    name = f"{planted.truth.name}, {planted.noise.name}, {budget_s:g} s"
    if texts is not None:
        file = texts / f"{re.sub('[^a-z0-9]+', '-', name.lower())}-{seed}.txt"
        file.write_text(
            "\n".join(_text(portrait, judged, render_summary(portrait, width=160, colour=False))), encoding="utf-8"
        )
    kept = {"truth": planted.truth.name, "noise": planted.noise.name, "budget_s": budget_s, "seed": seed}
    return kept | {"met": len(met.states)} | asdict(judged)


def _text(portrait: Portrait, judged: Judged, summary: str) -> Iterator[str]:
    yield from (f"FALSE {kind}: {text}" for kind, text in judged.false)
    yield from (f"STRICT {kind}: {text}" for kind, text in judged.strict)
    yield summary
    yield from (f"{one.verdict} {one.tone}: {one.statement} {one.interval} {one.claims}" for one in portrait.findings)
    yield from (_of_advice(one) for one in portrait.recommendations)
    yield from (f"{one.code}: {one.text} {one.cells}" for one in portrait.warnings)
    yield from (
        f"{one.id}: {one.median:.5g} [{one.low} - {one.high}] {one.unit}, levels {one.levels}, {one.values}"
        for one in portrait.cells
    )


def _of_advice(one: Recommendation) -> str:
    return f"ADVICE {one.setting} = {one.value}: {one.reason} {one.interval} {one.claims}"


def main() -> None:
    """Make the surveys that are not in the results yet, in turn, so that whoever ends it early has as many of each."""
    parser = argparse.ArgumentParser(prog="python -m bench.truth.third")
    parser.add_argument("results", type=Path)
    parser.add_argument("--surveys", type=int, default=12, help="of each planted truth")
    parser.add_argument("--equal", type=int, default=30, help="of each noise, with all cells equal")
    parser.add_argument("--first", type=int, default=3_000, help="the first seed")
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--texts", type=Path)
    arguments = parser.parse_args()
    rows = arguments.results.read_text(encoding="utf-8").splitlines() if arguments.results.exists() else []
    done = {(row["truth"], row["noise"], row["budget_s"], row["seed"]) for row in map(json.loads, rows)}
    for number, one in product(range(max(arguments.surveys, arguments.equal)), third()):
        many = arguments.equal if one.truth.name == EQUAL else arguments.surveys
        key = (one.truth.name, one.noise.name, arguments.budget, arguments.first + number)
        if number >= many or key in done or arguments.only not in one.truth.name:
            continue
        row = record(one, arguments.first + number, arguments.budget, arguments.texts)
        with arguments.results.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(row)}\n")


if __name__ == "__main__":
    main()
