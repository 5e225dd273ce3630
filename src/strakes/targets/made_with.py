"""The mkfs options of a local file system, from its tools; they affect its speed."""

from __future__ import annotations

import re

from strakes.errors import StrakesError
from strakes.targets.command import Command, Completed, Runner
from strakes.targets.mountinfo import Mount

_XFS = ("isize", "agcount", "agsize", "bsize", "sunit", "swidth", "crc", "reflink", "rmapbt", "finobt", "bigtime")
_EXT4 = (
    "Block size",
    "Inode size",
    "Blocks per group",
    "RAID stride",
    "RAID stripe width",
    "Journal size",
    "Total journal size",
)
_PAIR = re.compile(r"(\w[\w-]*)\s*=\s*(\S+?)(?=,|\s|$)")
_LIMIT_S = 5.0


def made_with(mount: Mount, run: Runner) -> str:
    """Return the options as a text for users; empty if the tool is missing or lacks permission."""
    command = {"xfs": _xfs, "ext4": _ext, "ext3": _ext, "ext2": _ext, "btrfs": _btrfs}.get(mount.file_system)
    if command is None:
        return ""
    try:
        return command(mount).ask(run)
    except StrakesError:
        return ""


def _xfs(mount: Mount) -> Command[str]:
    return Command(("xfs_info", mount.mount_point), read_xfs, _LIMIT_S)


def _ext(mount: Mount) -> Command[str]:
    return Command(("dumpe2fs", "-h", mount.source), read_ext, _LIMIT_S)


def _btrfs(mount: Mount) -> Command[str]:
    return Command(("btrfs", "filesystem", "df", mount.mount_point), read_btrfs, _LIMIT_S)


def read_xfs(done: Completed) -> str:
    r"""Return what ``xfs_info`` says of how it was made.

    >>> told = "meta-data=/dev/loop0  isize=512  agcount=4, agsize=20480 blks\nlog  =internal log  bsize=4096"
    >>> read_xfs(Completed((), 0, told, ""))
    'isize 512, agcount 4, agsize 20480, bsize 4096'
    """
    settings: dict[str, str] = {}
    for key, value in _PAIR.findall(done.stdout):
        if key in _XFS:
            settings.setdefault(key, value)
    return ", ".join(f"{key} {value}" for key, value in settings.items())


def read_ext(done: Completed) -> str:
    r"""Return what ``dumpe2fs`` says of how it was made.

    >>> read_ext(Completed((), 0, "Block size:               4096\nMount count: 1\nInode size:\t          256\n", ""))
    'block size 4096, inode size 256'
    """
    pairs = (line.partition(":")[::2] for line in done.stdout.splitlines())
    return ", ".join(
        f"{key[0].lower() if key[1:2].islower() else key[0]}{key[1:]} {value.strip()}"
        for key, value in pairs
        if key in _EXT4
    )


def read_btrfs(done: Completed) -> str:
    r"""Which copies it keeps of what.

    >>> told = "Data, single: total=8.00MiB, used=0.00B\nMetadata, DUP: total=32.00MiB, used=1.00KiB\n"
    >>> read_btrfs(Completed((), 0, told, ""))
    'data single, metadata DUP'
    """
    kinds = (line.partition(":")[0].partition(", ")[::2] for line in done.stdout.splitlines())
    return ", ".join(f"{kind.lower()} {copies}" for kind, copies in kinds if copies and kind != "GlobalReserve")
