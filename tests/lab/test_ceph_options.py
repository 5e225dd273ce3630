from __future__ import annotations

import configparser
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.lab.ceph_config import CephOptions, check, config_text, keyring_text
from strakes.lab.options import require_bounds


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (CephOptions(slow_osd=((3, 100),)), "--slow-osd 3"),
        (CephOptions(slow_osd=((1, 100), (1, 50))), "--slow-osd 1"),
        (CephOptions(slow_osd=((0, 100),), store="memstore"), "in memory"),
        (CephOptions(mds=2, slow_mds=((2, 10),)), "--slow-mds 2"),
        (CephOptions(slow_mds=((1, 10), (1, 20))), "--slow-mds 1"),
        (CephOptions(osds=1, pool_size=2), "2 copies"),
        (CephOptions(beacon_grace=1.4, beacon_interval=0.5), "never be replaced"),
    ],
)
def test_contradicting_options_are_refused(options: CephOptions, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        check(options)


def test_beacon_times_that_are_known_to_fail_over_are_accepted() -> None:
    for grace, interval in ((1.5, 0.25), (3.0, 0.5), (15.0, 4.0)):
        check(CephOptions(beacon_grace=grace, beacon_interval=interval))


def test_times_have_bounds() -> None:
    with pytest.raises(BadInputError, match="--beacon-grace must be at most"):
        require_bounds(CephOptions(beacon_grace=1e6))
    require_bounds(CephOptions())


def test_placement_groups_are_a_power_of_two_and_enough() -> None:
    assert [CephOptions(osds=osds).placement_groups for osds in (1, 2, 3, 4, 16)] == [16, 32, 64, 64, 256]
    assert CephOptions(osds=3, pool_size=2).placement_groups == 128


def test_the_configuration_keeps_files_in_the_directory_and_traffic_on_loopback() -> None:
    ports = {"mon.a": 20001, "client.rgw.a": 20009}
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.read_string(config_text(Path("/lab"), "an-id", ports, CephOptions(s3=True), {1: Path("/dev/loop9")}))
    assert parsed["client.rgw.a"]["rgw_frontends"] == "beast endpoint=127.0.0.1:20009"
    assert parsed["global"]["mon_host"] == "[v2:127.0.0.1:20001/0]"
    assert parsed["global"]["public_addr"] == parsed["global"]["cluster_addr"] == "127.0.0.1"
    assert parsed["osd.1"]["bluestore_block_path"] == "/dev/loop9" and "osd.0" not in parsed
    paths = [
        value
        for section in parsed.values()
        for key, value in section.items()
        if value.startswith("/") and "device" not in key
    ]
    assert all(path.startswith(("/lab/", "/dev/loop9")) for path in paths) and len(paths) > 8


def test_every_daemon_has_a_key_of_its_own() -> None:
    parsed = configparser.ConfigParser()
    parsed.read_string(keyring_text(CephOptions(osds=2, mds=1, standby=1, s3=True)))
    daemons = ["mon.", "mgr.x", "osd.0", "osd.1", "mds.a", "mds.b", "client.rgw.a"]
    assert sorted(parsed.sections()) == sorted(["client.admin", *daemons])
    assert len({parsed[name]["key"] for name in parsed.sections()}) == len(parsed.sections())
