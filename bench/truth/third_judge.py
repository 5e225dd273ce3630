"""The judge of the third set of truths and noises.

``python -m bench.truth.third_judge RESULTS [--surveys 12] [--equal 30] [--texts DIRECTORY]`` makes the surveys, one line of JSON each.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from bench.truth.judge import ALIKE, SLACK, _absolutes, _claims, _figures, _holds, _intervals, _Measure, _measures
from bench.truth.planted import State, Truth
from bench.truth.simulated import portrait_of, survey
from bench.truth.third import EQUAL, Planted, third
from strakes.findings.claims import Claim
from strakes.findings.portrait import Finding, Portrait, Recommendation, RunWarning
from strakes.plan import MetadataPhase
from strakes.store import Run
from strakes.studies.registry import SURVEY
from strakes.units import parse_bytes

# What a change is told of may be early or late by so much: a round over all cells takes about so long.
NEAR_S, FIRST_RUN_S = 10.0, 4.0
# A level, or how much a change was, may be off by so much; less of a difference between states is none.
OFF, TOUCHED = 1.25, 1.05
ENOUGH = 0.9


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
    parser = argparse.ArgumentParser(prog="python -m bench.truth.third_judge")
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
