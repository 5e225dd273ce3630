"""Every kind of lab stores files and goes down without a trace; test_lab_ceph.py tests the lab of Ceph."""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess

import pytest

from lab.running import Labs
from mounts import other_user
from strakes.lab.mounts import mounted_at

pytestmark = pytest.mark.lab

MIB = 1 << 20
# Kind of lab, its options, and the roles of its processes.
LABS = [(kind, "", "") for kind in ("xfs", "ext4", "tmpfs")]
LARGE_LABS = [
    ("gluster", "--bricks 2", "glusterd brick.1 brick.2 client"),
    ("moosefs", "--chunkservers 2", "master chunkserver.1 chunkserver.2 client"),
]


def connection(address: tuple[str, int], link: str, uid: int) -> int:
    """Connect as a user and return the error number. ``link``: device to which the socket is bound, or ""."""
    with other_user(uid), socket.socket() as probe:
        if link:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link.encode())
        probe.settimeout(60)
        return probe.connect_ex(address)


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
    # The tools of the servers reach them from outside the lab's network.
    tools = {"moosefs": ["mfsfileinfo", str(mount / "file")]}
    if kind == "gluster":
        tools[kind] = [*status["facts"]["commands"]["gluster"], "volume", "info"]
    if kind in tools:
        told = subprocess.run(tools[kind], capture_output=True, text=True, timeout=60)
        assert told.returncode == 0, told.stdout + told.stderr
        # The source of the mount is 10.70.0.2:strakes or mfs#10.70.0.2:9421.
        (server,) = re.findall(r"10\.[\d.]+", str(mounted_at(mount)))
        address = server, {"gluster": 24007, "moosefs": 9421}[kind]
        reached = [connection(address, link, uid) for uid in (0, 65534) for link in ("", f"sl-{status['id']}")]
        assert reached == [0, 0, errno.EHOSTUNREACH, errno.EHOSTUNREACH]
        directories = [path for path in mount.parent.iterdir() if path != mount and path.is_dir()]
        assert directories and {path.stat().st_mode & 0o777 for path in directories} == {0o700}
    used = labs.footprint()
    labs.down(kind)
    assert not labs.remains(used)
