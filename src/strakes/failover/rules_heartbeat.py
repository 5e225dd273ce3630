"""Nodes and links of corosync.conf, and the addresses of names in /etc/hosts."""

from __future__ import annotations

import ipaddress

from strakes.failover.blocks import Block
from strakes.failover.setup import Setup

LINKS = range(8)  # the links of knet, which has the most


def nodes_of(setup: Setup) -> list[Block]:
    """Return the nodes of corosync.conf; empty without that file."""
    return setup.corosync.one("nodelist").all("node") if setup.corosync else []


def links_of(node: Block) -> dict[int, str]:
    """Return the address of each link by its number."""
    return {number: address for number in LINKS if (address := node.get(f"ring{number}_addr"))}


def name_of(node: Block) -> str:
    """Return the node's name, or the host name that is its first address; empty if only ``uname -n`` gives it."""
    first = links_of(node).get(0, "")
    return node.get("name") or ("" if is_address(first) else first)


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
