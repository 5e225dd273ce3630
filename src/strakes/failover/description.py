"""Parser of ``cluster.toml``, which describes a cluster. Its keys are the fields of the dataclasses in ``cluster``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from strakes.base.errors import BadInputError, did_you_mean
from strakes.base.toml_file import TomlFile, read_toml
from strakes.base.units import parse_seconds
from strakes.failover.cluster import Alerts, Bmc, Cluster, FileSystem, Network, Node, Pdu, ServedTarget, read_address
from strakes.failover.facts import read_table
from strakes.failover.known_options import DRBD_SECTIONS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
_COROSYNC_PORTS = (5404, 5405, 5406)
# Maximum number of nodes, not counting remote nodes: limit in the manual of the Red Hat High Availability Add-On.
_MOST_NODES = 16
_NID = re.compile(r"[0-9A-Fa-f.:]+@(tcp|o2ib|kfi|gni|efa)\d{0,3}")
_VDEV = "mirror|raidz[123]?|draid[123]?(:[0-9]+[dcs])*|spare|log|cache|special|dedup"
_MOST = (1 << 31) - 1  # Largest valid number: Pacemaker parses numbers as 32-bit integers (manual page).
# Words of drbdadm and drbd.conf that a resource cannot have as its name. "all" means all resources of the node.
_OF_DRBD = ("all", "resource", "global", "common", "include", *DRBD_SECTIONS)
_SHAPES: Mapping[object, str] = {
    str: "a text",
    bool: "true or false",
    float: 'a time such as "3s", from {} to {} s',
    int: "a whole number from {} to {}",
    tuple[str, ...]: "a list of texts",
    dict[str, str]: "a table of texts",
}


@cache
def _types() -> Mapping[str, tuple[str, str]]:
    rows = read_table("description")["type"]
    return {field: (row["pattern"], row["wanted"]) for row in rows for field in row["fields"].split()}


@dataclass(frozen=True)
class _Table:
    values: dict[str, Any]
    where: str

    def read(self, kind: type[T], *inner: str, needs: tuple[str, ...] = (), **given: Any) -> T:
        """Return the table as a ``kind`` instance. ``inner``: further valid keys. ``needs``: required keys."""
        hints = get_type_hints(kind)
        keys = {one.name.removesuffix("_s") if hints[one.name] is float else one.name: one for one in fields(kind)}
        keys = {key: one for key, one in keys.items() if one.name not in given}
        found = {}
        for key, one in keys.items():
            if key in self.values or one.default is MISSING or key in needs:
                found[one.name] = self.value(
                    key, hints[one.name], f"{kind.__name__}.{one.name}", one.default == "" and key not in needs
                )
        self.refuse_others(*keys, *inner)
        return kind(**found, **given)

    def value(self, key: str, shape: object, name: str = "", may_be_empty: object = False) -> Any:
        value: Any = self.values.get(key)
        least, most = read_table("description")["ranges"].get(name, (0, _MOST))
        pattern, wanted = _types().get(name, ("", _SHAPES[shape].format(least, most)))
        inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        # A control character or line break would damage the XML and configuration files of the plan.
        if any(not text.isprintable() for text in _texts(value)):
            raise self.wrong(key, value, "without control characters and ends of lines")
        if shape is str:
            right = isinstance(value, str) and bool(value.strip() or may_be_empty)
            right = right and not (pattern and value and not re.fullmatch(pattern, value))
        elif shape is bool:
            right = isinstance(value, bool)
        elif shape in (int, float):
            number = value if shape is int else parse_seconds(value) if isinstance(value, str) else None
            right = type(number) is shape and least <= number <= most
        else:
            right = isinstance(value, list if shape == tuple[str, ...] else Mapping)
            right = right and all(isinstance(one, str) and one for one in inner)
        if not right:
            raise self.wrong(key, value, wanted)
        return parse_seconds(value) if shape is float else tuple(value) if isinstance(value, list) else value

    def refuse_others(self, *keys: str) -> None:
        for key in self.values:
            if key not in keys:
                raise BadInputError(f"unknown key {key!r}", where=self.where, remedy=did_you_mean(key, keys))

    def table(self, key: str, value: Any = None) -> _Table:
        value = self.values.get(key) if value is None else value
        if not isinstance(value, Mapping):
            raise BadInputError("expected a table", where=f"{self.where}: {key}", why=f"it is {value!r}")
        return _Table(dict(value), f"{self.where}: {key}")

    def tables(self, key: str) -> list[_Table]:
        value = self.values.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, value, f"[[{key}]] tables")
        return [self.table(f"{key} {number}", one) for number, one in enumerate(value, 1)]

    def require(self, right: object, key: str, wanted: str) -> None:
        if not right:
            raise self.wrong(key, self.values.get(key), wanted)

    def wrong(self, key: str, value: object, wanted: str) -> BadInputError:
        if value is None:
            return BadInputError(f"the key {key!r} is missing", where=self.where, remedy=f"It must be {wanted}.")
        return BadInputError(f"{key!r} must be {wanted}", where=self.where, why=f"it is {value!r}")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for one in pair for text in _texts(one))
    elif isinstance(value, list | tuple):
        yield from (text for one in value for text in _texts(one))


def read_description(path: Path) -> tuple[Cluster, str]:
    """Return the cluster that cluster.toml describes, and the file's text. Raises BadInputError for invalid content."""
    file = read_toml(path, "the description", "cluster")
    return described(file), file.text


def described(file: TomlFile) -> Cluster:
    """Return the cluster that a parsed cluster.toml describes. Raises BadInputError for an invalid key or value."""
    top = _Table(file.values, file.name)
    top.refuse_others("cluster", "network", "node", "file_system", "target", "alerts")
    listed = top.table("network", top.values.get("network", {}))
    networks = tuple(_network(name, listed.table(name)) for name in listed.values)
    nodes = tuple(_node(table, networks) for table in top.tables("node"))
    names = tuple(node.name for node in nodes)
    if not 2 <= len(nodes) <= _MOST_NODES or len(set(names)) != len(names):
        what, why = f"a cluster must have 2 to {_MOST_NODES} nodes with different names", ", ".join(names) or "none"
        raise BadInputError(what, where=top.where, why=f"the given nodes are: {why}")
    file_system = _file_system(top.table("file_system"), networks)
    servers = tuple(node.name for node in nodes if not node.quorum_only)
    head = top.table("cluster")
    head.values.setdefault("survivor", names[0])
    cluster = head.read(
        Cluster,
        networks=networks,
        nodes=nodes,
        file_system=file_system,
        targets=tuple(
            _target(one, number, servers, file_system.kind) for number, one in enumerate(top.tables("target"))
        ),
        alerts=top.table("alerts", top.values.get("alerts", {})).read(Alerts),
    )
    head.require(cluster.survivor in names, "survivor", f"one of {', '.join(names)}")
    for what, why, remedy in _contradictions(cluster):
        raise BadInputError(what, where=top.where, why=why, remedy=remedy)
    return cluster


def _network(name: str, table: _Table) -> Network:
    found = table.read(Network, name=name)
    if not re.fullmatch(_types()["Network.name"][0], name):
        raise BadInputError(f"not a valid name for a network: {name!r}", where=table.where)
    try:
        ipaddress.ip_network(found.subnet)
    except ValueError as error:
        raise BadInputError("not a subnet", where=table.where, why=str(error)) from error
    return found


def _node(table: _Table, networks: tuple[Network, ...]) -> Node:
    controller = table.table("bmc")
    bmc = controller.read(Bmc)
    pdus = []
    for one in table.tables("pdu"):
        plain = {} if "snmp" in str(one.values.get("agent")) else {"snmp_version": ""}
        if one.values.get("snmp_version") in ("1", "2c"):
            pdu = one.read(Pdu, needs=("community",), user="", password_script="", **plain)
        else:
            pdu = one.read(Pdu, needs=("user", "password_script", "snmp_version"), community="", **plain)
        _require_in(pdu.network, pdu.address, networks, one.where)
        pdus.append(pdu)
    node = table.read(Node, "bmc", "pdu", bmc=bmc, pdus=tuple(pdus))
    _require_in(bmc.network, bmc.address, networks, controller.where)
    for network, address in node.addresses.items():
        _require_in(network, address, networks, f"{table.where}: addresses")
    if not node.power_feeds:
        raise BadInputError("a node must have at least one power feed", where=table.where)
    return node


def _require_in(network: str, address: str, networks: tuple[Network, ...], where: str) -> None:
    known = {one.name: one for one in networks}
    if network not in known:
        raise BadInputError(f"unknown network: {network!r}", where=where, remedy=did_you_mean(network, known))
    if not read_address(address) or "%" in address:
        raise BadInputError("not an address", where=where, why=f"it is {address!r}")
    if not known[network].holds(address):
        raise BadInputError(f"{address} is no host in {known[network].subnet}, the subnet of {network}", where=where)


def _file_system(table: _Table, networks: tuple[Network, ...]) -> FileSystem:
    if table.values.get("kind") == "lustre":
        table.values.setdefault("lnet", "tcp")
        found = table.read(FileSystem, needs=("lnet_network",))
        names = [network.name for network in networks]
        table.require(found.lnet_network in names, "lnet_network", f"one of {', '.join(names)}")
        table.require(re.fullmatch(r"[A-Za-z0-9_-]{1,8}", found.name), "name", "a name of 1 to 8 letters for Lustre")
    else:
        found = table.read(FileSystem, lnet="", lnet_network="", recovery_soft_s=0.0, recovery_hard_s=0.0, mgs=())
    table.require(all(map(_NID.fullmatch, found.mgs)), "mgs", 'a list of NIDs such as "10.1.0.1@tcp"')
    right = all(map(_NID.fullmatch, found.watch)) or all(map(read_address, found.watch))
    table.require(right, "watch", "a list of addresses, or of NIDs")
    return found


def _target(table: _Table, number: int, servers: tuple[str, ...], kind: str) -> ServedTarget:
    given = _storage(table, servers) | {"voters": ()}
    nodes: tuple[str, ...] = given["nodes"]
    keys = ("nodes", "pool", "vdevs") if given["pool"] else ("nodes", "device") if given["shared"] else ("devices",)
    for key, value in (("minor", number), ("port", 7788 + number), ("prefers", nodes[0])):
        table.values.setdefault(key, value)
    if kind == "lustre":
        given |= {"file_system": "lustre", "address": ""}
    else:
        given |= {"role": "", "index": 0} | ({"file_system": "zfs"} if given["pool"] else {})
    given |= ({} if kind == "service" else {"units": ()}) | ({} if kind == "nfs" else {"clients": ""})
    target = table.read(ServedTarget, *keys, needs=("role", "address", "units", "clients"), **given)
    table.require(target.name not in _OF_DRBD, "name", "a name that drbd.conf does not use")
    table.require(target.prefers in nodes, "prefers", f"one of {', '.join(nodes)}")
    table.require(target.port not in _COROSYNC_PORTS, "port", "a port that Corosync does not use")
    right = all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9@_.:-]*(?<!\.target)", unit) for unit in target.units)
    table.require(right, "units", "names of services of systemd")
    if target.address:
        try:
            ipaddress.ip_interface(target.address)
        except ValueError as error:
            remedy = 'Write it like "10.1.0.5/24".'
            raise BadInputError("not an address", where=table.where, why=str(error), remedy=remedy) from error
    return target


def _storage(table: _Table, servers: tuple[str, ...]) -> dict[str, Any]:
    if not table.values.keys() & {"device", "pool"}:
        devices = table.value("devices", dict[str, str])
        nodes = tuple(name for name in servers if name in devices)
        right = len(nodes) == 2 == len(devices) and all(map(_is_device, devices.values()))
        table.require(right, "devices", f"a device below /dev for each of two of {', '.join(servers)}")
        below = not any(path.startswith("/dev/drbd") for path in devices.values())
        table.require(below, "devices", "the disks below DRBD, such as /dev/VG/LV, not DRBD's own devices")
        return {"nodes": nodes, "devices": devices, "shared": False, "pool": "", "vdevs": ()}
    nodes = table.value("nodes", tuple[str, ...]) if "nodes" in table.values else servers
    right = len(nodes) == len(set(nodes)) == 2 and set(nodes) <= set(servers)
    table.require(right, "nodes", f"the two nodes that reach the disks, of {', '.join(servers)}")
    if "device" in table.values:
        device = table.value("device", str)
        right = _is_device(device) and not device.startswith("/dev/drbd")
        table.require(right, "device", "a device below /dev that has the same name on both nodes")
        return {"nodes": nodes, "devices": dict.fromkeys(nodes, device), "shared": True, "pool": "", "vdevs": ()}
    pool, vdevs = table.value("pool", str), table.value("vdevs", tuple[str, ...])
    right = re.fullmatch(r"(?!(mirror|raidz|draid|spare|log)$)[A-Za-z][\w.-]{0,60}", pool, re.ASCII) is not None
    table.require(right, "pool", "a name of a ZFS pool")
    right = all(_is_device(word) or re.fullmatch(_VDEV, word) for word in vdevs)
    right = right and any(map(_is_device, vdevs))
    table.require(right, "vdevs", 'the words of zpool create, such as "mirror", "/dev/mapper/a", "/dev/mapper/b"')
    return {"nodes": nodes, "devices": {}, "shared": True, "pool": pool, "vdevs": vdevs}


def _is_device(path: str) -> bool:
    return (
        bool(re.fullmatch(_types()["word"][0], path))
        and path.startswith("/dev/")
        and not re.search(r"/\.{0,2}/", f"{path}/")
    )


def _contradictions(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    if not cluster.targets:
        yield "no target is described", "", "Add at least one [[target]]."
    yield from _wrong_networks(cluster)
    yield from _repetitions(cluster)
    yield from _wrong_addresses(cluster)
    managers = sum("mgs" in target.role for target in cluster.targets) + bool(cluster.file_system.mgs)
    if cluster.file_system.kind == "lustre" and managers != 1:
        remedy = 'Give one target role = "mgs" or "mgs+mdt", or the NIDs of the cluster with it: mgs = ["NID", "NID"].'
        yield "a Lustre file system must have exactly one MGS", "", remedy
    if cluster.node(cluster.survivor).quorum_only:
        yield "the survivor must be a node with targets", f"{cluster.survivor} is quorum_only", ""
    for node in cluster.servers:
        if not any(node.name in target.nodes for target in cluster.targets):
            yield "a node has no target", node.name, "Name the node in a target, or make it quorum_only = true."


def _wrong_networks(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    carrying = sum(network.replication for network in cluster.networks)
    replicated = any(target.replicated for target in cluster.targets)
    if replicated and carrying != 1:
        yield "exactly one network must carry the replication", "", "Set replication = true for one network."
    if carrying and not replicated:
        yield "nothing is replicated", "all targets are on shared disks", "Remove replication = true"
    if not cluster.heartbeats:
        yield "no network carries the heartbeat", "", "Set heartbeat = true for two networks."
    for network in cluster.networks:
        serving = network.replication or network.name == cluster.file_system.lnet_network
        for node in cluster.nodes:
            used = network.heartbeat or (serving and not node.quorum_only)
            if used and network.name not in node.addresses:
                yield f"{node.name} has no address on {network.name}", "", ""


def _repetitions(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    targets = cluster.targets
    addresses = [address for node in cluster.nodes for address in (*node.addresses.values(), node.bmc.address)]
    pdus = [pdu for node in cluster.nodes for pdu in node.pdus]
    addresses += {pdu.address for pdu in pdus}
    for what, values in (
        ("address", [str(read_address(address)) for address in addresses]),
        ("outlet", [f"{pdu.address} {outlet}" for pdu in pdus for outlet in pdu.outlet.split(",")]),
        ("target name", [target.name for target in targets]),
        ("DRBD minor", [str(target.minor) for target in targets]),
        ("port", [str(target.port) for target in targets]),
        ("index of a metadata target", [str(target.index) for target in targets if "mdt" in target.role]),
        ("index of an OST", [str(target.index) for target in targets if target.role == "ost"]),
        ("pool", [target.pool for target in targets if target.pool]),
        ("device", [f"{path} on {node}" for target in targets for node in target.nodes for path in target.disks(node)]),
    ):
        for value in values:
            if values.count(value) > 1:
                yield f"the same {what} is given twice", value, ""
    for one, other in permutations(targets, 2):
        if f"{one.mount}/".startswith(f"{other.mount}/"):
            yield f"the mount point of {one.name} is inside that of {other.name}", one.mount, ""


def _wrong_addresses(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    taken = {
        _spelled(address): node.name
        for node in cluster.nodes
        for address in (*node.addresses.values(), node.bmc.address, node.name, *(pdu.address for pdu in node.pdus))
    }
    host = _spelled(cluster.quorum_host)
    if re.fullmatch(r"[\d.]+", host) and not read_address(host):
        yield "the quorum device has no address", host, ""
    if host in taken:
        why = f"{host} is {taken[host]}"
        yield "the quorum device is on one of the machines in the cluster", why, "Give a third machine as quorum_host."
    taken |= dict.fromkeys([host, *map(_spelled, cluster.file_system.watch)], "another machine")
    for target in cluster.targets:
        address, _, bits = target.address.partition("/")
        if address and _spelled(address) in taken:
            yield f"the address of {target.name} is taken", f"{address} belongs to {taken[_spelled(address)]}", ""
        subnets = [ipaddress.ip_network(network.subnet) for network in cluster.networks if network.holds(address)]
        if address and (not subnets or "%" in address):
            yield f"the address of {target.name} is not in a network", address, ""
        # With a shorter prefix, the address would bring a route to other networks.
        if subnets and bits not in {str(subnet.prefixlen) for subnet in subnets}:
            yield f"the prefix length of {target.name} is not that of its network", target.address, ""
        taken[_spelled(address)] = target.name


def _spelled(address: str) -> str:
    """Return one spelling of an address or a host name."""
    return str(read_address(address) or address.lower().rstrip(".")).partition("%")[0]
