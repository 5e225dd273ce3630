"""Eviction of a real CephFS client: the target reports it with the client's name in the cluster."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from lab.running import Labs, need, own_labs
from strakes.targets.registry import detect

pytestmark = [pytest.mark.lab, pytest.mark.long]

QUICK = ("--osds", "2", "--mds", "1", "--standby", "1", "--osd-size", "2GiB")


@pytest.fixture
def labs() -> Iterator[Labs]:
    need("ceph")
    with own_labs() as found:
        yield found


def test_an_evicted_client_is_reported(labs: Labs) -> None:
    mount = labs.up("ceph", *QUICK)
    target = detect(mount)
    assert target.interruptions() == ()
    number = os.getxattr(mount, "ceph.client_id").decode().removeprefix("client")
    configuration = labs.status("ceph")["facts"]["ceph_conf"]
    evict = ["ceph", "--conf", configuration, "tell", "mds.0", "client", "evict", f"id={number}"]
    subprocess.run(evict, check=True, capture_output=True, timeout=60)
    deadline = time.monotonic() + 30
    while not target.interruptions() and time.monotonic() < deadline:
        time.sleep(1)
    (lost,) = target.interruptions()
    assert lost.evicted and lost.ended_unix_s is None and lost.evicted_names[0].startswith(f"client.{number} (")
    assert any(f"client.{number} (" in line and "blocklisted until" in line for line in target.trouble())
