"""Rules about names and paths that two resources have to agree on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from strakes.failover.rules.fencing_devices import address_of, is_bmc
from strakes.failover.rules.heartbeat import hosts_of
from strakes.failover.rules.layers import volume_groups
from strakes.failover.rules.rule import LUSTRE_MANUAL, OWN, rule
from strakes.failover.setup import Setup

# An agent, its parameter, and the agents beside it that have the same thing under that name.
_COMPANIONS = (
    ("oralsnr", "sid", ("oracle",)),
    ("SAPHanaTopology", "SID", ("SAPHana", "SAPHanaController")),
    ("SAPHanaTopology", "InstanceNumber", ("SAPHana", "SAPHanaController")),
    ("SAPHanaFilesystem", "SID", ("SAPHana", "SAPHanaController")),
)
# Two paths that are meant to be one are at least so similar, and differ in letters.
_SIMILAR = 0.85


@rule("pacemaker").error(
    reason="These two resources belong to one instance, but name two: one of them manages an instance that does not "
    "exist.",
    remedy="Use the same name and number in both.",
    source=OWN,
)
def paired_resources_name_different_instances(setup: Setup) -> Iterator[str]:
    """Find resources that go with others and name another instance."""
    services = setup.pacemaker.services
    for agent, name, leaders in _COMPANIONS:
        known = {one.values.get(name, "") for one in services if one.agent in leaders}
        for one in services:
            if known and one.agent == agent and one.values.get(name, "") not in known:
                yield f"cib: {one.id} has {name}={one.values.get(name, '')}, not {' or '.join(sorted(known))}"


@rule("pacemaker").error(
    reason="The path resembles a mounted directory but is a different one, on the node's own disk: it does not move "
    "with the service.",
    remedy="Use the path below the mount point.",
    source=OWN,
)
def path_resembles_a_mount(setup: Setup) -> Iterator[str]:
    """Find paths in parameters that resemble a mount point, and are neither one nor below one."""
    services = setup.pacemaker.services
    mounts = {one.mount_point for one in services if one.mount_point.count("/") > 1}
    for one in services:
        for name, value in one.values.items() if not one.is_mount else ():
            if not value.startswith("/") or value.startswith(("/dev/", "/usr/", "/bin/", "/sbin/", "/opt/", "/run/")):
                continue
            for mount in sorted(mounts):
                begin = "/".join(value.split("/")[: mount.count("/") + 1])
                if begin not in mounts and begin != mount and _meant_the_same(begin, mount, mounts):
                    yield f"cib: {one.id} has {name}={value}, and {mount} is mounted"


def _meant_the_same(one: str, other: str, mounts: set[str]) -> bool:
    """Tell whether two paths differ by a slip; numbers make several names of one."""
    bare = re.sub(r"\d", "", other)
    if sum(re.sub(r"\d", "", mount) == bare for mount in mounts) > 1:
        return False
    return SequenceMatcher(None, one, other).ratio() >= _SIMILAR


@rule("pacemaker", "drbd").error(
    reason="The volume group lies on the replicated device, and is activated after the promotion; so the disk below "
    "that device cannot be a volume of the same group.",
    remedy="Set disk, in drbd.d, to a volume of another group than the one that Pacemaker activates on the device.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-lvm.adoc",
)
def drbd_disk_in_the_group_on_top_of_it(setup: Setup) -> Iterator[str]:
    """Find disks of DRBD in a volume group that waits for the promotion of DRBD."""
    cib = setup.pacemaker
    clones = {one.values.get("drbd_resource", ""): one.clone for one in cib.primitives if one.is_drbd}
    for resource in setup.drbd:
        disks = {volume[1] for host in resource.hosts for volume in host.volumes.values()}
        for activation, group, _ in volume_groups(cib):
            below = sorted(disk for disk in disks if group and disk.startswith(f"/dev/{group}/"))
            clone = clones.get(resource.name, "")
            if below and clone and cib.ties.ordered_after_promotion(activation, clone) is not None:
                yield f"cib: {activation.id} activates {group} on {resource.name}, whose disk is {below[0]}"


@rule("pacemaker").error(
    reason="Other targets of this kind are mounted with fstype=lustre. The disk of a target that is mounted as ext4 is "
    "not served, and may be damaged.",
    remedy="fstype=lustre for every target.",
    source=LUSTRE_MANUAL,
)
def target_mounted_with_another_type(setup: Setup) -> Iterator[str]:
    """Find mounts that are named as targets of Lustre are, and are mounted as something else."""
    targets: dict[str, str] = {}
    mounts = [one for one in setup.pacemaker.services if one.agent == "Filesystem" and one.mount_point]
    for one in mounts:
        if one.values.get("fstype") == "lustre":
            targets.setdefault(_without_numbers(one.mount_point), one.id)
    for one in mounts:
        other = targets.get(_without_numbers(one.mount_point), "")
        if other and one.values.get("fstype") != "lustre":
            yield f"cib: {one.id} has fstype={one.values.get('fstype', '')}, {other} has lustre"


def _without_numbers(path: str) -> str:
    return re.sub(r"[0-9a-f]*\d[0-9a-f]*", "#", path.rstrip("/"))


_CONTROLLER = re.compile(r"(bmc|ipmi|ilom?|idrac|drac|xcc|imm|cimc|irmc|mgmt|oob|sp|lom)\d?")


@rule("pacemaker", "hosts").error(
    reason="According to /etc/hosts, this address is the BMC of another node: the wrong node is powered off, and the "
    "one that should be off keeps writing.",
    remedy="Ask each BMC whose it is (ipmitool -H ADDRESS ... fru print), and swap the addresses.",
    source=OWN,
)
def bmc_of_another_node(setup: Setup) -> Iterator[str]:
    """Find fencing devices with the address of another node's controller, by the names in /etc/hosts."""
    owners: dict[str, tuple[str, str]] = {}
    for name, address in hosts_of(setup).items():
        words = re.split(r"[-._]", name)
        for node in setup.node_names:
            own = re.split(r"[-._]", node.partition(".")[0])
            rest = [word for word in words if word not in own]
            if set(own) <= set(words) and rest and _CONTROLLER.fullmatch(rest[0]):
                owners[address] = owners[name] = (node, name)
    for device in setup.pacemaker.devices:
        node, name = owners.get(address_of(device), ("", ""))
        fenced = setup.pacemaker.fences(device)
        if node and is_bmc(device) and fenced and node not in fenced:
            yield f"cib: {device.id} is for {', '.join(sorted(fenced))}, its address is {name}"
