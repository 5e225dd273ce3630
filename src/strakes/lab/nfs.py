"""NFS: a server in a network of its own, the kernel's or nfs-ganesha, and a mount by this machine's kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.errors import EnvironmentLacksError
from strakes.lab.bricks import PACKAGES, Brick, check_bricks, make_bricks
from strakes.lab.kind import Lab
from strakes.lab.network import LabNetwork, make_network
from strakes.lab.nfs_server import GANESHA_PACKAGES, KERNEL_PACKAGES, kernel_knows, start_server
from strakes.lab.options import LabOptions, choice, count, maybe_count, maybe_size, size
from strakes.lab.packages import Package


@dataclass(frozen=True)
class NfsOptions(LabOptions):
    """What ``lab up nfs`` takes."""

    server: str = choice(
        "auto",
        "kernel",
        "ganesha",
        text="NFS server: the kernel's, nfs-ganesha, or the first of them that works here (auto).",
    )
    vers: str = choice("4.2", "4.1", "4.0", text="Version of NFS.")
    nconnect: int = count(1, "Connections of the client to its server.")
    rsize: int | None = maybe_size("Largest read request.  [default: what client and server agree on]", least="4KiB")
    wsize: int | None = maybe_size("Largest write request.  [default: what client and server agree on]", least="4KiB")
    actimeo: int | None = maybe_count(
        "Use cached attributes for N seconds.  [default: 3 to 60]", least=0, most=3600, metavar="N"
    )
    size: int = size("2GiB", "Capacity of the exported file system.", least="320MiB")


class NfsLab(Lab[NfsOptions]):
    """The client is the kernel's, so no process of the lab serves the mount."""

    options_type = NfsOptions
    packages = (*PACKAGES, Package("nfs-common", "mount.nfs4"))
    _network: LabNetwork
    _brick: Brick
    _source: str

    @classmethod
    def packages_for(cls, options: NfsOptions) -> tuple[Package, ...]:
        """Return what is needed with these options."""
        return (*cls.packages, *(KERNEL_PACKAGES if _server_of(options) == "kernel" else GANESHA_PACKAGES))

    @classmethod
    def check(cls, options: NfsOptions, directory: Path) -> None:
        """Refuse what cannot be, before anything is touched."""
        check_bricks(directory, 1, options.size, {}, "--size")
        if not kernel_knows("nfs4", "nfsv4"):
            raise _kernel_lacks("an NFS mount is not possible here", "client of NFS 4", "CONFIG_NFS_V4")
        if options.server == "kernel" and not kernel_knows("nfsd", "nfsd"):
            raise _kernel_lacks("--server kernel is not possible here", "NFS server", "CONFIG_NFSD")

    def up(self) -> None:
        """Start everything."""
        self._network = make_network(self.site)
        self._brick = make_bricks(self.site, "disk", 1, self.options.size, {})[1]
        self._source = start_server(self.site, self._network, self._brick.path, _server_of(self.options))
        self.site.step("client")
        self.site.make_directory("mnt")
        given = {name: getattr(self.options, name) for name in ("vers", "nconnect", "rsize", "wsize", "actimeo")}
        options = ",".join(f"{name}={value}" for name, value in given.items() if value is not None)
        self.site.run("mount", "-t", "nfs4", "-o", options, self._source, self.mount_point)

    def ready(self) -> str:
        """Return what is still lacking."""
        return self._lacking_until_space("the server does not answer yet")

    def facts(self) -> Mapping[str, Any]:
        """Return what programs need to know to talk to it."""
        return {
            "server": _server_of(self.options),
            "source": self._source,
            "network_namespace": str(self._network.namespace),
            "device": str(self._brick.device.path),
        }


def _server_of(options: NfsOptions) -> str:
    if options.server != "auto":
        return options.server
    return "kernel" if kernel_knows("nfsd", "nfsd") else "ganesha"


def _kernel_lacks(what: str, lacking: str, setting: str) -> EnvironmentLacksError:
    return EnvironmentLacksError(
        what,
        where=f"Linux {os.uname().release}",
        why=f"this kernel has no {lacking}, and no module for one can be loaded",
        remedy=f"Use a kernel with {setting}, such as that of Debian (linux-image-amd64). A container has its host's: "
        "load the module there.",
    )
