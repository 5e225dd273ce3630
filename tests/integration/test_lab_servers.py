from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from lab.running import Labs, need, own_labs

pytestmark = [pytest.mark.lab, pytest.mark.more]

MIB = 1 << 20


@pytest.fixture
def labs() -> Iterator[Labs]:
    with own_labs() as found:
        yield found


def test_gluster_spreads_files_over_bricks_of_its_own_and_goes_without_a_trace(labs: Labs) -> None:
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
    # The machine's own command line reaches the lab's daemon, and nothing else.
    told = subprocess.run(
        [*status["facts"]["commands"]["gluster"], "volume", "info"], capture_output=True, text=True, timeout=60
    )
    assert "Type: Distribute" in told.stdout
    used = labs.footprint()
    labs.down("gluster")
    assert not labs.remains(used)


def test_moosefs_stores_on_chunkservers_of_its_own_and_goes_without_a_trace(labs: Labs) -> None:
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
    # The tools reach the servers from outside their network.
    told = subprocess.run(["mfsfileinfo", mount / "file"], capture_output=True, text=True, timeout=60)
    assert status["facts"]["chunkservers"]["1"] in told.stdout, told
    used = labs.footprint()
    labs.down("moosefs")
    assert not labs.remains(used)
