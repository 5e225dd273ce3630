"""A cluster as its administrator describes it in ``cluster.toml``: nodes, networks, devices, power, and the service to keep up."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from strakes.errors import BadInputError
from strakes.failover.reading import ConfigurationSection
from strakes.toml_file import read_toml

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_LNET = re.compile(r"(tcp|o2ib|kfi|gni|efa)\d{0,3}")
_COROSYNC_PORTS = (5404, 5405, 5406)
_WORD = re.compile(r"[A-Za-z0-9@%_./:+,=-]+")
KINDS = ("lustre", "nfs", "service")


@dataclass(frozen=True)
class Network:
    """``switch`` is empty for a direct cable. ``stands_in_for`` names what older designs had in its place."""

    name: str
    subnet: str
    switch: str = ""
    heartbeat: bool = False
    replication: bool = False
    stands_in_for: str = ""


@dataclass(frozen=True)
class Bmc:
    """The node's own management controller, reached by IPMI; ``password_script`` prints its password."""

    address: str
    network: str
    user: str
    password_script: str
    port: int = 623


@dataclass(frozen=True)
class Pdu:
    """A switched power outlet: a second way to power a node off, which works when the node's BMC has no power.

    By SNMP before version 3 a ``community`` is all it asks for; else ``user``, and ``password_script``, which prints the password.
    """

    agent: str
    address: str
    network: str
    outlet: str
    feed: str
    user: str = ""
    password_script: str = ""
    snmp_version: str = ""
    community: str = ""

    @property
    def logs_in(self) -> bool:
        """With a user and a password."""
        return self.snmp_version in ("", "3")


@dataclass(frozen=True)
class Node:
    """``addresses``: network -> address; ``power_feeds``: any one of them keeps the node, and its BMC, alive."""

    name: str
    addresses: dict[str, str]
    power_feeds: tuple[str, ...]
    bmc: Bmc
    pdus: tuple[Pdu, ...] = ()


@dataclass(frozen=True)
class MetadataTargetPlan:
    """One replicated device and what is served from it. ``address`` is the service's own (``ADDRESS/BITS``), which moves with it."""

    name: str
    devices: dict[str, str]
    prefers: str
    mount: str
    minor: int
    port: int
    role: str = ""
    index: int = 0
    file_system: str = "ext4"
    address: str = ""
    units: tuple[str, ...] = ()
    clients: str = ""


@dataclass(frozen=True)
class FileSystem:
    """``recovery_hard_s`` and ``recovery_soft_s`` are 0 where they shall follow from the number of clients.

    ``watch``: addresses on the clients' network that always answer; a node that reaches none of them serves only when no other does.
    """

    kind: str
    name: str
    arrangement: str
    clients: int
    lnet: str = ""
    lnet_network: str = ""
    recovery_soft_s: float = 0.0
    recovery_hard_s: float = 0.0
    watch: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alerts:
    mail_to: str = ""
    webhook_url_file: str = ""


@dataclass(frozen=True)
class Cluster:
    """``quorum_host`` is empty where two nodes are enough for themselves; ``survivor`` wins when each would power the other off."""

    name: str
    drbd: str
    survivor: str
    quorum_host: str
    token_s: float
    resync_mib_per_s: int
    networks: tuple[Network, ...]
    nodes: tuple[Node, ...]
    file_system: FileSystem
    targets: tuple[MetadataTargetPlan, ...]
    alerts: Alerts

    @cached_property
    def heartbeats(self) -> tuple[Network, ...]:
        return tuple(network for network in self.networks if network.heartbeat)

    @cached_property
    def replication(self) -> Network:
        return next(network for network in self.networks if network.replication)

    def network(self, name: str) -> Network:
        return next(network for network in self.networks if network.name == name)


def read_description(path: Path) -> Cluster:
    """Read a description. Raises BadInputError naming the file, the place in it and what is wrong."""
    return _cluster(ConfigurationSection(read_toml(path, "the description", "cluster").values, str(path)))


def _cluster(top: ConfigurationSection) -> Cluster:
    head = top.section("cluster")
    networks = tuple(_network(name, section) for name, section in top.named("network").items())
    nodes = tuple(_node(section, networks) for section in top.sections("node"))
    names = tuple(node.name for node in nodes)
    if len(nodes) != 2 or len(set(names)) != 2:
        raise BadInputError(
            "a pair has two nodes with different names", where=top.where, why=f"there are: {', '.join(names) or 'none'}"
        )
    file_system = _file_system(top.section("file_system"), networks)
    targets = tuple(
        _target(section, number, nodes, file_system) for number, section in enumerate(top.sections("target"))
    )
    alerts = _alerts(top.maybe("alerts"))
    cluster = Cluster(
        name=_name(head, "name"),
        drbd=head.text("drbd", "9", choices=("8.4", "9")),
        survivor=head.text("survivor", names[0], choices=names),
        quorum_host=head.text("quorum_host", ""),
        token_s=head.seconds("token", "3s"),
        resync_mib_per_s=head.number("resync_mib_per_s", 200, least=1),
        networks=networks,
        nodes=nodes,
        file_system=file_system,
        targets=targets,
        alerts=alerts,
    )
    head.finish()
    top.finish()
    _require_whole(cluster, top.where)
    return cluster


def _network(name: str, section: ConfigurationSection) -> Network:
    if not _NAME.fullmatch(name):
        raise BadInputError(f"not a name of a network: {name!r}", where=section.where)
    subnet = section.text("subnet")
    try:
        ipaddress.ip_network(subnet)
    except ValueError as error:
        raise BadInputError("not a subnet", where=section.where, why=str(error)) from error
    found = Network(
        name,
        subnet,
        section.text("switch", ""),
        section.flag("heartbeat"),
        section.flag("replication"),
        section.text("stands_in_for", ""),
    )
    section.finish()
    return found


def _node(section: ConfigurationSection, networks: tuple[Network, ...]) -> Node:
    name = _name(section, "name")
    addresses = section.mapping("addresses")
    for network, address in addresses.items():
        _require_in(network, address, networks, f"{section.where}: addresses")
    controller = section.section("bmc")
    bmc = Bmc(
        controller.text("address"),
        controller.text("network"),
        _word(controller, "user"),
        _word(controller, "password_script"),
        controller.number("port", 623, least=1),
    )
    controller.finish()
    _require_in(bmc.network, bmc.address, networks, controller.where)
    pdus = []
    for one in section.sections("pdu"):
        pdu = _pdu(one)
        _require_in(pdu.network, pdu.address, networks, one.where)
        pdus.append(pdu)
    feeds = section.texts("power_feeds")
    section.finish()
    if not feeds:
        raise BadInputError("a node has at least one power feed", where=section.where)
    return Node(name, addresses, feeds, bmc, tuple(pdus))


def _addresses(section: ConfigurationSection, key: str) -> tuple[str, ...]:
    values = section.texts(key, ())
    for value in values:
        try:
            ipaddress.ip_address(value)
        except ValueError as error:
            raise section.wrong(key, value, "a list of addresses") from error
    return values


def _pdu(section: ConfigurationSection) -> Pdu:
    agent, address, network, outlet, feed = (
        _word(section, key) for key in ("agent", "address", "network", "outlet", "feed")
    )
    version = section.text("snmp_version", choices=("1", "2c", "3")) if "snmp" in agent else ""
    if version in ("1", "2c"):
        pdu = Pdu(agent, address, network, outlet, feed, snmp_version=version, community=_word(section, "community"))
    else:
        pdu = Pdu(
            agent, address, network, outlet, feed, _word(section, "user"), _word(section, "password_script"), version
        )
    section.finish()
    return pdu


def _file_system(section: ConfigurationSection, networks: tuple[Network, ...]) -> FileSystem:
    kind = section.text("kind", choices=KINDS)
    lustre = kind == "lustre"
    found = FileSystem(
        kind=kind,
        name=_word(section, "name"),
        arrangement=section.text("arrangement", "active/standby", choices=("active/standby", "active/active")),
        clients=section.number("clients", 0),
        lnet=section.text("lnet", "tcp") if lustre else "",
        lnet_network=section.text("lnet_network", choices=tuple(network.name for network in networks))
        if lustre
        else "",
        recovery_soft_s=section.seconds("recovery_soft", "0s") if lustre else 0.0,
        recovery_hard_s=section.seconds("recovery_hard", "0s") if lustre else 0.0,
        watch=_addresses(section, "watch"),
    )
    section.finish()
    if lustre and not _LNET.fullmatch(found.lnet):
        raise BadInputError(
            f"not a network of LNet: {found.lnet!r}", where=section.where, remedy='Write it like "tcp" or "o2ib1".'
        )
    if lustre and not re.fullmatch(r"[A-Za-z0-9_-]{1,8}", found.name):
        raise BadInputError(
            f"not a name of a Lustre file system: {found.name!r}", where=section.where, why="it has 1 to 8 letters"
        )
    return found


def _target(
    section: ConfigurationSection, number: int, nodes: tuple[Node, ...], file_system: FileSystem
) -> MetadataTargetPlan:
    names = tuple(node.name for node in nodes)
    name = _name(section, "name")
    devices = section.mapping("devices")
    if set(devices) != set(names) or not all(
        _WORD.fullmatch(device) and device.startswith("/dev/") for device in devices.values()
    ):
        raise section.wrong("devices", devices, f"a device below /dev for each of {', '.join(names)}")
    kind = file_system.kind
    target = MetadataTargetPlan(
        name=name,
        devices=devices,
        prefers=section.text("prefers", names[0], choices=names),
        mount=_word(section, "mount"),
        minor=section.number("minor", number),
        port=section.number("port", 7788 + number, least=1),
        role=section.text("role", choices=("mgs", "mdt", "mgs+mdt")) if kind == "lustre" else "",
        index=section.number("index", 0) if kind == "lustre" else 0,
        file_system="lustre" if kind == "lustre" else section.text("file_system", "ext4", choices=("ext4", "xfs")),
        address="" if kind == "lustre" else section.text("address"),
        units=section.texts("units") if kind == "service" else (),
        clients=_word(section, "clients") if kind == "nfs" else "",
    )
    section.finish()
    if any(device.startswith("/dev/drbd") for device in devices.values()):
        raise section.wrong("devices", devices, "the disks below DRBD, such as /dev/VG/LV, not DRBD's own devices")
    if not re.fullmatch(r"(/[^/]+)+", target.mount):
        raise section.wrong("mount", target.mount, "an absolute path, and not /")
    if target.port in _COROSYNC_PORTS:
        raise section.wrong("port", target.port, "a port that Corosync does not use")
    if not all(_WORD.fullmatch(unit) for unit in target.units):
        raise section.wrong("units", target.units, "names of systemd units")
    if target.address:
        try:
            ipaddress.ip_interface(target.address)
        except ValueError as error:
            raise BadInputError(
                "not an address", where=section.where, why=str(error), remedy='Write it like "10.1.0.5/24".'
            ) from error
    return target


def _alerts(section: ConfigurationSection | None) -> Alerts:
    if section is None:
        return Alerts()
    found = Alerts(section.text("mail_to", ""), section.text("webhook_url_file", ""))
    section.finish()
    return found


def _require_whole(cluster: Cluster, where: str) -> None:
    """Check what no single table can know."""
    if not cluster.targets:
        raise BadInputError("there is nothing to keep up", where=where, remedy="Add at least one [[target]].")
    if len([network for network in cluster.networks if network.replication]) != 1:
        raise BadInputError(
            "exactly one network carries the replication", where=where, remedy="Give one of them: replication = true"
        )
    if not 0 < len(cluster.heartbeats) <= 8:
        many = len(cluster.heartbeats)
        raise BadInputError(
            "too many networks carry the heartbeat" if many else "no network carries the heartbeat",
            where=where,
            why="Corosync has at most 8 links" if many else "",
            remedy="Give two of them: heartbeat = true",
        )
    for network in cluster.networks:
        used = network.heartbeat or network.replication or network.name == cluster.file_system.lnet_network
        for node in cluster.nodes:
            if used and network.name not in node.addresses:
                raise BadInputError(f"{node.name} has no address on {network.name}", where=where)
    _require_unique(cluster, where)
    _require_own_addresses(cluster, where)
    _require_arrangement(cluster, where)
    if cluster.file_system.kind == "lustre" and sum("mgs" in target.role for target in cluster.targets) != 1:
        raise BadInputError(
            "a Lustre file system has one MGS", where=where, remedy='Give one target role = "mgs" or "mgs+mdt".'
        )


def _require_unique(cluster: Cluster, where: str) -> None:
    targets = cluster.targets
    addresses = [address for node in cluster.nodes for address in (*node.addresses.values(), node.bmc.address)]
    for what, values in (
        ("address", addresses),
        ("target name", [target.name for target in targets]),
        ("DRBD minor", [str(target.minor) for target in targets]),
        ("port", [str(target.port) for target in targets]),
        ("mount point", [target.mount for target in targets]),
        ("index", [str(target.index) for target in targets if "mdt" in target.role]),
        *((f"device on {node.name}", [target.devices[node.name] for target in targets]) for node in cluster.nodes),
    ):
        twice = [value for value in values if values.count(value) > 1]
        if twice:
            raise BadInputError(f"the same {what} is given twice", where=where, why=twice[0])


def _require_own_addresses(cluster: Cluster, where: str) -> None:
    """Check that the services and the quorum device have addresses that no node has, and that can be reached."""
    taken = {
        address: node.name
        for node in cluster.nodes
        for address in (
            *node.addresses.values(),
            node.bmc.address,
            node.name,
            *(pdu.address for pdu in node.pdus),
        )
    }
    if cluster.quorum_host in taken:
        raise BadInputError(
            "the quorum device is on a machine of the pair",
            where=where,
            why=f"{cluster.quorum_host} is {taken[cluster.quorum_host]}",
            remedy="Give a third machine as quorum_host.",
        )
    for target in cluster.targets:
        if not target.address:
            continue
        address = ipaddress.ip_interface(target.address).ip
        if str(address) in (*taken, cluster.quorum_host):
            raise BadInputError(
                f"the address of {target.name} is taken", where=where, why=f"{address} is another machine's"
            )
        if not any(address in ipaddress.ip_network(network.subnet) for network in cluster.networks):
            raise BadInputError(f"the address of {target.name} is on no network", where=where, why=str(address))
        taken[str(address)] = target.name


def _require_arrangement(cluster: Cluster, where: str) -> None:
    homes = {target.prefers for target in cluster.targets}
    if cluster.file_system.arrangement == "active/standby" and len(homes) > 1:
        raise BadInputError(
            "active/standby, but the targets prefer different nodes", where=where, why=", ".join(sorted(homes))
        )
    if cluster.file_system.arrangement == "active/active" and len(homes) < 2:
        raise BadInputError("active/active, but all targets prefer the same node", where=where, why=", ".join(homes))


def _require_in(network: str, address: str, networks: tuple[Network, ...], where: str) -> None:
    known = {one.name: one for one in networks}
    if network not in known:
        raise BadInputError(f"there is no network {network!r}", where=where, remedy=f"There are: {', '.join(known)}.")
    try:
        inside = ipaddress.ip_address(address) in ipaddress.ip_network(known[network].subnet)
    except ValueError as error:
        raise BadInputError("not an address", where=where, why=str(error)) from error
    if not inside:
        raise BadInputError(f"{address} is not on {network}", where=where, why=f"its subnet is {known[network].subnet}")


def _name(section: ConfigurationSection, key: str) -> str:
    value = section.text(key)
    if not _NAME.fullmatch(value):
        raise section.wrong(key, value, "small letters, digits and hyphens, beginning with a letter")
    return value


def _word(section: ConfigurationSection, key: str) -> str:
    """Take what goes into configuration files as it is: nothing that those could take for something else."""
    value = section.text(key)
    if not _WORD.fullmatch(value):
        raise section.wrong(key, value, "a text without spaces and quotes")
    return value
