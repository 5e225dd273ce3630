"""Rules about Lustre and the description of a cluster, the facts of targets, and lists of LNet networks."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from strakes.failover.facts import Thing, facts
from strakes.failover.plan import plan_files
from strakes.failover.resource_facts import ADDRESSES
from strakes.failover.rules_fencing_devices import address_of, is_bmc, is_outlet, plug_of
from strakes.failover.rules_heartbeat import hosts_of, links_of, name_of, nodes_of
from strakes.failover.setup import Setup, setup_of

# Parameters that a description determines, by agent: the one that identifies the service, then the others.
_SERVICES = {
    "mount": ("directory", "fstype"),
    "address": ("ip", "cidr_netmask"),
    "exportfs": ("directory", "clientspec"),
    "ZFS": ("pool",),
}


def client_knows_one_mgs(setup: Setup) -> Iterator[str]:
    """Find clients that mount from only one server, from servers other than the MGS's, or another file system."""
    servers = mgs_servers(setup)
    names = {name for words in made_targets(setup) for name in option_values(words, "fsname")}
    for line in setup.bare("lustre/mount-clients.sh").splitlines():
        match = re.search(r"^\s*mount\s.*?(\S+@\S+):/([^\s/]+)\S*\s+(\S+)", line)
        if not match:
            if re.match(r"\s*mount\b", line):
                yield f"mount-clients.sh: {line.strip()} is not mount -t lustre NID:NID:/FSNAME DIRECTORY"
            continue
        nodes = set(match[1].split(":"))
        strange = sorted({nid for node in nodes for nid in node.split(",")} - servers) if servers else []
        if len(nodes) < 2 or strange or (names and match[2] not in names) or "lustre" not in line.split():
            yield f"mount-clients.sh: {match[1]}:/{match[2]} does not name both servers of the MGS and the file system"


def index_given_twice(setup: Setup) -> Iterator[str]:
    """Find targets without an index or with the index of another target, several MGS, and several file systems."""
    seen: dict[tuple[str, ...], str] = {}
    for words in made_targets(setup):
        kind = next((word for word in ("--mdt", "--ost") if word in words), "")
        given = option_values(words, "index")
        if kind and (not given or not re.fullmatch(r"\d{1,5}|0x[0-9a-fA-F]{1,4}", given[0])):
            yield f"make-targets.sh: {words[-1]} has no --index, or a wrong one"
        keys = [(kind, index) for index in given if kind] + [("--mgs", "") for word in words if word == "--mgs"]
        for key in keys:
            other = seen.setdefault(key, words[-1])
            if other != words[-1]:
                yield f"make-targets.sh: {other} and {words[-1]} are both {'='.join(key).rstrip('=')}"
    names = {name for words in made_targets(setup) for name in option_values(words, "fsname")}
    if len(names) > 1 or any(not re.fullmatch(r"\w[\w-]{0,7}", name) for name in names):
        yield f"make-targets.sh: --fsname is {', '.join(sorted(names))}"


def lustre_network_not_configured(setup: Setup) -> Iterator[str]:
    """Find lists of networks that LNet refuses, and NIDs of networks that the node does not have."""
    for text in re.findall(r"\bnetworks=(\"[^\"]*\"|\S+)", setup.lnet):
        yield from (f"modprobe.d: networks={text}: {wrong}" for wrong in complaints(text.strip('"')))
    known = {
        one.name
        for text in re.findall(r"\bnetworks=(\"[^\"]*\"|\S+)", setup.lnet)
        for one in read_networks(text.strip('"'))
    }
    routed = "routes=" in setup.lnet
    for words in made_targets(setup):
        named = {numbered(nid.partition("@")[2]) for nid in nids(words, "servicenode") if "@" in nid}
        if known and named - known and not routed:
            yield f"make-targets.sh: {words[-1]} is on {', '.join(sorted(named - known))}, LNet is not"


def _spoken(setup: Setup) -> Iterator[tuple[str, str, str]]:
    """Yield the roles in the files as kind, subject and value, for a comparison with a plan."""
    known = hosts_of(setup)
    if setup.corosync:
        yield "cluster", "cluster_name", setup.corosync.one("totem").get("cluster_name")
    for node in nodes_of(setup):
        yield from (("link", name_of(node), known.get(address, address)) for address in links_of(node).values())
    yield from _spoken_of_power(setup)
    for resource in setup.drbd:
        yield "DRBD version of", resource.name, "9" if resource.dialect9 else "8.4"
        for host in resource.hosts:
            side = f"{resource.name} on {host.name}"
            yield from (("copy", side, address.rpartition(":")[0]) for address in host.addresses)
            yield from (("disk", side, disk) for _, disk, _ in host.volumes.values())
    for words in made_targets(setup):
        yield "role", words[-1], "+".join(word[2:] for word in words if word in ("--mgs", "--mdt", "--ost"))
        for option in ("fsname", "index", "servicenode", "mgsnode", "backfstype"):
            yield f"--{option}", words[-1], ":".join(option_values(words, option))
    for one in setup.services:
        values, kind = one.values, "mount" if one.is_mount else "address" if one.agent in ADDRESSES else one.agent
        if kind in _SERVICES:
            subject, *rest = (values.get(name, "") for name in _SERVICES[kind])
            if one.is_mount:
                # Any number of a replicated device is correct.
                copies = [copy.name for copy in setup.drbd if one.device in copy.devices]
                subject, rest = one.mount_point, [*(copies or [one.device]), values.get("fstype") or "lustre"]
            yield kind, subject, " ".join(rest)


def _spoken_of_power(setup: Setup) -> Iterator[tuple[str, str, str]]:
    for device in setup.devices:
        user = next((device.values[key] for key in ("username", "login") if device.values.get(key)), "")
        for target in setup.pacemaker.fences(device) if is_bmc(device) or is_outlet(device) else ():
            plug = plug_of(device, target) if is_outlet(device) else device.values.get("ipport", "623")
            yield "power", target, f"{address_of(device)} {plug}"
            yield from [("login", target, user)] if user else ()


def differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find differences between the files and a plan of the description."""
    cluster = setup.described
    files = {file.path: file.text for file in plan_files(cluster)}
    planned, given = (_by_subject(one) for one in (setup_of("", Path(), files, cluster), setup))
    for (kind, subject), values in planned.items():
        kinds = {other for other, _ in given}
        there = given.get((kind, subject), set())
        # A plan may have several replication paths; each path in the files has to be one of them.
        differs = bool(there - values) if kind == "copy" else there != values
        if kind in kinds and differs and (there or kind not in ("link", "exportfs")):
            texts = [", ".join(sorted(each)) or "missing" for each in (there, values)]
            yield f"{kind} {subject} is {texts[0]}, cluster.toml says {texts[1]}"
    names = {node.name for node in cluster.nodes}
    if setup.node_names and set(setup.node_names) != names:
        yield f"the nodes are {', '.join(sorted(setup.node_names))}, cluster.toml has {', '.join(sorted(names))}"


def _by_subject(setup: Setup) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for kind, subject, value in _spoken(setup):
        found.setdefault((kind, subject), set()).add(value)
    return found


# Network drivers of LNet, including old ones.
_DRIVERS = ("tcp", "o2ib", "gni", "kfi", "efa", "ptlf", "bxi", "ra", "mx", "vib", "iib", "elan", "sock")
_LARGEST = 65535
_NETWORK = re.compile(r"\s*([^\s(),\[\]]+)\s*(\[[^\]]*\])?\s*(?:\(([^()]*)\))?\s*(\[[^\]]*\])?\s*")


@dataclass(frozen=True)
class LnetNetwork:
    """One network: ``name`` with its number (tcp is tcp0), and its network cards without aliases."""

    name: str
    cards: tuple[str, ...]


def numbered(name: str) -> str:
    """Return the name of an LNet network with its number: "tcp" is "tcp0".

    >>> numbered("o2ib"), numbered("tcp1")
    ('o2ib0', 'tcp1')
    """
    return name if name[-1:].isdecimal() else f"{name}0"


def read_networks(text: str) -> tuple[LnetNetwork, ...]:
    """Return the networks of a list, without entries that are not networks.

    >>> read_networks("o2ib(ib0,ib1),tcp1(eth0:1)")
    (LnetNetwork(name='o2ib0', cards=('ib0', 'ib1')), LnetNetwork(name='tcp1', cards=('eth0',)))
    """
    found = []
    for part in _parts(text):
        if match := _NETWORK.fullmatch(part):
            cards = re.sub(r"\[[^\]]*\]", "", match[3] or "").split(",")
            names = tuple(card.strip().partition(":")[0] for card in cards if card.strip())
            found.append(LnetNetwork(numbered(match[1]), names))
    return tuple(found)


def complaints(text: str) -> Iterator[str]:
    """Yield the errors in a list of networks."""
    if text.count("(") != text.count(")") or re.search(r"\([^)]*\(", text):
        yield "its parentheses do not match"
        return
    yield from filter(None, map(_complaint, _parts(text)))
    networks = read_networks(text)
    for name, times in Counter(network.name for network in networks).items():
        if times > 1:
            yield f"{name} is in it {times} times; write all cards of one network in one pair of parentheses"
    for network in networks:
        for card, times in Counter(network.cards).items():
            if times > 1:
                yield f"{network.name} has the card {card} {times} times"


def _complaint(part: str) -> str:
    """Return the error in one network, or an empty text."""
    match = _NETWORK.fullmatch(part)
    if not match:
        return f"{part.strip()!r} is not a network" if part.strip() else "it has a comma too many"
    name, cards = match[1], match[3]
    driver = name.rstrip("0123456789")
    number = name.removeprefix(driver)
    if driver not in _DRIVERS:
        return f"{name} is not a type of network"
    if number and int(number) > _LARGEST:
        return f"{name} has a number above {_LARGEST}"
    return f"{name} has no card" if cards is not None and not cards.strip() else ""


def _parts(text: str) -> list[str]:
    """Split the list at commas outside parentheses and brackets."""
    return re.split(r",(?![^(]*\))(?![^\[]*\])", text)


def made_targets(setup: Setup) -> Iterator[list[str]]:
    """Yield the words of each mkfs.lustre and tunefs.lustre command."""
    for line in re.sub(r"\\\n", " ", setup.lustre).splitlines():
        if line.strip().startswith(("mkfs.lustre", "tunefs.lustre")):
            yield shlex.split(line.strip())


def option_values(words: list[str], option: str) -> list[str]:
    """Return the values of an option; colons separate the nodes."""
    given = [word.partition("=")[2] for word in words if word.startswith(f"--{option}=")]
    return [part for value in given for part in value.split(":") if part]


def nids(words: list[str], *options: str) -> set[str]:
    """Return the NIDs in options; commas separate the NIDs of one node."""
    return {nid for option in options for node in option_values(words, option) for nid in node.split(",")}


def mgs_servers(setup: Setup) -> set[str]:
    """Return the NIDs of the MGS servers; empty if the script does not make the MGS."""
    managers = [words for words in made_targets(setup) if "--mgs" in words]
    return {nid for words in managers for nid in nids(words, "servicenode", "failnode")}


def targets(setup: Setup) -> Iterator[Thing]:
    """Yield the targets that the script makes."""
    servers, made = mgs_servers(setup), list(made_targets(setup))
    backing = {disk for one in setup.drbd for disk in one.disks}
    devices = {device for one in setup.drbd for device in one.devices}
    named = [words[-1] for words in made if words[0] == "mkfs.lustre"]
    for words in made:
        device, both = words[-1], set(option_values(words, "servicenode"))
        known = set(option_values(words, "mgsnode"))
        unmanaged = device.startswith("/dev/drbd") and devices and device not in devices
        deduced = {
            "options": words[1:-1],
            "number of servers": str(len(both)),
            "failnode": option_values(words, "failnode"),
            "servicenode": sorted(both),
            "number of nodes of the MGS": "" if "--mgs" in words else str(len(known)),
            "strange nodes of the MGS": sorted(nids(words, "mgsnode") - servers) if servers else (),
            "is a dataset": "yes" if not device.startswith("/") and words[0] == "mkfs.lustre" else "",
            "has a backend": option_values(words, "backfstype"),
            "is on the wrong disk": "yes" if device in backing or unmanaged else "",
            "times made": str(named.count(device)),
        }
        yield Thing(f"make-targets.sh: {device}", facts(deduced))
