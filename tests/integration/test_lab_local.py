from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from conftest import wait_for
from lab.running import Labs
from strakes.lab.cgroup import hierarchy_of

pytestmark = pytest.mark.lab


def test_a_second_up_names_the_mount_and_changes_nothing(labs: Labs) -> None:
    mount = labs.up("xfs")
    (mount / "file").write_text("content")
    again = labs.run("up", "xfs")
    assert again.returncode == 0 and again.stdout.strip() == str(mount) and "already running" in again.stderr
    other = labs.run("up", "xfs", "--size", "1GiB")
    assert other.returncode == 2 and "size" in other.stderr and "--name" in other.stderr
    kind = labs.run("up", "tmpfs", "--name", "xfs")
    assert kind.returncode == 2 and "of the kind xfs" in kind.stderr
    assert (mount / "file").read_text() == "content"


def test_several_labs_are_distinguished_by_their_names(labs: Labs) -> None:
    one, other = labs.up("tmpfs", "--name", "one"), labs.up("tmpfs", "--name", "other")
    assert labs.run("mount", "other").stdout.strip() == str(other)
    both = labs.run("down")
    assert both.returncode == 2 and "one, other" in both.stderr
    labs.down("--all")
    assert not one.exists() and not labs.remains()


def test_a_file_system_in_use_is_unmounted_only_by_force(labs: Labs) -> None:
    mount = labs.up("xfs")
    user = subprocess.Popen(["sleep", "68"], cwd=mount)
    try:
        refused = labs.run("down", "xfs")
        assert (
            refused.returncode == 1 and f"sleep (process {user.pid})" in refused.stderr and "--force" in refused.stderr
        )
        assert mount.is_mount() and labs.status("xfs")["condition"] == "up"
        forced = labs.begin("down", "xfs", "--force")
        wait_for(lambda: not mount.is_mount(), 20)
    finally:
        user.kill()
        user.wait()
    forced.communicate(timeout=30)
    assert forced.returncode == 0 and not labs.remains()


def test_a_foreign_mount_below_a_lab_is_unmounted_and_not_emptied(labs: Labs, tmp_path: Path) -> None:
    mount = labs.up("tmpfs")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").touch()
    (mount / "bound").mkdir()
    subprocess.run(["mount", "--bind", tmp_path / "mine", mount / "bound"], check=True)
    refused = labs.run("down", "tmpfs")
    assert refused.returncode == 1 and f"a mount at {mount}/bound" in refused.stderr
    labs.down("tmpfs", "--force")
    assert (tmp_path / "mine/thesis.tex").exists()


def test_a_slow_device_stays_within_its_operations_per_second(labs: Labs) -> None:
    hierarchy = hierarchy_of("blkio")
    if hierarchy is None or hierarchy.version != 1:
        refused = labs.run("up", "xfs", "--iops", "50")
        assert refused.returncode == 3 and "--iops" in refused.stderr
        return
    mount = labs.up("xfs", "--iops", "50")
    operations = 100
    descriptor = os.open(mount / "file", os.O_WRONLY | os.O_CREAT | os.O_SYNC)
    began = time.monotonic()
    for _ in range(operations):
        os.pwrite(descriptor, b"x" * 512, 0)
    took = time.monotonic() - began
    os.close(descriptor)
    assert took > operations / 50 * 0.8
    labs.down("xfs")
    assert not [
        line
        for line in (hierarchy.path / "blkio.throttle.write_iops_device").read_text().splitlines()
        if line.endswith(" 50")
    ]
