"""Labs after a killed ``up``, killed servers, or a restart of the machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from lab.running import Labs, need
from strakes.base.processes import descendants_of
from strakes.lab.state import JOURNAL
from strakes.targets.mountinfo import read_mounts

pytestmark = [pytest.mark.lab, pytest.mark.more]

SMALL = {
    "ceph": ("--osds", "2", "--mds", "1", "--standby", "0", "--osd-size", "2GiB"),
    "gluster": ("--bricks", "2", "--size", "512MiB"),
    "moosefs": ("--chunkservers", "1", "--size", "512MiB"),
    "xfs": (),
}
# Kind of lab, and the step at which the test kills ``strakes lab up``.
MOMENTS = [("xfs", "loop device"), ("ceph", "metadata server"), ("gluster", "client"), ("moosefs", "master")]
MORE_MOMENTS = [
    *(("ceph", step) for step in ("monitor", "object store", "client")),
    *(("gluster", step) for step in ("device(s)", "management daemon")),
    ("moosefs", "client"),
]


def begin_up(labs: Labs, kind: str, step: str) -> subprocess.Popen[str]:
    begun = labs.begin("up", kind, *SMALL[kind])
    assert begun.stderr is not None
    for line in begun.stderr:
        if step in line:
            break
    return begun


def kill_up_at(labs: Labs, kind: str, step: str) -> None:
    begun = begin_up(labs, kind, step)
    os.kill(begun.pid, signal.SIGKILL)
    begun.communicate()
    assert begun.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("kind", "step"), [*MOMENTS, *(pytest.param(*moment, marks=pytest.mark.long) for moment in MORE_MOMENTS)]
)
def test_everything_started_by_a_killed_up_is_removed(labs: Labs, kind: str, step: str) -> None:
    need(kind)
    kill_up_at(labs, kind, step)
    status = labs.status(kind)
    assert status["condition"] == "stale" and step in status["detail"]
    used = labs.footprint()
    labs.down(kind)
    assert not labs.remains(used)


def test_an_interrupted_up_removes_everything_it_started(labs: Labs) -> None:
    need("ceph")
    begun = begin_up(labs, "ceph", "metadata server")
    used = labs.footprint()
    begun.send_signal(signal.SIGTERM)
    begun.communicate(timeout=60)
    assert begun.returncode == 130 and not labs.remains(used)


def test_other_commands_are_refused_while_an_up_is_running(labs: Labs) -> None:
    need("ceph")
    begun = labs.begin("up", "ceph", *SMALL["ceph"])
    assert begun.stderr is not None
    begun.stderr.readline()
    begun.send_signal(signal.SIGTSTP)
    assert labs.status("ceph")["condition"] == "working"
    for command in (("up", "ceph", *SMALL["ceph"]), ("down", "ceph")):
        second = labs.run(*command)
        assert second.returncode == 2 and any(f"process {pid}" in second.stderr for pid in descendants_of(begun.pid))
    begun.send_signal(signal.SIGCONT)
    begun.communicate(timeout=200)
    assert begun.returncode == 0 and labs.status("ceph")["condition"] == "up"


@pytest.mark.parametrize("kind", ["ceph", "gluster", "moosefs"])
def test_a_lab_whose_processes_were_all_killed_comes_up_again(labs: Labs, kind: str) -> None:
    need(kind)
    labs.up(kind, *SMALL[kind])
    used = labs.footprint()
    for pid, _ in used.pids:
        os.kill(pid, signal.SIGKILL)
    assert labs.status(kind)["condition"] == "stale" and labs.run("mount", kind).returncode == 2
    (labs.up(kind, *SMALL[kind]) / "file").write_text("content")
    assert labs.status(kind)["condition"] == "up"


def test_a_lab_directory_from_before_a_restart_of_the_machine_is_replaced(labs: Labs) -> None:
    need("xfs")
    mount = labs.up("xfs")
    directory = mount.parent
    kept = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file() and path.name != "image"}
    labs.up("tmpfs")  # a second lab, without which ``down`` would remove the directory of labs
    labs.down("xfs")
    directory.mkdir()
    for name, content in kept.items():
        (directory / name).write_bytes(content)
    head, *rest = (directory / JOURNAL).read_text().splitlines()
    (directory / JOURNAL).write_text("\n".join([json.dumps({**json.loads(head), "boot": "the one before"}), *rest, ""]))
    assert labs.status("xfs")["detail"] == "the machine has been restarted since"
    assert labs.up("xfs").is_mount() and sum(one.mount_point == str(mount) for one in read_mounts()) == 1
