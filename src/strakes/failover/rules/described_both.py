"""Rules about what only one side has: words of the description without a file, and files without a word of it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from strakes.failover.pacemaker_resources import PINGING
from strakes.failover.rules.beside import commands
from strakes.failover.rules.described import REMEDY
from strakes.failover.rules.heartbeat import links_of, nodes_of
from strakes.failover.rules.mounts import ADDRESSES
from strakes.failover.rules.rule import OWN, rule
from strakes.failover.setup import Setup


@rule("description", "corosync").error(
    reason="The description has it, but no file does: a missing link, vote or watch is noticed only when it is needed.",
    remedy=REMEDY,
    source=OWN,
)
def described_but_not_configured(setup: Setup) -> Iterator[str]:
    """Find links, the quorum device and watches of the description that no file has."""
    cluster = setup.described
    used = {address for node in nodes_of(setup) for address in links_of(node).values()}
    numeric = used and all(re.fullmatch(r"[0-9a-fA-F.:]+", address) for address in used)
    for network in cluster.heartbeats if numeric else ():
        if not used & {node.addresses.get(network.name) for node in cluster.nodes}:
            yield f"corosync.conf: no link is on {network.name}, which carries the heartbeat"
    device = setup.membership.one("quorum").all("device")
    if cluster.quorum_host and not device:
        yield f"corosync.conf: there is no quorum device, cluster.toml has quorum_host={cluster.quorum_host}"
    services = setup.services
    watchers = [one for one in services if one.agent in PINGING]
    if cluster.file_system.watch and services and not watchers:
        yield f"cib: nobody watches {', '.join(cluster.file_system.watch)}"
    # A card may be watched by what is reached over it.
    watched = bool(watchers) or any(one.agent == "ethmonitor" for one in services)
    for network in cluster.networks if services and not watched else ():
        if network.interface:
            yield f"cib: nobody watches {network.interface} ({network.name})"
    hosts = {host for one in watchers for host in one.values.get("host_list", "").split()}
    numeric = hosts and not any(re.search(r"[g-zG-Z]", host.partition("@")[0]) for host in hosts)
    lost = [host for host in cluster.file_system.watch if host.partition("@")[0] not in {_plain(one) for one in hosts}]
    if watchers and numeric and lost:
        yield f"cib: nobody watches {', '.join(lost)}"


def _plain(host: str) -> str:
    return host.partition("@")[0]


@rule("description", "pacemaker").warning(
    reason="The rehearsal uses the description: what is missing there is not rehearsed, and the next plan removes it.",
    remedy="Add it to the description, or remove it from the files.",
    source=OWN,
)
def configured_but_not_described(setup: Setup) -> Iterator[str]:
    """Find the quorum device, copies, mounts and addresses that the description does not have."""
    cluster, services = setup.described, setup.pacemaker.services
    if setup.corosync and setup.corosync.one("quorum").all("device") and not cluster.quorum_host:
        yield "corosync.conf: there is a quorum device, cluster.toml has no quorum_host"
    names = {target.name for target in cluster.targets if target.replicated}
    found = [resource.name for resource in setup.drbd if names and resource.name not in names]
    points = [target.mount.rstrip("/") for target in cluster.targets]
    for one in services:
        below = any(f"{one.mount_point}/".startswith(f"{point}/") for point in points)
        on_disk = one.is_mount and one.device.startswith("/dev/") and "bind" not in one.values.get("options", "")
        if on_disk and not below and set(points) & {other.mount_point for other in services}:
            found.append(one.id)
    addresses = {str(ipaddress.ip_interface(target.address).ip) for target in cluster.targets if target.address}
    brought_up = [one for one in services if addresses and one.agent in ADDRESSES]
    found += [one.id for one in brought_up if one.values.get("ip", "") not in addresses]
    if found:
        yield f"cluster.toml has no word of {', '.join(found)}"


@rule("description").warning(
    reason="One of the two numbers was changed, and the rehearsal calculates its times from the other.",
    remedy=REMEDY,
    source=OWN,
)
def number_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find the token, the speed of resynchronisation and ports that are not the described ones."""
    cluster = setup.described
    token = setup.corosync.one("totem").get("token") if setup.corosync else ""
    if "token" in cluster.given and token.isdecimal() and int(token) != round(cluster.token_s * 1000):
        yield f"corosync.conf: token={token}, cluster.toml says {cluster.token_s:g} s"
    limits = {"soft": cluster.file_system.recovery_soft_s, "hard": cluster.file_system.recovery_hard_s}
    for kind, given in re.findall(r"recovery_time_(soft|hard)=(\d{1,9})", f"{setup.lustre}\n{setup.lustre_parameters}"):
        if limits[kind] and float(given) != limits[kind]:
            yield f"lustre: recovery_time_{kind}={given}, cluster.toml says {limits[kind]:g} s"
    ports = {target.name: target.port for target in cluster.targets if "port" in target.given}
    for resource in setup.drbd:
        for rate in resource.all_values("disk", "c-max-rate") if "resync_mib_per_s" in cluster.given else ():
            if (speed := _mib(rate)) is not None and speed != cluster.resync_mib_per_s:
                yield f"drbd: {resource.name} has c-max-rate {rate}, cluster.toml says {cluster.resync_mib_per_s} MiB/s"
        for host in resource.hosts:
            own = {address.rpartition(":")[2] for address in host.addresses}
            if resource.name in ports and own and str(ports[resource.name]) not in own:
                given = ", ".join(sorted(own))
                yield f"drbd: {resource.name} has port {given} on {host.name}, cluster.toml says {ports[resource.name]}"


def _mib(rate: str) -> float | None:
    """Read a rate of DRBD, which is in KiB where no unit is written, in MiB."""
    read = re.fullmatch(r"(\d{1,12})([kKmMgG]?)", rate)
    return int(read[1]) * {"m": 1.0, "g": 1024.0}.get(read[2].lower(), 1 / 1024) if read else None


@rule("description", "drbd").error(
    reason="The replication uses a network that was not meant for it: it is slow or full, or is cut together with the "
    "heartbeat.",
    remedy=REMEDY,
    source=OWN,
)
def replication_on_another_network_than_described(setup: Setup) -> Iterator[str]:
    """Find copies of which no path is on the network that carries the replication."""
    network = setup.described.replication
    own = {node.name: node.addresses.get(network.name, "") for node in setup.described.nodes} if network else {}
    for resource in setup.drbd:
        for host in resource.hosts:
            ips = {re.sub(r"^\[|\]$", "", address.rpartition(":")[0]) for address in host.addresses}
            if ips and own.get(host.name) and own[host.name] not in ips and network:
                yield f"drbd: {resource.name} has {', '.join(sorted(ips))} on {host.name}, not {network.name}"


@rule("description", "lustre").error(
    reason="The pool uses other disks than described, or in a different arrangement: what is on these disks is lost, "
    "or fewer disks may fail.",
    remedy=REMEDY,
    source=OWN,
)
def pool_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find pools that are made of other words than the described ones."""
    pools = {target.pool: target.vdevs for target in setup.described.targets if target.pool}
    for line in commands(setup.lustre):
        words = line.split()
        for pool, vdevs in pools.items() if words[:2] == ["zpool", "create"] else ():
            made = words[words.index(pool) + 1 :] if pool in words else list(vdevs)
            if made != list(vdevs):
                differ = [word for word in (*made, *vdevs) if (word in made) != (word in vdevs)] or made
                yield f"make-targets.sh: {pool} differs from cluster.toml in {', '.join(dict.fromkeys(differ))}"
