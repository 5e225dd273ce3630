"""Servers of NFS in a network of a lab: the kernel's, or nfs-ganesha."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from strakes.files import write_kernel_file
from strakes.lab.network import LabNetwork
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
# Its tools know these places only; what they see there is the lab's.
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
    """Start the server ``kind`` (kernel or ganesha), which exports ``path``; returns what is to be mounted."""
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
