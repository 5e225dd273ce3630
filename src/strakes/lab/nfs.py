"""NFS: the kernel's server or nfs-ganesha in a private network, and a mount by this machine's kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.errors import EnvironmentLacksError
from strakes.base.files import write_kernel_file
from strakes.lab.device import PACKAGES, Brick, check_bricks, make_bricks
from strakes.lab.kind import Lab
from strakes.lab.network import LabNetwork, make_network
from strakes.lab.options import LabOptions, option
from strakes.lab.packages import Package
from strakes.lab.process import run
from strakes.lab.site import LabSite

EXPORT = "/export"
KERNEL_PACKAGES = (Package("nfs-kernel-server", "exportfs"), Package("kmod", "modprobe"))
GANESHA_PACKAGES = (
    Package("nfs-ganesha", "ganesha.nfsd"),
    Package("nfs-ganesha-vfs", "/usr/lib/*/ganesha/libfsalvfs.so"),
)
_PORT = 2049
_MODPROBE_S = 10.0
_THREADS = 8  # the default of rpc.nfsd(8)
# The file system with which the kernel's server is controlled, mounted in the lab's directory: through it the server of
# the lab's network is stopped, and no other.
_CONTROL = "nfsd"
# The tools use fixed paths; bind mounts put the lab's files there.
_KERNEL_SERVER = f"""
mount --bind "$1/{_CONTROL}" /proc/fs/nfsd && mount --bind "$1/server" /var/lib/nfs &&
exportfs -i -o rw,no_root_squash,no_subtree_check,insecure,fsid=0 "$2:$3" &&
rpc.nfsd --host "$4" --no-udp --no-nfs-version 3 --grace-time 10 --lease-time 10 {_THREADS} &&
exec rpc.mountd --foreground --no-nfs-version 3
"""


def kernel_knows(file_system: str, module: str) -> bool:
    """Whether the kernel has a file system, or a module for it that can be loaded."""
    known = Path("/proc/filesystems").read_text(encoding="ascii").split()
    return file_system in known or run(["modprobe", "--dry-run", module], limit_s=_MODPROBE_S).status == 0


def start_server(site: LabSite, network: LabNetwork, path: Path, kind: str) -> str:
    """Start the server ``kind`` (kernel or ganesha), which exports ``path``; return the source to mount."""
    site.make_directory("server")
    path.joinpath(EXPORT.strip("/")).mkdir()
    exported = path / EXPORT.strip("/")
    site.step("the kernel's server" if kind == "kernel" else "nfs-ganesha")
    if kind == "kernel":
        _start_kernel_server(site, network, exported)
    else:
        _start_ganesha(site, network, exported)
    site.wait_until("the server", lambda: "" if network.answers(_PORT) else "it does not answer yet")
    # The only export of the kernel's server is its root.
    return f"{network.server}:{'/' if kind == 'kernel' else EXPORT}"


def stop_kernel_server(directory: Path) -> None:
    """Stop the kernel's server of the lab in a directory, where there is one: its threads are no processes to end."""
    with suppress(OSError):
        write_kernel_file(directory / _CONTROL / "threads", "0\n")


def _start_kernel_server(site: LabSite, network: LabNetwork, exported: Path) -> None:
    if not os.path.isdir("/proc/fs/nfsd"):
        site.run("modprobe", "nfsd")
    control = site.make_directory(_CONTROL)
    for name in ("etab", "rmtab"):
        site.write(f"server/{name}", "")
    site.run(*network.inside, "mount", "-t", "nfsd", "nfsd", control)
    apart = ("unshare", "--mount", "--propagation", "slave", "/bin/sh", "-c", _KERNEL_SERVER, "sh")
    words = (site.directory, network.client, exported, network.server)
    site.start("mountd", *network.inside, *apart, *words)


def _start_ganesha(site: LabSite, network: LabNetwork, exported: Path) -> None:
    settings = site.write("ganesha.conf", _settings(site.directory / "server", network, exported))
    site.start(
        "ganesha",
        *network.inside,
        *("ganesha.nfsd", "-F", "-f", settings, "-p", site.directory / "server/pid"),
        *("-L", site.directory / "log/ganesha.log", "-N", "NIV_EVENT"),
    )


def _settings(own: Path, network: LabNetwork, exported: Path) -> str:
    return f"""NFS_CORE_PARAM {{
    Bind_addr = {network.server};
    NFS_Port = {_PORT};
    Protocols = 4;
    Enable_NLM = false;
    Enable_RQUOTA = false;
}}
NFSv4 {{
    Graceless = true;
    RecoveryRoot = "{own}";
    Minor_Versions = 0, 1, 2;
}}
EXPORT {{
    Export_Id = 1;
    Path = "{exported}";
    Pseudo = "{EXPORT}";
    Protocols = 4;
    Transports = TCP;
    Access_Type = RW;
    Squash = No_Root_Squash;
    SecType = sys;
    FSAL {{
        Name = VFS;
    }}
}}
"""


@dataclass(frozen=True)
class NfsOptions(LabOptions):
    """Options of ``lab up nfs``."""

    server: str = option(
        "choice",
        "NFS server: the kernel's, nfs-ganesha, or the first of them that works here (auto).",
        "auto",
        choices=("auto", "kernel", "ganesha"),
    )
    vers: str = option("choice", "Version of NFS.", "4.2", choices=("4.2", "4.1", "4.0"))
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


class NfsLab(Lab[NfsOptions]):
    """The client is the kernel's, so no process of the lab serves the mount."""

    options_type = NfsOptions
    packages = (*PACKAGES, Package("nfs-common", "mount.nfs4"))
    _network: LabNetwork
    _brick: Brick
    _source: str

    @classmethod
    def packages_for(cls, options: NfsOptions) -> tuple[Package, ...]:
        """Return the packages that these options need."""
        return (*cls.packages, *(KERNEL_PACKAGES if _server_of(options) == "kernel" else GANESHA_PACKAGES))

    @classmethod
    def check(cls, options: NfsOptions, directory: Path) -> None:
        """Raise BadInputError or EnvironmentLacksError if the lab is impossible."""
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
        """Return why the file system cannot be used yet, or an empty text."""
        return self._lacking_until_space("the server does not answer yet")

    def facts(self) -> Mapping[str, Any]:
        """Return the addresses, files and commands by which programs reach it."""
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
