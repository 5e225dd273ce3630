"""Composed days of a Lustre server, the events that the watch must report for them, and the score.

``python -m bench.watch.days --seed 1 2 3 5`` composes days from the recorded day of tests/watch and judges the reports.
An act is a planted event. A false alarm is a reported event that matches no act, or a second event for the same act.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.watch.blocks import Recording, take_apart
from bench.watch.composed import Act, Composed, Day, compose
from strakes.watch.recorded import readings
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch

RECORDINGS = Path(__file__).parents[2] / "tests" / "watch" / "recordings"
# Maximum delay, in seconds, of the report that an event ended.
_END_TOLD_S = 90.0


@dataclass(frozen=True)
class Truth:
    """The event that an act causes, and the tolerances of its report in seconds.

    ``must``: a report is required. ``after``: maximum delay of the report after the begin (None: after the end).
    ``began``: tolerances of the reported begin, earlier and later. ``ended``: tolerance of the reported end. ``exact``:
    the reported bounds must include the true duration.
    """

    kind: str
    must: bool = True
    after: float | None = None
    began: tuple[float, float] | None = None
    ended: float | None = None
    exact: bool = False


_HEAVY = Truth("heavy", after=None, began=(25, 40), ended=40)
_SLOW = Truth("slow-target", after=100, began=(30, 60), ended=40)
_AWAY = Truth("outage", after=None, exact=True)
# Maximum delay of a report, in seconds, after a noisy job ended or a target was back.
_AFTER_END_S = {"heavy": 20.0, "outage": 60.0}
# Shortest durations in seconds that must be reported. The documentation promises to report a slow target after three
# windows of 15 s, and a busy disk after three minutes.
_SHORTEST_SLOW_S, _SHORTEST_BUSY_S = 60.0, 170.0


def truths(day: Day, act: Act) -> list[Truth]:
    """Return the events that the watch must report, or may report, for an act."""
    if act.what in ("noisy", "writer"):
        return [_HEAVY]
    if act.what == "grows":
        # The watch may learn a slow increase as usual load before the increase ends.
        soon = act.long_s < 300
        return [replace(_HEAVY, must=soon, began=(25, act.long_s), ended=40 if soon else None)]
    if act.what == "slow":
        busy = [Truth("saturation", must=False)] if act.long_s >= _SHORTEST_BUSY_S else []
        if not act.who:
            return busy
        # Without disk counters, few requests show a slow target. Early in the day, the watch needs more windows.
        after = 100 if act.begin_s >= 120 else 120
        must = act.long_s >= _SHORTEST_SLOW_S and day.disks and (act.begin_s >= 120 or act.long_s >= 120)
        return [replace(_SLOW, must=must, after=after), *busy]
    if act.what == "away":
        return [_AWAY]
    if act.what == "gap":
        return [Truth("gap", must=False)]
    return []


@dataclass
class Verdict:
    """Score of a day. ``lacking``: events reported late or not at all. ``wrong``: errors of begin, end or length."""

    day: Day
    planted: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Return whether the reports have all events with the right times, and no other events."""
        return not (self.lacking or self.wrong or self.false)


def judge(day: Day, composed: Composed, events: Sequence[WatchEvent]) -> Verdict:
    """Return the verdict on the reported events, compared with the acts of a day."""
    verdict = Verdict(day)
    by_key = {event.key: [each for each in events if each.key == event.key] for event in events}
    left = dict(by_key)
    # One event may report simultaneous outages, so several acts may match it.
    several: set[tuple[tuple[str, str, float], str]] = set()
    for act, begun_s, ended_s in composed.happened:
        for truth in truths(day, act):
            mine = [
                key
                for key in by_key
                if (key in left or (", " in key[1] and (key, act.who) not in several))
                and _is_about(truth, f"{day.system}-", act, composed, key)
                and begun_s - 90 <= key[2] <= ended_s + 60
            ]
            if truth.must:
                verdict.planted.append(truth.kind)
            if not mine:
                verdict.lacking += [f"{truth.kind} {act.who} not reported"] if truth.must else []
                continue
            told = by_key[mine[0]]
            several.add((mine[0], act.who))
            # Each machine reports a gap in the samples as an event of its own.
            for key in mine if truth.kind == "gap" else mine[:1]:
                left.pop(key, None)
            limit_s = begun_s + truth.after if truth.after else ended_s + _AFTER_END_S.get(truth.kind, 60)
            if truth.must and told[0].told_s > limit_s:
                verdict.lacking.append(f"{truth.kind} {act.who} reported {told[0].told_s - limit_s:.0f} s late")
            elif truth.must:
                verdict.found.append(truth.kind)
            wrong = _wrong(truth, told, begun_s, ended_s, composed.end_s)
            verdict.wrong += [f"{truth.kind} {act.who} {what}" for what in wrong]
    origin_s = day.begin_s
    verdict.false = [f"{kind} {subject} at {began - origin_s:.0f}: {left[kind, subject, began][0].text}"
                     for kind, subject, began in left]  # fmt: skip
    return verdict


def _is_about(truth: Truth, system: str, act: Act, composed: Composed, key: tuple[str, str, float]) -> bool:
    kind, subject, _ = key
    name = system + act.who
    if kind == truth.kind == "slow-target":
        # The subject of the report is the target or its disk. Several targets may share a disk.
        targets, _, disk = subject.partition(" (disk ")
        return subject == f"data target {name}" or (
            name in targets.split(" or ") and disk == f"{composed.disks[act.who]})"
        )
    if kind == truth.kind == "outage":
        return name in subject.split(", ")
    return kind == truth.kind and (kind in ("saturation", "gap") or subject == act.who)


def _wrong(truth: Truth, told: Sequence[WatchEvent], begun_s: float, ended_s: float, end_s: float) -> list[str]:
    first, last = told[0], told[-1]
    wrong = []
    if truth.exact:
        away_s = ended_s - begun_s
        low, high = last.low or 0.0, last.high or 0.0
        if not low - 0.5 <= away_s <= high:
            wrong.append(f"reported as {low:.1f} to {high:.1f} s, was {away_s:.1f} s")
    if truth.began and not -truth.began[0] <= first.began_s - begun_s <= truth.began[1]:
        wrong.append(f"began {first.began_s - begun_s:+.0f} s")
    if truth.ended and end_s >= ended_s + _END_TOLD_S:
        if last.ended_s is None:
            wrong.append("end not reported")
        elif abs(last.ended_s - ended_s) > truth.ended:
            wrong.append(f"ended {last.ended_s - ended_s:+.0f} s")
    return wrong


def watch_day(day: Day, recording: Recording) -> Verdict:
    with tempfile.TemporaryDirectory() as folder:
        composed = compose(day, recording, Path(folder))
        watch = Watch()
        events = [event for reading in readings(composed.files) for event in watch.add(reading)]
    return judge(day, composed, events)


# Name of the act, minimum and maximum length in seconds, job or target, factor.
Plan = tuple[str, float, float] | tuple[str, float, float, str] | tuple[str, float, float, str, float]
_NOISY, _SLOW_ONE, _AWAY_ONE = ("noisy", 60, 150), ("slow", 90, 200, "OST0001"), ("away", 5, 20, "MDT0001")
_NAMES = ("mdtest.2107", "noisyjob.1000", "untar.500", "ior.31415", "python3.1201", "48213")


def _in_turn(rng: random.Random, first_s: float, *plans: Plan) -> tuple[Act, ...]:
    acts, at_s = [], first_s
    for plan in plans:
        long_s = rng.uniform(plan[1], plan[2])
        who = plan[3] if len(plan) > 3 else rng.choice(_NAMES)
        acts.append(Act(plan[0], at_s, long_s, who, plan[4] if len(plan) > 4 else 1.0))
        at_s += long_s + rng.uniform(70, 130)
    return tuple(acts)


def _after(acts: tuple[Act, ...]) -> float:
    return max(act.end_s for act in acts) + 100


def days(seed: int) -> list[Day]:
    """Return the simulated days that a random seed generates."""
    made: list[Day] = []

    def told(name: str, first: tuple[float, float], *plans: Plan, **settings: object) -> None:
        rng = random.Random(f"{seed} {name}")
        acts = _in_turn(rng, rng.uniform(*first), *plans)
        begin_s = 1795400000.0 + rng.randrange(10**7)
        made.append(Day(name, seed, _after(acts), acts, begin_s=begin_s, **settings))  # type: ignore[arg-type]

    def over(name: str, first: Plan, second: Plan, **settings: object) -> None:
        rng = random.Random(f"{seed} {name}")
        (one,), (other,) = _in_turn(rng, rng.uniform(110, 200), first), _in_turn(rng, 0, second)
        both = (one, replace(other, begin_s=one.begin_s + rng.uniform(0.2, 0.6) * one.long_s))
        made.append(Day(name, seed, _after(both), both, **settings))  # type: ignore[arg-type]

    def quiet(name: str, minutes: float, *acts: Act, **settings: object) -> None:
        made.append(Day(name, seed, 60 * minutes, acts, **settings))  # type: ignore[arg-type]

    reboot = tuple(Act("away", 201, 85, name) for name in ("MDT0000", "MDT0001", "OST0000", "OST0001"))
    made.append(Day("a server reboots", seed, 420, (*reboot, Act("gap", 201.5, 80))))
    _days_with_something(told, over)
    _days_with_nothing(quiet)
    return made


def _days_with_something(told: Callable[..., None], over: Callable[..., None]) -> None:
    usual = (100.0, 160.0)
    told("slow, away, noisy", usual, _SLOW_ONE, _AWAY_ONE, _NOISY)
    told("away, noisy, slow, another name", usual, _AWAY_ONE, _NOISY, _SLOW_ONE, system="lus01")
    told("noisy for 30 s", usual, ("noisy", 30, 32))
    told("noisy for 200 s", usual, ("noisy", 195, 205))
    told("two noisy jobs", usual, ("noisy", 40, 90, "untar.500"), ("noisy", 40, 90, "mdtest.2107"))
    told("three times the same noisy job", usual, *[("noisy", 40, 80, "ior.31415")] * 3)
    told("noisy after one minute", (60, 62), _NOISY)
    told("a job that becomes noisy within minutes", usual, ("grows", 180, 240, "untar.500"))
    told("a job that writes", usual, ("writer", 60, 150, "bigwrite.1002", 12))
    told("noisy on a server that runs for days", usual, _NOISY, _AWAY_ONE, warm=True)
    told("another slow target", usual, ("slow", 90, 200, "OST0000"), _NOISY)
    told("slow for 40 s", usual, ("slow", 40, 45, "OST0001"))
    told("slow for 70 s", (150, 200), ("slow", 70, 75, "OST0001"))
    told("slow for 300 s", usual, ("slow", 290, 300, "OST0000"))
    told("slow after one minute", (60, 62), ("slow", 130, 200, "OST0001"))
    told("one slow target of four", usual, ("slow", 90, 200, "OST0002"), _NOISY, data_targets=4)
    told("two slow targets of eight in turn", usual, ("slow", 90, 150, "OST0006"), ("slow", 90, 150, "OST0003"),
         data_targets=8)  # fmt: skip
    told("another metadata target away", usual, ("away", 5, 20, "MDT0000"), _NOISY)
    told("away for 3 s", usual, ("away", 3, 3.5, "MDT0001"))
    told("away for 60 s", usual, ("away", 55, 60, "MDT0001"))
    told("away for two minutes", usual, ("away", 110, 130, "MDT0001"))
    told("a data target away for two minutes, no client", usual, ("away", 110, 130, "OST0000"), client=False)
    told("a data target away", usual, ("away", 10, 30, "OST0001"), _NOISY)
    told("away twice", usual, _AWAY_ONE, ("away", 10, 30, "MDT0001"))
    told("each 6 s", usual, _NOISY, _SLOW_ONE, _AWAY_ONE, cadence="second")
    told("irregular", usual, _SLOW_ONE, _NOISY, _AWAY_ONE, cadence="irregular")
    told("missing samples", usual, _NOISY, _AWAY_ONE, _SLOW_ONE, missing=8)
    told("no client", usual, _AWAY_ONE, _SLOW_ONE, _NOISY, client=False)
    told("two servers", usual, _NOISY, _SLOW_ONE, _AWAY_ONE, servers=2, warm=True)
    told("two servers, four targets", usual, _AWAY_ONE, ("slow", 90, 200, "OST0001"), _NOISY, servers=2, data_targets=4)
    told("no disks", usual, _NOISY, _SLOW_ONE, _AWAY_ONE, disks=False)
    told("half an hour of quiet first", (1700, 1800), _NOISY, _SLOW_ONE, _AWAY_ONE)
    told("slow, but less so", usual, ("slow", 120, 200, "OST0001", 0.05))
    over("a standstill while a metadata target is away", ("away", 30, 40, "MDT0000"), ("pause", 30, 31))
    over("noisy while slow", ("slow", 150, 250, "OST0001"), ("noisy", 60, 100, "untar.500"))
    over("away while slow", ("slow", 150, 250, "OST0001"), ("away", 6, 20, "MDT0001"))
    over("away while noisy", ("noisy", 100, 200, "mdtest.2107"), ("away", 6, 20, "MDT0000"))


def _days_with_nothing(quiet: Callable[..., None]) -> None:
    everything = ""
    quiet("quiet hour", 60)
    quiet("quiet hour, four targets", 60, data_targets=4)
    quiet("quiet hour, eight targets", 60, data_targets=8)
    quiet("quiet hour, each 6 s", 60, cadence="second")
    quiet("quiet hour, irregular", 60, cadence="irregular")
    quiet("quiet hour, no client", 60, client=False)
    quiet("quiet hour, no disks", 60, disks=False)
    quiet("quiet hour, missing samples", 60, missing=40)
    quiet("quiet hour, server that runs for days", 60, warm=True)
    quiet("everyday job three times as busy", 20, Act("busier", 300, 300, "load.sh.0", 3))
    quiet("everyday job three times as busy, early", 8, Act("busier", 90, 120, "load.sh.0", 3))
    quiet("everyday writer three times as busy", 20, Act("busier", 300, 300, "fio.0", 3))
    quiet("all targets slow", 12, Act("slow", 240, 150, everything))
    quiet("all eight targets slow", 12, Act("slow", 240, 150, everything), data_targets=8)
    quiet("all four targets slow, each 6 s", 12, Act("slow", 240, 150, everything), data_targets=4, cadence="second")
    quiet("a job that grows slowly", 35, Act("grows", 300, 1500, "untar.500"))
    quiet("many small jobs", 20, Act("small", 200, 800, "small"))
    quiet("a break of two minutes", 20, Act("pause", 300, 120))
    quiet("a break of ten minutes", 30, Act("pause", 300, 600))
    quiet("a data target without work", 20, Act("idle", 200, 500, "OST0001"))
    quiet("a data target without work, of four", 20, Act("idle", 200, 500, "OST0002"), data_targets=4)
    quiet("slow for one sample", 12, Act("slow", 300, 4, "OST0000"), Act("slow", 500, 4, "OST0001"))
    quiet("no samples for ten minutes", 30, Act("gap", 600, 600))
    quiet("quiet hour, two servers that run for days", 60, servers=2, warm=True)
    quiet("quiet hour, two servers, irregular", 60, servers=2, cadence="irregular")
    quiet("quiet, ten minutes", 10)


def row(seed: int, verdicts: Sequence[Verdict]) -> str:
    found = [
        f"{sum(each.found.count(kind) for each in verdicts)} of {sum(each.planted.count(kind) for each in verdicts)}"
        for kind in _KINDS
    ]
    empty = [each for each in verdicts if not each.planted]
    wrong, false = (sum(len(getattr(each, name)) for each in verdicts) for name in ("wrong", "false"))
    hours = sum(each.day.long_s for each in verdicts) / 3600
    good = sum(each.good for each in verdicts)
    cells = [seed, len(verdicts), len(empty), f"{hours:.1f}", *found, wrong, false, good]
    return f"| {' | '.join(str(cell) for cell in cells)} |"


_KINDS = ("heavy", "slow-target", "outage")
_HEAD = f"""| seed | days | without events | hours | {" | ".join(_KINDS)} | wrong times | false alarms | without error |
|{" --- |" * 10}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, nargs="+", required=True)
    parser.add_argument("--only", default="", help="only days whose name contains this text")
    options = parser.parse_args()
    recording = take_apart(RECORDINGS)
    rows, errors = [], []
    for seed in options.seed:
        verdicts = [watch_day(day, recording) for day in days(seed) if options.only in day.name]
        rows.append(row(seed, verdicts))
        for verdict in verdicts:
            for what in ("lacking", "wrong", "false"):
                errors += [f"- seed {seed}, {verdict.day.name}: {what}: {each}" for each in getattr(verdict, what)]
    print(_HEAD + "\n".join(rows) + "\n\nErrors:\n\n" + "\n".join(errors or ["- nothing"]))


if __name__ == "__main__":
    main()
