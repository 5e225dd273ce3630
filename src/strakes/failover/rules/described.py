"""Rules about files that say something else than the description: addresses, devices, outlets, NIDs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.cib import Cib
from strakes.failover.cib_values import is_true
from strakes.failover.cluster import Bmc, Pdu, ServedTarget
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.planned.lustre import nids
from strakes.failover.rules.fencing_devices import address_of, delays_of, is_bmc, is_outlet, plug_of
from strakes.failover.rules.heartbeat import hosts_of, is_address, links_of, name_of, nodes_of
from strakes.failover.rules.lustre import made_targets
from strakes.failover.rules.rule import OWN, rule
from strakes.failover.setup import Setup

REMEDY = "Correct the file, or the description where that is wrong; then plan or check again."
_USERS = ("username", "login", "userid")


@rule("description").error(
    reason="The files and the description name different machines: one of them is wrong, so what is checked is not "
    "what will run.",
    remedy=REMEDY,
    source=OWN,
)
def nodes_differ_from_the_description(setup: Setup) -> Iterator[str]:
    """Find nodes that are only in the files, or only in the description."""
    known = {node.name for node in setup.described.nodes}
    for name in setup.node_names:
        if name not in known:
            yield f"node {name} is not in cluster.toml"
    for name in sorted(known) if setup.node_names else ():
        if name not in setup.node_names:
            yield f"node {name} of cluster.toml is in no file"
    if setup.corosync and setup.corosync.one("totem").get("cluster_name", setup.described.name) != setup.described.name:
        yield f"corosync.conf: cluster_name is not {setup.described.name}"


@rule("description", "corosync").error(
    reason="Nobody has the address that the file names, so the link does not work; or it is a different link than "
    "intended.",
    remedy=REMEDY,
    source=OWN,
)
def link_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find addresses of links, and of the quorum device, that are not the described ones."""
    described = {node.name: node for node in setup.described.nodes}
    network_of = {address: name for node in described.values() for name, address in node.addresses.items()}
    used: dict[int, set[str]] = {}
    known = hosts_of(setup)
    for node in nodes_of(setup):
        ours = described.get(name_of(node))
        for number, written in links_of(node).items():
            address = known.get(written, written)
            if not is_address(address):
                continue
            if ours and address not in ours.addresses.values():
                yield f"corosync.conf: ring{number}_addr of {ours.name} is {address}, which it does not have"
            else:
                used.setdefault(number, set()).add(network_of.get(address, ""))
    for number, networks in used.items():
        if len(networks) > 1:
            yield f"corosync.conf: link {number} connects {' with '.join(sorted(networks))}"
    beat = {network.name for network in setup.described.heartbeats}
    for number, networks in used.items():
        for name in sorted(networks - beat - {""}):
            yield f"corosync.conf: link {number} is on {name}, which carries no heartbeat"
    device = setup.membership.one("quorum").one("device").one("net").get("host")
    if device and setup.described.quorum_host and device != setup.described.quorum_host:
        yield f"corosync.conf: the quorum device is on {device}, not on {setup.described.quorum_host}"


@rule("description", "pacemaker").error(
    reason="The device powers off a different machine: the broken node keeps writing, and a healthy one dies.",
    remedy=f"{REMEDY} Prove each device: stonith_admin --fence NODE",
    source=OWN,
)
def fencing_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find devices that switch another BMC or outlet than the described one, and outlets that none switches."""
    cib = setup.pacemaker
    for node in setup.described.nodes:
        outlets = {(pdu.address, pdu.outlet): pdu for pdu in node.pdus}
        for device in cib.devices:
            if node.name not in cib.fences(device):
                continue
            if is_bmc(device):
                yield from _bmc(device, node.name, node.bmc)
            elif is_outlet(device):
                outlet = (address_of(device), plug_of(device, node.name))
                if outlet not in outlets:
                    yield f"cib: {device.id} switches outlet {' '.join(outlet)}, which is not one of {node.name}"
                else:
                    yield from _outlet(device, outlets[outlet])
        switched = {
            (address_of(device), plug_of(device, node.name))
            for device in cib.devices
            if is_outlet(device) and node.name in cib.fences(device)
        }
        for address, plug in sorted(outlets.keys() - switched):
            yield f"cib: nobody switches outlet {plug} of {address}, which feeds {node.name}"


def _bmc(device: Primitive, node: str, described: Bmc) -> Iterator[str]:
    address, port = address_of(device), device.values.get("ipport", str(described.port))
    if not _given(device, *_USERS) and device.agent.startswith("fence_"):
        yield f"cib: {device.id} has no username, cluster.toml says {described.user}"
    if address and address != described.address:
        yield f"cib: {device.id} is {address}, the BMC of {node} is {described.address}"
    if port != str(described.port):
        yield f"cib: {device.id} is on port {port}, the BMC of {node} on {described.port}"
    yield from _login(device, described.user, described.password_script)


def _outlet(device: Primitive, described: Pdu) -> Iterator[str]:
    yield from _login(device, described.user, described.password_script)
    if device.agent != described.agent:
        yield f"cib: {device.id} is {device.agent}, cluster.toml says {described.agent}"
    for name, value in (("snmp_version", described.snmp_version), ("community", described.community)):
        if value and (given := device.values.get(name)) and given != value:
            yield f"cib: {device.id} has {name}={given}, cluster.toml says {value}"


def _login(device: Primitive, user: str, script: str) -> Iterator[str]:
    given = _given(device, *_USERS)
    if user and given and given != user:
        yield f"cib: {device.id} logs in as {given}, cluster.toml says {user}"
    given = _given(device, "password_script", "passwd_script")
    if script and given and given != script:
        yield f"cib: {device.id} has password_script={given}, cluster.toml says {script}"


def _given(device: Primitive, *names: str) -> str:
    return next((device.values[name] for name in names if device.values.get(name)), "")


@rule("description", "pacemaker").error(
    reason="When the links are cut, the node with the longer fencing delay survives: that is not the one described as "
    "survivor.",
    remedy="Set pcmk_delay_base on the device of the intended survivor; or name the other survivor in cluster.toml.",
    source=OWN,
)
def another_node_survives(setup: Setup) -> Iterator[str]:
    """Find delays and tie breakers that let another node survive than the described one."""
    delays = delays_of(setup)
    if len(delays) == 2 and len(set(delays.values())) == 2:
        winner = max(delays, key=lambda node: delays[node])
        if winner != setup.described.survivor:
            yield f"cib: {winner} survives, cluster.toml says {setup.described.survivor}"
    tie = setup.corosync.one("quorum").one("device").one("net").get("tie_breaker") if setup.corosync else ""
    names = {node.get("nodeid"): name_of(node) for node in nodes_of(setup)} if tie else {}
    if names.get(tie, setup.described.survivor) != setup.described.survivor:
        yield f"corosync.conf: the device lets {names[tie]} survive, cluster.toml says {setup.described.survivor}"


@rule("description", "drbd").error(
    reason="A different device than described is replicated, or over a different network: data are overwritten, or "
    "there is no second copy.",
    remedy=REMEDY,
    source=OWN,
)
def replication_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find DRBD addresses and disks that are not the described ones."""
    targets = {target.name: target for target in setup.described.targets}
    described = {node.name: node for node in setup.described.nodes}
    for resource in setup.drbd:
        target = targets.get(resource.name)
        for host in resource.hosts:
            node = described.get(host.name)
            for address in host.addresses:
                ip = re.sub(r"^\[|\]$", "", address.rpartition(":")[0])
                if node and ip not in node.addresses.values():
                    yield f"drbd: {resource.name} has the address {ip} on {host.name}, which that node does not have"
            for number, (device, disk, _) in host.volumes.items():
                wanted = target.devices.get(host.name) if target and number == "0" else None
                if wanted and disk and disk != wanted:
                    yield f"drbd: {resource.name} has disk {disk} on {host.name}, cluster.toml says {wanted}"
                if (
                    target
                    and "minor" in target.given
                    and number == "0"
                    and device.startswith("/dev/drbd")
                    and device != target.device
                ):
                    yield f"drbd: {resource.name} is {device} on {host.name}, cluster.toml says minor {target.minor}"
        own = {
            network
            for host in resource.hosts[:2]
            if host.name in described and len(host.addresses) == 1
            for network, address in described[host.name].addresses.items()
            if address == re.sub(r"^\[|\]$", "", host.addresses[0].rpartition(":")[0])
        }
        if len(own) > 1:
            yield f"drbd: {resource.name} connects {' with '.join(sorted(own))}"
    for name in sorted(targets.keys() - {resource.name for resource in setup.drbd}):
        if targets[name].devices:
            yield f"drbd: there is no resource {name}"


@rule("description", "pacemaker").error(
    reason="What is mounted, or the address that clients use, is not what was described: clients find nothing, or "
    "something else.",
    remedy=REMEDY,
    source=OWN,
)
def service_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find mounts, addresses and pools that are not the described ones, or missing."""
    cib = setup.pacemaker
    resources = {resource.name: resource.devices for resource in setup.drbd}
    points = {one.mount_point: one for one in cib.services if one.is_mount}
    addresses = {one.values.get("ip", "") for one in cib.services if one.agent == "IPaddr2"}
    pools = {one.values.get("pool", "") for one in cib.services if one.agent == "ZFS"}
    cluster_kind = setup.described.file_system.kind
    for target in setup.described.targets:
        mount = points.get(target.mount.rstrip("/"))
        if mount is None and target.pool and cluster_kind != "lustre":
            pass  # ZFS mounts what it imports
        elif mount is None:
            yield f"cib: nothing is mounted on {target.mount} ({target.name})"
        elif target.name in resources and mount.device not in resources[target.name]:
            yield f"cib: {mount.id} mounts {mount.device} on {target.mount}, which is not {target.name}"
        elif target.shared and mount.device != target.device:
            yield f"cib: {mount.id} mounts {mount.device} on {target.mount}, cluster.toml says {target.device}"
        if target.pool and target.pool not in pools:
            yield f"cib: nobody imports the pool {target.pool} of {target.name}"
        likes = _likes(cib, mount) if mount else ""
        if likes and likes != target.prefers:
            yield f"cib: {target.name} prefers {likes}, cluster.toml says {target.prefers}"
        for node in sorted(_homes(cib, mount) - set(target.nodes)) if mount and len(cib.nodes) > 2 else ():
            yield f"cib: {target.name} may start on {node}, which does not reach its disks"
        ip = target.address.partition("/")[0]
        if ip and ip not in addresses:
            yield f"cib: no resource has the address {ip} of {target.name}"
        yield from _details(cib, mount, target)


def _details(cib: Cib, mount: Primitive | None, target: ServedTarget) -> Iterator[str]:
    """Hold the values of what serves a target against the description."""
    ip, _, bits = target.address.partition("/")
    for service in cib.services:
        values = service.values
        if ip and values.get("ip", "") == ip and values.get("cidr_netmask", bits or "32") != (bits or "32"):
            yield f"cib: {service.id} has cidr_netmask={values['cidr_netmask']}, cluster.toml says {bits}"
        exported = service.agent == "exportfs" and target.mount in values.get("directory", "")
        if exported and target.clients and values.get("clientspec", target.clients) != target.clients:
            yield f"cib: {service.id} is for {values['clientspec']}, cluster.toml says {target.clients}"
    kind = mount.values.get("fstype", "") if mount else ""
    if kind and kind != target.file_system:
        yield f"cib: {target.name} is mounted as {kind}, cluster.toml says {target.file_system}"


def _likes(cib: Cib, service: Primitive) -> str:
    """Return the node that constraints on a service, or on what it is in, prefer; empty where they prefer none."""
    names = {service.id, service.group, service.clone} - {""}
    scores: dict[str, float] = {}
    for location in cib.locations:
        if location.certain and names & set(location.resources) and location.score > 0:
            for node in location.nodes:
                scores[node] = scores.get(node, 0.0) + location.score
    first, second = (*sorted(scores, key=lambda name: -scores[name]), "", "")[:2]
    return first if scores.get(first, 0.0) > scores.get(second, 0.0) else ""


def _homes(cib: Cib, service: Primitive) -> set[str]:
    """Return the nodes on which a service may start, as far as constraints on itself and what it is in say."""
    names = {service.id, service.group, service.clone} - {""}
    about = [location for location in cib.locations if location.certain and names & set(location.resources)]
    refused = {node for location in about if location.score == float("-inf") for node in location.nodes}
    refused |= {node for node, own in cib.node_attributes.items() if is_true(own.get("standby", "false"))}
    if is_true(cib.properties.get("symmetric-cluster", "true")):
        return set(cib.nodes) - refused
    return {node for location in about if location.score > 0 for node in location.nodes} - refused


@rule("description", "lustre").error(
    reason="Clients and targets look for a server at an address, or under a name, that no server has.",
    remedy=REMEDY,
    source=OWN,
)
def lustre_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find NIDs, names and devices of Lustre targets that are not the described ones."""
    cluster = setup.described
    if cluster.file_system.kind != "lustre":
        return
    known = {nid for target in cluster.targets for nid in nids(cluster, target)} | set(cluster.file_system.mgs)
    for file in ("lustre/make-targets.sh", "lustre/mount-clients.sh"):
        text = setup.texts.get(file, "")
        for nid in dict.fromkeys(re.findall(r"[0-9a-fA-F.:]*\d@[a-z0-9]+", text)):
            if nid.lstrip(":") not in known:
                yield f"{file}: {nid.lstrip(':')} is no server ({', '.join(sorted(known))})"
        names = dict.fromkeys(re.findall(r"--fsname=(\S+)", text))
        for name in names:
            if name != cluster.file_system.name:
                yield f"{file}: --fsname={name}, cluster.toml says {cluster.file_system.name}"
    devices = {device: resource.name for resource in setup.drbd for device in resource.devices}
    devices |= {target.device: target.name for target in cluster.targets if target.shared}
    targets = {target.name: target for target in cluster.targets}
    for words in made_targets(setup):
        target = targets.get(devices.get(words[-1], ""))
        if target is not None:
            yield from _made(words, target, nids(cluster, target))
    for target in cluster.targets:
        if target.shared and not any(words[-1] == target.device for words in made_targets(setup)):
            yield f"make-targets.sh: {target.name} is not made on {target.device}"


def _made(words: list[str], target: ServedTarget, servers: list[str]) -> Iterator[str]:
    """Hold the words of one mkfs.lustre against the target that it makes."""
    given = {key: value for key, _, value in (word.partition("=") for word in words)}
    index = given.get("--index", "")
    if target.role != "mgs" and index != str(target.index):
        yield f"make-targets.sh: {target.name} has --index={index or '(none)'}, cluster.toml says {target.index}"
    roles = {role for role in ("mgs", "mdt", "ost") if f"--{role}" in given}
    if roles and roles != set(target.role.split("+")):
        yield f"make-targets.sh: {target.name} is made as {'+'.join(sorted(roles))}, cluster.toml says {target.role}"
    if given.get("--backfstype", "ldiskfs") != ("zfs" if target.pool else "ldiskfs"):
        yield f"make-targets.sh: {target.name} has --backfstype={given.get('--backfstype', 'ldiskfs')}"
    named = [nid for word in words if word.startswith("--servicenode=") for nid in word.partition("=")[2].split(":")]
    strangers = [nid for nid in named if nid in set(named) - set(servers)]
    if strangers:
        yield f"make-targets.sh: {target.name} names {', '.join(strangers)}, which cannot serve it"
