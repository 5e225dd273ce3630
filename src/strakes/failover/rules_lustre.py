"""Rules about Lustre, and about differences between the files and cluster.toml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from strakes.failover.crm_text import split_words
from strakes.failover.facts import Thing, facts, shared, yes
from strakes.failover.plan import plan_files
from strakes.failover.resource_facts import ADDRESSES
from strakes.failover.rules_fencing_devices import address_of, is_bmc, is_outlet, plug_of
from strakes.failover.setup import Setup, hosts_of, links_of, name_of, nodes_of, setup_of

# Kind of service -> parameters that cluster.toml also states. The first parameter identifies the service.
_SERVICES = {"address": ("ip", "cidr_netmask"), "exportfs": ("directory", "clientspec"), "ZFS": ("pool",)}


def made_targets(setup: Setup) -> Iterator[list[str]]:
    """Yield each mkfs.lustre or tunefs.lustre command in make-targets.sh, split into words."""
    for line in re.sub(r"\\\n", " ", setup.lustre).splitlines():
        if line.strip().startswith(("mkfs.lustre", "tunefs.lustre")):
            yield split_words(line, comments=False)


def option_values(words: list[str], option: str) -> list[str]:
    """Return the values of an option of mkfs.lustre. ``A:B`` counts as two values."""
    given = [word.partition("=")[2] for word in words if word.startswith(f"--{option}=")]
    return [part for value in given for part in value.split(":") if part]


def nids(words: list[str], *options: str) -> set[str]:
    """Return all NIDs in the values of the given options of mkfs.lustre."""
    return {nid for option in options for node in option_values(words, option) for nid in node.split(",")}


def _mgs_servers(setup: Setup) -> set[str]:
    return {nid for words in made_targets(setup) if "--mgs" in words for nid in nids(words, "servicenode", "failnode")}


def _file_systems(setup: Setup) -> set[str]:
    return {name for words in made_targets(setup) for name in option_values(words, "fsname")}


def client_knows_one_mgs(setup: Setup) -> Iterator[str]:
    """Find client mounts that do not name both servers of the MGS, or name a wrong file system."""
    servers, names = _mgs_servers(setup), _file_systems(setup)
    for line in setup.bare("lustre/mount-clients.sh").splitlines():
        match = re.search(r"^\s*mount\s(?:.*?\s)?([^\s@/]+@[^\s/]+):/([^\s/]++)\S*+\s+(\S+)", line)
        if match:
            nodes = set(match[1].split(":"))
            strange = servers and {nid for node in nodes for nid in node.split(",")} - servers
            if len(nodes) < 2 or strange or (names and match[2] not in names) or "lustre" not in line.split():
                wanted = "both servers of the MGS and the file system"
                yield f"mount-clients.sh: {match[1]}:/{match[2]} does not name {wanted}"
        elif re.match(r"\s*mount\b", line):
            yield f"mount-clients.sh: {line.strip()} is not mount -t lustre NID:NID:/FSNAME DIRECTORY"


def index_given_twice(setup: Setup) -> Iterator[str]:
    """Find wrong and repeated indexes of targets, a second MGS, and a second or invalid name of the file system."""
    rows = []
    for words in made_targets(setup):
        given = option_values(words, "index")
        kind = next((word for word in ("--mdt", "--ost") if word in words), "")
        if kind and (not given or not re.fullmatch(r"\d{1,5}|0x[0-9a-fA-F]{1,4}", given[0])):
            yield f"make-targets.sh: {words[-1]} has no --index, or a wrong one"
        rows += [(f"{kind}={index}", words[-1]) for index in given if kind]
        rows += [(word, words[-1]) for word in words if word == "--mgs"]
    for key, first, other in shared(rows):
        yield f"make-targets.sh: {first} and {other} are both {key}"
    names = _file_systems(setup)
    if len(names) > 1 or any(not re.fullmatch(r"\w[\w-]{0,7}", name) for name in names):
        yield f"make-targets.sh: --fsname is {', '.join(sorted(names))}"


def differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find configuration files that differ from cluster.toml."""
    cluster = setup.cluster
    assert cluster is not None
    files = {file.path: file.text for file in plan_files(cluster)}
    planned, given = (_by_subject(one) for one in (setup_of("", Path(), files, cluster), setup))
    kinds = {kind for kind, _ in given}
    for (kind, subject), values in planned.items():
        there = given.get((kind, subject), set())
        differs = bool(there - values) if kind == "copy" else there != values
        if kind in kinds and differs and (there or kind not in ("link", "exportfs")):
            texts = [", ".join(sorted(each)) or "missing" for each in (there, values)]
            yield f"{kind} {subject} is {texts[0]}, cluster.toml says {texts[1]}"


def _by_subject(setup: Setup) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for kind, subject, value in (*_roles_of_nodes(setup), *_roles_of_services(setup)):
        found.setdefault((kind, subject), set()).add(value)
    return found


def _roles_of_nodes(setup: Setup) -> Iterator[tuple[str, str, str]]:
    known = hosts_of(setup)
    if setup.corosync:
        yield "cluster", "cluster_name", setup.corosync.one("totem").get("cluster_name")
    for node in nodes_of(setup):
        yield from (("link", name_of(node), known.get(address, address)) for address in links_of(node).values())
    for device in setup.devices:
        user = device.values.get("username") or device.values.get("login", "")
        for target in setup.pacemaker.fences(device) if is_bmc(device) or is_outlet(device) else ():
            plug = plug_of(device, target) if is_outlet(device) else device.values.get("ipport", "623")
            yield "power", target, f"{address_of(device)} {plug}"
            yield from [("login", target, user)] if user else ()
    for resource in setup.drbd:
        yield "DRBD version of", resource.name, "9" if resource.dialect9 else "8.4"
        for host in resource.hosts:
            side = f"{resource.name} on {host.name}"
            yield from (("copy", side, address.rpartition(":")[0]) for address in host.addresses)
            yield from (("disk", side, disk) for _, disk, _ in host.volumes.values())


def _roles_of_services(setup: Setup) -> Iterator[tuple[str, str, str]]:
    for words in made_targets(setup):
        yield "role", words[-1], "+".join(word[2:] for word in words if word in ("--mgs", "--mdt", "--ost"))
        for option in ("fsname", "index", "servicenode", "mgsnode", "backfstype"):
            yield f"--{option}", words[-1], ":".join(option_values(words, option))
    for one in setup.services:
        kind = "mount" if one.is_mount else "address" if one.agent in ADDRESSES else one.agent
        if one.is_mount:
            # Compare names of DRBD resources, because minor numbers may differ from the plan.
            copies = [copy.name for copy in setup.drbd if one.device in copy.devices]
            yield kind, one.mount_point, " ".join([*(copies or [one.device]), one.values.get("fstype") or "lustre"])
        elif kind in _SERVICES:
            subject, *rest = (one.values.get(name, "") for name in _SERVICES[kind])
            yield kind, subject, " ".join(rest)


def targets(setup: Setup) -> Iterator[Thing]:
    """Yield each Lustre target in make-targets.sh."""
    servers, made = _mgs_servers(setup), list(made_targets(setup))
    backing = {disk for one in setup.drbd for disk in one.disks}
    devices = {device for one in setup.drbd for device in one.devices}
    named = [words[-1] for words in made if words[0] == "mkfs.lustre"]
    for words in made:
        device, both = words[-1], set(option_values(words, "servicenode"))
        unmanaged = device.startswith("/dev/drbd") and devices and device not in devices
        deduced = {
            "options": words[1:-1],
            "number of servers": str(len(both)),
            "failnode": option_values(words, "failnode"),
            "servicenode": sorted(both),
            "number of nodes of the MGS": "" if "--mgs" in words else str(len(set(option_values(words, "mgsnode")))),
            "strange nodes of the MGS": sorted(nids(words, "mgsnode") - servers) if servers else (),
            "is a dataset": yes(not device.startswith("/") and words[0] == "mkfs.lustre"),
            "has a backend": option_values(words, "backfstype"),
            "is on the wrong disk": yes(device in backing or unmanaged),
            "times made": str(named.count(device)),
        }
        yield Thing(f"make-targets.sh: {device}", facts(deduced))
