"""Knobs of a real CephFS, changed by processes that are killed at random times."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import StrakesRunner
from lab.running import Labs
from strakes.lab.ceph_monitor import Monitors
from strakes.tuning.advise_paste import ceph_layout

pytestmark = [pytest.mark.lab, pytest.mark.more]

_CHANGER = """
import sys
from pathlib import Path
from strakes.control.knob_change import changed
from strakes.targets.registry import detect
target = detect(Path(sys.argv[1]))
with changed(target, {"bdi.read_ahead_kb": 512}):
    print("ready", flush=True)
    sys.stdin.readline()
while True:
    for value in (64, 96):
        with changed(target, {"mds_log_max_segments": value, "bdi.read_ahead_kb": value * 4}):
            pass
"""


@pytest.fixture(scope="module")
def mount(shared_labs: Labs) -> Path:
    return shared_labs.up("ceph --osds 1 --mds 1 --standby 0 --osd-size 2GiB --store memstore")


@pytest.fixture(scope="module")
def conf(shared_labs: Labs, mount: Path) -> Path:
    return Path(shared_labs.status("ceph")["facts"]["ceph_conf"])


@pytest.fixture(scope="module")
def cluster(conf: Path) -> Iterator[Monitors]:
    with Monitors(conf) as connected:
        yield connected


def options(cluster: Monitors) -> list[tuple[str, str, str]]:
    return sorted((row["section"], row["name"], row["value"]) for row in cluster.command("config dump"))


def read_ahead(mount: Path) -> str:
    number = os.stat(mount).st_dev
    return Path(f"/sys/class/bdi/{os.major(number)}:{os.minor(number)}/read_ahead_kb").read_text().strip()


@pytest.mark.parametrize("moments", [4, pytest.param(20, marks=pytest.mark.long)])
def test_restore_undoes_the_changes_of_a_process_killed_at_any_time(
    cluster: Monitors, mount: Path, strakes: StrakesRunner, moments: int
) -> None:
    before, ahead = options(cluster), read_ahead(mount)
    draw = random.Random(4)
    found_changed = 0
    for moment in range(moments):
        words = [sys.executable, "-c", _CHANGER, str(mount)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdin and worker.stdout and worker.stdout.readline() == "ready\n"
            if moment > 0:  # The first process is killed while its change is in force.
                print(file=worker.stdin, flush=True)
                # One iteration of the changing process takes about 4 s, nearly all of it in commands of Ceph.
                time.sleep(draw.uniform(0, 4.0))
            worker.kill()
        found_changed += options(cluster) != before or read_ahead(mount) != ahead
        done = strakes("knobs", "restore")
        # A command that was cut off may still act on the server, and a slow server may not answer.
        if done.returncode == 1 and "repeat: strakes knobs restore" in done.stdout:
            done = strakes("knobs", "restore")
        assert done.returncode == 0, done.stdout + done.stderr
        assert (options(cluster), read_ahead(mount)) == (before, ahead)
        # The cluster keeps a note of each changed setting, which must be gone as well.
        assert cluster.command("config-key dump", key="strakes/") == {}
    assert found_changed > 0


def test_the_effective_value_is_read_from_the_daemons(cluster: Monitors, mount: Path, strakes: StrakesRunner) -> None:
    # The lab's configuration file sets mds_cache_memory_limit and takes precedence over the database.
    done = strakes("knobs", "set", mount, "mds_cache_memory_limit=512MiB", "mds_log_max_segments=64")
    assert done.returncode == 1 and "uses 268435456 (256 MiB) instead of 536870912 (512 MiB)" in done.stdout
    assert "mds_log_max_segments: 64" in done.stdout and ("mds", "mds_log_max_segments", "64") in options(cluster)
    assert strakes("knobs", "restore").returncode == 0 and options(cluster) == []


def test_a_change_made_meanwhile_by_an_administrator_is_kept(
    cluster: Monitors, conf: Path, mount: Path, strakes: StrakesRunner
) -> None:
    assert strakes("knobs", "set", mount, "mds_log_max_segments=64").returncode == 0
    subprocess.run(
        ["ceph", "-c", conf, "config", "set", "mds", "mds_log_max_segments", "200"], check=True, capture_output=True
    )
    done = strakes("knobs", "restore")
    assert done.returncode == 1 and "left at 200" in done.stdout
    assert options(cluster) == [("mds", "mds_log_max_segments", "200")]
    subprocess.run(["ceph", "-c", conf, "config", "rm", "mds", "mds_log_max_segments"], check=True, capture_output=True)


def test_a_refusal_by_ceph_is_reported_with_its_message(cluster: Monitors, mount: Path, strakes: StrakesRunner) -> None:
    before = options(cluster)
    done = strakes("knobs", "set", mount, "mds_log_max_segments=64", "mds_cache_memory_limit=99999999999999999999")
    assert done.returncode == 2 and "EINVAL" in done.stderr
    assert options(cluster) == before


def test_setfattr_accepts_the_layouts_printed_by_advise(mount: Path) -> None:
    for count, size in ((1, 65536), (3, 1 << 20), (2, 16 << 20), (4, None), (None, 3 << 20)):
        (mount / "laid-out").mkdir()
        line = ceph_layout(count, size).replace("DIR", str(mount / "laid-out"))
        assert subprocess.run(["sh", "-c", line], capture_output=True, text=True).stderr == ""
        given = dict(word.split("=") for word in os.getxattr(mount / "laid-out", "ceph.dir.layout").decode().split())
        assert count is None or given["stripe_count"] == str(count)
        assert size is None or given["stripe_unit"] == str(size)
        (mount / "laid-out").rmdir()
