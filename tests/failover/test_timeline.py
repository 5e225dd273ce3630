"""Recorded recoveries of a real Lustre server as time lines, and the arithmetic of waiting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import ROOT, StrakesRunner
from strakes.errors import BadInputError
from strakes.failover.lustre_recording import drills_in, read_drill
from strakes.failover.timeline import ClientOperation, outage_of

RECORDED = ROOT / "tests" / "targets" / "lustre" / "recordings" / "failover"


def test_a_server_that_is_killed_stalls_both_clients_for_112_seconds_without_an_error() -> None:
    line = read_drill(RECORDED, "crash")
    assert {one.client: round(one.stall_s) for one in line.outages} == {"m0": 113, "m1": 112}
    assert all(one.errors == 0 and one.operations > 300 for one in line.outages)
    assert line.back_after_s is not None and [round(value) for value in line.back_after_s] == [113, 113, 113]
    replayed = {one.target: one.replayed for one in line.targets}
    assert replayed["labfs-MDT0000"] == 57 and replayed["labfs-OST0002"] == 15
    said = [(one.source, one.text) for one in line.moments]
    order = [
        ("operator", "kill -9 of the server VM"),
        ("operator", "server booted, mounting"),
        ("labfs-MDT0000", "RECOVERING"),
        ("client m1", "is answered again"),
        ("labfs-MDT0000", "COMPLETE"),
    ]
    assert [said.index(one) for one in order] == sorted(said.index(one) for one in order)


def test_an_orderly_stop_stalls_only_the_clients_of_that_target() -> None:
    line = read_drill(RECORDED, "failover")
    waits = {one.client: one.stall_s for one in line.outages}
    assert 31 < waits["m1"] < 32 and waits["m0"] < 3
    assert all(earlier.at_s <= later.at_s for earlier, later in zip(line.moments, line.moments[1:], strict=False))


def test_all_recorded_drills_are_found_and_shown(strakes: StrakesRunner, tmp_path: Path) -> None:
    assert drills_in(RECORDED) == ("crash", "failover", "replay")
    shown = strakes("failover", "timeline", RECORDED, "--json", tmp_path / "out.json")
    assert shown.returncode == 0 and "112.6" in shown.stdout, shown.stderr
    assert [one["name"] for one in json.loads((tmp_path / "out.json").read_text())["timelines"]] == [
        "crash",
        "failover",
        "replay",
    ]
    moments = strakes("failover", "timeline", RECORDED, "crash", "--moments")
    assert "kill -9 of the server VM" in moments.stdout and "failover: seconds" not in moments.stdout
    assert strakes("failover", "timeline", RECORDED, "nosuch").returncode == 2


def test_what_is_not_understood_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no recorded drill"):
        drills_in(tmp_path)
    (tmp_path / "x_creates_a.txt").write_text("0 1.0 2.0 ok\n")
    with pytest.raises(BadInputError, match="nothing says when the fault was done"):
        read_drill(tmp_path, "x")
    (tmp_path / "x_events.txt").write_text("1.5 pulled the plug\n")
    assert read_drill(tmp_path, "x").outages[0].stall_s == 1.0
    (tmp_path / "x_creates_a.txt").write_text("0 1.0 2.0 ok\n1 soon later ok\n")
    with pytest.raises(BadInputError) as error:
        read_drill(tmp_path, "x")
    assert error.value.where.endswith("x_creates_a.txt:2")


def test_a_client_that_never_comes_back_has_no_time_of_return() -> None:
    found = outage_of("a", [ClientOperation(0, 1), ClientOperation(2, 90, "ETIMEDOUT")], fault_s=1.5)
    assert found.back_after_s is None and found.errors == 1 and found.stall_s == 89


@given(
    st.lists(st.floats(0.001, 0.2), min_size=20, max_size=60),
    st.integers(1, 15),
    st.floats(1.0, 500.0),
)
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
