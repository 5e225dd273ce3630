"""Local file systems (XFS, ext4, btrfs, tmpfs), and all file systems that have no module in this package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from strakes.base.machine import memory_sizes
from strakes.targets.block_device import BlockDevice, block_device_of, device_counters
from strakes.targets.description import Limit, Observation
from strakes.targets.mountinfo import Mount
from strakes.targets.target import Target, TargetFacts

_IN_MEMORY = ("tmpfs", "ramfs")


class LocalTarget(Target):
    """A local file system, with facts from mountinfo, statvfs and sysfs. It has no settings that strakes can change."""

    def facts(self, workspace: Path | None = None) -> TargetFacts:
        device = None if self.mount.remote else block_device_of(self.mount)
        facts = super().facts(workspace)
        facts = replace(facts, notes=(*facts.notes, *_notes(self.mount, device)), block_device=device)
        if facts.total_bytes == 0 and self.mount.file_system in _IN_MEMORY:
            memory = memory_sizes()
            return replace(facts, total_bytes=memory.get("MemTotal", 0), free_bytes=memory.get("MemAvailable", 0))
        return facts

    def observe(self) -> Observation:
        device = None if self.mount.remote else block_device_of(self.mount)
        return {device.name: counted} if device and (counted := device_counters(device.name)) else {}

    def limits(self) -> tuple[Limit, ...]:
        reason = f"{self.mount.file_system} is a local file system, and its device chooses where data are stored"
        return super().limits() if self.mount.remote else (Limit("set the layout of files", reason),)


def _notes(mount: Mount, device: BlockDevice | None) -> tuple[str, ...]:
    memory = "This file system is in memory: figures show the speed of memory. Its data takes memory from programs."
    overlay = "This is an overlay: new files go to its upper layer, so the file system of that layer is measured."
    notes = {**dict.fromkeys(_IN_MEMORY, (memory,)), "overlay": (overlay,)}.get(mount.file_system, ())
    file = device.backing_file if device else ""
    loop = f"The device is a loop device on {file}: the file system below it and its cache affect figures."
    return (*notes, loop) if file else notes
