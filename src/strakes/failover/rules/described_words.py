"""Rules about words of the description that the files do not follow: units, cards, watched hosts, alerts, DRBD."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from strakes.failover.cluster import Network
from strakes.failover.lnet_networks import numbered, read_networks
from strakes.failover.pacemaker_resources import PINGING
from strakes.failover.rules.described import REMEDY
from strakes.failover.rules.heartbeat import is_address
from strakes.failover.rules.lnet import options_of_lnet
from strakes.failover.rules.rule import OWN, rule
from strakes.failover.setup import Setup

_HANDLER_84 = re.compile(r"crm-fence-peer\.sh")
_STARTERS = ("systemd", "service", "lsb", "upstart")


@rule("description", "pacemaker").error(
    reason="A different program than described is started, or none: the service moves, but nothing is served.",
    remedy=REMEDY,
    source=OWN,
)
def unit_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find described units that no resource starts."""
    agents = {one.agent.removesuffix(".service") for one in setup.pacemaker.services if one.standard in _STARTERS}
    # An agent of OCF may take the place of a unit; which unit, nobody can tell.
    for target in setup.described.targets if agents else ():
        for unit in target.units:
            if unit.removesuffix(".service") not in agents:
                yield f"cib: nobody starts {unit} of {target.name}; units are {', '.join(sorted(agents))}"


@rule("description", "pacemaker").error(
    reason="What is watched is not what clients need: a node that they cannot reach keeps serving, or a healthy node "
    "hands over.",
    remedy=REMEDY,
    source=OWN,
)
def watch_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find watched cards and hosts that are not the described ones."""
    services = setup.pacemaker.services
    cards = {one.values.get("interface", "") for one in services if one.agent == "ethmonitor"} - {""}
    for network in setup.described.networks:
        if network.interface and cards and network.interface not in cards:
            yield f"cib: {', '.join(sorted(cards))} is watched, cluster.toml says {network.interface} ({network.name})"
    for network in setup.described.networks if setup.described.file_system.kind != "lustre" else ():
        for one in services if network.interface else ():
            card = one.values.get("nic", "").partition(":")[0]
            if (
                one.agent == "IPaddr2"
                and card
                and card != network.interface
                and _is_in(one.values.get("ip", ""), network)
            ):
                yield f"cib: {one.id} has nic={card}, cluster.toml says {network.interface} ({network.name})"
    described = {_normal(host) for host in setup.described.file_system.watch}
    for one in services if described else ():
        hosts = {_normal(host) for host in one.values.get("host_list", "").split()} if one.agent in PINGING else set()
        strangers = hosts - described
        if strangers and all(map(_is_number, strangers)):
            yield f"cib: {one.id} watches {', '.join(sorted(strangers))}, cluster.toml has no such host in watch"


def _is_in(ip: str, network: Network) -> bool:
    return is_address(ip) and ipaddress.ip_address(ip) in ipaddress.ip_network(network.subnet)


def _normal(host: str) -> str:
    address, at, network = host.partition("@")
    return f"{address}@{numbered(network)}" if at else host


def _is_number(host: str) -> bool:
    """Tell whether a host is written as an address; whose a name is, only the nodes know."""
    return is_address(host.partition("@")[0])


@rule("description", "pacemaker", "behaviour").error(
    reason="With all nodes up, Pacemaker's policy engine runs the service on another node than described: the load is "
    "not spread as planned, and the rehearsed failures are not the ones that will happen.",
    remedy=REMEDY,
    source=OWN,
)
def served_by_another_node_than_described(setup: Setup) -> Iterator[str]:
    """Find targets that run on another node than the one that they prefer by the description."""
    if setup.described.file_system.arrangement != "active/active":
        return
    points = {one.mount_point: one for one in setup.pacemaker.services if one.is_mount}
    for target in setup.described.targets:
        mount = points.get(target.mount.rstrip("/"))
        there = setup.simulated.steady.nodes_of(mount.id) if mount else frozenset()
        if len(there) == 1 and target.prefers and target.prefers not in there:
            yield f"cib: {target.name} runs on {', '.join(there)}, cluster.toml says {target.prefers}"


@rule("description", "lnet").error(
    reason="Lustre uses another network card than described, but the described one is watched: if Lustre's card fails, "
    "nobody notices.",
    remedy=REMEDY,
    source=OWN,
)
def lustre_card_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find the network of Lustre on another card than the described one."""
    system = setup.described.file_system
    wanted = next((one.interface for one in setup.described.networks if one.name == system.lnet_network), "")
    for text in options_of_lnet(setup, "networks") if wanted else ():
        for network in read_networks(text):
            # A VLAN or a partition of InfiniBand is on the card: ib0.8001.
            on_it = any(card == wanted or card.startswith(f"{wanted}.") for card in network.cards)
            if network.name == numbered(system.lnet) and network.cards and not on_it:
                yield f"modprobe.d: {network.name} is on {', '.join(network.cards)}, cluster.toml says {wanted}"


@rule("description", "drbd").error(
    reason="DRBD 8.4 refuses the keywords of version 9, and the handlers of one version do nothing under the other.",
    remedy='drbd = "9" in cluster.toml, or plan the files again for 8.4.',
    source="https://manpages.debian.org/bookworm/drbd-utils/drbd.conf-8.4.5.en.html",
)
def drbd_version_differs_from_the_description(setup: Setup) -> Iterator[str]:
    """Find files of DRBD 9 where the description says 8.4, and the other way round."""
    for resource in setup.drbd:
        # Version 9 reads the words of 8.4, too; its handlers have names of their own.
        old = not resource.dialect9 and bool(_HANDLER_84.search(resource.option("handlers", "fence-peer")))
        if setup.described.drbd == "8.4" and resource.dialect9:
            yield f"drbd: {resource.name} is written for version 9, cluster.toml says 8.4"
        if setup.described.drbd == "9" and "drbd" in setup.described.given and old:
            yield f"drbd: {resource.name} is written for version 8.4, cluster.toml says 9"


@rule("description", "pacemaker").warning(
    reason="The person who should be alerted is not: the cluster runs without redundancy until the next failure.",
    remedy=REMEDY,
    source=OWN,
)
def alerts_differ_from_the_description(setup: Setup) -> Iterator[str]:
    """Find described receivers of alerts that no alert is for."""
    programs, receivers = [], []
    for alert in setup.pacemaker.root.iterfind("./configuration/alerts/alert"):
        programs.append(alert.get("path", ""))
        receivers += [one.get("value", "") for one in alert.iterfind("./recipient")]
    wanted = setup.described.alerts
    told = (("mail_to", wanted.mail_to), ("webhook_url_file", wanted.webhook_url_file))
    for key, receiver in told if programs else ():
        # Programs of others may have the receiver within them.
        silent = len(receivers) < len(programs) and len(programs) >= sum(bool(one) for _, one in told)
        if receiver and receiver not in receivers and not silent:
            yield f"cib: no alert is for {receiver}, cluster.toml has {key}"
