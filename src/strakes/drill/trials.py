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
    """The median of several times; ``interval`` is None if there are too few."""

    median_s: float
    interval: Interval | None
    runs: int


@dataclass(frozen=True)
class TrialRow:
    """All trials of one fault.

    A time is None if no node was powered off, or no client was answered again.
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
        _row([trial for trial in trials if trial.fault == fault])
        for fault in dict.fromkeys(trial.fault for trial in trials)
    )


def _row(trials: Sequence[FaultTrial]) -> TrialRow:
    outages = [trial.outage_s for trial in trials if trial.outage_s is not None]
    return TrialRow(
        fault=trials[0].fault,
        runs=len(trials),
        good=sum(trial.good for trial in trials),
        took_over=sum(trial.served_after != trial.served_before for trial in trials),
        powered_off=_spread([after for trial in trials for after in trial.switched_off.values()]),
        outage=_spread(outages) if len(outages) == len(trials) else None,
        acknowledged=sum(trial.judgement.acknowledged for trial in trials),
        lost=sum(len(trial.judgement.lost) for trial in trials),
        split_brain=tuple(text for trial in trials for text in trial.judgement.split_brain),
        told=sum(trial.told for trial in trials),
    )


def _spread(times_s: Sequence[float]) -> Spread | None:
    return Spread(median(times_s), median_interval(times_s, CONFIDENCE), len(times_s)) if times_s else None


def document(trials: Sequence[FaultTrial]) -> str:
    """Return all trials, and one row for each fault, as JSON."""
    return json.dumps(
        {"schema": 1, "rows": [asdict(trial) for trial in rows(trials)], "trials": [asdict(trial) for trial in trials]},
        indent=1,
    )
