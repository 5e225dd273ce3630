"""Nodes of the pair: namespaces of this machine, or machines of User-mode Linux with private disks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from strakes.failover.cluster import Cluster
from strakes.lab.site import LabSite

NODES = ("a", "b")
ADMIN = "10.9.0.100"
# Private directories of each node; they survive a power cut.
DISKS = (
    "etc/corosync/uidgid.d",
    "var/lib/corosync",
    *(f"var/lib/pacemaker/{part}" for part in ("cib", "cores", "blackbox", "pengine")),
    "var/log",
)


class Nodes(ABC):
    """The two nodes while they are being started; ``program`` is the script that everything calls."""

    program: str
    # How often the cluster is asked how it is: machines answer more slowly than namespaces.
    look_every_s: float

    def __init__(self, site: LabSite) -> None:
        self.site = site

    @abstractmethod
    def plan(self, token_s: float) -> Cluster:
        """Return the pair as it is planned."""

    @abstractmethod
    def cib(self, planned: Cluster) -> str:
        """Return the planned configuration of Pacemaker, with stand-ins for what the nodes cannot have."""

    @abstractmethod
    def connect(self) -> None:
        """Heartbeat links and the network of the BMCs, whose hub is there."""

    @abstractmethod
    def furnish(self, planned: Cluster) -> None:
        """Write the files that only this kind of node has on its disks."""

    @abstractmethod
    def start(self) -> None:
        """Switch both on."""

    def facts(self) -> Mapping[str, object]:
        """Return the facts that only this kind of node has."""
        return {}

    def hub(self, *words: str | Path) -> None:
        """``ip`` in the network of the BMCs."""
        self.site.run("nsenter", f"--net={self.site.directory / 'net.hub'}", "ip", *words)


def put_file(site: LabSite, source: str, name: str) -> Path:
    """One of this package's programs, in the directory of the lab."""
    return site.write(name, resources.files("strakes").joinpath(f"lab/ha/{source}").read_text(encoding="utf-8"), 0o755)
