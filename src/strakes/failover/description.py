"""Reader of ``cluster.toml``: checks each key and makes the values of ``cluster``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.toml_file import read_toml
from strakes.base.units import parse_seconds
from strakes.failover.cluster import Alerts, Bmc, Cluster, FileSystem, Network, Node, Pdu, ServedTarget
from strakes.failover.consistency import require_whole

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_LNET = re.compile(r"(tcp|o2ib|kfi|gni|efa)\d{0,3}")
_COROSYNC_PORTS = (5404, 5405, 5406)
_WORD = re.compile(r"[A-Za-z0-9@%_./:+,=-]+")
_INTERFACE = re.compile(r"[A-Za-z0-9_.-]{1,15}")
_NID = re.compile(r"[0-9A-Fa-f.:]+@(tcp|o2ib|kfi|gni|efa)\d{0,3}")
# Corosync is not tested with more.
_MOST_NODES = 16
KINDS = ("lustre", "nfs", "service")


def read_description(path: Path) -> Cluster:
    """Read a description. Raises BadInputError with the file, the key and the reason."""
    return _cluster(ConfigurationSection(read_toml(path, "the description", "cluster").values, str(path)))


def _cluster(top: ConfigurationSection) -> Cluster:
    head = top.section("cluster")
    networks = tuple(_network(name, section) for name, section in top.named("network").items())
    nodes = tuple(_node(section, networks) for section in top.sections("node"))
    names = tuple(node.name for node in nodes)
    if not 2 <= len(nodes) <= _MOST_NODES or len(set(names)) != len(names):
        raise BadInputError(
            f"a cluster has 2 to {_MOST_NODES} nodes with different names",
            where=top.where,
            why=f"there are: {', '.join(names) or 'none'}",
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
    require_whole(cluster, top.where)
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
        section.text("interface", ""),
    )
    section.finish()
    if found.interface and not _INTERFACE.fullmatch(found.interface):
        raise section.wrong("interface", found.interface, "the name of a network card, such as bond0")
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
    quorum_only = section.flag("quorum_only")
    section.finish()
    if not feeds:
        raise BadInputError("a node has at least one power feed", where=section.where)
    return Node(name, addresses, feeds, bmc, tuple(pdus), quorum_only)


def _addresses(section: ConfigurationSection, key: str) -> tuple[str, ...]:
    values = section.texts(key, ())
    for value in values:
        try:
            ipaddress.ip_address(value)
        except ValueError as error:
            if not _NID.fullmatch(value):
                raise section.wrong(key, value, "a list of addresses, or of NIDs") from error
    if len({"@" in value for value in values}) > 1:
        raise section.wrong(key, values, "either addresses or NIDs")
    return values


def _pdu(section: ConfigurationSection) -> Pdu:
    words = {key: _word(section, key) for key in ("agent", "address", "network", "outlet", "feed")}
    version = section.text("snmp_version", choices=("1", "2c", "3")) if "snmp" in words["agent"] else ""
    keys = ("community",) if version in ("1", "2c") else ("user", "password_script")
    pdu = Pdu(**words, snmp_version=version, **{key: _word(section, key) for key in keys})
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
        mgs=section.texts("mgs", ()) if lustre else (),
    )
    section.finish()
    for nid in found.mgs:
        if not _NID.fullmatch(nid):
            raise section.wrong("mgs", found.mgs, 'a list of NIDs such as "10.1.0.1@tcp"')
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
) -> ServedTarget:
    servers = tuple(node.name for node in nodes if not node.quorum_only)
    name = _name(section, "name")
    storage = _storage(section, servers)
    kind = file_system.kind
    target = ServedTarget(
        name=name,
        devices=storage.devices,
        prefers=section.text("prefers", storage.nodes[0], choices=storage.nodes),
        mount=_word(section, "mount"),
        minor=section.number("minor", number),
        port=section.number("port", 7788 + number, least=1),
        nodes=storage.nodes,
        shared=storage.shared,
        pool=storage.pool,
        vdevs=storage.vdevs,
        role=section.text("role", choices=("mgs", "mdt", "mgs+mdt", "ost")) if kind == "lustre" else "",
        index=section.number("index", 0) if kind == "lustre" else 0,
        file_system=_file_system_of(section, kind, storage.pool),
        address="" if kind == "lustre" else section.text("address"),
        units=section.texts("units") if kind == "service" else (),
        clients=_word(section, "clients") if kind == "nfs" else "",
    )
    section.finish()
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


@dataclass(frozen=True)
class _Storage:
    """The storage of a target, as the fields of ``ServedTarget``."""

    nodes: tuple[str, ...]
    devices: dict[str, str]
    shared: bool = False
    pool: str = ""
    vdevs: tuple[str, ...] = ()


def _storage(section: ConfigurationSection, servers: tuple[str, ...]) -> _Storage:
    """Read the storage of a target.

    It is given as ``devices`` (one on each node, replicated by DRBD), as ``device`` (shared by both nodes), or as
    ``pool`` with ``vdevs`` (ZFS).
    """
    device, pool = section.text("device", ""), section.text("pool", "")
    if not device and not pool:
        devices = section.mapping("devices")
        nodes = tuple(name for name in servers if name in devices)
        strangers = set(devices) - set(servers)
        if len(nodes) != 2 or strangers or not all(map(_is_device, devices.values())):
            raise section.wrong("devices", devices, f"a device below /dev for each of two of {', '.join(servers)}")
        if any(path.startswith("/dev/drbd") for path in devices.values()):
            raise section.wrong("devices", devices, "the disks below DRBD, such as /dev/VG/LV, not DRBD's own devices")
        return _Storage(nodes, devices)
    nodes = section.texts("nodes", servers)
    if len(nodes) != 2 or len(set(nodes)) != 2 or not set(nodes) <= set(servers):
        raise section.wrong("nodes", nodes, f"the two nodes that reach the disks, of {', '.join(servers)}")
    if device and pool:
        raise BadInputError(
            "a target has a device or a pool",
            where=section.where,
            remedy="Give one of them: device, or pool and vdevs.",
        )
    if device:
        if not _is_device(device) or device.startswith("/dev/drbd"):
            raise section.wrong("device", device, "a device below /dev that has the same name on both nodes")
        return _Storage(nodes, dict.fromkeys(nodes, device), shared=True)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,60}", pool) or pool in ("mirror", "raidz", "draid", "spare", "log"):
        raise section.wrong("pool", pool, "a name of a ZFS pool")
    vdevs = section.texts("vdevs")
    if not any(word.startswith("/dev/") for word in vdevs) or not all(_WORD.fullmatch(word) for word in vdevs):
        raise section.wrong(
            "vdevs", vdevs, 'the words of zpool create, such as "mirror", "/dev/mapper/a", "/dev/mapper/b"'
        )
    return _Storage(nodes, {}, shared=True, pool=pool, vdevs=vdevs)


def _is_device(path: str) -> bool:
    return bool(_WORD.fullmatch(path)) and path.startswith("/dev/") and not path.endswith("/")


def _file_system_of(section: ConfigurationSection, kind: str, pool: str) -> str:
    if kind == "lustre":
        return "lustre"
    return "zfs" if pool else section.text("file_system", "ext4", choices=("ext4", "xfs"))


def _alerts(section: ConfigurationSection | None) -> Alerts:
    if section is None:
        return Alerts()
    found = Alerts(section.text("mail_to", ""), section.text("webhook_url_file", ""))
    section.finish()
    return found


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
    """Return a text without spaces and quotes, which configuration files take literally."""
    value = section.text(key)
    if not _WORD.fullmatch(value):
        raise section.wrong(key, value, "a text without spaces and quotes")
    return value


class ConfigurationSection:
    """One table. ``finish`` refuses the keys that were not read."""

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, Mapping):
            raise BadInputError("expected a table", where=where, why=f"it is {values!r}")
        self.where = where
        self._values = dict(values)
        self._known: list[str] = []

    def text(self, key: str, default: str | None = None, *, choices: tuple[str, ...] = ()) -> str:
        """Return a text. Raises BadInputError when it is missing, empty or not one of the choices."""
        value = self._take(key, default)
        if not isinstance(value, str) or not (value.strip() or default == ""):
            raise self.wrong(key, value, f"one of {', '.join(choices)}" if choices else "a text")
        if choices and value not in choices:
            raise self.wrong(key, value, f"one of {', '.join(choices)}")
        return value

    def number(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """Return a whole number. Raises BadInputError when it is missing, below ``least`` or not a whole number."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.wrong(key, value, f"a whole number of at least {least}")
        return value

    def flag(self, key: str) -> bool:
        """Return true or false. Raises BadInputError for anything else."""
        value = self._take(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def seconds(self, key: str, default: str) -> float:
        """Return a time in seconds, written as in "3s". Raises BadInputError for anything else."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, value, 'a time such as "3s"')
        return parse_seconds(value)

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return a list of texts. Raises BadInputError when it is missing or contains an empty text or another type."""
        value = self._take(key, default)
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
            raise self.wrong(key, value, "a list of texts")
        return tuple(value)

    def mapping(self, key: str) -> dict[str, str]:
        """Return a table of texts. Raises BadInputError when it is missing or holds anything else."""
        value = self._take(key, None)
        if not isinstance(value, Mapping) or not all(isinstance(one, str) and one for one in value.values()):
            raise self.wrong(key, value, "a table of texts")
        return dict(value)

    def section(self, key: str) -> ConfigurationSection:
        """Return a table. Raises BadInputError when it is missing."""
        return ConfigurationSection(self._take(key, None), f"{self.where}: {key}")

    def maybe(self, key: str) -> ConfigurationSection | None:
        """Return a table, or None when it is missing."""
        self._known.append(key)
        return self.section(key) if key in self._values else None

    def sections(self, key: str) -> tuple[ConfigurationSection, ...]:
        """Return a list of tables. Raises BadInputError for anything else."""
        value = self._take(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, value, f"[[{key}]] tables")
        return tuple(ConfigurationSection(one, f"{self.where}: {key} {number}") for number, one in enumerate(value, 1))

    def named(self, key: str) -> dict[str, ConfigurationSection]:
        """Return tables by name. Raises BadInputError for anything else."""
        value = self._take(key, {})
        if not isinstance(value, Mapping):
            raise self.wrong(key, value, f"[{key}.NAME] tables")
        return {name: ConfigurationSection(one, f"{self.where}: {key}.{name}") for name, one in value.items()}

    def finish(self) -> None:
        """Raise BadInputError for the first key that was not read."""
        for key in self._values:
            if key not in self._known:
                close = get_close_matches(key, self._known, 1)
                hint = f"Did you mean {close[0]!r}? " if close else ""
                raise BadInputError(
                    f"unknown key {key!r}", where=self.where, remedy=f"{hint}The keys are: {', '.join(self._known)}."
                )

    def wrong(self, key: str, value: object, wanted: str) -> BadInputError:
        """Return the error for a missing or wrong value; ``wanted`` describes a valid value."""
        if value is None:
            return BadInputError(f"the key {key!r} is missing", where=self.where, remedy=f"It must be {wanted}.")
        return BadInputError(f"{key!r} must be {wanted}", where=self.where, why=f"it is {value!r}")

    def _take(self, key: str, default: object) -> Any:
        self._known.append(key)
        value = self._values.get(key, default)
        # Texts are written to line-based configuration files and to XML, which cannot hold NUL.
        if any(not text.isprintable() for text in _texts(value)):
            raise self.wrong(key, value, "without control characters and ends of lines")
        return value


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a value, including the names of keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
