"""File systems with the POSIX interface only: XFS, ext4, btrfs, tmpfs, and all without a separate module."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from strakes.errors import StrakesError
from strakes.memory import memory_sizes
from strakes.targets.block_device import BlockDevice, block_device_of, device_counters
from strakes.targets.command import Command, Completed, Runner
from strakes.targets.description import Description, Limit, Observation
from strakes.targets.mountinfo import Mount
from strakes.targets.target import Target, TargetFacts

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
    """Return the format options as text, or "" if the tool is missing or lacks permission."""
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
    r"""Return the format options in the output of ``xfs_info``.

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
    r"""Return the format options in the output of ``dumpe2fs``.

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
    r"""Return the profiles (copies) of data and metadata.

    >>> told = "Data, single: total=8.00MiB, used=0.00B\nMetadata, DUP: total=32.00MiB, used=1.00KiB\n"
    >>> read_btrfs(Completed((), 0, told, ""))
    'data single, metadata DUP'
    """
    kinds = (line.partition(":")[0].partition(", ")[::2] for line in done.stdout.splitlines())
    return ", ".join(f"{kind.lower()} {copies}" for kind, copies in kinds if copies and kind != "GlobalReserve")


_IN_MEMORY = ("tmpfs", "ramfs")


class LocalTarget(Target):
    """Facts from mountinfo, statvfs, sysfs and the file system's own tool; nothing to control."""

    @classmethod
    def claims(cls, mount: Mount) -> bool:  # noqa: ARG003 - every mount
        """Return True: this class accepts every mount."""
        return True

    def facts(self, workspace: Path | None = None) -> TargetFacts:
        """Return the facts, with the block device; a tmpfs without a limit has the size of the machine's memory."""
        device = None if self.mount.remote else block_device_of(self.mount)
        facts = self._facts(workspace, notes=_notes(self.mount, device), block_device=device)
        if facts.total_bytes == 0 and self.mount.file_system in _IN_MEMORY:
            # A tmpfs without a size reports 0; the machine's memory is its limit.
            memory = memory_sizes()
            return replace(facts, total_bytes=memory.get("MemTotal", 0), free_bytes=memory.get("MemAvailable", 0))
        return facts

    def describe(self) -> Description:
        """Return mount options, and for a local device the options it was formatted with."""
        told = super().describe()
        if self.mount.remote:
            return told
        made = made_with(self.mount, self.run)
        return replace(told, client={**told.client, "made with": made} if made else told.client)

    def observe(self) -> Observation:
        """Return the counters of the device, including other users' requests."""
        device = None if self.mount.remote else block_device_of(self.mount)
        counted = device_counters(device.name) if device is not None else {}
        return {device.name: counted} if device is not None and counted else {}

    def limits(self) -> tuple[Limit, ...]:
        """Return the limits: no servers, placement or layouts, and no counters if its device has none."""
        kind = self.mount.file_system
        if self.mount.remote:
            return super().limits()
        reason = f"{kind} is a local file system"
        limits = [
            Limit(what, f"{reason} and has none") for what in ("describe servers and targets", "place directories")
        ]
        limits.append(Limit("set the layout of files", f"{reason}, and its device decides where data goes"))
        if not self.observe():
            limits.append(Limit("read counters", "its device has no counters"))
        return tuple(limits)

    def controls(self) -> tuple[str, ...]:
        """Return an empty tuple: it has no settings."""
        return ()


def _notes(mount: Mount, device: BlockDevice | None) -> tuple[str, ...]:
    """Return remarks that a reader of the figures should know."""
    notes = []
    if mount.file_system in _IN_MEMORY:
        notes.append(
            "This file system is in memory: figures show the speed of memory, and its data takes memory from "
            "everything else."
        )
    if mount.file_system == "overlay":
        notes.append(
            "This is an overlay: new files go to its upper layer, so the file system of that layer is measured."
        )
    if device is not None and device.backing_file:
        notes.append(
            f"The device is a loop device on {device.backing_file}: the file system below it and its cache affect "
            "figures."
        )
    if mount.remote:
        notes.append(
            "This is a network file system, measured only from this client; strakes knows nothing about its servers."
        )
    return tuple(notes)
