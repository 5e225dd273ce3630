"""Nodes as namespaces of this machine: up in seconds; their journal is on a memory file system that both see."""

from __future__ import annotations

from pathlib import Path

from strakes.failover.cluster import Cluster
from strakes.files import write_kept
from strakes.lab.ha.configuration import cluster, namespace_cib
from strakes.lab.ha.nodes import NODES, Nodes


class Namespaces(Nodes):
    """No DRBD and no mount: a promotable resource without a device stands in for them."""

    program = "namespaces.sh"
    look_every_s = 0.2

    def plan(self, token_s: float) -> Cluster:
        """Return the pair without a replicated device."""
        return cluster(self.site.directory, token_s, device="/dev/null", mount="/none", drbd="9")

    def cib(self, planned: Cluster) -> str:
        """Return Pacemaker's configuration for namespaces, with a stand-in for DRBD."""
        return namespace_cib(planned, self.site.directory, str(self.site.mount_point))

    def connect(self) -> None:
        """Make a network namespace for each node, joined by two heartbeat links and one to the BMCs."""
        site = self.site
        net = {name: site.directory / f"net.{name}" for name in NODES}
        for path in net.values():
            write_kept(path, "")
            site.run("unshare", f"--net={path}", "ip", "link", "set", "lo", "up")

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
        """Do nothing; namespaces do not replicate."""

    def start(self) -> None:
        """Start both nodes in their namespaces."""
        for name in NODES:
            self.site.start(f"node.{name}", self.site.directory / "ha.sh", "node", name)
