"""Is what a survey says true of the truths of :mod:`bench.truth.fifth`? Sentences are read as a user gets them.

A claim is false only if no fair reading of "in the time of this survey" makes it true: at the moments when either setting ran, at
moments of all work, of medians, of means, or (unless it was luck) of the very runs that were made.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import harmonic_mean, median
from typing import Any, Literal

from bench.truth.fifth_noise import Disturbance
from bench.truth.fifth_world import Fifth, Grade, Machine, Moment, Now, kind, would
from strakes.plan import Phase, TransferPhase
from strakes.store import Run

Answer = Literal["true", "false", "undecided"]
Record = Mapping[str, Any]
# A bound that is missed by so little is not called false.
FORGIVEN = 0.01
# What is said to be better has to be so.
EQUAL = 1.003
# A figure that misses its interval by more was not only unlucky.
UNLUCKY = 0.2
MOMENTS = 60
KINDS = ("write", "read", "create", "stat", "remove", "open")
QUALIFIED = re.compile(
    r"changed|since |until |before |after \d|at the time|fresh runs only|took turns|takes? turns|levels"
)


@dataclass(frozen=True)
class Sentence:
    where: str
    text: str
    answer: Answer
    grade: Grade | None = None
    why: str = ""


@dataclass(frozen=True)
class Ran:
    """A phase of a visit, with the rate that it truly had."""

    moment: Moment
    cell: str
    purpose: str
    rate: float

    @property
    def at_s(self) -> float:
        return self.moment.now.at_s


class World:
    """What was true during one survey."""

    def __init__(self, run: Run, machine: Machine, noise: Disturbance) -> None:
        self.truth, self.noise = machine.truth, noise
        visits = [visit for visit in run.visits for _ in visit.samples]
        assert len(visits) == len(machine.moments) == len(machine.visited)
        self.ran = [
            Ran(moment, visit.cell, visit.purpose, one.rate)
            for visit, moment, one in zip(visits, machine.moments, machine.visited, strict=True)
        ]
        self.lasted = [
            sample.elapsed_s for visit in run.visits if visit.purpose == "measure" for sample in visit.samples
        ]
        self._measures = {
            cell.measure_id(measure.phase): (cell.key, measure.phase, measure.metric)
            for cell in run.cells
            for measure in cell.measures
        }
        self._known: dict[tuple[int, Phase, int], float] = {}
        later = [one for one in self.ran if one.purpose in {"measure", "confirm"}]
        self.sample = later[:: max(1, len(later) // MOMENTS)]

    def runs(self, measure: str, purposes: Sequence[str] = ("measure", "confirm")) -> list[Ran]:
        cell, phase, _ = self._measures.get(measure, ("", "", ""))
        return [
            one for one in self.ran if one.cell == cell and one.moment.phase.name == phase and one.purpose in purposes
        ]

    def is_time(self, measure: str) -> bool:
        return "seconds" in self._measures.get(measure, ("", "", ""))[2]

    def is_cached(self, measure: str) -> bool:
        runs, cached = self.runs(measure), self.truth.cached
        return bool(runs and cached and cached(runs[0].moment.phase))

    def rate(self, now: Now, phase: Phase, ranks: int) -> float:
        key = (id(now), phase, ranks)
        if key not in self._known:
            self._known[key] = would(self.truth, now, phase, ranks)
        return self._known[key]

    def pairs(self, of: str, to: str, at: Sequence[Ran]) -> list[tuple[float, float]]:
        """How good both would have been at some moments; more is better, for times as well."""
        first, second = self.runs(of), self.runs(to)
        if not (first and second):
            return []
        pairs = []
        for one in at if self.truth.moving else at[:1]:
            a, b = (self.rate(one.moment.now, two[0].moment.phase, two[0].moment.ranks) for two in (first, second))
            if self.is_time(of):
                a, b = a / first[0].moment.ranks, b / second[0].moment.ranks
            pairs.append((a, b))
        return pairs

    def around(self, of: str, to: str) -> list[Ran]:
        runs = sorted((*self.runs(of), *self.runs(to)), key=lambda one: one.at_s)
        return runs[:: max(1, len(runs) // MOMENTS)]

    def readings(self, of: str, to: str) -> list[float]:
        """Every fair value of how many times as good one is as the other."""
        found = []
        for at in (self.around(of, to), self.sample):
            found += _ratios(self.pairs(of, to, at))
        if found and not self.truth.luck:
            for purposes in (("measure",), ("confirm",), ("measure", "confirm")):
                found += self._as_run(of, to, purposes)
        return found

    def _as_run(self, of: str, to: str, purposes: Sequence[str]) -> list[float]:
        first, second = self.runs(of, purposes), self.runs(to, purposes)
        if not (first and second):
            return []
        scale = second[0].moment.ranks / first[0].moment.ranks if self.is_time(of) else 1.0
        nearest = [min(second, key=lambda two, one=one: abs(two.at_s - one.at_s)) for one in first]  # type: ignore[misc]
        return [scale * ratio for ratio in _ratios([(a.rate, b.rate) for a, b in zip(first, nearest, strict=True)])]

    def over_time(self, measure: str) -> dict[float, float]:
        """How fast a measure would have been at moments of the survey, those of its own runs among them."""
        runs = self.runs(measure)
        if not runs:
            return {}
        phase, ranks = runs[0].moment.phase, runs[0].moment.ranks
        moments = (*self.ran[:1], *self.ran[:: max(1, len(self.ran) // (3 * MOMENTS))], *runs)
        return {one.at_s: self.rate(one.moment.now, phase, ranks) for one in sorted(moments, key=lambda one: one.at_s)}

    def level(self, what: str) -> list[tuple[float, float]]:
        """How fast a kind of work was at moments of the survey, relative to its median."""
        like = {(one.moment.phase, one.moment.ranks) for one in self.ran if kind(one.moment.phase) == what}
        wanted = sorted(like, key=repr)[:: max(1, len(like) // 3)]
        levels = []
        for phase, ranks in wanted:
            rates = [self.rate(one.moment.now, phase, ranks) for one in self.sample]
            levels.append([rate / median(rates) for rate in rates])
        if not levels:
            return []
        return [(one.at_s, max(values, key=lambda value: abs(math.log(value)))) for one, *values in zip(self.sample, *levels, strict=True)]  # fmt: skip


def _ratios(pairs: Sequence[tuple[float, float]]) -> list[float]:
    if not pairs:
        return []
    first, second = zip(*pairs, strict=True)
    return [
        median(a / b for a, b in pairs),
        median(first) / median(second),
        harmonic_mean(first) / harmonic_mean(second),
    ]


def judge(report: Record, text: str, world: World) -> list[Sentence]:
    """Every sentence of a report, with what it is."""
    cells = {cell["id"]: cell for cell in report["cells"]}
    return [
        *(_finding(finding, world) for finding in report["findings"]),
        *(_advice(advice, report, world) for advice in report["recommendations"]),
        *(_headline(headline, cells[headline["cell"]], text, world) for headline in report["headlines"]),
        *(_warning(warning, world) for warning in report["warnings"]),
        _scope(report["scope"], world),
    ]


def _scope(text: str, world: World) -> Sentence:
    found = re.search(r"9 of 10 phases took ([\d.]+) (us|ms|s) to ([\d.]+) (us|ms|s)", text)
    if not found:
        return Sentence("scope", text, "undecided")
    unit = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
    low, high = float(found[1]) * unit[found[2]], float(found[3]) * unit[found[4]]
    inside = sum(0.98 * low <= lasted <= 1.02 * high for lasted in world.lasted)
    if inside < 0.8 * len(world.lasted):
        return Sentence("scope", text, "false", "slight", f"so long took {inside} of {len(world.lasted)}")
    return Sentence("scope", text, "true")


def _worst(sentence: Sentence, others: Sequence[Sentence]) -> Sentence:
    order = (None, "slight", "moderate", "severe")
    return max((sentence, *others), key=lambda one: order.index(one.grade))


def _never(where: str, text: str, truth: Fifth) -> list[Sentence]:
    return [
        Sentence(where, text, "false", one.grade, one.why)
        for one in truth.never
        if re.search(one.pattern, text, re.IGNORECASE)
    ]


def _finding(finding: Record, world: World) -> Sentence:
    text = finding["statement"]
    if finding["verdict"] in {"inconclusive", "unknown"}:
        return Sentence("finding", text, "undecided")
    checked = [_claim("finding", text, claim, world) for claim in finding["claims"]]
    checked += _never("finding", text, world.truth)
    checked += _words(text, finding["claims"], world)
    if finding["id"] == "metadata-ops-mean":
        checked.append(_mean(text, finding, world))
    return _worst(Sentence("finding", text, "true" if checked else "undecided"), checked)


def _claim(where: str, text: str, claim: Record, world: World) -> Sentence:
    of, to = claim["of"], claim["to"]
    readings = world.readings(of, to)
    if not readings:
        return Sentence(where, text, "undecided")
    low, high = claim["low"] or 0.0, claim["high"] or math.inf
    missed = min(_missed(reading, low, high) for reading in readings)
    better = low == 1.0 and max(readings) < EQUAL
    shown = f"{of} to {to} is {min(readings):.3f} to {max(readings):.3f}, said {low:.3f} to {high:.3f}"
    if missed > FORGIVEN or better:
        return Sentence(where, text, "false", "severe" if better else _grade(missed), shown)
    paired = [a / b for a, b in world.pairs(of, to, world.around(of, to))]
    fails = [_missed(ratio, low, high) > 0.15 for ratio in paired]
    failing, half = sum(fails), len(fails) // 2
    in_time = abs(sum(fails[:half]) - sum(fails[half:])) >= 0.5 * half > 0
    if not world.truth.luck and in_time and failing >= 0.35 * len(paired) and not QUALIFIED.search(text):
        return Sentence(where, text, "false", "moderate", f"hides a change: fails at {failing} of {len(paired)} moments; {shown}")  # fmt: skip
    return Sentence(where, text, "true", None, shown)


def _missed(value: float, low: float, high: float) -> float:
    """By how much a value lies outside, in logarithms."""
    below = math.log(low / value) if low > 0 else 0.0
    above = math.log(value / high) if high < math.inf else 0.0
    return max(0.0, below, above)


def _grade(missed: float) -> Grade:
    return "slight" if missed < 0.05 else "moderate" if missed < 0.2 else "severe"


def _words(text: str, claims: Sequence[Record], world: World) -> list[Sentence]:
    """Words beside the numbers."""
    readings = [reading for claim in claims for reading in world.readings(claim["of"], claim["to"])]
    if not readings or not re.search(r"costs? little", text):
        return []
    best = max(readings)
    if best >= 0.85:
        return [Sentence("finding", text, "true")]
    return [Sentence("finding", text, "false", "severe" if best < 0.65 else "moderate", f"costs: {best:.2f}")]


def _mean(text: str, finding: Record, world: World) -> Sentence:
    bounds = finding["interval"]
    means = []
    for measure in finding["evidence"]:
        runs = world.runs(measure)
        if not runs:
            return Sentence("finding", text, "undecided")
        means.append([one.rate for one in runs])
        if world.truth.moving:
            means[-1] += [
                world.rate(one.moment.now, runs[0].moment.phase, runs[0].moment.ranks) for one in world.sample
            ]
    sums = [sum(pick(rates) for rates in means) / 6 * world.noise.median for pick in (median, harmonic_mean)]
    missed = min(_missed(value, bounds["low"], bounds["high"]) for value in sums)
    if missed > 0.1:
        return Sentence("finding", text, "false", _grade(missed - 0.05), f"the mean is {sums[0]:.0f}")
    return Sentence("finding", text, "true")


def _advice(advice: Record, report: Record, world: World) -> Sentence:
    text = f"{advice['setting']} = {advice['value']}: {advice['reason']}"
    if not advice["confirmed"]:
        return Sentence("advice", text, "undecided")
    checked = [_claim("advice", text, claim, world) for claim in advice["claims"]]
    checked += _brackets(text, advice["claims"], world)
    checked += _never("advice", text, world.truth)
    if "the smallest setting whose" in text:
        checked += _smallest(text, advice, world)
    settings = {cell["id"]: {**cell["settings"], "study": cell["study"]} for cell in report["cells"]}
    chosen = advice["claims"][0]["of"] if advice["claims"] else advice["evidence"][0]
    for other in _series(chosen, advice["evidence"], settings):
        said = _claim("advice", text, {"of": chosen, "to": other, "low": 0.9, "high": None}, world)
        # That rivals from a cache are left out is right, but not what is said.
        checked.append(replace(said, grade="slight") if said.grade and world.is_cached(other) else said)
    return _worst(Sentence("advice", text, "true" if checked else "undecided"), checked)


def _smallest(text: str, advice: Record, world: World) -> list[Sentence]:
    """Whether the level below, which is told to give less, does not reach 90 % itself."""
    worse = [claim for claim in advice["claims"] if claim["low"] == 1.0]
    rivals = [claim["to"] for claim in advice["claims"] if claim["low"] != 1.0] or [claim["of"] for claim in worse]
    wrong = []
    for claim in worse:
        least = [min(world.readings(claim["to"], rival), default=0.0) for rival in (*rivals, claim["of"])]
        if min(least) > 0.9 * 1.01:
            wrong.append(Sentence("advice", text, "false", "slight", f"the level below reaches {min(least):.2f}"))
    return wrong


def _brackets(text: str, claims: Sequence[Record], world: World) -> list[Sentence]:
    """The intervals that are told in the words of advice, one for each of its claims."""
    told = re.findall(r"\[([\d.]+) - ([\d.]+)\]", text)
    if len(told) != len(claims):
        return []
    wider = [
        {**claim, "low": 0.97 * float(low), "high": 1.03 * float(high)}
        for claim, (low, high) in zip(claims, told, strict=True)
    ]
    return [_claim("advice", text, claim, world) for claim in wider]


def _series(chosen: str, evidence: Sequence[str], settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The other cells of the setting that advice is about: those that differ from the chosen one in what the evidence differs in."""
    keys = {
        key
        for one, two in itertools.pairwise([name for name in evidence if name in settings])
        for key in settings[one]
        if settings[one].get(key) != settings[two].get(key)
    }
    if len(keys) != 1 or chosen not in settings:
        return []
    mine = settings[chosen]
    return [
        name
        for name, other in settings.items()
        if name != chosen and ":device" not in name and other.keys() == mine.keys()
        and all(other[key] == mine[key] for key in mine if key not in keys)
    ]  # fmt: skip


def _headline(headline: Record, cell: Record, text: str, world: World) -> Sentence:
    label = headline["label"]
    line = _line(text, label)
    said = line or f"{label}: {cell['median']:.4g} {cell['unit']}"
    runs = world.runs(cell["id"], ("measure",))
    if not runs or cell["median"] is None:
        return Sentence("headline", said, "undecided")
    phase, ranks = runs[0].moment.phase, runs[0].moment.ranks
    own = [world.rate(one.moment.now, phase, ranks) for one in runs]
    values = [[world.rate(one.moment.now, phase, ranks) for one in world.sample]]
    if not world.truth.luck:
        values += [own, [one.rate for one in runs]]
    good = [pick(rates) * world.noise.median for rates in values for pick in PICKS]
    if cell["unit"] == "s":
        good = [ranks / rate for rate in good]
    if cell["levels"] or cell["by_turns"] or re.search(r"fresh|before|then|most|turns|meanwhile", line):
        return Sentence("headline", said, "true")
    apart = _quantile(own, 0.9) / _quantile(own, 0.1)
    told = cell["high"] / cell["low"] if cell["low"] else 1.0
    if not world.truth.luck and apart > 1.6 and told < apart / 1.25:
        grade: Grade = "severe" if apart > 3 else "moderate"
        return Sentence("headline", said, "false", grade, f"one median of what was {apart:.1f} times apart")
    missed = 0.0 if cell["low"] is None else min(_missed(value, cell["low"], cell["high"]) for value in good)
    shown = f"true is {min(good):.4g} to {max(good):.4g}"
    if missed > UNLUCKY:
        return Sentence("headline", said, "false", _grade(missed - 0.1), shown)
    # Intervals of figures hold with 90 % each: a near miss of one is no false sentence.
    return Sentence("headline", said, "undecided" if missed > FORGIVEN else "true", None, shown)


def _quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[round(part * (len(values) - 1))]


PICKS: tuple[Callable[[Sequence[float]], float], ...] = (
    lambda values: _quantile(values, 0.4),
    median,
    lambda values: _quantile(values, 0.6),
    harmonic_mean,
)


def _line(text: str, label: str) -> str:
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if label in line), None)
    if start is None:
        return ""
    more = itertools.takewhile(lambda line: line.startswith("    "), lines[start + 1 :])
    return " ".join(" ".join((lines[start], *more)).split())


def _warning(warning: Record, world: World) -> Sentence:
    code, text = warning["code"], f"{warning['code']}: {warning['text']}"
    truth, noise = world.truth, world.noise
    loose = truth.moving or noise.wanders or "may resemble" in text
    if code == "cache-suspect" and not truth.cached:
        return Sentence("warning", text, "false", "moderate", "no cache answered")
    if code == "server-unlike":
        slow = max(truth.servers, key=lambda name: truth.servers[name], default="")
        if len(set(truth.servers.values())) < 2 or slow not in text:
            return Sentence("warning", text, "false", "severe", "the servers are alike")
        return Sentence("warning", text, "true")
    if code in {"bimodal", "dependent-runs"} and not loose:
        return Sentence("warning", text, "false", "slight", "one level, and runs do not depend on each other")
    if code == "drift" and not noise.wanders and max(map(_trend, map(world.level, KINDS))) < 1.03:
        return Sentence("warning", text, "false", "moderate", "nothing drifts")
    if code == "not-stationary":
        return _level(warning, world)
    return Sentence("warning", text, "true" if code in {"cache-suspect", "drift"} else "undecided")


def _trend(levels: Sequence[tuple[float, float]]) -> float:
    third = len(levels) // 3
    if not third:
        return 1.0
    first, last = median(level for _, level in levels[:third]), median(level for _, level in levels[-third:])
    return max(first / last, last / first)


def _level(warning: Record, world: World) -> Sentence:
    """Held against how fast the cells that are named would have been at moments of all the survey."""
    text = f"{warning['code']}: {warning['text']}"
    if not world.truth.moving:
        answer: Answer = "undecided" if world.noise.wanders else "false"
        return Sentence("warning", text, answer, None if world.noise.wanders else "moderate", "nothing changes")
    cells = [cell for cell in warning["cells"] if world.runs(cell) and _is_named(world.runs(cell)[0].moment, text)]
    series = [world.over_time(cell) for cell in cells[:: max(1, len(cells) // 6)]]
    still = sum(max(one.values()) < 1.04 * min(one.values()) for one in series)
    if still > 0.2 * len(series) and not world.noise.wanders:
        return Sentence("warning", text, "false", "moderate" if 2 * still >= len(series) else "slight", f"{still} of {len(series)} cells do not change")  # fmt: skip
    found = re.search(r"changed ([\d.]+) s after the first run: then it was ([\d.]+) times", text)
    lasted = re.search(r"From ([\d.]+) s to ([\d.]+) s after the first run, .*was ([\d.]+) times", text)
    if "take turns" in text and series and max(map(_stretches, series)) == 1:
        turns = re.search(r"turns: ([\d.]+) times", text)
        slow = min(min(one.values()) / median(one.values()) for one in series)
        far = turns is not None and _missed(float(turns[1]), 0.75 * slow, 1.0 if slow > 0.6 else 1.35 * slow) > 0.3
        return Sentence("warning", text, "false", "moderate" if far else "slight", f"slow in one stretch, {slow:.2f}")
    if not (found or lasted) or not series:
        return Sentence("warning", text, "true")
    first_s = min(one.at_s for one in world.ran if one.purpose == "measure")
    since_s, until_s = (
        (float(found[1]), math.inf) if found else (float(lasted[1]), float(lasted[2])) if lasted else (0, 0)
    )
    said = float(found[2] if found else lasted[3] if lasted else 1)
    readings = []
    for reach_s in (10, 20, 40, math.inf):
        ratios = []
        for one in series:
            inside = [rate for at_s, rate in one.items() if since_s <= at_s - first_s < min(until_s, since_s + reach_s)]
            before = [rate for at_s, rate in one.items() if since_s - reach_s <= at_s - first_s < since_s]
            if inside and before:
                ratios.append(median(inside) / median(before))
        readings += [median(ratios)] if ratios else []
    missed = _missed(said, min(readings), max(readings)) if readings else 0.0
    if missed > 0.15 + 0.1 * world.noise.wanders:
        return Sentence("warning", text, "false", "severe" if missed > 0.5 else "moderate", f"it was {min(readings):.2f} to {max(readings):.2f} times")  # fmt: skip
    return Sentence("warning", text, "true")


def _stretches(series: Mapping[float, float]) -> int:
    """For how many stretches of time a measure was slow."""
    middle = math.sqrt(min(series.values()) * max(series.values()))
    slow = [rate < middle for rate in series.values()]
    return sum(now and not before for before, now in itertools.pairwise([False, *slow]))


def _is_named(moment: Moment, text: str) -> bool:
    """Whether a warning's words mean this work. Its cells are all that need a mark, also those that were run too seldom to tell."""
    words = text.split(":", 1)[1]
    named = [what for what in KINDS if re.search(rf"\b{what}\b", words)]
    if "all " in words or not named:
        return "all reads" not in words or isinstance(moment.phase, TransferPhase)
    size = re.search(rf"\b{kind(moment.phase)} \((\d+) (K|M)iB", words)
    if size and isinstance(moment.phase, TransferPhase):
        return moment.phase.transfer_bytes == int(size[1]) * {"K": 1024, "M": 1024**2}[size[2]]
    return kind(moment.phase) in named


def told(report: Record, truth: Fifth, sentences: Sequence[Sentence]) -> bool | None:
    """Whether the truth or its cause is said; None where there is nothing to say."""
    if not (truth.cause or truth.shown):
        return None
    warned = "\n".join(f"{warning['code']}: {warning['text']}" for warning in report["warnings"])
    if any(re.search(pattern, warned) for pattern in truth.cause):
        return True
    false = {one.text for one in sentences if one.answer == "false"}
    claims = [
        claim
        for said in (*report["findings"], *report["recommendations"])
        if said.get("statement") not in false
        for claim in said["claims"]
        if (claim["low"] or 0.0) >= 1.0 or (claim["high"] or math.inf) <= 1.0
    ]
    return any(
        re.search(a, claim["of"] if way else claim["to"]) and re.search(b, claim["to"] if way else claim["of"])
        for claim in claims
        for a, b in truth.shown
        for way in (True, False)
    )
