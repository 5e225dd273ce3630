from __future__ import annotations

from pathlib import Path

import pytest

from failover.clusters import EXAMPLES
from strakes.errors import BadInputError
from strakes.failover.description import read_description

GOOD = EXAMPLES["tianhe2"].read_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_understood(name: str) -> None:
    cluster = read_description(EXAMPLES[name])
    assert len(cluster.nodes) == 2 and len(cluster.heartbeats) == 2 and cluster.targets


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('survivor = "mds-a"', 'surviver = "mds-a"', "Did you mean 'survivor'"),
        ('survivor = "mds-a"', 'survivor = "mds-c"', "one of mds-a, mds-b"),
        (
            'password_script = "/etc/strakes/bmc-password" }\n\n[[node]]',
            'password = "secret" }\n\n[[node]]',
            "'password_script' is missing",
        ),
        ("10.2.0.2", "10.3.0.2", "10.3.0.2 is not on cross"),
        ("10.1.0.2", "10.1.0.1", "the same address is given twice"),
        ('name = "mds-b"', 'name = "mds-a"', "two nodes with different names"),
        ("replication = true", "replication = false", "exactly one network carries the replication"),
        ("heartbeat = true", "heartbeat = false", "no network carries the heartbeat"),
        ('network = "management"', 'network = "managment"', "there is no network 'managment'"),
        ('mds-b = "/dev/md/mdt0" }', 'mds-c = "/dev/md/mdt0" }', "a device below /dev for each of mds-a, mds-b"),
        ('prefers = "mds-a"', 'prefers = "nobody"', "one of mds-a, mds-b"),
        ('role = "mgs+mdt"', 'role = "mdt"', "has one MGS"),
        ("active/standby", "active/active", "all targets prefer the same node"),
        ('drbd = "8.4"', 'drbd = "7"', "one of 8.4, 9"),
        ('mount = "/mnt/mdt0"', 'mount = "/mnt/x; rm -rf /"', "without spaces and quotes"),
        ("clients = 2000", "clients = -1", "at least 0"),
        ("clients = 2000", 'clients = "many"', "whole number"),
        ("[cluster]", "[cluster", "not valid TOML"),
        ('power_feeds = ["feed-1", "feed-2"]', "power_feeds = []", "at least one power feed"),
        ('devices = { mds-a = "/dev/md/mdt0"', 'devices = { mds-a = "/dev/drbd0"', "the disks below DRBD"),
        ('mount = "/mnt/mdt0"', 'mount = "mnt/mdt0"', "an absolute path"),
        ('mount = "/mnt/mdt0"', 'mount = "/mnt/mdt0"\nport = 5405', "a port that Corosync does not use"),
        ('lnet = "tcp"', 'lnet = "tcp; touch X"', "not a network of LNet"),
        ('drbd = "8.4"', 'drbd = "8.4"\nquorum_host = "10.1.0.2"', "the quorum device is on a machine of the pair"),
        ('drbd = "8.4"', 'drbd = "8.4"\nquorum_host = "mds-b"', "the quorum device is on a machine of the pair"),
        ('watch = ["10.1.0.254"]', 'watch = ["router"]', "a list of addresses"),
        ('subnet = "10.2.0.0/24"', 'subnet = "10.2.0.0/240"', "not a subnet"),
    ],
)
def test_what_is_wrong_in_a_description_is_named_with_its_place(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in GOOD
    path = tmp_path / "cluster.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(BadInputError) as error:
        read_description(path)
    assert said in str(error.value) and str(path) in str(error.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(BadInputError, match="cannot be read"):
        read_description(Path("/nowhere/cluster.toml"))


@pytest.mark.parametrize(
    ("example", "old", "new", "said"),
    [
        ("lustre-active-active", "index = 1", "index = 0", "the same index is given twice"),
        (
            "lustre-active-active",
            'mds1 = "/dev/md/mdt1"',
            'mds1 = "/dev/md/mdt0"',
            "the same device on mds1 is given twice",
        ),
        ("nfs", "192.168.10.10/24", "192.168.10.1/24", "the address of home is taken"),
        ("nfs", "192.168.10.10/24", "172.16.0.10/24", "the address of home is on no network"),
        ("service", '["postgresql"]', '["postgresql; reboot"]', "names of systemd units"),
        ("lustre-active-active", 'snmp_version = "3"', 'snmp_version = "4"', "one of 1, 2c, 3"),
        ("lustre-active-active", 'snmp_version = "3"', 'snmp_version = "1"', "'community' is missing"),
    ],
)
def test_what_contradicts_itself_is_refused(example: str, old: str, new: str, said: str, tmp_path: Path) -> None:
    text = EXAMPLES[example].read_text()
    assert old in text
    path = tmp_path / "cluster.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(BadInputError, match=said):
        read_description(path)
