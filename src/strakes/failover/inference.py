"""Infers a description from a cluster's files without a cluster.toml, and the service of each target."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from strakes.failover.cluster import Alerts, Bmc, Cluster, FileSystem, Network, Node, Pdu, ServedTarget
from strakes.failover.model import ClusterModel, FencingDevice, Service
from strakes.failover.rules_fencing_devices import is_bmc, is_outlet, plug_of
from strakes.failover.rules_heartbeat import read_address

_FENCING = "fencing network"
_NO_BMC = Bmc("", "", "", "")
_REPLICATION = "replication network"


def inferred_cluster(model: ClusterModel) -> Cluster:
    """Return a description of a model; ``model.assumed`` lists its assumptions."""
    networks = tuple(_networks(model))
    nodes = tuple(_node(model, name, networks) for name in (node.name for node in model.nodes))
    names = tuple(node.name for node in nodes)
    return Cluster(
        name="",
        drbd="9" if any(one.dialect9 for one in model.replicated) else "8.4",
        survivor=names[0] if names else "",
        quorum_host=model.quorum_host,
        token_s=0.0,
        resync_mib_per_s=0,
        networks=networks,
        nodes=nodes,
        file_system=FileSystem("service", "", "", 0),
        targets=tuple(_target(service) for service in model.services if service.nodes),
        alerts=Alerts(),
    )


def services_by_target(model: ClusterModel, cluster: Cluster) -> dict[str, Service]:
    """Return the service of each target: the one with its name, DRBD resource, pool, mount point or address."""
    found = {}
    for target in cluster.targets:
        service = next((one for one in model.services if _is_of(one, target)), None)
        if service is None and len(cluster.targets) == len(model.services) == 1:
            service = model.services[0]
        if service is not None:
            found[target.name] = service
    return found


def _is_of(service: Service, target: ServedTarget) -> bool:
    mounts = [one.mount_point for one in service.members if one.is_mount]
    address = target.address.partition("/")[0]
    return (
        target.name in (service.name, *service.replicated)
        or target.mount.rstrip("/") in filter(None, mounts)
        or (target.pool or None) in service.pools
        or (address or None) in service.addresses
    )


def _networks(model: ClusterModel) -> Iterator[Network]:
    """Yield a network for each Corosync link, and separate ones for replication and fencing if needed."""
    addresses = [address for one in model.replicated for host in one.hosts for address in host.addresses]
    replication = [_ip(address) for address in addresses]
    given: dict[int, list[str]] = {}
    for node in model.nodes:
        for number, address in node.addresses.items():
            given.setdefault(number, []).append(address)
    rows = sorted((given or {0: [], 1: []}).items())
    links = [Network(f"link {number}", _subnet(ends), heartbeat=True) for number, ends in rows]
    carrier = next((link for link in links if any(map(link.holds, replication))), None)
    if not replication and any(service.replicated for service in model.services):
        carrier = links[-1]
    for link in links:
        yield Network(link.name, link.subnet, heartbeat=True, replication=link is carrier)
    if replication and carrier is None:
        yield Network(_REPLICATION, _subnet(replication), replication=True)
    if any(is_bmc(device.resource) or is_outlet(device.resource) for device in model.devices):
        yield Network(_FENCING, "")


def _ip(address: str) -> str:
    """Return the address of ``ipv4 10.1.0.1:7788`` or ``[::1]:7788``."""
    text = address.rsplit(maxsplit=1)[-1] if address.split() else ""
    return text.rpartition(":")[0].strip("[]") if ":" in text else text


def _subnet(addresses: list[str]) -> str:
    """Return the longest network that holds these addresses, at most /24 of IPv4 or /64; empty for host names."""
    read = [read_address(address) for address in addresses]
    first = read[0] if read else None
    if first is None:
        return ""
    for bits in range(24 if first.version == 4 else 64, 7, -1):
        network = ipaddress.ip_network(f"{first}/{bits}", strict=False)
        if all(address is not None and address in network for address in read):
            return str(network)
    return ""


def _node(model: ClusterModel, name: str, networks: tuple[Network, ...]) -> Node:
    own = next(node.addresses for node in model.nodes if node.name == name)
    addresses = {network.name: "" for network in networks if network.name != _FENCING}
    addresses |= {f"link {number}": address for number, address in own.items()}
    devices = [device for device in model.devices if name in device.targets]
    bmc = next((Bmc(one.address, _FENCING, "", "", _port(one)) for one in devices if is_bmc(one.resource)), _NO_BMC)
    outlets = [one for one in devices if is_outlet(one.resource)]
    together = any(len(set(level) & {one.resource.id for one in outlets}) > 1 for level in model.levels.get(name, ()))
    pdus = tuple(_pdu(one, name, str(number) if together else "") for number, one in enumerate(outlets, 1))
    return Node(name, addresses, tuple(dict.fromkeys(pdu.feed for pdu in pdus)) or (f"of {name}",), bmc, pdus)


def _port(device: FencingDevice) -> int:
    given = device.resource.values.get("ipport", "")
    return int(given) if given.isdecimal() else 623


def _pdu(device: FencingDevice, node: str, number: str) -> Pdu:
    """Return an outlet; outlets that one level switches together are on different feeds."""
    plug = plug_of(device.resource, node)
    return Pdu(device.resource.agent, device.address, _FENCING, plug, f"{number} of {node}".strip())


def _target(service: Service) -> ServedTarget:
    mount = next((one.mount_point for one in service.members if one.is_mount), "")
    devices: Mapping[str, str] = dict.fromkeys(service.nodes, service.devices[0]) if service.devices else {}
    return ServedTarget(
        name=service.name,
        devices=dict(devices),
        prefers=service.nodes[0],
        mount=mount,
        minor=0,
        port=0,
        nodes=service.nodes,
        shared=not service.replicated,
        pool=next(iter(service.pools), ""),
    )
