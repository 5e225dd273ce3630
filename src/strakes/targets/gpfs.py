"""IBM Storage Scale (GPFS): detected and told what is fixed when it is made."""

from __future__ import annotations

from strakes.targets.remote import RemoteTarget


class GpfsTarget(RemoteTarget):
    """Blocks of a file go round all disks of its storage pool; their size is that of the file system (the block under facts)."""

    file_systems = ("gpfs",)
    cannot = (
        (
            "set the layout of files",
            "mmcrfs fixes the block size, and every file is over all disks of its pool, which policies choose",
        ),
        ("place directories", "there are no metadata targets to choose: every node that has the disks serves metadata"),
        ("describe servers and targets", "mmlsdisk, mmlsnsd and mmlsfs tell them to administrators only"),
        ("read counters of servers", "mmpmon tells them on each node, to root only"),
    )
