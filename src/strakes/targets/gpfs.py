"""IBM Storage Scale (GPFS): detected and told what is fixed when it is made."""

from __future__ import annotations

from strakes.targets.remote import RemoteTarget


class GpfsTarget(RemoteTarget):
    """Blocks of a file go round all disks of its storage pool.

    Their size is that of the file system (the block under facts).
    """

    file_systems = ("gpfs",)
    cannot = (
        (
            "set the layout of files",
            "mmcrfs fixes the block size, and every file is on all disks of its pool; policies choose the pool",
        ),
        ("place directories", "there are no metadata targets to choose; every node with the disks serves metadata"),
        ("describe servers and targets", "only administrators may run mmlsdisk, mmlsnsd and mmlsfs"),
        ("read counters of servers", "mmpmon shows them on each node, and only to root"),
    )
