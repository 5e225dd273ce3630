"""NFS lab: nfs-ganesha in a private network, and a mount of its export by this machine's kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.errors import EnvironmentLacksError
from strakes.lab.device import PACKAGES, BrickLab, require_space
from strakes.lab.network import SERVER, lacking
from strakes.lab.options import LabOptions, option
from strakes.lab.packages import table
from strakes.lab.process import run
from strakes.lab.site import LabSite

SERVER_PACKAGES = table("nfs-ganesha ganesha.nfsd, nfs-ganesha-vfs /usr/lib/*/ganesha/libfsalvfs.so")
_EXPORT = "/export"
_PORT = 2049
_MODPROBE_S = 10.0


def start_server(site: LabSite, inside: tuple[str, ...], path: Path) -> str:
    """Start an NFS server that exports a new directory in ``path``. Return its name for mount(8): ``ADDRESS:/EXPORT``.

    ``inside``: see :func:`strakes.lab.network.make_network`.
    """
    site.step("server")
    own, exported = site.make_directory("server"), path / _EXPORT.strip("/")
    exported.mkdir()
    given = {"server": SERVER, "port": _PORT, "own": own, "exported": exported, "export": _EXPORT}
    settings = site.fill("ganesha.conf", "ganesha.conf", **given)
    site.start(
        "ganesha",
        *inside,
        *("ganesha.nfsd", "-F", "-f", settings, "-p", own / "pid"),
        *("-L", site.directory / "log/ganesha.log", "-N", "NIV_EVENT"),
    )
    site.wait_until("the server", lambda: lacking(inside, _PORT))
    return f"{SERVER}:{_EXPORT}"


@dataclass(frozen=True)
class NfsOptions(LabOptions):
    """Options of ``lab up nfs``."""

    nconnect: int = option("count", "Connections of the client to its server.", 1, least=1, most=16)
    rsize: int | None = option(
        "size", "Largest read request.  [default: what client and server agree on]", least="4KiB"
    )
    wsize: int | None = option(
        "size", "Largest write request.  [default: what client and server agree on]", least="4KiB"
    )
    actimeo: int | None = option(
        "count", "Use cached attributes for N seconds.  [default: 3 to 60]", least=0, most=3600, metavar="N"
    )
    size: int = option("size", "Capacity of the exported file system.", "2GiB", least="320MiB")


class NfsLab(BrickLab[NfsOptions]):
    """An NFS export. The client is this machine's kernel, not a process."""

    options_type = NfsOptions
    packages = PACKAGES + SERVER_PACKAGES + table("nfs-common mount.nfs4")
    _source: str

    @classmethod
    def check(cls, options: NfsOptions, directory: Path) -> None:
        require_space(directory, options.size, "--size")
        known = Path("/proc/filesystems").read_text(encoding="ascii").split()
        if "nfs4" not in known and run(["modprobe", "--dry-run", "nfsv4"], limit_s=_MODPROBE_S).status != 0:
            raise EnvironmentLacksError(
                "this machine cannot mount NFS",
                where=f"Linux {os.uname().release}",
                why="this kernel has no NFS 4 client, and cannot load one as a module",
                remedy="Use a kernel with CONFIG_NFS_V4, such as that of Debian (linux-image-amd64). A container "
                "uses the kernel of its host: load the module there.",
            )

    def up(self) -> None:
        self._make_bricks("disk", 1, self.options.size, {})
        self._source = start_server(self.site, self._inside, self._bricks[1][1])
        self.site.step("client")
        self.site.make_directory("mnt")
        given = {name: getattr(self.options, name) for name in ("nconnect", "rsize", "wsize", "actimeo")}
        options = ",".join(
            ["nosuid,nodev,vers=4.2", *(f"{name}={value}" for name, value in given.items() if value is not None)]
        )
        self.site.run(*self._inside, "mount", "-t", "nfs4", "-o", options, self._source, self.site.mount_point)

    def facts(self) -> Mapping[str, Any]:
        return {**super().facts(), "source": self._source}
