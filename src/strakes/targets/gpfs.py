"""IBM Storage Scale (GPFS): detected, with the settings that are fixed when the file system is made."""

from __future__ import annotations

from strakes.targets.remote import RemoteTarget


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
