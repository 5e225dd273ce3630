"""A restarted server is detected by its recovery status, even by a client that sent it nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from strakes.studies.measure_watch import TargetWatch
from strakes.targets.command import Completed
from strakes.targets.description import Interruption, lost_between
from strakes.targets.lustre_target import LustreTarget
from targets.lustre.replay import AS_ROOT, ON_SERVER, Replay
from targets.lustre.test_target import AT, SPELLINGS, mount

STATUS = (
    "status: COMPLETE\nrecovery_start: {start}\nrecovery_duration: 5\ncompleted_clients: 3/4\nreplayed_requests: 0\n"
    "last_transno: 8589935670\nVBR: DISABLED\nIR: ENABLED"
)


class Restarting:
    """The recorded machine with a metadata target that recovered at ``start`` (unix time; 0: never)."""

    def __init__(self, root: Path) -> None:
        self._replay = Replay(root, AS_ROOT, SPELLINGS, ON_SERVER)
        self.start = 0

    def __call__(self, argv: Sequence[str], timeout_s: float = 10) -> Completed:
        done = self._replay(argv, timeout_s)
        if argv[0] != "at" or not self.start:
            return done
        inactive, recovered = "labfs-MDT0001.recovery_status=status: INACTIVE", STATUS.format(start=self.start)
        text = done.stdout.replace(inactive, f"labfs-MDT0001.recovery_status=\n{recovered}")
        return replace(done, stdout=text)


def test_a_recovery_between_two_readings_is_an_interruption_with_the_times_of_the_server(tmp_path: Path) -> None:
    machine = Restarting(tmp_path)
    lustre = LustreTarget(tmp_path, mount(tmp_path), servers=AT, runner=machine)
    assert lustre.recoveries()[1].status == "INACTIVE" and all(one.serving for one in lustre.recoveries())
    before = lustre.observe()
    assert lost_between(before, lustre.observe()) == ()
    watch = TargetWatch(lustre)
    watch.begin()
    machine.start = int(time.time())
    watch.end()
    began = machine.start
    assert watch.interruptions(began - 1.0, began + 10.0) == (
        Interruption("labfs-MDT0001", began, began + 5, evicted_clients=1),
    )
    assert "labfs-MDT0001" in lost_between(before, lustre.observe())
    assert str(watch.interruptions(began, began)[0]).endswith("for 5.00 s; 1 client was evicted.")
