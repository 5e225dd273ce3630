"""Base class of labs, and the table of all kinds of labs. A new kind of lab needs a module and a line in the table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

from strakes.lab.mounts import mounted_at, space_of
from strakes.lab.options import LabOptions
from strakes.lab.packages import Package
from strakes.lab.site import READY_LIMIT_S, LabSite

OptionsT = TypeVar("OptionsT", bound=LabOptions)

# Role of the process that serves a FUSE mount. When the process ends, the mount is unusable.
CLIENT = "client"


class Lab(ABC, Generic[OptionsT]):
    """A lab that starts one kind of file system. All of its changes go through ``site``, which records each step."""

    options_type: ClassVar[type[LabOptions]]
    packages: ClassVar[tuple[Package, ...]]
    needs_root: ClassVar[bool] = True
    ready_limit_s = READY_LIMIT_S

    def __init__(self, site: LabSite, options: OptionsT) -> None:
        self.site = site
        self.options = options

    @classmethod
    def check(cls, options: OptionsT, directory: Path) -> None:
        """Raise BadInputError or EnvironmentLacksError if the lab cannot be started on this machine."""

    @classmethod
    def packages_for(cls, options: OptionsT) -> tuple[Package, ...]:  # noqa: ARG003 - for kinds whose options need more
        """Return the Debian packages that a lab with these options needs."""
        return cls.packages

    @abstractmethod
    def up(self) -> None:
        """Start all servers and the client. May return before the file system is ready."""

    def ready(self) -> str:
        """Return why the file system cannot be used yet, or "" if it is ready."""
        if mounted_at(self.site.mount_point) is None:
            return "nothing is mounted yet"
        space = space_of(self.site.mount_point)
        return "" if space and space.free_bytes else "it has no free space yet"

    def slow_down(self) -> None:
        """Apply the requested speed limits. Called after the start, because the limits would delay it."""

    def facts(self) -> Mapping[str, Any]:
        """Return addresses, file names and commands for programs that use the lab."""
        return {}

    def start_client(self, *argv: str | Path) -> None:
        self.site.step("client")
        self.site.make_directory("mnt")
        self.site.start(CLIENT, *argv)


class Kind(NamedTuple):
    """A kind of lab: module and name of its class, and a summary for the help text."""

    module: str
    lab: str
    summary: str


# fmt: off
KINDS = {
    "ceph": Kind("ceph_lab", "CephLab", "CephFS: object stores, several metadata ranks with standbys, FUSE client."),
    "gluster": Kind("gluster", "GlusterLab", "GlusterFS: a distributed volume with its own bricks, FUSE client."),
    "moosefs": Kind("moosefs", "MooseFsLab", "MooseFS: a master and chunkservers, FUSE client."),
    "nfs": Kind("nfs", "NfsLab", "NFS 4: nfs-ganesha, mounted by the kernel."),
    "ha": Kind("ha_lab", "HaLab", "A fail-over pair (Corosync, Pacemaker, IPMI fencing) that serves a journal."),
    "hosts": Kind("hosts", "HostsLab", "Emulated hosts on this machine, reached by ssh, with a shared directory."),
    "slurm": Kind("hosts", "SlurmLab", "Emulated hosts with Slurm, and a shared directory."),
    "xfs": Kind("local", "XfsLab", "XFS on a loop device, which can be made slow."),
    "ext4": Kind("local", "Ext4Lab", "ext4 on a loop device, which can be made slow."),
    "tmpfs": Kind("local", "TmpfsLab", "tmpfs, in memory."),
}
# fmt: on


def load(kind: str) -> type[Lab[LabOptions]]:
    """Return the Python class that implements a kind of lab."""
    found = KINDS[kind]
    return cast("type[Lab[LabOptions]]", getattr(import_module(f"strakes.lab.{found.module}"), found.lab))
