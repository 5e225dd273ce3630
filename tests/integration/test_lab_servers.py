from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.running import Labs, need, own_labs

pytestmark = [pytest.mark.lab, pytest.mark.more]

MIB = 1 << 20


@pytest.fixture
def labs() -> Iterator[Labs]:
    with own_labs() as found:
        yield found


def test_gluster_spreads_files_over_its_bricks_and_goes_down_without_a_trace(labs: Labs) -> None:
    need("gluster")
    mount = labs.up("gluster", "--bricks", "2", "--size", "512MiB")
    status = labs.status("gluster")
    assert status["condition"] == "up" and status["ready_after_s"] < 60
    assert [one["role"] for one in status["processes"] if one["alive"]] == ["glusterd", "brick.1", "brick.2", "client"]
    for number in range(32):
        (mount / f"file{number}").write_bytes(os.urandom(1024))
    bricks = status["facts"]["bricks"].values()
    held = [sum(entry.name.startswith("file") for entry in os.scandir(brick)) for brick in bricks]
    assert sum(held) == 32 and min(held) > 0
    sizes = os.statvfs(mount)
    assert 512 * MIB < sizes.f_blocks * sizes.f_frsize < 1024 * MIB
    # The gluster command named in the facts reaches the daemon of the lab.
    told = subprocess.run(
        [*status["facts"]["commands"]["gluster"], "volume", "info"], capture_output=True, text=True, timeout=60
    )
    assert "Type: Distribute" in told.stdout
    used = labs.footprint()
    labs.down("gluster")
    assert not labs.remains(used)


def test_moosefs_stores_on_its_chunkservers_and_goes_down_without_a_trace(labs: Labs) -> None:
    need("moosefs")
    mount = labs.up("moosefs", "--chunkservers", "2", "--size", "512MiB")
    status = labs.status("moosefs")
    assert status["condition"] == "up" and status["ready_after_s"] < 60
    assert [one["role"] for one in status["processes"] if one["alive"]] == [
        "master",
        "chunkserver.1",
        "chunkserver.2",
        "client",
    ]
    content = os.urandom(MIB)
    (mount / "file").write_bytes(content)
    assert (mount / "file").read_bytes() == content
    # The tools reach the servers from outside the lab's network.
    told = subprocess.run(["mfsfileinfo", mount / "file"], capture_output=True, text=True, timeout=60)
    assert status["facts"]["chunkservers"]["1"] in told.stdout, told
    used = labs.footprint()
    labs.down("moosefs")
    assert not labs.remains(used)


@pytest.mark.parametrize("options", [(), ("--meta", "redis", "--writeback")])
def test_juicefs_keeps_its_objects_in_its_directory_and_goes_down_without_a_trace(
    labs: Labs, options: tuple[str, ...]
) -> None:
    need("juicefs", "redis-server" if options else "")
    temporary = {entry.name for entry in os.scandir(tempfile.gettempdir())}
    mount = labs.up("juicefs", "--size", "1GiB", "--cache-size", "64MiB", *options)
    status = labs.status("juicefs")
    roles = [process["role"] for process in status["processes"] if process["alive"]]
    assert status["condition"] == "up" and roles == [*(["redis"] if options else []), "client"]
    assert os.statvfs(mount).f_blocks * os.statvfs(mount).f_frsize == 1024 * MIB
    content = os.urandom(5 * MIB)
    (mount / "file").write_bytes(content)
    assert (mount / "file").read_bytes() == content
    objects = Path(status["facts"]["objects"])
    deadline = time.monotonic() + 30
    while sum(path.stat().st_size for path in objects.rglob("*") if path.is_file()) < len(content):
        assert time.monotonic() < deadline, "what was written is not in the objects"
        time.sleep(0.2)
    used = labs.footprint()
    labs.down("juicefs")
    assert not labs.remains(used)
    # The files shared by the supervisor and the client of JuiceFS must be gone as well.
    left = {entry.name for entry in os.scandir(tempfile.gettempdir())} - temporary
    assert not [name for name in left if name.startswith(("fuse_fd_comm", "state"))]


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
