"""Nodes and links of corosync.conf, and the addresses of names in /etc/hosts."""

from __future__ import annotations

import ipaddress

from strakes.failover.blocks import Block
from strakes.failover.setup import Setup

_MOST_LINKS = 8


def nodes_of(setup: Setup) -> list[Block]:
    """Return the nodes of corosync.conf; empty without that file."""
    return setup.corosync.one("nodelist").all("node") if setup.corosync else []


def links_of(node: Block) -> dict[int, str]:
    """Return the address of each link by its number."""
    addresses = {number: node.get(f"ring{number}_addr") for number in range(_MOST_LINKS)}
    return {number: address for number, address in addresses.items() if address}


def name_of(node: Block) -> str:
    """Return the name by which Pacemaker knows the node.

    This is its name, or the host name given as its first address; empty if only ``uname -n`` on the node gives it.
    """
    first = links_of(node).get(0, "")
    return node.get("name") or ("" if read_address(first) else first)


def is_address(text: str) -> bool:
    """Return whether the text is an address and not a host name."""
    return read_address(text) is not None


def read_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address, or None for a host name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def hosts_of(setup: Setup) -> dict[str, str]:
    """Return the addresses of the names in /etc/hosts."""
    found = dict[str, str]()
    for line in setup.texts.get("etc/hosts", "").splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        found |= {name: address for name in names if name not in found}
    return found


def network_of(setup: Setup, text: str) -> str:
    """Return the network of an address: the described one, or one with the usual prefix length."""
    address = ipaddress.ip_address(text)
    for network in setup.cluster.networks if setup.cluster else ():
        if address in ipaddress.ip_network(network.subnet):
            return network.subnet
    return str(ipaddress.ip_network(f"{address}/{24 if address.version == 4 else 64}", strict=False))
