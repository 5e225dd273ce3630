"""Rules over everything that the files name, whatever it is: addresses, ports, cards, times, options, orders, disks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.blocks import Block
from strakes.failover.cib import Cib
from strakes.failover.cib_values import seconds
from strakes.failover.known_options import is_known, options_of
from strakes.failover.rules.fencing_devices import address_of
from strakes.failover.rules.heartbeat import hosts_of, is_address, links_of, name_of, nodes_of
from strakes.failover.rules.mounts import ADDRESSES
from strakes.failover.rules.rule import AGENTS, COROSYNC_CONF, DRBD_CONF, OWN, PACEMAKER, rule
from strakes.failover.setup import Setup

_RESOURCE_OR_MINOR = re.compile(r'\bresource\s+"?([^\s"{]+)"?\s*\{|\bdevice\s+"?/dev/drbd(\d+)"?\s+minor\s+(\d+)')
_UNSTABLE = re.compile(r"/dev/(sd[a-z]+|nvme\d+n\d+|hd[a-z]|dm-)\d*(p\d+)?")
# Below this no program is even started; a work day is longer than anything that a cluster waits for.
_SHORTEST_S, _LONGEST_S = 1.0, 8 * 3600.0
# Each protocol's own port; a device that speaks one of them does not speak another there.
_PORTS = {"fence_ipmilan": "623", "fence_apc_snmp": "161", "fence_eaton_snmp": "161", "fence_ifmib": "161"}
_PORTS |= dict.fromkeys(("fence_redfish", "fence_vmware_rest", "fence_vmware_soap", "fence_pve"), "443")
_WELL_KNOWN = ("22", "23", "80", "161", "443", "623")
# Corosync 1 read them.
_OLD_SECTIONS = ("service", "aisexec", "amf")


def _owners(setup: Setup) -> Iterator[tuple[str, str, str]]:
    """Yield each address in any file, with the kind of thing that has it, and its name."""
    for node in nodes_of(setup):
        for number, address in links_of(node).items():
            yield address, f"node {name_of(node)}", f"ring{number}_addr of {name_of(node)}"
    for resource in setup.drbd:
        for host in resource.hosts:
            for given in host.addresses:
                address = re.sub(r":\d+$", "", given.split()[-1] if given.split() else "").strip("[]")
                yield address, f"node {host.name}", f"the address of {resource.name} on {host.name}"
    if setup.corosync:
        yield setup.corosync.one("quorum").one("device").one("net").get("host"), "quorum host", "the quorum device"
    for cluster_node in setup.cluster.nodes if setup.cluster else ():
        for address in cluster_node.addresses.values():
            yield address, f"node {cluster_node.name}", f"{cluster_node.name} of cluster.toml"
        yield cluster_node.bmc.address, "power", f"the BMC of {cluster_node.name} of cluster.toml"
    for device in setup.devices:
        yield address_of(device), "power", device.id
    for service in setup.services:
        if service.agent in ADDRESSES:
            yield service.values.get("ip", ""), "service", service.id


def _addresses_of_names(setup: Setup) -> dict[str, str]:
    """Return the addresses of the names that /etc/hosts and Corosync know."""
    real = hosts_of(setup)
    for node in nodes_of(setup):
        real |= {name_of(node): address for address in links_of(node).values() if is_address(address)}
    return real


@rule().error(
    reason="A node, a service, a fencing device and the quorum device each need an address of their own: one of these "
    "files names the wrong one.",
    remedy="Find out which of the two has the address, and correct the other.",
    source=OWN,
)
def one_address_for_two_things(setup: Setup) -> Iterator[str]:
    """Find addresses that two different things have."""
    known: dict[str, tuple[str, str]] = {}
    real = _addresses_of_names(setup)
    for given, kind, name in _owners(setup):
        address = real.get(given, given)
        if is_address(address):
            other_kind, other = known.setdefault(address, (kind, name))
            # One host may cut the power and have a vote.
            if other_kind != kind and {kind, other_kind} != {"power", "quorum host"}:
                yield f"{address} is {other}, and {name}"


@rule("pacemaker").error(
    reason="The resources wait for each other: Pacemaker ignores some of these orders, and it is not known which.",
    remedy="Remove one of the orders; a group orders its members already.",
    source=f"{PACEMAKER}/constraints.rst",
)
def orders_form_a_loop(setup: Setup) -> Iterator[str]:
    """Find orders that wait for each other in a circle."""
    cib = setup.pacemaker
    before: dict[str, set[str]] = {}
    for members in cib.groups.values():
        for number, member in enumerate(members[1:]):
            before.setdefault(member.id, set()).add(members[number].id)
    for order in cib.orders:
        if order.mandatory and order.first_action in ("start", "promote") and order.then_action in ("start", "promote"):
            for later in _ids(cib, order.then):
                before.setdefault(later, set()).update(_ids(cib, order.first))
    for name in sorted(before):
        reached, waiting = set[str](), list(before[name])
        while waiting:
            earlier = waiting.pop()
            if earlier not in reached:
                reached.add(earlier)
                waiting += before.get(earlier, set())
        if name in reached:
            yield f"cib: {name} waits for itself, by way of {', '.join(sorted(before[name]))}"


def _ids(cib: Cib, name: str) -> set[str]:
    return {member.id for member in cib.ties.members(name)}


@rule("pacemaker").error(
    reason="No agent finishes in less than a second, and nobody waits for a working day: the unit is missing or wrong. "
    "Pacemaker reads a number without a unit as seconds.",
    remedy="Write the unit: 60s, 10min.",
    source=f"{PACEMAKER}/operations.rst",
)
def time_unit_missing_or_wrong(setup: Setup) -> Iterator[str]:
    """Find time-outs and intervals of operations that are far from anything usual."""
    cib = setup.pacemaker
    for element in cib.root.iter("op"):
        for name in ("timeout", "interval"):
            value = seconds(element.get(name, ""))
            if 0 < value < _SHORTEST_S or value > _LONGEST_S:
                yield f"cib: {element.get('id')} has {name}={element.get(name)}"
    default = cib.operation_defaults.get("timeout", "")
    if 0 < seconds(default) < _SHORTEST_S or seconds(default) > _LONGEST_S:
        yield f"cib: op_defaults has timeout={default}"
    for device in cib.devices:
        for name in sorted(device.values):
            # The agent's own times, of any name: a power-off that takes less is none.
            timed = re.fullmatch(r"timeout|(pcmk_)?(off|reboot|power|shell|login)_timeout", name)
            if timed and 0 < seconds(device.values[name]) < 2 * _SHORTEST_S:
                yield f"cib: {device.id} has {name}={device.values[name]}"


@rule("pacemaker").warning(
    reason="sda may be a different disk after a reboot, and on the other node: the wrong disk is mounted or reserved.",
    remedy="/dev/disk/by-id/..., /dev/mapper/..., /dev/VG/LV",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/agents/scsi/fence_scsi.py",
)
def cluster_disk_name_not_persistent(setup: Setup) -> Iterator[str]:
    """Find parameters that name a disk by a device name that may change."""
    for primitive in setup.pacemaker.primitives:
        for name, value in primitive.values.items():
            words = [word for word in re.split(r"[\s,;]+", value) if _UNSTABLE.fullmatch(word)]
            if words:
                yield f"cib: {primitive.id} has {name}={', '.join(words)}"


@rule("pacemaker").error(
    reason="The agent contacts the device on the port of a different protocol, where it gets no valid answer.",
    remedy="Remove ipport.",
    source="https://github.com/ClusterLabs/fence-agents",
)
def port_of_another_protocol(setup: Setup) -> Iterator[str]:
    """Find fencing devices on the well-known port of another protocol."""
    for device in setup.pacemaker.devices:
        port, own = device.values.get("ipport", ""), _PORTS.get(device.agent)
        if own and port in _WELL_KNOWN and port != own and not (own == "443" and port == "80"):
            yield f"cib: {device.id} ({device.agent}) has ipport={port}"


@rule().warning(
    reason="No release that this check knows has an option or a section of that name in that place: the intended "
    "setting has no effect.",
    remedy="Remove it, or write it where corosync.conf(5) or Pacemaker Explained has it.",
    source=COROSYNC_CONF,
)
def option_unknown_in_all_releases(setup: Setup) -> Iterator[str]:
    """Find options of the cluster, of LNet and of Corosync that no table has."""
    for name in setup.cib.properties if setup.cib else ():
        if name not in options_of("properties"):
            yield f"cib: the cluster has {name}"
    for module, words in re.findall(r"(?m)^\s*options\s+(\S+)[ \t]+(.*)$", setup.lnet):
        known = options_of(f"module {module}")
        for name in re.findall(r"(\w+)=(?:\"[^\"]*\"|\S*)", words) if known else ():
            if name not in known:
                yield f"modprobe.d: options of {module} have {name}"
    for block in setup.corosync.blocks if setup.corosync else ():
        if block.name not in options_of("corosync") or block.name in _OLD_SECTIONS:
            yield f"corosync.conf: the file has a section {block.name}"
        else:
            yield from _unknown_settings(block, f"corosync {block.name}")


def _unknown_settings(block: Block, path: str) -> Iterator[str]:
    for name, _ in block.settings if options_of(path) else ():
        if name not in options_of(path) and not (path.endswith(" heuristics") and name.startswith("exec_")):
            yield f"corosync.conf: {path.partition(' ')[2]} has {name}"
    for inner in block.blocks:
        if is_known(f"{path} {inner.name}"):
            yield from _unknown_settings(inner, f"{path} {inner.name}")


@rule("pacemaker").error(
    reason="portblock blocks a port while the service moves, so that clients wait and are not refused; this one blocks "
    "a different port than the service uses.",
    remedy="Set portno and protocol to those of the service on that address.",
    source=f"{AGENTS}/portblock",
)
def blocked_port_not_the_one_served(setup: Setup) -> Iterator[str]:
    """Find blocked ports of an address on which another port, or another protocol, is served."""
    cib = setup.pacemaker
    served: dict[str, set[str]] = {}
    for service in cib.services:
        for word in " ".join(service.values.values()).split():
            address, colon, port = word.rpartition(":")
            if colon and port.isdecimal() and is_address(address.strip("[]")):
                served.setdefault(address.strip("[]"), set()).add(port)
    for service in cib.services:
        ip, protocol = service.values.get("ip", ""), service.values.get("protocol", "tcp")
        if service.agent == "portblock" and ip in served:
            ports_of = set(service.values.get("portno", "").split(","))
            if not ports_of & served[ip] or protocol != "tcp":
                yield (
                    f"cib: {service.id} blocks {protocol} {', '.join(sorted(ports_of))} of {ip}, served: tcp "
                    + ", ".join(sorted(served[ip]))
                )


@rule("pacemaker", "lnet").error(
    reason="LNet uses a different card than the watched one: the service stays where its network is dead, or leaves a "
    "node where it works.",
    remedy="Use the same card in device= of healthLNET and in networks= of LNet.",
    source="https://wiki.whamcloud.com/display/PUB/Using+Pacemaker+with+a+Lustre+File+System",
)
def watched_card_not_used_by_lnet(setup: Setup) -> Iterator[str]:
    """Find watched cards over which LNet does not run."""
    used = {card for group in re.findall(r"\(([^)]*)\)", setup.lnet) for card in re.split(r"[,\s]+", group)}
    for service in setup.pacemaker.services:
        card = service.values.get("device", "") if service.agent == "healthLNET" else ""
        if card and used and card not in used:
            yield f"cib: {service.id} watches {card}, LNet uses {', '.join(sorted(used))}"


@rule("drbd").error(
    reason="The number in the name of a DRBD device must be its minor: whatever uses the name finds another device, or "
    "none.",
    remedy="device /dev/drbd0 minor 0, or only the minor.",
    source=DRBD_CONF,
)
def minor_differs_from_the_device(setup: Setup) -> Iterator[str]:
    """Find devices whose name has another number than their minor."""
    for file, text in setup.texts.items():
        name = ""
        for opened, number, minor in _RESOURCE_OR_MINOR.findall(text) if file.startswith("etc/drbd") else ():
            name = opened or name
            if number != minor:
                yield f"drbd: {name} has device /dev/drbd{number} minor {minor}"
