"""The private network namespace of a lab, for servers that refuse the loopback address."""

from __future__ import annotations

import ipaddress
import json
import random
import socket
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strakes.base.errors import EnvironmentLacksError
from strakes.lab.process import complaint, run
from strakes.lab.site import LabSite

LOOPBACK = "127.0.0.1"
# Ports above the well-known ones, and below Linux's ports for outgoing connections (from 32768).
_LOWEST, _HIGHEST = 20_000, 32_000
_PORT_TRIES = 2_000


def free_ports(count: int) -> tuple[int, ...]:
    """Return ``count`` free TCP ports of the loopback address. Raises EnvironmentLacksError if too few are free."""
    free: list[int] = []
    for port in random.sample(range(_LOWEST, _HIGHEST), min(_PORT_TRIES, _HIGHEST - _LOWEST)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            free.append(port)
        if len(free) == count:
            return tuple(free)
    raise EnvironmentLacksError("this machine has no free ports", where=f"{LOOPBACK}, {_LOWEST} to {_HIGHEST}")


def is_listening(port: int, address: str = LOOPBACK) -> bool:
    """Return whether a TCP connection to the port succeeds."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((address, port)) == 0


_COMMAND_S = 10.0
_ALL_BUT_ROOT = "1-4294967294"  # User ids, for uidrange of ip-rule(8).


@dataclass(frozen=True)
class LabNetwork:
    """The private network of a lab. ``server``: IP address of all servers.

    ``inside``: prefix that runs a command in the network namespace, with this machine's mounts and processes.
    """

    server: str
    subnet: str
    inside: tuple[str, ...]


def make_network(site: LabSite) -> LabNetwork:
    """Make the private network of a lab, for root alone. Raises EnvironmentLacksError if that is impossible."""
    subnet = _free_subnet(site)
    client, server, nobody = map(str, list(subnet.hosts())[:3])
    namespace = site.directory / "network"
    site.make_namespace(namespace)
    network = LabNetwork(server, str(subnet), ("nsenter", f"--net={namespace}"))
    link, prefix = _link_of(site.id), subnet.prefixlen
    site.run("ip", "link", "add", link, "type", "veth", "peer", "name", "lab", "netns", namespace)
    site.run("ip", "address", "add", f"{client}/{prefix}", "dev", link)
    site.run("ip", "link", "set", link, "up")
    # Servers believe the user id that a client sends, so send other users' packets to a host that does not exist. A
    # rule with "prohibit" does not apply to sockets bound to the link (SO_BINDTODEVICE).
    table = table_of(site.id)
    site.run("ip", "route", "add", network.subnet, "via", nobody, "dev", link, "onlink", "table", table)
    site.run("ip", "rule", "add", "to", network.subnet, "uidrange", _ALL_BUT_ROOT, "lookup", table)
    site.ip(namespace, f"address add {server}/{prefix} dev lab", "link set lab up")
    return network


def remove_link(lab_id: str) -> str:
    """Remove the virtual link of a lab. Return the reason of a failure, or ""."""
    link = _link_of(lab_id)
    run(["ip", "rule", "delete", "lookup", table_of(lab_id)], limit_s=_COMMAND_S)
    if not Path("/sys/class/net", link).exists():
        return ""
    done = run(["ip", "link", "delete", link], limit_s=_COMMAND_S)
    # The kernel removes the link when the namespace of its other end ends.
    return complaint(done) if Path("/sys/class/net", link).exists() else ""


def _link_of(lab_id: str) -> str:
    return f"sl-{lab_id}"  # Linux allows 15 characters in the name of a link.


def table_of(lab_id: str) -> str:
    """Return the number of the routing table of a lab."""
    return str(zlib.crc32(lab_id.encode()) | 256)  # Linux reserves the routing tables up to 255.


def _free_subnet(site: LabSite) -> ipaddress.IPv4Network:
    taken = [
        ipaddress.ip_network(route["dst"], strict=False)
        for route in json.loads(site.run("ip", "-json", "-4", "route", "show", "table", "all") or "[]")
        if route.get("dst", "default") not in ("default", "0.0.0.0/0")
    ]
    for _ in range(200):
        candidate = ipaddress.ip_network(
            f"10.{random.randrange(64, 192)}.{random.randrange(256)}.{8 * random.randrange(32)}/29"
        )
        assert isinstance(candidate, ipaddress.IPv4Network)
        if not any(candidate.overlaps(route) for route in taken):
            return candidate
    what = f"{site.name} cannot be started: no private network is available"
    raise EnvironmentLacksError(what, why="all networks that were tried are in use")
