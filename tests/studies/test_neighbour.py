"""Slow probe operations end a visit, reduce the load of the next one, and finally stop the run."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from strakes.base.errors import EnvironmentLacksError, StoppedForOthersError
from strakes.runs.engine import LocalEngine
from strakes.runs.messages import LoggedOperation, Progress
from strakes.studies import neighbour as module
from strakes.studies.neighbour import SHARES, TOO_MANY, Neighbour, Probe, latencies

LIMIT_S = 0.02
RUNNING = Progress(0, "write", 1.0, 0, 0, 0)


class Made(Probe):
    def __init__(self) -> None:
        self.next: list[LoggedOperation] = []
        self.always: Callable[[], list[LoggedOperation]] = list

    def take(self) -> list[LoggedOperation]:
        taken, self.next = self.next + self.always(), []
        return taken


class Cancelled(LocalEngine):
    times = 0

    def cancel(self) -> None:
        self.times += 1


def felt(took_s: float, count: int = 1, errno: str = "", kind: str = "write-fsync") -> list[LoggedOperation]:
    now = time.time()
    return [LoggedOperation(kind, 0, number, now, now, now + took_s, errno) for number in range(count)]


@pytest.fixture
def probe() -> Made:
    return Made()


@pytest.fixture
def neighbour(probe: Made, monkeypatch: pytest.MonkeyPatch) -> Neighbour:
    for name, seconds in (
        ("_WARM_UP_S", -1.0),
        ("_ALONE_S", 1.02),
        ("_QUIET_S", 0.05),
        ("_REST_S", 0.2),
        ("_LOOK_S", 0.01),
    ):
        monkeypatch.setattr(module, name, seconds)
    probe.next = felt(0.001, 30)
    made = Neighbour(LIMIT_S, probe)
    made.begin()
    return made


def visit(
    neighbour: Neighbour, probe: Made, operations: list[LoggedOperation], *, may_yield: bool = True
) -> tuple[float, int]:
    """Simulate a visit during these probe operations; return its share of the load and its cancellations."""
    engine = Cancelled()
    share = neighbour.before_visit()
    # Shift the operations in time to just after the start of the visit.
    moment = time.time() - operations[0].due_s + 1e-3 if operations else 0.0
    probe.next = [
        LoggedOperation(
            one.phase, one.rank, one.number, one.due_s + moment, one.begun_s + moment, one.ended_s + moment, one.errno
        )
        for one in operations
    ]
    look = neighbour.while_it_runs(engine, may_yield=may_yield)
    look(RUNNING)
    look(RUNNING)
    return share, engine.times


@pytest.mark.parametrize("stepped_s", [0.0, -3600.0])
def test_a_visit_that_slows_others_is_cancelled_once_and_the_next_one_has_less_load(
    neighbour: Neighbour, probe: Made, monkeypatch: pytest.MonkeyPatch, stepped_s: float
) -> None:
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + stepped_s)
    assert visit(neighbour, probe, felt(0.5, TOO_MANY)) == (1.0, 1) and neighbour.yielded
    assert neighbour.after_visit()["slow"] == TOO_MANY and visit(neighbour, probe, []) == (0.5, 0)
    assert not neighbour.yielded


@pytest.mark.parametrize(
    ("took_s", "number", "errno", "may_yield", "cancelled", "share"),
    [(0.001, 100, "", True, 0, 1.0), (0.001, TOO_MANY, "EIO", True, 1, 0.5), (0.5, 10 * TOO_MANY, "", False, 0, 0.5)],
    ids=["fast", "failed", "slow in a visit that cannot be repeated"],
)
def test_only_slow_and_failed_operations_reduce_the_load(
    neighbour: Neighbour,
    probe: Made,
    took_s: float,
    number: int,
    errno: str,
    may_yield: bool,
    cancelled: int,
    share: float,
) -> None:
    assert visit(neighbour, probe, felt(took_s, number, errno), may_yield=may_yield) == (1.0, cancelled)
    assert neighbour.after_visit()["operations"] == number and visit(neighbour, probe, []) == (share, 0)


def test_operations_due_before_the_load_was_reduced_do_not_count_against_it(neighbour: Neighbour, probe: Made) -> None:
    late = felt(0.5, TOO_MANY)
    visit(neighbour, probe, felt(0.5, TOO_MANY))
    assert neighbour.before_visit() == 0.5
    probe.next = late
    neighbour.while_it_runs(Cancelled(), may_yield=True)(RUNNING)
    assert neighbour.share == 0.5


def test_a_silent_probe_counts_as_slow(neighbour: Neighbour, probe: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SILENT_S", 0.0)
    neighbour.before_visit()
    time.sleep(0.05)
    engine = Cancelled()
    neighbour.while_it_runs(engine, may_yield=True)(RUNNING)
    assert engine.times == 1


def test_after_the_lowest_load_the_run_stops_and_names_the_latency(neighbour: Neighbour, probe: Made) -> None:
    for share in SHARES:
        assert visit(neighbour, probe, felt(0.5, TOO_MANY)) == (share, 1)
    with pytest.raises(StoppedForOthersError) as stopped:
        neighbour.before_visit()
    assert stopped.value.exit_status == 130 and "write-fsync 500 ms; the limit is 20.0 ms" in stopped.value.why
    assert "--resume" in stopped.value.remedy and neighbour.summary().stopped is True


def test_a_run_does_not_begin_where_operations_are_slow_without_its_load(probe: Made, neighbour: Neighbour) -> None:
    crowded = Neighbour(LIMIT_S, probe)
    probe.next = felt(0.5, TOO_MANY)
    with pytest.raises(EnvironmentLacksError, match="already take longer than --neighbour allows") as refused:
        crowded.begin()
    assert refused.value.exit_status == 3 and "500 ms" in refused.value.why


def test_the_summary_separates_latencies_before_and_during_the_run(neighbour: Neighbour, probe: Made) -> None:
    visit(neighbour, probe, felt(0.015, 10, kind="file-read") + felt(0.003, 10))
    summary = neighbour.summary()
    assert summary.before["operations"] == 30 and summary.before["p99_s"] == pytest.approx(0.001, rel=0.01)
    assert summary.during["p99_s"] == pytest.approx(0.015, rel=0.01)
    assert set(summary.during["kinds"]) == {"file-read", "write-fsync"} and not summary.stopped


def test_percentiles_are_by_nearest_rank() -> None:
    found = latencies([felt(number / 1000)[0] for number in range(1, 201)], 0.1)
    assert (found["operations"], found["slow"]) == (200, 100)
    expected = {"median_s": 0.1, "p99_s": 0.198, "longest_s": 0.2}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-3)
    assert latencies([], 0.1) == {"kinds": {}}
