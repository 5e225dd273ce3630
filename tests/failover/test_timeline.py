"""Outages in the records of clients: of a real Lustre server, and simulated."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import ROOT
from strakes.failover.timeline import ClientOperation, Moment, Outage, outage_of, outages_of

RECORDED = ROOT / "tests" / "targets" / "lustre" / "recordings" / "failover"


def recorded(name: str) -> dict[str, Outage]:
    """Return client -> outage in a recording.

    Each file ``NAME_creates_CLIENT.txt`` has lines of number, start, end, and "ok" or an errno.
    """
    clients = {}
    for path in RECORDED.glob(f"{name}_creates_*.txt"):
        rows = [line.split() for line in path.read_text().splitlines()]
        clients[path.stem.rpartition("_")[2]] = [
            ClientOperation(float(begun), float(ended), "" if result == "ok" else result)
            for _, begun, ended, result in rows
        ]
    fault = next(one for kind in ("events", "umount") if (one := RECORDED / f"{name}_{kind}.txt").exists())
    began = re.search(r"\d{10}\.\d+", fault.read_text())
    assert began
    return {outage.client: outage for outage in outages_of(clients, float(began[0]))}


def test_a_killed_server_stalls_both_clients_for_112_seconds_without_an_error() -> None:
    outages = recorded("crash")
    assert {name: round(one.stall_s) for name, one in outages.items()} == {"m0": 113, "m1": 112}
    assert all(one.hit and one.errors == 0 and one.operations > 300 for one in outages.values())


@pytest.mark.parametrize("name", ["failover", "replay"])
def test_a_client_of_another_target_is_not_hit(name: str) -> None:
    assert {client: one.hit for client, one in recorded(name).items()} == {"m0": False, "m1": True}


def test_a_client_that_does_not_recover_has_no_time_of_return() -> None:
    found = outage_of("a", [ClientOperation(0, 1), ClientOperation(2, 90, "ETIMEDOUT")], fault_s=1.5)
    assert found.back_after_s is None and found.errors == 1 and found.stall_s == 88


@settings(max_examples=30)  # an example is a list of up to 60 times, which takes 20 ms
@given(st.lists(st.floats(0.001, 0.2), min_size=20, max_size=60), st.integers(1, 15), st.floats(1.0, 500.0))
def test_a_wait_of_any_length_is_measured_from_the_last_answer(durations: list[float], place: int, wait: float) -> None:
    operations, now = [], 1000.0
    for number, duration in enumerate(durations):
        begun = now
        now += duration + (wait if number == place else 0.0)
        operations.append(ClientOperation(begun, now))
    fault = operations[place].begun_s + wait / 2
    found = outage_of("a", operations, fault)
    assert found.stall_s == pytest.approx(durations[place] + wait)
    assert found.back_after_s == pytest.approx(operations[place].ended_s - fault)


def steady(times: list[float], took_s: float = 0.1, error: str = "") -> list[ClientOperation]:
    return [ClientOperation(time, time + took_s, error) for time in times]


@pytest.mark.parametrize("pause_s", [0.5, 20.0, 90.0])
def test_pauses_between_requests_are_no_outage(pause_s: float) -> None:
    asked = steady([1000 + number * pause_s for number in range(12)])
    assert not outage_of("slow", asked, 1000 + 5.5 * pause_s).hit
    late = ClientOperation(asked[6].begun_s, asked[6].begun_s + 15)
    outage = outage_of("slow", [*asked[:6], late, *asked[7:]], 1000 + 5.5 * pause_s)
    assert outage.hit and outage.back_after_s == pytest.approx(0.5 * pause_s + 15)


def test_a_client_is_called_hit_only_with_enough_operations() -> None:
    assert not outage_of("few", steady([1000, 1010]), 1005).hit
    few = outage_of("few", [*steady([1000]), ClientOperation(1006, 1020)], 1005)
    assert not few.hit and not few.known
    gone = outage_of("ended before", steady([1000, 1001, 1002]), 1050)
    assert (gone.hit, gone.known) == (False, False)
    plenty = outage_of("plenty", steady([1000 + number for number in range(100)]), 1050)
    assert (plenty.hit, plenty.known) == (False, True)
    assert outage_of("some", [*steady([1000, 1001, 1002]), ClientOperation(1006, 1020)], 1005).hit
    assert outage_of("only one", [ClientOperation(1004, 1020)], 1005).hit is False
    assert not outage_of("none", [], 1005).hit


def test_errors_that_did_not_occur_before_are_an_outage_of_any_length() -> None:
    before, after = steady([1000 + 0.1 * n for n in range(50)], 0.02), steady([1006 + 0.1 * n for n in range(50)], 0.02)
    failed = steady([1005 + 0.1 * n for n in range(10)], 0.001, "EIO")
    outage = outage_of("evicted", [*before, *failed, *after], 1004.95)
    assert outage.hit and outage.errors == 10 and outage.back_after_s == pytest.approx(1.07)
    mixed = [
        *before,
        *steady([1002.05, 1006.05], 0.001, "EEXIST"),
        *steady([1005.0 + 0.1 * n for n in range(10)]),
        *after,
    ]
    assert not outage_of("failing anyway", mixed, 1004).hit


def test_a_stall_does_not_include_pauses_between_requests() -> None:
    asked = steady([1000 + 60 * number for number in range(10)])
    held = [*asked[:5], ClientOperation(1300, 1303.3), *asked[6:]]
    outage = outage_of("checkpoints", held, 1241)
    assert outage.stall_s == pytest.approx(3.3) and outage.stall_began_s == pytest.approx(1300)


@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT", "ENOENT"])
def test_errors_that_show_a_working_file_system_are_no_outage(error: str) -> None:
    asked = steady([1000 + 0.5 * number for number in range(400)])
    refused = [*asked[:380], ClientOperation(1190.0, 1190.01, error), *asked[381:]]
    outage = outage_of("full", refused, 1050)
    assert not outage.hit and outage.errors == 1
    failed = [*asked[:380], ClientOperation(1190.0, 1190.01, "EIO"), *asked[381:]]
    assert outage_of("lost", failed, 1050).hit
    # After a stall such an error counts as the first answer.
    stalled = [*asked[:100], ClientOperation(1050, 1080, error)]
    assert outage_of("stalled", stalled, 1050.5).back_after_s == pytest.approx(29.5)


def habits(drawn: random.Random, kind: str) -> list[ClientOperation]:
    """Return 5 min of operations of a client that has long waits without a fault.

    ``kind`` is "checkpoints" (a wait of about 5 s every minute), "slow and silent" (long operations and pauses) or any
    other word (a wait of about 1.5 s every 25 s on average).
    """
    now, operations, next_long = 1000.0, [], 1000 + drawn.uniform(0, 60)
    gap = drawn.uniform(10, 40)
    while now < 1300:
        took_s, pause_s = 0.05 * drawn.lognormvariate(0, 0.5), drawn.uniform(0.1, 0.5)
        if kind == "slow and silent":
            took_s, pause_s = 1.5 * drawn.lognormvariate(0, 1), drawn.uniform(0.5, 1.5) * gap
        elif now >= next_long:
            took_s = (5 if kind == "checkpoints" else 1.5) * drawn.lognormvariate(0, 0.6)
            next_long += 60 if kind == "checkpoints" else drawn.expovariate(1 / 25)
        operations.append(ClientOperation(now, now + took_s))
        now += took_s + pause_s
    return operations


@pytest.mark.parametrize("kind", ["checkpoints", "slow and silent", "commits"])
def test_usual_waits_of_a_client_are_seldom_called_an_outage(kind: str) -> None:
    clients = [habits(random.Random(f"{kind} {seed}"), kind) for seed in range(40)]
    for before_s in (15, 60, 150):
        outages = [outage_of("a", operations, 1000 + before_s) for operations in clients]
        assert sum(outage.hit for outage in outages) <= 2, before_s
        assert all(outage.known for outage in outages if outage.hit), before_s


def test_an_outage_far_longer_than_the_checkpoints_of_a_client_is_found() -> None:
    for seed in range(30):
        operations = habits(random.Random(seed), "checkpoints")
        fault_s = 1150.0
        later = [operation for operation in operations if operation.ended_s >= fault_s]
        held = [replace(later[0], ended_s=later[0].ended_s + 300)]
        held += [replace(one, begun_s=one.begun_s + 300, ended_s=one.ended_s + 300) for one in later[1:]]
        outage = outage_of("a", [*operations[: -len(later)], *held], fault_s)
        assert outage.hit and outage.back_after_s == pytest.approx(held[0].ended_s - fault_s)


def test_a_client_whose_record_ends_early_is_hit_or_undecided() -> None:
    whole = steady([1000 + 0.2 * number for number in range(1000)])
    clients = {"goes on": whole, "silent": [each for each in whole if each.ended_s < 1050.3]}
    clients["later silent"] = [each for each in whole if each.ended_s < 1080]
    outages = {outage.client: outage for outage in outages_of(clients, 1050, [Moment(1100, "mdt", "COMPLETE")])}
    assert outages["silent"].hit and outages["silent"].back_after_s is None
    assert not outages["later silent"].hit and not outages["later silent"].known
    assert not outages["goes on"].hit and outages["goes on"].known
    # Records that end after the recovery belong to clients that had finished.
    assert all(outage.known for outage in outages_of({"a": whole, "b": whole[:-9]}, 1050, [Moment(1100, "mdt", "x")]))


def test_heavy_tailed_waits_are_seldom_called_an_outage() -> None:
    hit = 0
    for seed in range(60):
        drawn, now, operations = random.Random(seed), 1000.0, []
        while now < 1240:
            took_s = 0.03 * drawn.paretovariate(1.5)
            operations.append(ClientOperation(now, now + took_s))
            now += took_s + drawn.expovariate(10)
        hit += outage_of("a", operations, 1060).hit
    assert hit <= 2


@pytest.mark.long
def test_a_long_record_with_one_episode_of_waits_is_evaluated_in_time() -> None:
    operations, at_s = [], 1000.0
    for number in range(60_000):
        took_s = 0.001 if number < 30_000 else 0.6
        operations.append(ClientOperation(at_s, at_s + took_s))
        at_s += took_s
    fault_s = operations[30_000].begun_s
    operations.append(ClientOperation(at_s, at_s + 1e5))
    # Comparing each wait with every other one would take 90 s.
    (outage,) = outages_of({"a": operations}, fault_s)
    assert outage.hit and outage.stall_s == pytest.approx(1e5)
