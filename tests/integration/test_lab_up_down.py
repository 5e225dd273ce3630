"""Every kind of lab stores files and goes down without a trace; test_lab_ceph.py has the one of Ceph."""

from __future__ import annotations

import os
import subprocess
import tempfile

import pytest

from lab.running import Labs, need

pytestmark = pytest.mark.lab

MIB = 1 << 20
# Kind, options besides the size, and the processes of the lab.
LABS: list[tuple[str, tuple[str, ...], list[str]]] = [
    ("xfs", (), []),
    ("ext4", (), []),
    ("tmpfs", (), []),
]
LARGE_LABS: list[tuple[str, tuple[str, ...], list[str]]] = [
    ("gluster", ("--bricks", "2"), ["glusterd", "brick.1", "brick.2", "client"]),
    ("moosefs", ("--chunkservers", "2"), ["master", "chunkserver.1", "chunkserver.2", "client"]),
    ("juicefs", ("--cache-size", "64MiB"), ["client"]),
    ("juicefs", ("--meta", "redis", "--writeback", "--cache-size", "64MiB"), ["redis", "client"]),
]


@pytest.mark.parametrize(
    ("kind", "options", "roles"), [*LABS, *(pytest.param(*lab, marks=pytest.mark.more) for lab in LARGE_LABS)]
)
def test_a_lab_stores_files_and_goes_down_without_a_trace(
    labs: Labs, kind: str, options: tuple[str, ...], roles: list[str]
) -> None:
    need(kind, "redis-server" if "redis" in options else "")
    temporary = set(os.listdir(tempfile.gettempdir()))
    mount = labs.up(kind, "--size", "1GiB", *options)
    assert labs.run("mount", kind).stdout.strip() == str(mount) and mount.is_mount()
    status = labs.status(kind)
    assert status["condition"] == "up" and status["ready_after_s"] < 60
    assert [one["role"] for one in status["processes"] if one["alive"]] == roles
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
    used = labs.footprint()
    labs.down(kind)
    assert not labs.remains(used)
    # JuiceFS shares files of its supervisor and its client in the directory for temporary files.
    left = set(os.listdir(tempfile.gettempdir())) - temporary
    assert not [name for name in left if name.startswith(("fuse_fd_comm", "state"))]


@pytest.mark.more
def test_invalid_options_of_juicefs_are_refused_before_any_change(labs: Labs) -> None:
    need("juicefs")
    for options, complaint in (
        (("--size", "1500MiB"), "--size must be a whole number of GiB"),
        (("--block-size", "3MiB"), "--block-size must be a power of two"),
        (("--block-size", "32MiB"), "--block-size must be a power of two"),
    ):
        refused = labs.run("up", "juicefs", *options)
        assert refused.returncode == 2 and complaint in refused.stderr, refused.stderr
    assert not labs.remains()
