"""A network of the lab's own, for servers that refuse the loopback address: a namespace joined by virtual links.

Nothing outside the machine can reach it, and every port in it is free.
"""

from __future__ import annotations

import ipaddress
import json
import random
from dataclasses import dataclass
from pathlib import Path

from strakes.errors import EnvironmentLacksError
from strakes.files import write_kept
from strakes.lab.ports import is_listening
from strakes.lab.process import run
from strakes.lab.site import LabSite

_NAMESPACE = "network"
_COMMAND_S = 10.0
_TRIES = 200


@dataclass(frozen=True)
class LabNetwork:
    """``server`` is the address of what runs inside, ``client`` the machine's own in it."""

    server: str
    client: str
    subnet: str
    namespace: Path

    @property
    def inside(self) -> tuple[str, ...]:
        """What a command is prefixed with to run in it; the mounts stay those of the machine."""
        return ("nsenter", f"--net={self.namespace}")

    def answers(self, port: int) -> bool:
        """Whether somebody listens on a port of the server."""
        return is_listening(port, self.server)


def make_network(site: LabSite) -> LabNetwork:
    """Make it. Raises EnvironmentLacksError when the machine cannot have one."""
    subnet = _free_subnet(site)
    client, server = (str(address) for address in subnet.hosts())
    namespace = site.directory / _NAMESPACE
    write_kept(namespace, "")
    network = LabNetwork(server, client, str(subnet), namespace)
    link, prefix = _link_of(site.id), subnet.prefixlen
    site.run("unshare", f"--net={namespace}", "ip", "link", "set", "lo", "up")
    site.run("ip", "link", "add", link, "type", "veth", "peer", "name", "lab", "netns", namespace)
    site.run("ip", "address", "add", f"{client}/{prefix}", "dev", link)
    site.run("ip", "link", "set", link, "up")
    site.run(*network.inside, "ip", "address", "add", f"{server}/{prefix}", "dev", "lab")
    site.run(*network.inside, "ip", "link", "set", "lab", "up")
    return network


def remove_link(lab_id: str) -> str:
    """Return why not, empty when there is none any more."""
    link = _link_of(lab_id)
    if not Path("/sys/class/net", link).exists():
        return ""
    done = run(["ip", "link", "delete", link], limit_s=_COMMAND_S)
    # One whose other end has gone, with the namespace, goes by itself and may have done so meanwhile.
    return done.complaint if Path("/sys/class/net", link).exists() else ""


def _link_of(lab_id: str) -> str:
    return f"sl-{lab_id}"  # at most 15 characters


def _free_subnet(site: LabSite) -> ipaddress.IPv4Network:
    """Four private addresses that no address or route of this machine is near."""
    taken = [
        ipaddress.ip_network(route["dst"], strict=False)
        for route in json.loads(site.run("ip", "-json", "-4", "route", "show", "table", "all") or "[]")
        if route.get("dst", "default") not in ("default", "0.0.0.0/0")
    ]
    for _ in range(_TRIES):
        candidate = ipaddress.ip_network(
            f"10.{random.randrange(64, 192)}.{random.randrange(256)}.{4 * random.randrange(64)}/30"
        )
        assert isinstance(candidate, ipaddress.IPv4Network)
        if not any(candidate.overlaps(route) for route in taken):
            return candidate
    raise EnvironmentLacksError(
        f"{site.name} cannot be started: no private network is available", why="all networks that were tried are in use"
    )
