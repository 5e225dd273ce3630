"""Base class for network file systems on which strakes can set nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from strakes.targets.description import Limit
from strakes.targets.mountinfo import Mount
from strakes.targets.target import Target, TargetFacts

# Common name of a counter -> names of operations in FUSE clients.
FUSE_OPERATIONS = {
    "md.create": ("create", "mknod", "symlink"),
    "md.open": ("open",),
    "md.close": ("release",),
    "md.getattr": ("getattr",),
    "md.setattr": ("setattr",),
    "md.unlink": ("unlink",),
    "md.mkdir": ("mkdir",),
    "md.rmdir": ("rmdir",),
    "md.rename": ("rename",),
    "md.lookup": ("lookup",),
    "md.readdir": ("readdir", "readdirplus"),
    "data.read_requests": ("read",),
    "data.write_requests": ("write",),
}


def add_up(counted: Mapping[str, float], operations: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return the sum of the operations for each common name.

    >>> add_up({"create": 2.0, "mknod": 1.0}, {"md.create": ("create", "mknod"), "md.open": ("open",)})
    {'md.create': 3.0, 'md.open': 0.0}
    """
    return {name: sum(counted.get(own, 0.0) for own in names) for name, names in operations.items()}


class RemoteTarget(Target):
    """A network file system. ``file_systems``: its types in mountinfo. ``cannot``: its limits, with the reasons."""

    file_systems: ClassVar[tuple[str, ...]]
    cannot: ClassVar[tuple[tuple[str, str], ...]]

    @classmethod
    def claims(cls, mount: Mount) -> bool:
        """Whether the file system of the mount is one that this class names."""
        return mount.file_system in cls.file_systems

    def facts(self, workspace: Path | None = None) -> TargetFacts:
        """Return the facts; only this client is measured."""
        return self._facts(workspace, notes=("This is a network file system, measured only from this client.",))

    def controls(self) -> tuple[str, ...]:
        """Return an empty tuple: strakes cannot set anything."""
        return ()

    def limits(self) -> tuple[Limit, ...]:
        """Return the limits in ``cannot``."""
        return tuple(Limit(what, why) for what, why in self.cannot)


class GpfsTarget(RemoteTarget):
    """Blocks of a file are distributed round-robin over all disks of its storage pool; see the facts for their size."""

    file_systems = ("gpfs",)
    cannot = (
        (
            "set the layout of files",
            "mmcrfs fixes the block size, and every file is on all disks of its pool; policies choose the pool",
        ),
        ("place directories", "it has no metadata targets to choose; every node with the disks serves metadata"),
        ("describe servers and targets", "only administrators may run mmlsdisk, mmlsnsd and mmlsfs"),
        ("read counters of servers", "mmpmon shows them on each node, and only to root"),
    )


class StorNextTarget(RemoteTarget):
    """Stripe breadth and stripe groups are in the configuration of the file system on its metadata controllers."""

    file_systems = ("cvfs", "snfs")
    cannot = (
        (
            "set the layout of files",
            "the configuration of the file system fixes stripe breadth and groups; affinities choose a group",
        ),
        ("place directories", "only one metadata controller at a time serves a file system"),
        ("describe servers and targets", "cvadmin shows them on the metadata controllers, and only to administrators"),
        ("read counters of servers", "cvadmin and cvfsdb show them only on the metadata controllers"),
    )
