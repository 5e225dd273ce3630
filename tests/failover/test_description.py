from __future__ import annotations

from pathlib import Path

import pytest

from failover.clusters import EXAMPLES
from strakes.base.errors import BadInputError
from strakes.failover.description import read_description

_OF_A_PAIR = [
    ('survivor = "mds-a"', 'surviver = "mds-a"', "Did you mean survivor?"),
    ('survivor = "mds-a"', 'survivor = "mds-c"', "one of mds-a, mds-b"),
    ("password_script =", "password =", "'password_script' is missing"),
    ("10.2.0.2", "10.3.0.2", "10.3.0.2 is no host in 10.2.0.0/24, the subnet of cross"),
    ("10.1.0.2", "10.1.0.1", "the same address is given twice"),
    ('name = "mds-b"', 'name = "mds-a"', "2 to 16 nodes with different names"),
    ("replication = true", "replication = false", "exactly one network must carry the replication"),
    ("heartbeat = true", "heartbeat = false", "no network carries the heartbeat"),
    ('network = "management"', 'network = "managment"', "unknown network: 'managment'"),
    ('mds-b = "/dev/md/mdt0" }', 'mds-c = "/dev/md/mdt0" }', "a device below /dev for each of two of mds-a, mds-b"),
    ('prefers = "mds-a"', 'prefers = "nobody"', "one of mds-a, mds-b"),
    ('role = "mgs+mdt"', 'role = "mdt"', "must have exactly one MGS"),
    ('drbd = "8.4"', 'drbd = "7"', "one of 8.4, 9"),
    *(
        ('mount = "/mnt/mdt0"', f'mount = "{path}"', "a path such as /mnt/mdt0 or /srv/home")
        for path in ("mnt/x", "/x;rm", "-f", "/", "/lib64", "/var", "/var/lib/drbd", "/home", "/srv/../etc", "/mnt/.")
    ),
    ("clients = 2000", "clients = -1", "from 0"),
    ("clients = 2000", 'clients = "many"', "whole number"),
    ("clients = 2000", "clients = 2000\nrecovery_soft = 1.5", 'a time such as "3s"'),
    ("[cluster]", "[cluster", "not valid TOML"),
    ('power_feeds = ["feed-1", "feed-2"]', "power_feeds = []", "at least one power feed"),
    ('devices = { mds-a = "/dev/md/mdt0"', 'devices = { mds-a = "/dev/drbd0"', "the disks below DRBD"),
    ('mount = "/mnt/mdt0"', 'mount = "/mnt/mdt0"\nport = 5405', "a port that Corosync does not use"),
    ('lnet = "tcp"', 'lnet = "tcp; touch X"', "a network of LNet"),
    ('drbd = "8.4"', 'drbd = "8.4"\nquorum_host = "10.1.0.2"', "the quorum device is on one of the machines"),
    ('drbd = "8.4"', 'drbd = "8.4"\nquorum_host = "mds-b"', "the quorum device is on one of the machines"),
    ('watch = ["10.1.0.254"]', 'watch = ["router"]', "a list of addresses"),
    ('subnet = "10.2.0.0/24"', 'subnet = "10.2.0.0/240"', "not a subnet"),
    ('mail_to = "storage-admins@example.org"', 'mail_to = "a\\u0001b"', "without control characters"),
    ('mail_to = "storage-admins@example.org"', 'mail_to = "a@b\\nroot: x"', "without control characters"),
    ('mail_to = "storage-admins@example.org"', 'mail_to = "root; touch x"', "a mail address"),
    ('mail_to = "storage-admins@example.org"', 'mail_to = "-oX @x"', "a mail address"),
    *(
        ('webhook_url_file = "/etc/strakes/webhook-url"', f'webhook_url_file = "{path}"', "a path such as")
        for path in ("/etc/strakes/x;touch", "/etc/strakes/../shadow", "/etc/nologin", "/etc/strakes/alert-mail")
    ),
    *(('name = "mdt0"', f'name = "{name}"', "a name that drbd.conf") for name in ("all", "net", "resource")),
    ("clients = 2000", "clients = 99999999999", "to 2147483647"),
    *(('drbd = "8.4"', f'drbd = "8.4"\ntoken = "{time}"', "from 1 to 60 s") for time in ("0s", "700 s")),
    *(('mount = "/mnt/mdt0"', f'mount = "/mnt/mdt0"\n{key}', "to ") for key in ("minor = 1048576", "port = 65536")),
    *(("10.1.0.2", address, "is no host in 10.1.0.0/24") for address in ("10.1.0.0", "10.1.0.255")),
    ('drbd = "8.4"', 'drbd = "8.4"\nquorum_host = "q; touch x"', "a host name"),
    ('watch = ["10.1.0.254"]', 'watch = ["fe80::1%; touch x"]', "a list of addresses"),
    ('"feed-1"', '"feed\\u001b[2J"', "without control characters"),
]
_OF_OTHERS = [
    ("lustre-active-active", 'agent = "fence_apc_snmp"', 'agent = "../x"', "the name of a fence agent"),
    ("lustre-active-active", "index = 1", "index = 0", "the same index of a metadata target is given twice"),
    ("lustre-active-active", 'mds1 = "/dev/md/mdt1"', 'mds1 = "/dev/md/mdt0"', "the same device is given twice"),
    ("nfs", "192.168.10.10/24", "192.168.10.1/24", "the address of home is taken"),
    ("nfs", "192.168.10.10/24", "192.168.10.254/24", "belongs to another machine"),
    ("nfs", "[cluster]", '[cluster]\nquorum_host = "NFS1."', "on one of the machines"),
    ("nfs", "192.168.10.10/24", "172.16.0.10/24", "the address of home is not in a network"),
    *(("nfs", "192.168.10.10/24", f"192.168.10.10{bits}", "the prefix length of home") for bits in ("", "/0", "/8")),
    ("lustre-active-active", "/mnt/mdt0", "/mnt/mgs/mdt0", "the mount point of mdt0 is inside that of mgs"),
    ("lustre-active-active", 'outlet = "2"', 'outlet = "1"', "the same outlet is given twice"),
    ("lustre-active-active", 'outlet = "2"', 'outlet = "mds1:1"', "the outlet's number or name"),
    ("oss-pair-zfs", '"/dev/mapper/d06"', '"d05"', "the words of zpool create"),
    ("service", '["postgresql"]', '["postgresql; reboot"]', "names of services of systemd"),
    ("lustre-active-active", 'snmp_version = "3"', 'snmp_version = "4"', "one of 1, 2c, 3"),
    ("lustre-active-active", 'snmp_version = "3"', 'snmp_version = "1"', "'community' is missing"),
    ("oss-pair-zfs", "index = 1", "index = 0", "the same index of an OST is given twice"),
    ("oss-pair-zfs", '"/dev/mapper/d06"', '"/dev/mapper/d05"', "the same device is given twice"),
    ("oss-pair-zfs", 'pool = "ost1pool"', 'pool = "ost0pool"', "the same pool is given twice"),
    ("oss-pair-zfs", 'pool = "ost1pool"', 'pool = "mirror"', "a name of a ZFS pool"),
    ("oss-pair-zfs", 'pool = "ost1pool"', 'pool = "a"\ndevice = "/dev/sdb"', "unknown key 'pool'"),
    ("oss-pair-zfs", 'mgs = ["10.1.0.11@tcp"', 'mgs = ["10.1.0.11"', "a list of NIDs"),
    ("oss-pair-zfs", "mgs = [", "mgs = [] # [", "must have exactly one MGS"),
    ("oss-pair-san", 'device = "/dev/mapper/ost1"', 'device = "/dev/drbd1"', "the same name on both nodes"),
    ("oss-pair-san", 'device = "/dev/mapper/ost1"', 'device = "/dev/../etc/passwd"', "a device below /dev"),
    ("oss-pair-san", "heartbeat = true", "heartbeat = true\nreplication = true", "nothing is replicated"),
    ("oss-pair-san", 'interface = "ib0"', 'interface = "ib0; reboot"', "the name of a network card"),
    ("two-pairs", 'nodes = ["oss1", "oss2"]', 'nodes = ["oss1", "oss3"]', "the two nodes that reach the disks"),
    ("two-pairs", 'nodes = ["oss1", "oss2"]', 'nodes = ["mds1", "mds2"]', "one of mds1, mds2"),
    ("three-nodes", "quorum_only = true", "quorum_only = false", "a node has no target"),
    ("three-nodes", 'drbd = "9"', 'drbd = "9"\nsurvivor = "login1"', "the survivor must be a node with targets"),
]


@pytest.mark.parametrize(("example", "old", "new", "said"), [*(("tianhe2", *row) for row in _OF_A_PAIR), *_OF_OTHERS])
def test_an_error_in_a_description_is_named_with_its_file(
    example: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    text, path = EXAMPLES[example].read_text(), tmp_path / "cluster.toml"
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(BadInputError) as error:
        read_description(path)
    assert said in str(error.value) and str(path) in str(error.value)
