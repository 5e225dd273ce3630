"""Rules about resources that depend on storage or on a network."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import combinations

from strakes.failover.cib import Cib
from strakes.failover.cluster import is_address
from strakes.failover.facts import Certain, Doubtful, graded, score, shared
from strakes.failover.known_options import options_of
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.resource_facts import ADDRESSES, needs_one_node
from strakes.failover.rules_possessions import (
    Possessions,
    commands_run,
    enabled_units,
    needs_of,
    possessions_of,
    provided_by,
    users,
)
from strakes.failover.setup import Setup

_UNITS = ("systemd", "service", "lsb", "upstart")
_PROVIDERS = re.compile("iscsi|multipath|lvm|vdo|rpc|zfs|drbd|dlm|o2cb|autofs|network|nfs-c|gluster|open-?afs|md|crypt")
_SERVERS = ("nfsserver", "apache", "nginx", "mysql", "mariadb", "pgsql", "oracle", "db2", "tomcat", "named", "postfix")
# Parameters that name an IP address which another resource must bring up.
_HELD = ("master_ip", "replication_ip", "public_ip", "listen_ip", "bind_ip", "nfs_ip", "source_host", "ipaddress")
_NAMED = re.compile(r"/dev/(md|mapper/|(?!disk/|drbd)[\w.-]+/)|[\w.-]+/")
# Parameters that name a data directory.
_DATA = ("datadir", "pgdata", "named_rootdir", "catalina_base", "nfs_shared_infodir")


def started_before_what_it_uses(setup: Setup) -> Iterator[str]:
    """Find services that start before a resource that they need."""
    cib = setup.pacemaker
    advised = {(one.first, one.then) for one in cib.orders if not one.mandatory}
    for user, base in needs_of(cib):
        pairs = {(a, b) for a in (base.id, base.group, base.clone) for b in (user.id, user.group, user.clone)}
        if not cib.ties.starts_after(user, base):
            yield graded(not advised & pairs, f"cib: {user.id} does not wait for {base.id}")
    for members in cib.groups.values():
        for earlier, later in combinations(members, 2):
            server = earlier.agent in _SERVERS or (earlier.standard in _UNITS and not _PROVIDERS.search(earlier.agent))
            first = not any(one.is_mount for one in members[: members.index(earlier)])
            if server and later.is_mount and first:
                yield Doubtful(f"cib: {earlier.id} starts before {later.id} is mounted")


def used_disk_is_not_provided(setup: Setup) -> Iterator[str]:
    """Find services whose disk no resource provides, although resources provide disks of other services."""
    cib, pairs = setup.pacemaker, list(users(setup.pacemaker))
    used, based = {base.id for _, base in pairs}, {user.id for user, _ in pairs}
    for members in cib.groups.values():
        for giver, one in combinations(members, 2):
            idle = giver.id not in used and not giver.is_mount and provided_by(giver)
            disk = one.values.get("encrypted_dev") or (one.device if one.uses_disk else "")
            if idle and _NAMED.match(disk) and one.id not in based:
                yield f"cib: {giver.id} provides {provided_by(giver)[0].rstrip('/')}, and {one.id} uses {disk}"
    others = [given for one in cib.services if not one.is_mount for given in provided_by(one)]
    array, pool = any(given.startswith("/dev/md") for given in others), any(given[0] != "/" for given in others)
    for one in cib.services:
        dataset = one.is_lustre and "/" in one.device and not one.device.startswith("/")
        alike = (array and one.device.startswith("/dev/md")) or (pool and dataset)
        if one.uses_disk and one.id not in based and alike:
            yield f"cib: {one.id} uses {one.device}, which no resource provides"


def _sole(one: Primitive) -> Iterator[tuple[str, str]]:
    known = options_of(f"{one.provider}:{one.agent}")
    names = [name for name, option in known.items() if option.unique] if known else ["iqn", "dataset"]
    if (needs_one_node(one) or one.agent == "iSCSILogicalUnit") and "subvol" not in one.values.get("options", ""):
        yield "device", one.device
    if one.is_mount:
        yield "directory", one.mount_point
    if one.standard in _UNITS:
        yield "unit", one.agent.removesuffix(".service")
    if one.agent in ("ZFS", "zpool"):
        yield "pool", one.values.get("pool", "")
    if one.agent in ("LVM", "LVM-activate") and one.values.get("vg_access_mode") not in ("lvmlockd", "clvmd"):
        yield from (("volume group", path.removeprefix("/dev/")) for path in provided_by(one))
    if one.agent not in (*ADDRESSES, "ZFS"):
        yield from ((f"{one.agent} {name}", one.values.get(name, "").strip()) for name in names)


def never_together(cib: Cib, *resources: str) -> bool:
    """Return whether constraints keep two resources on different nodes."""
    parts = [one for one in cib.primitives if one.id in resources]
    names = [{one.id, one.group, one.clone} - {""} for one in parts]
    if cib.nodes and set(cib.nodes) == {node for one in parts for node in cib.banned.get(one.id, ())}:
        return True
    for tie in cib.colocations:
        ends = [name for name, _ in tie.resources]
        if tie.score == -math.inf and all(any(end in own for end in ends) for own in names):
            return True
    # Values of node attributes are unknown. Assume that no node satisfies two rules that require different values.
    sites = list[set[tuple[str, ...]]]()
    for own in names:
        places = [one for one in cib.root.iter("rsc_location") if one.get("rsc") in own]
        rules = [rule for one in places for rule in one.iter("rule") if score(rule.get("score", "")) == -math.inf]
        tests = [rule[0].attrib for rule in rules if len(rule) == 1 and rule[0].get("attribute") != "#uname"]
        sites.append({tuple(test.get(key, "") for key in ("attribute", "operation", "value")) for test in tests})
    return any(one[:2] == other[:2] and one[2] != other[2] for one in sites[0] for other in sites[-1])


def unique_value_used_twice(setup: Setup) -> Iterator[str]:
    """Find two resources with the same value of a parameter that must be unique, such as a mount point."""
    rows = [(key, one.id) for one in setup.services for key in _sole(one) if key[1]]
    group = {one.id: one.group or one.id for one in setup.services}
    for (kind, value), first, other in shared(rows):
        shared_by_nodes = kind in ("device", "pool", "volume group") or kind.startswith("iSCSI")
        apart = never_together(setup.pacemaker, first, other)
        if shared_by_nodes or not apart:
            sure = (shared_by_nodes or kind.endswith(" ip")) and group[first] != group[other] and not apart
            yield graded(sure, f"cib: {first} and {other} have the {kind} {value}")


def path_outside_its_mount(setup: Setup) -> Iterator[str]:
    """Find directories that are exported or hold data, but are not on a file system that the cluster mounts."""
    cib = setup.pacemaker
    beginnings = tuple(given for one in cib.services if one.is_mount for given in provided_by(one))
    pools = any("zfs" in one.agent.lower() for one in cib.services)  # The mount points of ZFS datasets are unknown.
    for one in cib.services if beginnings and not pools else ():
        grouped = one.group and any(mate.is_mount for mate in cib.groups[one.group])
        for name in ("directory",) if one.agent == "exportfs" else _DATA:
            place = f"{one.values.get(name, '')}/"
            certain = grouped or name in ("directory", "nfs_shared_infodir")
            # The root of an NFSv4 tree (fsid=0) may be a local directory above the mounts.
            if one.values.get("fsid") in ("0", "root") and any(given.startswith(place) for given in beginnings):
                continue
            if certain and place.startswith("/") and len(place) > 1 and not place.startswith(beginnings):
                yield f"cib: {one.id} has {name}={place[:-1]}, which is not on a mount of the cluster"


def export_wrong(setup: Setup) -> Iterator[str]:
    """Find NFS exports that repeat an fsid or client, have an unknown option, or contain the state directory of NFS."""
    exports = [one for one in setup.services if one.agent == "exportfs"]
    place = {one.id: one.values.get("directory", "").rstrip("/") for one in exports}
    clients = [(f"{place[one.id]} to {one.values.get('clientspec', '')}", one.id) for one in exports]
    for number, first, other in shared((one.values.get("fsid", ""), one.id) for one in exports):
        if number and place[first] != place[other] and not never_together(setup.pacemaker, first, other):
            yield graded(number not in ("0", "root"), f"cib: {place[first]} and {place[other]} have fsid={number}")
    yield from (Doubtful(f"cib: {first} and {other} both export {what}") for what, first, other in shared(clients))
    words = [(one.id, word) for one in exports for word in re.split(r"[,\s]+", one.values.get("options", ""))]
    strange = [pair for pair in words if pair[1].partition("=")[0] not in {"", *options_of("exports")}]
    yield from (Doubtful(f"cib: {name} has the option {word}") for name, word in strange)
    roots = tuple(f"{place[one.id]}/" for one in exports if one.values.get("fsid") not in ("0", "root"))
    for one in setup.services:
        state = one.values.get("nfs_shared_infodir", "").rstrip("/")
        if state and f"{state}/".startswith(roots):
            yield Doubtful(f"cib: {one.id} keeps its state in {state}, which is exported")


def _held(one: Primitive) -> Iterator[tuple[str, str]]:
    names = (*_HELD, "ip") if one.agent == "portblock" else _HELD
    yield from ((name, word) for name in names for word in re.split(r"[,\s]+", one.values.get(name, "")))
    for word in one.values.get("portals", "").split():
        yield "portals", re.sub(r":\d+$", "", word).strip("[]")


def address_that_no_resource_has(setup: Setup) -> Iterator[str]:
    """Find IP addresses that a parameter names but no IPaddr2 resource brings up."""
    movers = [one.values for one in setup.services if one.agent not in ("portblock", "remote")]
    keys = ("ip", "address", "alias_ip", "secondary_private_ip")
    known = {values[key] for values in movers for key in keys if values.get(key)}
    for one in (one for one in setup.services if known or one.values.get("master_ip")):
        held = _held(one) if options_of(f"{one.provider}:{one.agent}") and one.agent not in ADDRESSES else ()
        for name, address in held:
            anywhere = address in ("0.0.0.0", "::", "[::]")
            if is_address(address) and not anywhere and address not in known:
                yield f"cib: {one.id} has {name}={address}, which no IPaddr2 resource has"
        if one.agent == "nfsnotify" and not one.values.get("source_host"):
            yield f"cib: {one.id} has no source_host: clients are notified from an address of the node"


def port_stays_blocked(setup: Setup) -> Iterator[str]:
    """Find portblock resources that never unblock, unblock too early, or have a wrong port."""
    ports = [one for one in setup.services if one.agent == "portblock"]
    places = {one.id: tuple(one.values.get(key, "") for key in ("ip", "portno", "protocol")) for one in ports}
    opened = {places[one.id] for one in ports if one.values.get("action") == "unblock"}
    blocked = [one.id for one in ports if one.values.get("action") == "block" and places[one.id] not in opened]
    for name in blocked:
        sure = all(place[0] != places[name][0] for place in opened)
        yield graded(sure, f"cib: {name} blocks {' '.join(places[name])}, and nothing unblocks it")
    for earlier, later in (pair for one in setup.pacemaker.groups.values() for pair in combinations(one, 2)):
        if earlier.values.get("action") == "unblock" and later.agent not in ("portblock", "MailTo", "nfsnotify"):
            yield Doubtful(f"cib: {earlier.id} unblocks before {later.id} has started")
    words = [word.rpartition(":") for one in setup.services for word in " ".join(one.values.values()).split()]
    for one in ports:
        own = sorted({port for host, _, port in words if port.isdecimal() and host.strip("[]") == places[one.id][0]})
        if own and not {*own} & {*one.values.get("portno", "").split(",")}:
            yield Doubtful(f"cib: {one.id} blocks port {one.values.get('portno')}, services use {', '.join(own)}")


def lun_without_target(setup: Setup) -> Iterator[str]:
    """Find iSCSI logical units that repeat a LUN, have no target, or whose implementation differs from the target's."""
    targets = {one.values.get("iqn", ""): one for one in setup.services if one.agent == "iSCSITarget"}
    units = [(one, one.values.get("target_iqn", "")) for one in setup.services if one.agent == "iSCSILogicalUnit"]
    numbers = [(f"{one.values['lun']} of {iqn}", one.id) for one, iqn in units if one.values.get("lun")]
    yield from (f"cib: {other} and {first} are both lun {number}" for number, first, other in shared(numbers))
    for one, iqn in units:
        if targets and iqn and iqn not in targets:
            yield f"cib: {one.id} has target_iqn={iqn}"
        kinds = {part.values.get("implementation", "") for part in (one, targets.get(iqn, one))} - {""}
        if len(kinds) > 1:
            yield Doubtful(f"cib: {one.id} and its target have the implementations {' and '.join(sorted(kinds))}")


def mounted_beside_pacemaker(setup: Setup) -> Iterator[str]:
    """Find devices of the cluster that fstab, a mount unit or crypttab mounts or opens without Pacemaker."""
    owned, enabled = possessions_of(setup), enabled_units(setup)
    for line in (line.partition("#")[0].split() for line in setup.texts.get("etc/fstab", "").splitlines()):
        if len(line) > 2 and _mounts_at_boot(line, owned):
            sure = line[2] not in ("gfs2", "ocfs2") and (line[2] == "lustre" or owned.takes(line[0], ""))
            yield graded(sure, f"fstab: {line[0]} on {line[1]}")
    for name, text in setup.units.items():
        given = dict(re.findall(r"(?m)^[ \t]*(What|Where)\s*=\s*(\S+)", text))
        starts = bool(given) and (name in enabled or "WantedBy" in text)
        if starts and owned.takes(given.get("What", ""), given.get("Where", "")):
            yield f"systemd: {name} takes {given.get('What', '')} on {given.get('Where', '')}"
    for words in (line.partition("#")[0].split() for line in setup.texts.get("etc/crypttab", "").splitlines()):
        if len(words) > 1 and owned.takes(words[1], "") and "noauto" not in " ".join(words):
            yield f"crypttab: {words[0]} opens {words[1]}"


def _mounts_at_boot(line: list[str], owned: Possessions) -> bool:
    source, place, kind, options = (*line, "", "")[:4]
    if "noauto" in options.split(",") and "x-systemd.automount" not in options:
        return False
    remote = kind in ("nfs", "nfs4", "cifs", "ceph", "lustre") and ":/" in source
    return (kind == "lustre" and not remote) or owned.takes("" if remote else source, place)


def pool_used_outside_the_cluster(setup: Setup) -> Iterator[str]:
    """Find NFS exports and pool imports of the cluster's storage that Pacemaker does not control."""
    owned = possessions_of(setup)
    agents = {one.agent for one in setup.services}
    # If the cluster has no exportfs resources, its NFS server exports the directories in /etc/exports.
    own = "exportfs" in agents or not agents & {"nfsserver", "nfs-server", "nfs-kernel-server"}
    for file in (name for name in setup.texts if own and name.startswith("etc/exports")):
        for line in setup.bare(file).splitlines():
            if line.split() and owned.takes("", line.split()[0]):
                yield f"{file.removeprefix('etc/')}: {line.split()[0]}"
    imported = re.split(r"[\s:]+", setup.settings_of("etc/default/zfs").get("ZFS_POOL_IMPORT", ""))
    yield from (Certain(f"default/zfs: ZFS_POOL_IMPORT={pool}") for pool in sorted(owned.pools & set(imported)))


def command_against_the_cluster(setup: Setup) -> Iterator[str]:
    """Find commands that change cluster resources, but that a node runs automatically (at boot, by cron or udev)."""
    owned = possessions_of(setup)
    for command in commands_run(setup):
        if not command.file.startswith("lustre/") and owned.is_touched_by(command.words):
            boot = command.file.endswith(("rc.local", "boot.local", "after.local"))
            grade = Certain if boot and command.words[0] in ("mount", "zpool") else str
            yield grade(f"{command.file.removeprefix('etc/')}: {' '.join(command.words)[:90]}")
