"""Which labs there are. A new one is a module and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple, cast

from strakes.lab.kind import Lab
from strakes.lab.options import LabOptions


class Kind(NamedTuple):
    """Where a lab's class is (``module:class``) and its line in the help, so that the help imports none."""

    location: str
    summary: str


KINDS = {
    "ceph": Kind(
        "strakes.lab.ceph.lab:CephLab", "CephFS: object stores, several metadata ranks with standbys, FUSE client."
    ),
    "gluster": Kind(
        "strakes.lab.gluster:GlusterLab", "GlusterFS: a distributed volume with its own bricks, FUSE client."
    ),
    "moosefs": Kind("strakes.lab.moosefs:MooseFsLab", "MooseFS: a master and chunkservers, FUSE client."),
    "nfs": Kind("strakes.lab.nfs:NfsLab", "NFS: the kernel's server or nfs-ganesha, mounted by the kernel."),
    "juicefs": Kind(
        "strakes.lab.juicefs:JuiceFsLab",
        "JuiceFS: metadata in SQLite or Redis, objects in a directory, FUSE client with a cache.",
    ),
    "ha": Kind(
        "strakes.lab.ha.lab:HaLab",
        "A pair of servers with Corosync, Pacemaker and IPMI fencing; they serve a journal, not a file system.",
    ),
    "hosts": Kind(
        "strakes.lab.hosts.lab:PlainHostsLab",
        "Several emulated hosts on this machine, reached by ssh, with a shared directory.",
    ),
    "slurm": Kind("strakes.lab.hosts.slurm:SlurmLab", "Emulated hosts with Slurm, and a shared directory."),
    "xfs": Kind("strakes.lab.local:XfsLab", "XFS on a loop device, which can be made slow."),
    "ext4": Kind("strakes.lab.local:Ext4Lab", "ext4 on a loop device, which can be made slow."),
    "tmpfs": Kind("strakes.lab.local:TmpfsLab", "tmpfs, in memory."),
}


def load(kind: str) -> type[Lab[LabOptions]]:
    """Return the class of a kind."""
    module, _, name = KINDS[kind].location.partition(":")
    return cast("type[Lab[LabOptions]]", getattr(import_module(module), name))
