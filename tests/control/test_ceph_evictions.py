"""Eviction of a real CephFS client: the target reports it with the client's name in the cluster."""

from __future__ import annotations

import os
import subprocess

import pytest

from conftest import wait_for
from lab.running import Labs
from strakes.targets.registry import detect

pytestmark = [pytest.mark.lab, pytest.mark.long]


def test_an_evicted_client_is_reported(labs: Labs) -> None:
    mount = labs.up("ceph --osds 2 --mds 1 --standby 1 --osd-size 2GiB")
    target = detect(mount)
    assert target.interruptions() == ()
    number = os.getxattr(mount, "ceph.client_id").decode().removeprefix("client")
    configuration = labs.status("ceph")["facts"]["ceph_conf"]
    evict = ["ceph", "--conf", configuration, "tell", "mds.0", "client", "evict", f"id={number}"]
    subprocess.run(evict, check=True, capture_output=True, timeout=60)
    wait_for(target.interruptions, 30)
    (lost,) = target.interruptions()
    assert lost.evicted and lost.ended_unix_s is None and lost.evicted_names[0].startswith(f"client.{number} (")
    assert any(f"client.{number} (" in line and "blocklisted until" in line for line in target.trouble())
