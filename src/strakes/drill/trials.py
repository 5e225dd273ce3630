"""The same faults again and again: what came of them, and times with their intervals."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from strakes.drill.faults.pair import PAIR_FAULTS
from strakes.drill.trial import FaultTrial, Pace, run_trial
from strakes.lab.ha.pair import Pair
from strakes.statistics.interval import Interval, median, median_interval

CONFIDENCE = 0.9


@dataclass(frozen=True)
class Spread:
    """The median of several times; ``interval`` is None where they are too few for one."""

    median_s: float
    interval: Interval | None
    runs: int


@dataclass(frozen=True)
class TrialRow:
    """All trials of one fault.

    A time is None where nothing was powered off, or nobody was answered again.
    """

    fault: str
    runs: int
    good: int
    took_over: int
    powered_off: Spread | None
    outage: Spread | None
    acknowledged: int
    lost: int
    split_brain: tuple[str, ...]
    told: int


def run_trials(
    lab: str, pair: Pair, faults: Sequence[str], repeat: int, pace: Pace, root: Path, say: Callable[[str], None]
) -> tuple[FaultTrial, ...]:
    """Do every fault in every round; after each the pair is made whole again, also when strakes is killed."""
    done = []
    for round_number in range(1, repeat + 1):
        for fault in faults:
            say(f"{round_number} of {repeat}: {PAIR_FAULTS[fault].summary}")
            done.append(run_trial(lab, pair, fault, pace, root))
    pair.wait_whole(pace.answer_s)
    return tuple(done)


def rows(trials: Sequence[FaultTrial]) -> tuple[TrialRow, ...]:
    """Return one row for each fault, in the order of their first trials."""
    return tuple(
        _row([one for one in trials if one.fault == fault]) for fault in dict.fromkeys(one.fault for one in trials)
    )


def _row(trials: Sequence[FaultTrial]) -> TrialRow:
    outages = [one.outage_s for one in trials if one.outage_s is not None]
    return TrialRow(
        fault=trials[0].fault,
        runs=len(trials),
        good=sum(one.good for one in trials),
        took_over=sum(one.served_after != one.served_before for one in trials),
        powered_off=_spread([after for one in trials for after in one.switched_off.values()]),
        outage=_spread(outages) if len(outages) == len(trials) else None,
        acknowledged=sum(one.judgement.acknowledged for one in trials),
        lost=sum(len(one.judgement.lost) for one in trials),
        split_brain=tuple(text for one in trials for text in one.judgement.split_brain),
        told=sum(one.told for one in trials),
    )


def _spread(times_s: Sequence[float]) -> Spread | None:
    return Spread(median(times_s), median_interval(times_s, CONFIDENCE), len(times_s)) if times_s else None


def document(trials: Sequence[FaultTrial]) -> str:
    """Return all trials, and one row for each fault, as JSON."""
    return json.dumps(
        {"schema": 1, "rows": [asdict(one) for one in rows(trials)], "trials": [asdict(one) for one in trials]},
        indent=1,
    )
