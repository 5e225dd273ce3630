"""Rules about the network cards of a node, and about where it looks up names."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from itertools import combinations

from strakes.failover.lnet_networks import read_networks
from strakes.failover.node_cards import Card, cards_of
from strakes.failover.rules.heartbeat import is_address, links_of, name_of, network_of, nodes_of
from strakes.failover.rules.lnet import options_of_lnet
from strakes.failover.rules.lnet_ways import served_addresses
from strakes.failover.rules.possessions import possessions_of
from strakes.failover.rules.rule import AGENTS, COROSYNC_CONF, OWN, rule
from strakes.failover.setup import Setup, views_of_nodes

_BONDING = "https://www.kernel.org/doc/html/latest/networking/bonding.html"
# Modes of a bond that watch no link unless they are told to.
_UNWATCHED = ("balance-rr", "0", "active-backup", "1", "balance-xor", "2", "broadcast", "3")
_SMALLEST_MTU = 1280


def _own_addresses(setup: Setup) -> dict[str, str]:
    """Return the addresses that nodes have for Corosync and DRBD, each with its node; of one node where it is known."""
    found = {}
    for node in nodes_of(setup):
        for address in links_of(node).values():
            if is_address(address):
                found[address] = name_of(node)
    for resource in setup.drbd:
        for host in resource.hosts:
            for text in host.addresses:
                address = re.sub(r":\d+$", "", text).strip("[]")
                if is_address(address):
                    found.setdefault(address, host.name)
    return {address: name for address, name in found.items() if setup.node in ("", name)} or found


def _addresses(card: Card) -> Iterator[str]:
    yield from (str(address.ip) for address in card.addresses)


@rule("pacemaker").error(
    reason="The node takes the address when it starts, no matter which node has it: two machines answer for it.",
    remedy="Remove it from the card's configuration; the IPaddr2 resource adds it.",
    source=f"{AGENTS}/IPaddr2",
)
def service_address_in_card_configuration(setup: Setup) -> Iterator[str]:
    """Find cards that have an address which moves."""
    moving = possessions_of(setup).addresses
    for card in cards_of(setup.texts):
        yield from (f"{card.file}: {card.name} has {address}" for address in _addresses(card) if address in moving)


@rule("corosync").error(
    reason="After a restart the card has no address: the link, or the replication, is missing until somebody notices.",
    remedy="ONBOOT=yes, STARTMODE=auto, autoconnect=true, or auto NAME in interfaces.",
    source=OWN,
)
def cluster_card_not_started_at_boot(setup: Setup) -> Iterator[str]:
    """Find cards of a link or of the replication that are not brought up at boot."""
    own = _own_addresses(setup)
    for card in cards_of(setup.texts):
        for address in _addresses(card):
            if address in own and not card.at_boot:
                yield f"{card.file}: {card.name} with {address} is not brought up at boot"


@rule().error(
    reason="Without miimon or arp_interval, the bond does not notice that a link is down: it keeps sending into the "
    "dead card.",
    remedy="miimon=100 (netplan: mii-monitor-interval: 100, networkd: MIIMonitorSec=100ms, ifupdown: bond-miimon 100).",
    source=_BONDING,
)
def bond_without_link_monitoring(setup: Setup) -> Iterator[str]:
    """Find bonds that do not watch their links."""
    for card in cards_of(setup.texts):
        if card.bond is None:
            continue
        mode = card.bond.get("mode", "balance-rr")
        watched = [
            card.bond.get(name, "0")
            for name in ("miimon", "mii-monitor-interval", "arp_interval", "arp-interval", "arpintervalsec")
        ]
        if mode in _UNWATCHED and not any(re.match(r"[0.]*[1-9]", value) for value in watched):
            yield f"{card.file}: {card.name}, mode {mode}"


@rule("corosync").error(
    reason="The card's addresses are not the ones that Corosync and DRBD use: the link does not work, or goes through "
    "another card.",
    remedy="Give the card the address that corosync.conf and DRBD have, with the mask of its network; use one card for "
    "each network.",
    source=OWN,
)
def card_contradicts_the_cluster(setup: Setup) -> Iterator[str]:
    """Find cards in the network of a link with an address of nobody, and cards whose networks lie in each other."""
    own, moving = _own_addresses(setup), possessions_of(setup).addresses
    cards = list(cards_of(setup.texts))
    there = {address for card in cards for address in _addresses(card)}
    networks = {network_of(setup, address) for address in own}
    for network in sorted(networks):
        here = {address for address in own if network_of(setup, address) == network}
        for card in cards if not here & there else ():
            for address in _addresses(card):
                if address not in moving and ipaddress.ip_address(address) in ipaddress.ip_network(network):
                    yield f"{card.file}: {card.name} has {address}, the cluster has {', '.join(sorted(here))}"
    for card, other in combinations(cards, 2):
        if card.name.partition(":")[0] != other.name.partition(":")[0]:
            yield from _overlapping(card, other, own)


def _overlapping(card: Card, other: Card, own: dict[str, str]) -> Iterator[str]:
    for one in card.addresses:
        for another in other.addresses:
            alike = one.version == another.version and one.network.prefixlen and another.network.prefixlen
            if alike and one.network.overlaps(another.network) and {str(one.ip), str(another.ip)} & set(own):
                yield f"{card.file}: {card.name} has {one}, {other.name} has {another}"


@rule("nodes").error(
    reason="Two machines answer for one address: data sent to it arrive at either of them, or at none.",
    remedy="Change the address in the card's configuration on one of the nodes.",
    source=OWN,
)
def one_address_on_two_nodes(setup: Setup) -> Iterator[str]:
    """Find addresses that the cards of two nodes have."""
    owners: dict[str, str] = {}
    for node, view in views_of_nodes(setup).items():
        own = {name: text for name, text in view.texts.items() if f"nodes/{node}/{name}" in setup.texts}
        for card in cards_of(own):
            for address in _addresses(card):
                if owners.setdefault(address, node) != node:
                    yield f"{card.file}: {address} is on {owners[address]} and {node}"


@rule().error(
    reason="The named card is not on the network that it is named for: the address is added where nobody looks for it, "
    "or the wrong card is watched.",
    remedy="Use the name of the card that has an address in this network.",
    source=OWN,
)
def card_of_another_network(setup: Setup) -> Iterator[str]:
    """Find cards that the CIB or LNet names for a network which another card of the node has."""
    networks = {card.name.partition(":")[0]: card for card in cards_of(setup.texts) if card.addresses}
    for one in setup.services:
        nic, text = one.values.get("nic", ""), one.values.get("ip", "")
        if one.agent in ("IPaddr2", "IPaddr") and nic in networks and is_address(text):
            yield from _elsewhere(networks, nic, text, f"cib: {one.id} has nic={nic}")
    for network in (network for text in options_of_lnet(setup, "networks") for network in read_networks(text)):
        for address in sorted(served_addresses(setup).get(network.name, ())):
            for nic in network.cards[:1]:
                if nic in networks:
                    yield from _elsewhere(networks, nic, address, f"modprobe.d: {network.name} runs over {nic}")


def _elsewhere(networks: dict[str, Card], nic: str, text: str, what: str) -> Iterator[str]:
    address = ipaddress.ip_address(text)
    if any(address in one.network for one in networks[nic].addresses):
        return
    for name, card in networks.items():
        if any(address in one.network for one in card.addresses):
            yield f"{what}, {text} is in the network of {name}"


@rule("description").warning(
    reason="With a wider mask, the node looks for other networks on this card; with a narrower one, it does not find "
    "its neighbours.",
    remedy="Use the mask of the network's subnet in cluster.toml.",
    source=OWN,
)
def card_mask_differs(setup: Setup) -> Iterator[str]:
    """Find cards whose mask is not that of the described network."""
    for card in cards_of(setup.texts):
        for address in card.addresses:
            for network in setup.described.networks:
                described = ipaddress.ip_network(network.subnet)
                alone = address.network.prefixlen == address.max_prefixlen
                if address.ip in described and address.network.prefixlen != described.prefixlen and not alone:
                    yield f"{card.file}: {card.name} has {address}, {network.name} is {network.subnet}"


@rule("corosync").warning(
    reason="Corosync does not notice when DHCP gives the card another address; with an MTU smaller than usual, packets "
    "are split into many.",
    remedy="Use a fixed address for each link; use the usual MTU of 1500, or 9000 on all cards and switches of the "
    "network.",
    source=COROSYNC_CONF,
)
def card_doubtful(setup: Setup) -> Iterator[str]:
    """Find links whose address comes from DHCP, and cards with a tiny MTU."""
    own, cards = _own_addresses(setup), list(cards_of(setup.texts))
    there = {address for card in cards for address in _addresses(card)}
    for card in cards:
        if card.by_dhcp and own and not there & set(own):
            yield f"{card.file}: {card.name} asks DHCP, and no card has {', '.join(list(own)[:4])}"
        if 0 < card.mtu < _SMALLEST_MTU and set(_addresses(card)) & set(own):
            yield f"{card.file}: {card.name} has an MTU of {card.mtu}"


@rule().error(
    reason="Without the word files, no program looks into /etc/hosts: if the name servers fail, or are served by this "
    "cluster, the nodes do not find each other.",
    remedy="hosts: files dns",
    source="https://man7.org/linux/man-pages/man5/nsswitch.conf.5.html",
)
def hosts_file_not_used(setup: Setup) -> Iterator[str]:
    """Find nodes that do not look into their file of hosts."""
    for given in re.findall(r"(?m)^\s*hosts:\s*(.*)$", setup.texts.get("etc/nsswitch.conf", "")):
        if "files" not in given.partition("#")[0].split():
            yield f"nsswitch.conf: hosts: {given.strip()}"
