"""What a watch costs a neighbour: by exposure or in pairs, and said only where the interval allows it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from bench.watch import own_cost
from bench.watch.own_cost import Moments, by_kind, costs, measure, verdict

from strakes.launch.messages import LoggedOperation
from strakes.targets.workspace import Workspace


def operations(count: int, factor: float, generator: random.Random) -> Sequence[LoggedOperation]:
    return [
        LoggedOperation("file-read", 0, number, float(number), float(number), number + factor * generator.random(), "")
        for number in range(count)
    ]


@pytest.mark.parametrize(("cost", "answer"), [(0.9, "met"), (1.5, "missed")])
def test_a_cost_is_told_though_the_machine_drifts(cost: float, answer: str) -> None:
    generator = random.Random(1)
    windows = 0

    def window(watched: bool) -> Sequence[LoggedOperation]:
        nonlocal windows
        windows += 1
        # Every pair is slower than the one before.
        return operations(1000, (cost if watched else 1.0) * 1.5 ** ((windows - 1) // 2), generator)

    ratio = measure(range(12), window, random.Random(2))["all"]
    assert ratio.median == pytest.approx(cost, rel=0.02)
    assert verdict(ratio) == answer


def test_few_pairs_decide_nothing() -> None:
    generator = random.Random(3)
    ratio = measure(range(2), lambda _: operations(100, 1.0, generator), random.Random(4))["all"]
    assert verdict(ratio).startswith("not known")


def test_latency_counts_from_when_an_operation_was_due() -> None:
    late = LoggedOperation("file-read", 0, 0, 10.0, 12.0, 12.5, "")
    assert {kind: each.late_s.tolist() for kind, each in by_kind([late]).items()} == {"all": [2.5], "file-read": [2.5]}


def test_what_is_due_near_an_operation_of_the_probe_is_told_from_what_is_not() -> None:
    generator = random.Random(5)
    moments = Moments([number / 3 for number in range(3 * 60 * 12)], [60.0 * number for number in range(12)], [1e4])
    due_s = [number / 49.618 for number in range(int(49.618 * 60 * 12))]
    took_s = [(1.2 if (due + 0.05) % (1 / 3) < 0.1 else 1.0) * generator.random() for due in due_s]
    neighbour = [
        LoggedOperation("write-fsync", 0, number, due, due, due + took, "")
        for number, (due, took) in enumerate(zip(due_s, took_s, strict=True))
    ]
    found = {name: (share, ratio) for name, share, ratio in costs(by_kind(neighbour), moments)}
    share, ratio = found["probe, within 50 ms"]
    assert 0.30 < share < 0.33
    assert ratio.median == pytest.approx(1.17, abs=0.02)
    assert verdict(ratio) == "missed"
    # What is done between plans is exposed, too; no reading of counters was made meanwhile.
    assert found["probe, within 20 ms"][0] == pytest.approx(0.12 + 0.88 * 1.02 / 60, abs=0.005)
    assert found["reading of counters"] == (0.0, found["reading of counters"][1])
    placebo = found["nothing (placebo)"][1]
    assert placebo.interval is not None
    assert placebo.interval.contains(1.0)


@pytest.mark.long
def test_a_real_watch_notes_when_its_probe_and_its_readings_are_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_cost, "_SETTLE_S", 3.0)
    (tmp_path / "watched").mkdir()
    with Workspace.create(tmp_path / "watched", "own-cost-test") as workspace:
        done, moments = own_cost._beside(tmp_path / "watched", tmp_path / "store", workspace.path, 4.0)
    assert len(done) == 3 * own_cost._RANKS * int(4 * own_cost._RATE_PER_S)
    within = sorted(due_s for due_s in moments.probe if done[0].due_s < due_s < done[0].due_s + 4)
    assert 11 <= len(within) <= 13
    assert len(moments.plans) == 3
    assert len(moments.readings) == 1
