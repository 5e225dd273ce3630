from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from lab.running import Labs
from strakes.lab.ceph_config import CephOptions, keyring_text
from strakes.lab.ceph_monitor import Monitors
from strakes.lab.cgroup import hierarchy_of

pytestmark = [pytest.mark.lab, pytest.mark.more]

MIB = 1 << 20


def busy_ms(device: str) -> int:
    return int(Path("/sys/block", Path(device).name, "stat").read_text().split()[9])


def test_a_ceph_lab_starts_all_requested_servers_and_goes_down_without_a_trace(labs: Labs) -> None:
    mount = labs.up("ceph --osds 2 --mds 2 --standby 1 --osd-size 2GiB")
    status = labs.status("ceph")
    assert status["condition"] == "up" and status["ready_after_s"] < 60
    roles = ["mon.a", "osd.0", "osd.1", "mds.a", "mds.b", "mds.c", "mgr.x", "client"]
    assert [one["role"] for one in status["processes"] if one["alive"]] == roles

    (mount / "file").write_bytes(os.urandom(MIB))
    sizes = os.statvfs(mount)
    assert 2 << 30 < sizes.f_bavail * sizes.f_frsize < 4 << 30

    with subprocess.Popen(["sleep", "60"], cwd=mount) as user:
        refused = labs.run("down", "ceph")
        assert refused.returncode == 1 and f"sleep (process {user.pid})" in refused.stderr
        user.kill()

    with Monitors(Path(status["facts"]["ceph_conf"])) as monitors:
        assert monitors.command("health")["status"] == "HEALTH_OK"

    directory = Path(status["directory"])
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in directory.iterdir()}
    assert modes["keyring"] == 0o600 and {modes[name] for name in ("mon", "osd", "mds", "mgr", "log", "run")} == {0o700}
    config = status["facts"]["ceph_conf"]
    false_key = re.search("key = (.*)", keyring_text(CephOptions()))
    assert false_key
    for words in ([], ["--auth_client_required=none"], [f"--key={false_key[1]}"]) if os.geteuid() == 0 else ():
        command = ["ceph", "-c", config, "--connect-timeout", "20", *words, "status"]
        told = subprocess.run(command, user=65534, group=65534, extra_groups=[], capture_output=True, text=True)
        assert told.returncode != 0 and "denied" in told.stderr, told

    again = labs.start("ceph --osds 2 --mds 2 --standby 1 --osd-size 2GiB")
    assert again.returncode == 0 and again.stdout.strip() == str(mount) and (mount / "file").exists()
    used = labs.footprint()
    assert len(used.pids) == len(roles)
    labs.down("ceph")
    assert not labs.remains(used)


def test_a_standby_takes_over_and_status_names_the_killed_server(labs: Labs) -> None:
    mount = labs.up("ceph --osds 1 --mds 1 --standby 1 --standby-replay --osd-size 2GiB")
    with Monitors(Path(labs.status("ceph")["facts"]["ceph_conf"])) as monitors:
        info = monitors.command("fs dump")["filesystems"][0]["mdsmap"]["info"].values()
    active = next(one["name"] for one in info if one["state"] == "up:active")
    os.kill(labs.pids("ceph", f"mds.{active}")[0], signal.SIGKILL)
    assert subprocess.run(["touch", mount / "after"], timeout=60).returncode == 0 and (mount / "after").exists()
    status = labs.status("ceph")
    assert status["condition"] == "degraded" and status["detail"] == f"ended: mds.{active}"
    again = labs.start("ceph --osds 1 --mds 1 --standby 1 --standby-replay --osd-size 2GiB")
    assert again.returncode == 0 and f"mds.{active}" in again.stderr and again.stdout.strip() == str(mount)


def test_servers_requested_as_slow_are_slow_and_leave_no_trace(labs: Labs) -> None:
    if hierarchy_of("blkio") is None or hierarchy_of("cpu") is None or os.geteuid() != 0:
        pytest.skip("control groups cannot be written here")
    mount = labs.up("ceph --osds 1 --mds 1 --standby 0 --osd-size 2GiB --slow-osd 0=60 --mds-cpu 15")
    device = labs.status("ceph")["facts"]["slow_devices"]["osd.0"]
    busy, began = busy_ms(device), time.monotonic()
    for _ in range(2):
        with (mount / "file").open("wb") as file:
            file.write(os.urandom(16 * MIB))
            os.fsync(file.fileno())
    took = time.monotonic() - began
    # At 60 operations a second the device is busy for over 30 % of the time.
    assert busy_ms(device) - busy > 300 * took
    (mds,) = labs.pids("ceph", "mds")
    assert "strakes-lab" in Path(f"/proc/{mds}/cgroup").read_text()
    used = labs.footprint()
    labs.down("ceph")
    assert not labs.remains(used)


def test_down_works_with_stopped_servers_and_a_hanging_writer(labs: Labs) -> None:
    mount = labs.up("ceph --osds 1 --mds 1 --standby 0 --osd-size 2GiB")
    for pid in labs.pids("ceph", "osd"):
        os.kill(pid, signal.SIGSTOP)
    writer = subprocess.Popen(
        ["dd", "if=/dev/zero", f"of={mount}/file", "bs=1M", "count=8", "conv=fsync"], stderr=subprocess.DEVNULL
    )
    with pytest.raises(subprocess.TimeoutExpired):
        writer.wait(timeout=2)
    used = labs.footprint()
    labs.down("ceph")
    assert writer.wait(timeout=30) != 0 and not labs.remains(used)
