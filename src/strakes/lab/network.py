"""Free ports, and the private network of a lab, for servers that refuse the loopback address or trust all clients."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

from strakes.base.errors import EnvironmentLacksError
from strakes.lab.process import run
from strakes.lab.site import LabSite
from strakes.targets.mountinfo import LAB_NETWORK

LOOPBACK = "127.0.0.1"
# Ports of servers: above the well-known ones, and below 32768, where Linux begins with outgoing connections.
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


def is_listening(port: int) -> bool:
    """Return whether a TCP connection to the port succeeds."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0


# Address of all servers in the private network of each lab. It is reserved for documentation (RFC 5737).
SERVER = "192.0.2.1"
_COMMAND_S = 10.0


def make_network(site: LabSite) -> tuple[str, ...]:
    """Make the private network of a lab, a network namespace that only root can enter.

    Return the prefix of a command that runs in the network. The servers trust the user id that a client sends, so other
    users must not reach them. Over a link to the machine, a socket could bypass routes (SO_DONTROUTE) and rules
    (SO_BINDTODEVICE). So the network has no link to the machine, and the client runs inside the network.
    """
    namespace = site.directory / LAB_NETWORK
    site.make_namespace(namespace)
    site.ip(namespace, f"address add {SERVER} dev lo")
    return ("nsenter", f"--net={namespace}")


def lacking(inside: tuple[str, ...], port: int) -> str:
    """Return why no server listens on a port in a private network, or "". ``inside``: see :func:`make_network`."""
    done = run([*inside, "ss", "-Hltn", f"sport = :{port}"], limit_s=_COMMAND_S)
    return "" if done.stdout.strip() else "it does not listen yet"
