"""Rules about one thing that several places name: it must have one name, one mask and one card in all of them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

from strakes.failover.cib_values import is_true
from strakes.failover.known_options import slip
from strakes.failover.rules.heartbeat import is_address, links_of, name_of, network_of, nodes_of
from strakes.failover.rules.mounts import ADDRESSES
from strakes.failover.rules.rule import AGENTS, MULTIPATH, OWN, PACEMAKER, rule
from strakes.failover.setup import Setup

# Parameters that name something, by the kind of what they name.
_NAMED = {
    "vgname": "volume group",
    "volgrpname": "volume group",
    "pool": "pool",
    "drbd_resource": "resource of DRBD",
    "target_iqn": "iSCSI name",
    "iqn": "iSCSI name",
    "config": "file",
}
_HOSTS = ("pcmk_host_list", "pcmk_host_map", "hostlist", "node_list")
_NO_GROUP = ("mapper", "disk", "drbd", "md", "zvol", "shm", "block", "fd", "watchdog")
# Shorter names differ by one letter for many reasons.
_SHORTEST = 4
# Each name is held against so many at most.
_MOST = 300


@dataclass(frozen=True)
class Mention:
    """A name of something, where it stands, and what kind of thing it is."""

    kind: str
    name: str
    where: str


def mentions_of(setup: Setup) -> Iterator[Mention]:
    """Yield every name of a device, directory, group of volumes, pool or node in any of the files."""
    for node in nodes_of(setup):
        yield Mention("node", name_of(node), f"corosync.conf: nodeid {node.get('nodeid')}")
    for name in setup.cib.nodes if setup.cib else ():
        yield Mention("node", name, "cib: nodes")
    for primitive in setup.cib.primitives if setup.cib else ():
        for key, value in primitive.values.items():
            where = f"cib: {primitive.id} {key}"
            yield from _of_words(value, where)
            if key in _NAMED:
                yield Mention(_NAMED[key], value, where)
            for word in re.split(r"[\s,;]+", value) if key in _HOSTS else ():
                yield Mention("node", word.partition(":")[0], where)
    for element in setup.cib.root.iter("rsc_location") if setup.cib else ():
        yield Mention("node", element.get("node", ""), f"cib: {element.get('id')}")
    yield from _of_files(setup)


def _of_files(setup: Setup) -> Iterator[Mention]:
    for resource in setup.drbd:
        yield Mention("resource of DRBD", resource.name, f"drbd: {resource.name}")
        for host in resource.hosts:
            yield Mention("node", host.name, f"drbd: {resource.name}")
            for volume in host.volumes.values():
                yield from _of_words(" ".join(volume), f"drbd: {resource.name} on {host.name}")
    for file in ("etc/fstab", "etc/hosts", "lustre/make-targets.sh", "etc/exports", "etc/multipath.conf"):
        for number, line in enumerate(setup.texts.get(file, "").splitlines(), 1):
            where = f"{file.rpartition('/')[2]} line {number}"
            words = line.partition("#")[0]
            yield from _of_words(words, where)
            for word in words.split()[1:] if file == "etc/hosts" else ():
                yield Mention("node", word, where)
    for name, text in setup.units.items():
        yield from _of_words(text.replace("=", " "), f"systemd: {name}")
    yield from _of_words(setup.sbd.get("SBD_DEVICE", "").replace(";", " "), "sbd: SBD_DEVICE")
    for target in setup.cluster.targets if setup.cluster else ():
        described = " ".join((*target.vdevs, *(target.devices.values() if target.shared else ())))
        yield from _of_words(described, f"cluster.toml: {target.name}")


def _of_words(text: str, where: str) -> Iterator[Mention]:
    for word in re.split(r"[\s,;\"'=]+", text):
        if word.startswith("/dev/"):
            yield Mention("device", word, where)
            parts = word.split("/")
            if len(parts) == 4 and parts[2] not in _NO_GROUP:
                yield Mention("volume group", parts[2], where)
        elif word.startswith("/") and len(word) > 1:
            yield Mention("directory", word.rstrip("/"), where)
        elif re.fullmatch(r"iqn\.\d{4}-\d\d\.\S+", word):
            yield Mention("iSCSI name", word, where)


@rule().warning(
    reason="The name occurs once, and differs by one letter from a name used elsewhere: probably one of the two is a "
    "typing error, and refers to nothing.",
    remedy="Use one name everywhere; choose names that differ by more than one letter.",
    source=OWN,
)
def named_almost_like_another(setup: Setup) -> Iterator[str]:
    """Find names that stand in one place and differ by a letter from one that stands in several."""
    places: dict[str, dict[str, set[str]]] = {}
    for mention in mentions_of(setup):
        if len(mention.name) >= _SHORTEST:
            places.setdefault(mention.kind, {}).setdefault(mention.name, set()).add(mention.where)
    for kind, names in places.items():
        common = [name for name, where in names.items() if len(where) > 1][:_MOST]
        for name, where in names.items():
            other = slip(name, common) if len(where) == 1 else ""
            if other and _differ_in_a_word(name, other):
                yield f"{next(iter(where))}: {kind} {name}, elsewhere {other}"


def _differ_in_a_word(name: str, other: str) -> bool:
    """Tell whether the part that differs is a word: of a letter or a number many names are made."""
    parts, others = (re.split(r"[^A-Za-z]+", text) for text in (name, other))
    if len(parts) != len(others):
        return False
    differing = [pair for pair in zip(parts, others, strict=True) if pair[0] != pair[1]]
    return all(min(map(len, pair)) >= _SHORTEST - 1 and sorted(pair)[1] != f"{sorted(pair)[0]}s" for pair in differing)


@rule("pacemaker").warning(
    reason="Two addresses of one network have different masks: with one of them, answers go to the wrong card, or to "
    "the router.",
    remedy="Use the network's cidr_netmask for all addresses in it.",
    source=f"{AGENTS}/IPaddr2",
)
def masks_differ(setup: Setup) -> Iterator[str]:
    """Find addresses in one network with different masks, among themselves and in the description."""
    described = setup.cluster.networks if setup.cluster else ()
    known = [(ipaddress.ip_network(one.subnet), f"network {one.name} of cluster.toml") for one in described]
    for one in setup.pacemaker.services:
        bits = one.values.get("cidr_netmask", "")
        if one.agent not in ADDRESSES or not bits:
            continue
        try:
            interface = ipaddress.ip_interface(f"{one.values.get('ip', '')}/{bits}")
        except ValueError:
            continue
        # A host's own mask says nothing of the network.
        if interface.network.prefixlen == interface.network.max_prefixlen:
            continue
        for network_known, name in known:
            if (
                interface.version == network_known.version
                and interface.ip in network_known
                and interface.network != network_known
            ):
                yield f"cib: {one.id} has {interface}, {name} {network_known}"
        known.append((interface.network, one.id))


@rule("pacemaker", "corosync").note(
    reason="The name identifies the cluster, in locks of file systems and at the quorum device: two names mean that "
    "one of the files belongs to another cluster.",
    remedy="Remove the property cluster-name; Pacemaker takes it from Corosync.",
    source=f"{PACEMAKER}/cluster-options.rst",
)
def cluster_has_two_names(setup: Setup) -> Iterator[str]:
    """Find a name of the cluster that differs between Pacemaker and Corosync."""
    given, own = setup.pacemaker.properties.get("cluster-name", ""), setup.membership.one("totem").get("cluster_name")
    if given and own and given != own:
        yield f"cib: cluster-name={given}, corosync.conf has {own}"


@rule("pacemaker").warning(
    reason="The addresses are on other cards than the watched one: the service stays where its card is dead.",
    remedy="Use the same name in interface of ethmonitor and in nic of the addresses.",
    source=f"{AGENTS}/ethmonitor",
)
def watched_card_not_the_one_used(setup: Setup) -> Iterator[str]:
    """Find watched cards on which no address of a service is."""
    services = setup.pacemaker.services
    used = {one.values["nic"].partition(":")[0] for one in services if one.agent in ADDRESSES and one.values.get("nic")}
    for one in services:
        card = one.values.get("interface", "")
        if one.agent == "ethmonitor" and card and used and card not in used:
            yield f"cib: {one.id} watches {card}, addresses are on {', '.join(sorted(used))}"


@rule("pacemaker").error(
    reason="multipath.conf names the disks and has no such name: the device does not exist.",
    remedy="Use the same spelling for the alias in multipath.conf and the name in /dev/mapper.",
    source=MULTIPATH,
)
def multipath_alias_unknown(setup: Setup) -> Iterator[str]:
    """Find devices with a name that resembles an alias of multipath.conf, and is none."""
    known = set(re.findall(r"(?m)^\s*alias\s+\"?([\w.-]+)", setup.texts.get("etc/multipath.conf", "")))
    # Volume groups have a hyphen, encrypted devices a resource of their own.
    made = {one.values.get("crypt_type") and one.values.get("name", "") for one in setup.pacemaker.services}
    bare = {re.sub(r"\d+", "", alias).lower() for alias in known}
    for mention in mentions_of(setup):
        name = mention.name.removeprefix("/dev/mapper/")
        like = re.sub(r"\d+", "", name).lower() in bare or slip(name, known)
        if mention.kind == "device" and name != mention.name and known and name not in known | made and like:
            yield f"{mention.where}: {mention.name}, multipath.conf has {', '.join(sorted(known)[:6])}"


@rule("pacemaker").error(
    reason="The export is for addresses of the cluster itself, or for the replication network of DRBD: no client is "
    "there.",
    remedy="Set clientspec to the network of the clients.",
    source=f"{AGENTS}/exportfs",
)
def exported_to_nobody(setup: Setup) -> Iterator[str]:
    """Find exports that no client can mount."""
    own = {address for node in nodes_of(setup) for address in links_of(node).values()}
    own |= {one.values.get("ip", "") for one in setup.pacemaker.services}
    for one in setup.pacemaker.services:
        given = _network(one.values.get("clientspec", "")) if one.agent == "exportfs" else None
        if given is None:
            continue
        single = given.prefixlen == given.max_prefixlen and str(given.network_address) in own
        if single or any(given == network for network in _copying_only(setup)):
            yield f"cib: {one.id} has clientspec={given}"


@rule("pacemaker", "drbd").warning(
    reason="The address is on the replication network of DRBD, usually a cable between the two nodes: the clients are "
    "on a different network.",
    remedy="Use an ip on the clients' network.",
    source=OWN,
)
def service_on_the_replication_network(setup: Setup) -> Iterator[str]:
    """Find addresses of services on a network that only DRBD and the heartbeat use."""
    for one in setup.pacemaker.services:
        address = _network(one.values.get("ip", "")) if one.agent in ADDRESSES else None
        for network in _copying_only(setup) if address else ():
            if address is not None and address.version == network.version and address.network_address in network:
                yield f"cib: {one.id} has {one.values['ip']}, DRBD copies over {network}"


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _copying_only(setup: Setup) -> set[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Return the networks of DRBD's addresses, where the names of the nodes lead to others."""
    copying = {
        network_of(setup, re.sub(r":\d+$", "", address).strip("[]"))
        for resource in setup.drbd
        for host in resource.hosts
        for address in host.addresses
        if is_address(re.sub(r":\d+$", "", address).strip("[]"))
    }
    # Where the names of the nodes lead, clients are; without that any network may be theirs.
    lines = [line.partition("#")[0].split() for line in setup.texts.get("etc/hosts", "").splitlines()]
    named = [words[0] for words in lines if set(words[1:]) & set(setup.node_names) and is_address(words[0])]
    others = {network_of(setup, address) for address in named}
    if not others or others & copying:
        return set()
    return {network for text in copying if (network := _network(text))}


@rule("pacemaker").warning(
    reason="With nfs_no_notify the server does not notify NFSv3 clients that it has restarted, and there is no "
    "nfsnotify resource: they do not reclaim their locks.",
    remedy="Add nfsnotify with source_host after the address, or remove nfs_no_notify.",
    source=f"{AGENTS}/nfsnotify",
)
def nfs_clients_not_notified(setup: Setup) -> Iterator[str]:
    """Find NFS servers that leave it to another resource to tell the clients, which is not there."""
    services = setup.pacemaker.services
    for one in services:
        if is_true(one.values.get("nfs_no_notify", "")) and not any(other.agent == "nfsnotify" for other in services):
            yield f"cib: {one.id} has nfs_no_notify"


def _bare(name: str) -> str:
    return re.sub(r"\d", "", name)


@rule("pacemaker").warning(
    reason="All other resources of its kind have a rule that keeps them on nodes whose network or disk works; this one "
    "has none.",
    remedy="Give each of them the same location rule.",
    source=OWN,
)
def location_rule_missing_on_one_resource(setup: Setup) -> Iterator[str]:
    """Find one of several resources of an agent that lacks the rule which all others have."""
    cib = setup.pacemaker
    ruled: dict[str, set[str]] = {}
    for element in cib.root.iterfind("./configuration/constraints/rsc_location"):
        asked = {part.get("attribute", "") for part in element.iter("expression")} - {"#uname"}
        for location in cib.locations:
            for name in location.resources if location.id == element.get("id") else ():
                for member in cib.ties.members(name):
                    ruled.setdefault(member.id, set()).update(asked)
    kinds: dict[str, list[str]] = {}
    for one in cib.services:
        if not one.clone:
            kinds.setdefault(f"{one.provider}:{one.agent}", []).append(one.id)
    for members in kinds.values():
        for attribute in sorted(set().union(*(ruled.get(name, set()) for name in members))):
            without = [name for name in members if attribute not in ruled.get(name, set())]
            twins = [name for name in members if _bare(name) == _bare(without[0])] if without else []
            if len(without) == 1 and len(members) > 2 and len(twins) > 1:
                yield f"cib: {without[0]} is not ruled by {attribute}"
