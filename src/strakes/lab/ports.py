"""Ports on the loopback address that nobody listens on."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence

from strakes.errors import EnvironmentLacksError

LOOPBACK = "127.0.0.1"
# Below the range from which Linux gives ports to outgoing connections (32768 on), and above the well-known services.
_LOWEST, _HIGHEST = 20_000, 32_000
_TRIES = 2_000


def free_ports(count: int, *, avoid: Sequence[int] = ()) -> tuple[int, ...]:
    """Find so many. Raises EnvironmentLacksError when there are not so many."""
    free: list[int] = []
    for _ in range(_TRIES):
        port = random.randrange(_LOWEST, _HIGHEST)
        if port not in free and port not in avoid and _is_free(port):
            free.append(port)
            if len(free) == count:
                return tuple(free)
    raise EnvironmentLacksError("this machine has no free ports", where=f"{LOOPBACK}, {_LOWEST} to {_HIGHEST}")


def is_listening(port: int, address: str = LOOPBACK) -> bool:
    """Whether somebody answers there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((address, port)) == 0


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
