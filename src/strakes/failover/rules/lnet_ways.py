"""Rules about how LNet finds its networks and other networks: ip2nets and routes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from strakes.failover.lnet_networks import numbered
from strakes.failover.rules.heartbeat import is_address, links_of, nodes_of
from strakes.failover.rules.lnet import options_of_lnet
from strakes.failover.rules.lustre import made_targets, nids_of
from strakes.failover.rules.rule import LUSTRE_MANUAL, rule
from strakes.failover.setup import Setup

# Four octets: numbers, stars or lists in brackets.
_PATTERN = re.compile(r"(?:[\d*]+|\[[^\]]*\])(?:\.(?:[\d*]+|\[[^\]]*\])){3}")


def served_addresses(setup: Setup) -> dict[str, set[str]]:
    """Return the addresses of the servers' NIDs by their network."""
    found = dict[str, set[str]]()
    for words in made_targets(setup):
        for nid in nids_of(words, "servicenode"):
            address, _, network = nid.partition("@")
            if network and is_address(address):
                found.setdefault(numbered(network), set()).add(address)
    return found


def _known(setup: Setup) -> set[str]:
    """Return every address of the nodes that any file has."""
    found = {address for node in nodes_of(setup) for address in links_of(node).values() if is_address(address)}
    for node in setup.cluster.nodes if setup.cluster else ():
        found |= set(node.addresses.values())
    return found.union(*served_addresses(setup).values())


def _octet_matches(pattern: str, number: int) -> bool:
    """Tell whether a number is in ``*``, ``7``, or ``[2,4-8/2]``.

    >>> [number for number in range(10) if _octet_matches("[2,4-8/2]", number)]
    [2, 4, 6, 8]
    """
    if pattern == "*":
        return True
    for part in pattern.strip("[]").split(","):
        span = re.fullmatch(r"\s*(\d{1,3})(?:-(\d{1,3})(?:/(\d{1,3}))?)?\s*", part)
        if span and number in range(int(span[1]), int(span[2] or span[1]) + 1, int(span[3] or 1) or 1):
            return True
    return False


def _matches(pattern: str, address: str) -> bool:
    octets = re.findall(r"\[[^\]]*\]|\*|\d+", pattern)
    own = address.split(".")
    return len(octets) == len(own) == 4 and all(map(_octet_matches, octets, map(int, own)))


def _by_address(setup: Setup) -> Iterator[tuple[str, bool, list[str]]]:
    """Yield each network of ip2nets, whether its cards are named, and the patterns of addresses that have it."""
    for text in options_of_lnet(setup, "ip2nets"):
        for entry in text.split(";"):
            head = re.match(r"\s*([a-z0-9]+)\s*(\([^)]*\))?\s+", entry)
            if head:
                yield numbered(head[1]), bool(head[2]), _PATTERN.findall(entry)


def _unmatched(setup: Setup) -> Iterator[tuple[str, list[str], bool]]:
    """Yield networks of the NIDs none of whose addresses ip2nets has, and whether it has other ones of the nodes."""
    entries = list(_by_address(setup))
    for network, addresses in served_addresses(setup).items() if entries else ():
        patterns = [one for name, _, listed in entries if name == network for one in listed]
        if any(_matches(pattern, address) for pattern in patterns for address in addresses):
            continue
        named = all(cards for name, cards, _ in entries if name == network) and bool(patterns)
        others = any(_matches(pattern, address) for pattern in patterns for address in _known(setup))
        yield network, sorted(addresses), named and others


@rule("lnet").error(
    reason="ip2nets gives the network to addresses that no server has: the server starts without it, and nobody can "
    "reach it.",
    remedy='ip2nets="NETWORK(CARD) ADDRESSES", with a pattern that matches the addresses of the NIDs.',
    source=LUSTRE_MANUAL,
)
def lustre_network_without_server(setup: Setup) -> Iterator[str]:
    """Find networks of the servers' NIDs that ip2nets gives to none of them."""
    for network, addresses, others in _unmatched(setup):
        if not others:
            yield f"modprobe.d: ip2nets has no pattern of {network} for {', '.join(addresses[:4])}"


@rule("lnet").warning(
    reason="ip2nets selects the network by addresses of other cards than those of its NIDs: it is only configured as "
    "long as those addresses exist, too.",
    remedy="Use the addresses of the network itself in ip2nets.",
    source=LUSTRE_MANUAL,
)
def lustre_network_by_another_address(setup: Setup) -> Iterator[str]:
    """Find networks that ip2nets gives by addresses of other cards."""
    for network, addresses, others in _unmatched(setup):
        if others:
            yield f"modprobe.d: ip2nets has no pattern of {network} for {', '.join(addresses[:4])}"


@rule("lnet").error(
    reason="A node must reach a router over a network that both are on: a router on no network of the node, or the "
    "node itself as router, leads nowhere.",
    remedy='routes="NETWORK ROUTER@NETWORK", with an address of the router on a network of the servers.',
    source=LUSTRE_MANUAL,
)
def router_out_of_reach(setup: Setup) -> Iterator[str]:
    """Find routers of LNet on no network of the nodes, or that are the servers themselves."""
    known = _known(setup)
    subnets = [network.subnet for network in setup.cluster.networks] if setup.cluster else []
    # Without a description the masks are not known: half of the address is compared.
    subnets = subnets or [str(ipaddress.ip_network(f"{one}/16", strict=False)) for one in known if "." in one]
    for text in options_of_lnet(setup, "routes"):
        for gateway in re.findall(r"([\d.\[\],/-]+)@[a-z]+\d*", text):
            address = re.sub(r"\[(\d+)[^\]]*\]", r"\1", gateway)
            if not is_address(address) or not subnets:
                continue
            if not any(ipaddress.ip_address(address) in ipaddress.ip_network(subnet) for subnet in subnets):
                yield f"modprobe.d: routes has {gateway}, which is on no network of the nodes"
            elif any(address in addresses for addresses in served_addresses(setup).values()):
                yield f"modprobe.d: routes has {gateway}, which is a server itself"
