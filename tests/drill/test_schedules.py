"""Faults and repairs on the real pair of the lab: what the model predicts is what happens, and nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from lab.running import Labs, need, own_labs
from strakes.drill.schedules import ObservedEvent, ScheduleTrial, _serving, run_schedules
from strakes.drill.trial import Pace, ServiceAnswers
from strakes.failover.rehearsal.room import RoomPart
from strakes.failover.rehearsal.schedule import ScheduledEvent
from strakes.failover.split_brain import judge
from strakes.lab.ha.pair import Pair

_PACE = Pace(clients=3, rate_per_s=10.0, watch_s=3.0, after_s=1.0)
_FIRST = (RoomPart("network", "first"), RoomPart("one-way", "second"), RoomPart("bmc", "mds-b"))
_SECOND = (
    RoomPart("node", "mds-a"),
    RoomPart("node", "mds-b"),
    RoomPart("network", "second"),
    RoomPart("service", "journal"),
)
# Rows of the rehearsal: the first failure, then the second one.
_DOUBLES = [tuple(map(ScheduledEvent, pair)) for pair in product(_FIRST, _SECOND)]


def event(seen: str = "mds-b", off: tuple[str, ...] = ("mds-a",), waited_s: float = 8.0) -> ObservedEvent:
    return ObservedEvent(
        "mds-a dies", "mds-b", seen, ("mds-a",), off, (5.0, 60.0), waited_s, 30.5, ("2.0 s: mds-a is now lost",)
    )


def test_what_went_otherwise_than_predicted_is_told() -> None:
    assert event().disagreement == ""
    assert "mds-a serves, mds-b was predicted" in event(seen="mds-a").disagreement
    assert "powered off: nobody" in event(off=()).disagreement
    assert "waited 1.0 s" in event(waited_s=1.0).disagreement and "waited 90.0 s" in event(waited_s=90.0).disagreement
    told = event(seen="").disagreement
    assert all(text in told for text in ("watched for 30.5 s", "powered off: mds-a", "waited 8.0 s", "is now lost"))
    trial = ScheduleTrial(7, (event(), event(off=())), judge({"mds-a": []}, [], "mds-a"), 1.0)
    assert not trial.good and len(trial.disagreements) == 1


def test_a_slow_answer_still_tells_who_serves_and_one_of_before_the_event_does_not() -> None:
    def answer(sent_s: float, ended_s: float, node: str) -> dict[str, object]:
        return {
            "client": "c0-x",
            "number": 1,
            "term": 1,
            "node": node,
            "sent_s": sent_s,
            "ended_s": ended_s,
            "due_s": sent_s,
        }

    slow = ServiceAnswers("x", (answer(100.5, 102.9, "mds-b"),))
    assert _serving(slow, 100.0, 101.0) == "mds-b"
    assert not _serving(slow, 101.0, 101.0) and not _serving(slow, 100.0, 103.0)


@pytest.fixture
def labs() -> Iterator[Labs]:
    need("ha")
    with own_labs() as found:
        yield found


def done(labs: Labs, tmp_path: Path, seeds: range, drawn: list[tuple[ScheduledEvent, ...]]) -> list[str]:
    """What went otherwise than predicted, or was lost."""
    labs.up("ha")
    facts = labs.status("ha")["facts"]
    directory = Path(facts["bmc_log"]).parent
    trials = run_schedules("ha", Pair(facts), directory, seeds, 3, _PACE, tmp_path, print, drawn)
    labs.down("ha")
    assert len(trials) == len(seeds) and all(trial.judgement.acknowledged > 10 for trial in trials)
    wrong = [f"seed {trial.seed}: {text}" for trial in trials for text in trial.disagreements]
    return wrong + [f"seed {trial.seed}: {trial.judgement}" for trial in trials if not trial.judgement.good]


@pytest.mark.lab
@pytest.mark.more
def test_ten_random_schedules_go_as_predicted(labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", labs.environment["XDG_STATE_HOME"])
    assert not done(labs, tmp_path, range(10), [])


@pytest.mark.lab
@pytest.mark.more
@pytest.mark.long
def test_twelve_double_failures_end_as_the_rehearsal_says(
    labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", labs.environment["XDG_STATE_HOME"])
    assert len(_DOUBLES) == 12
    assert not done(labs, tmp_path, range(len(_DOUBLES)), list(_DOUBLES))
