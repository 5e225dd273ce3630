"""Drills whose clients hang: the fault is undone anyway, and clients that stay blocked are named and left behind."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mounts import FaultyMount, faulty_mounted
from strakes.base.errors import MeasurementError
from strakes.control import drill_guard as guard
from strakes.control import drill_run
from strakes.control.drill_outcome import DrillOutcome
from strakes.control.drill_run import Drill, play
from strakes.control.drill_undo import RunCommand
from strakes.control.fault import Fault
from strakes.failover.timeline import Moment
from strakes.model import recovery_clients as clients
from strakes.model.recovery_clients import Timing

TIMING = Timing(before_s=1.0, after_s=1.0)


class ClientsWait(Fault):
    """Fault that blocks the creation of files until its mark file is removed; with ``fails``, it then raises an error."""

    text = "make the clients wait"
    back_within_s = 2.0

    def __init__(self, mount: FaultyMount, mark: Path, *, fails: bool = False) -> None:
        self.undo = RunCommand(("rm", "-f", str(mark)))
        self._mount, self._mark, self._fails = mount, mark, fails

    def strike(self) -> tuple[Moment, ...]:
        self._mark.touch()
        self._mount.hang("create", "mknod")
        threading.Thread(target=self._mend, daemon=True).start()
        if self._fails:
            raise MeasurementError("a command failed", where="half of it", why="is done")
        return (Moment(time.time(), "drill", self.text),)

    def _mend(self) -> None:
        while self._mark.exists():
            time.sleep(0.05)
        self._mount.mend()


@pytest.fixture
def mount(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyMount]:
    monkeypatch.setattr(clients, "_GRACE_S", 1.0)
    with faulty_mounted() as mounted:
        yield mounted
        mounted.mend()


def drill(mount: FaultyMount) -> Drill:
    return Drill(mount.place, 2, 20.0, TIMING, sessions=False)


def test_a_fault_that_blocks_its_clients_is_undone_within_the_limit(
    mount: FaultyMount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drill_run, "_SILENT_S", 0.7)
    told: list[str] = []
    outcome = play(drill(mount), ClientsWait(mount, tmp_path / "mark"), tmp_path, told.append)
    undone = [text.startswith("undone") for text in told].index(True)
    assert "still waiting for clients" in told[:undone]
    assert outcome.lost == 0 and not outcome.line.gone
    assert max(outage.stall_s for outage in outcome.line.outages) == pytest.approx(2.0, abs=1.5)


def test_a_partly_caused_fault_is_undone_at_once(mount: FaultyMount, tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="the fault could not be caused"):
        play(drill(mount), ClientsWait(mount, tmp_path / "mark", fails=True), tmp_path, lambda _text: None)
    assert not (tmp_path / "mark").exists()


class LateServer(Fault):
    """Fault whose undo command fails ``failures`` times with a status, and then succeeds."""

    text, back_within_s = "unmount a target", 2.0

    def __init__(self, place: Path, failures: int, status: int = 255) -> None:
        tries = place / "tries"
        script = f"echo x >> {tries}; [ $(wc -l < {tries}) -gt {failures} ] || exit {status}"
        self.undo = RunCommand(("sh", "-c", script))

    def strike(self) -> tuple[Moment, ...]:
        return (Moment(time.time(), "drill", self.text),)


@pytest.mark.parametrize(
    ("failures", "status", "lacking"), [(2, 255, ""), (2, 32, ""), (99, 32, "the fault could not be undone")]
)
def test_undoing_is_retried_up_to_a_limit_and_the_outcome_is_reported_in_any_case(
    failures: int, status: int, lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_AGAIN_S", 0.05)
    monkeypatch.setattr(guard, "UNDO_LIMIT_S", 1.0 if lacking else 60.0)
    place, told, shown = tmp_path / "place", list[str](), list[DrillOutcome]()
    place.mkdir()
    fault, asked = LateServer(tmp_path, failures, status), Drill(place, 2, 20.0, TIMING, sessions=False)
    outcome = play(asked, fault, tmp_path / "store", told.append, shown.append)
    assert shown == [outcome]
    assert outcome.acknowledged == 80 and outcome.lost == 0 and outcome.lacking.startswith(lacking)
    assert any(f"; status {status}; trying again for at most" in text for text in told)
    assert any(text.startswith("undone") for text in told) == (not lacking)


def test_a_step_of_the_clock_does_not_end_the_work_of_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place := tmp_path / "place").mkdir()
    fault, asked = LateServer(tmp_path, 0), Drill(place, 2, 20.0, Timing(before_s=1.0, after_s=2.0), sessions=False)
    monkeypatch.setattr(fault, "back_within_s", 0.1)
    monkeypatch.setattr(fault, "strike", lambda: (Moment(time.time() - 3600.0, "drill", fault.text),))
    assert play(asked, fault, tmp_path / "store", lambda _text: None).acknowledged == 120


# Runs in a separate process, because its blocked threads would keep pytest from ending.
HANGS = """
import sys, time
from pathlib import Path
from strakes.cli.apart import run_apart
from strakes.control import drill_guard
from strakes.model import recovery_clients as clients
from strakes.control.fault import Fault
from strakes.control.drill_run import ClientsHang, Drill, play
from strakes.control.drill_undo import RunCommand
from strakes.failover.timeline import Moment
clients._GRACE_S = drill_guard.UNDO_LIMIT_S = 1.0
place, mark = map(Path, sys.argv[1:3])
class Wait(Fault):
    text, undo, back_within_s = "wait", RunCommand((sys.argv[3], str(mark))), 2.0 if sys.argv[3] == "rm" else 900.0
    def strike(self):
        mark.touch()
        return (Moment(time.time(), "drill", self.text),)
def show(outcome):
    print(f"known of {outcome.acknowledged > 0} files, {outcome.lost} lost", flush=True)
def work():
    try:
        play(Drill(place, 2, 20.0, clients.Timing(2.0, 1.0), False), Wait(), mark.parent, print, show)
    except ClientsHang as error:
        print(error, flush=True)
        return error.exit_status
sys.exit(run_apart(work))
"""


@pytest.mark.more
@pytest.mark.parametrize(("undo", "said_of_it"), [("rm", "fault was undone"), ("false", "fault could not be undone")])
def test_clients_that_hang_after_the_undo_are_named_and_left_behind(
    undo: str, said_of_it: str, mount: FaultyMount, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    words = [sys.executable, "-c", HANGS, str(mount.place), str(mark), undo]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            while not mark.exists() and process.poll() is None:
                time.sleep(0.05)
            mount.hang("create", "mknod")
            said, _ = process.communicate(timeout=120)
        finally:
            mount.mend()
    assert process.returncode == 1 and "2 of 2 clients still hang" in said and "known of True files, 0 lost" in said
    assert said_of_it in said and "strakes clean" in said and "Traceback" not in said


class SlowServers(LateServer):
    """Fault after which the servers recover at the fifth look."""

    looks = 0

    def strike(self) -> tuple[Moment, ...]:
        self.looks = 5
        return super().strike()

    def lacking(self) -> str:
        self.looks -= 1
        return "OST0001 on oss2 does not answer." if self.looks > 0 else ""


def test_a_drill_that_waits_says_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drill_run, "_SILENT_S", 0.0)
    told: list[str] = []
    asked = Drill(tmp_path, 2, 20.0, TIMING, sessions=False)
    play(asked, SlowServers(tmp_path, 0), tmp_path / "store", told.append)
    assert told[-1] == "still waiting for the servers: OST0001 on oss2 does not answer."
