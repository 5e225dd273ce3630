"""Nodes as namespaces of this machine: up in seconds; their journal is on a memory file system that both see."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from strakes.failover.cluster import Cluster
from strakes.lab.ha_configuration import NODES, cluster, namespace_cib
from strakes.lab.site import LabSite

ADMIN = "10.9.0.100"
# Private directories of each node; they survive a power cut.
DISKS = (
    "etc/corosync/uidgid.d",
    "var/lib/corosync",
    *(f"var/lib/pacemaker/{part}" for part in ("cib", "cores", "blackbox", "pengine")),
    "var/log",
)


class Namespaces:
    """The two nodes while they are being started; ``program`` is the script that everything calls.

    They have no DRBD and no mount: a promotable resource without a device stands in for them.
    """

    program = "namespaces.sh"
    # How often the cluster is asked how it is: machines answer more slowly than namespaces.
    look_every_s = 0.2

    def __init__(self, site: LabSite) -> None:
        self.site = site

    def plan(self, token_s: float) -> Cluster:
        """Return the pair as it is planned."""
        return cluster(self.site.directory, token_s, device="/dev/null", mount="/none", drbd="9")

    def cib(self, planned: Cluster) -> str:
        """Return the planned configuration of Pacemaker, with stand-ins for what the nodes cannot have."""
        return namespace_cib(planned, self.site.directory, str(self.site.mount_point))

    def connect(self) -> None:
        """Make the heartbeat links and the network of the BMCs, whose hub exists."""
        site = self.site
        net = {name: site.directory / f"net.{name}" for name in NODES}
        for path in net.values():
            site.make_namespace(path)

        def ip(where: str, *words: str | Path) -> None:
            site.run("nsenter", f"--net={net[where]}", "ip", *words)

        first, second = NODES
        for ring in range(2):
            ip(first, "link", "add", f"ring{ring}", "type", "veth", "peer", "name", f"ring{ring}", "netns", net[second])
            for number, name in enumerate(NODES, 1):
                ip(name, "address", "add", f"10.{ring + 1}.0.{number}/24", "dev", f"ring{ring}")
                ip(name, "link", "set", f"ring{ring}", "up")
        for number, name in enumerate(NODES, 1):
            self.hub("link", "add", f"to-{name}", "type", "veth", "peer", "name", "management", "netns", net[name])
            ip(name, "address", "add", f"10.9.{number}.1/24", "dev", "management")
            ip(name, "link", "set", "management", "up")
            self.hub("link", "set", f"to-{name}", "up")
            ip(name, "route", "add", "10.9.0.0/24", "via", f"10.9.{number}.254")

    def furnish(self, planned: Cluster) -> None:
        """Write the files that only machines have on their disks."""

    def start(self) -> None:
        for name in NODES:
            self.site.start(f"node.{name}", self.site.directory / "ha.sh", "node", name)

    def facts(self) -> Mapping[str, object]:
        """Return the facts that only this kind of node has."""
        return {}

    def hub(self, *words: str | Path) -> None:
        """Run ``ip`` in the network of the BMCs."""
        self.site.run("nsenter", f"--net={self.site.directory / 'net.hub'}", "ip", *words)
