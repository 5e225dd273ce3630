"""Every kind of lab stores files and goes down without a trace; test_lab_ceph.py tests the lab of Ceph."""

from __future__ import annotations

import os
import subprocess

import pytest

from lab.running import Labs

pytestmark = pytest.mark.lab

MIB = 1 << 20
# Kind of lab, its options, and the roles of its processes.
LABS = [(kind, "", "") for kind in ("xfs", "ext4", "tmpfs")]
LARGE_LABS = [
    ("gluster", "--bricks 2", "glusterd brick.1 brick.2 client"),
    ("moosefs", "--chunkservers 2", "master chunkserver.1 chunkserver.2 client"),
]


@pytest.mark.parametrize(
    ("kind", "options", "roles"), [*LABS, *(pytest.param(*lab, marks=pytest.mark.more) for lab in LARGE_LABS)]
)
def test_a_lab_stores_files_and_goes_down_without_a_trace(labs: Labs, kind: str, options: str, roles: str) -> None:
    mount = labs.up(kind, "--size 1GiB", options)
    assert labs.run("mount", kind).stdout.strip() == str(mount) and mount.is_mount()
    status = labs.status(kind)
    assert status["condition"] == "up" and status["ready_after_s"] < 60
    assert [one["role"] for one in status["processes"] if one["alive"]] == roles.split()
    content = os.urandom(5 * MIB)
    (mount / "file").write_bytes(content)
    assert (mount / "file").read_bytes() == content
    sizes = os.statvfs(mount)
    assert 512 * MIB < sizes.f_blocks * sizes.f_frsize <= 2048 * MIB
    if roles:
        words = {"moosefs": f"client mfsfileinfo {mount}/file", "gluster": "gluster volume info"}[kind].split()
        told = labs.run("exec", kind, *words)
        assert told.returncode == 0, told.stdout + told.stderr
        # No link leads to the servers, and only root can enter their network.
        inside = status["facts"]["commands"]["client"]
        assert not subprocess.check_output([*inside, "ip", "link", "show", "type", "veth"])
        assert subprocess.run([*inside, "true"], user=65534, capture_output=True).returncode != 0
        directories = [path for path in mount.parent.iterdir() if path != mount and path.is_dir()]
        assert directories and {path.stat().st_mode & 0o777 for path in directories} == {0o700}
    used = labs.footprint()
    labs.down(kind)
    assert not labs.remains(used)
