"""Base class for network file systems that strakes cannot configure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from strakes.base.errors import StrakesError
from strakes.targets.description import Description, Limit
from strakes.targets.mountinfo import Mount
from strakes.targets.target import Target, said

# Common name of a counter -> names of operations in clients and servers (FUSE, NFS, Ceph, GlusterFS), in lower case.
_OPERATIONS = {
    "md.create": ("create", "mknod", "symlink"),
    "md.open": ("open", "open_noattr"),
    "md.close": ("close", "release"),
    "md.getattr": ("getattr", "stat", "fstat"),
    "md.setattr": ("setattr", "fsetattr", "setxattr", "rmxattr"),
    "md.unlink": ("unlink", "remove"),
    "md.mkdir": ("mkdir",),
    "md.rmdir": ("rmdir",),
    "md.rename": ("rename",),
    "md.lookup": ("lookup", "lookupino"),
    "md.readdir": ("readdir", "readdirp", "readdirplus"),
    "data.read_requests": ("read", "readv"),
    "data.write_requests": ("write", "writev"),
}


def add_up(counted: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of the operations for each common name."""
    own = {name.lower(): value for name, value in counted.items()}
    return {name: sum(own.get(one, 0.0) for one in names) for name, names in _OPERATIONS.items()}


class RemoteTarget(Target):
    """A network file system. ``file_systems``: its types in mountinfo. ``cannot``: impossible operations, and why."""

    file_systems: ClassVar[tuple[str, ...]]
    cannot: ClassVar[tuple[tuple[str, str], ...]]

    @classmethod
    def claims(cls, mount: Mount) -> bool:
        return mount.file_system in cls.file_systems

    def describe(self) -> Description:
        """Return the description with the parts that servers report, or with a note on why they do not answer."""
        known = super().describe()
        try:
            return self._parts(known)
        except StrakesError as error:
            return replace(known, notes=(said(error),))

    def _parts(self, known: Description) -> Description:
        """Return ``known`` with the parts that the servers report. Raises StrakesError."""
        return known

    def trouble(self) -> tuple[str, ...]:
        """Return a sentence for each data target that is not online, or one that says why the states are unknown."""
        try:
            targets = self._parts(super().describe()).data_targets
        except StrakesError as error:
            return (f"The state of the servers is not known: {said(error)}.",)
        return tuple(f"{target.name} is {target.state}." for target in targets if target.state != "online")

    def limits(self) -> tuple[Limit, ...]:
        return tuple(Limit(what, why) for what, why in self.cannot)


class BeeGfsTarget(RemoteTarget):
    """A BeeGFS mount. A file's chunks are distributed round-robin over the targets chosen when it was created."""

    file_systems = ("beegfs", "beegfs_nodev")
    cannot = (
        ("set the layout of files", "beegfs-ctl --setpattern sets it before a study, as root"),
        ("place directories", "BeeGFS chooses the metadata target; only root may, with beegfs-ctl --createdir"),
        ("describe servers and targets", "strakes does not read beegfs-ctl --listtargets"),
        ("read counters of servers", "beegfs-ctl --serverstats shows only rates, not counters"),
    )


class GpfsTarget(RemoteTarget):
    """A GPFS mount. A file's blocks (``block_bytes``) are distributed round-robin over all disks of its pool."""

    file_systems = ("gpfs",)
    cannot = (
        ("set the layout of files", "mmcrfs fixes the block size, and every file is on all disks of its pool"),
        ("place directories", "it has no metadata targets to choose; every node with the disks serves metadata"),
        ("describe servers and targets", "only administrators may run mmlsdisk, mmlsnsd and mmlsfs"),
        ("read counters of servers", "mmpmon shows them on each node, and only to root"),
    )


class StorNextTarget(RemoteTarget):
    """A StorNext mount. Stripe breadth and stripe groups are configured on the metadata controllers."""

    file_systems = ("cvfs", "snfs")
    cannot = (
        ("set the layout of files", "its configuration fixes stripe breadth and groups; affinities choose a group"),
        ("place directories", "only one metadata controller at a time serves a file system"),
        ("describe servers and targets", "cvadmin shows them on the metadata controllers, and only to administrators"),
        ("read counters of servers", "cvadmin and cvfsdb show them only on the metadata controllers"),
    )
