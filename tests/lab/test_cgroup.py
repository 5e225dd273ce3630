from __future__ import annotations

import os
import subprocess

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.lab import cgroup


def test_a_share_of_a_processor_is_set_and_everything_is_removed() -> None:
    if cgroup.hierarchy_of("cpu") is None or os.geteuid() != 0:
        pytest.skip("no control group with the controller cpu can be written here")
    group = cgroup.make_group("cpu", "cgroup-test", "mds.a")
    process = subprocess.Popen(["sleep", "67"])
    try:
        group.join(process.pid)
        cgroup.limit_cpu(group, 15)
        if group.version == 1:
            assert (group.path / "cpu.cfs_quota_us").read_text().strip() == "3000"
            assert (group.path / "cpu.cfs_period_us").read_text().strip() == "20000"
        else:
            assert (group.path / "cpu.max").read_text().strip() == "3000 20000"
        assert cgroup.groups_of("cgroup-test") == (group.path,) and not cgroup.groups_of("cgroup")
        cgroup.release_groups("cgroup-test")
        unlimited = "cpu.cfs_quota_us" if group.version == 1 else "cpu.max"
        assert (group.path / unlimited).read_text().split()[0] in ("-1", "max")
    finally:
        process.kill()
        process.wait()
        assert cgroup.remove_groups("cgroup-test") == ()
    assert not group.path.exists()


def test_an_unavailable_limit_is_refused_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "read_mounts", lambda: ())
    with pytest.raises(EnvironmentLacksError, match="--mds-cpu is not possible on this machine"):
        cgroup.require("cpu", "--mds-cpu")
