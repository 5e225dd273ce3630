"""Whether a directory is still on the file system that it was on: below an unmounted one lies another."""

from __future__ import annotations

import os
from pathlib import Path

from strakes.targets.mountinfo import Mount, find_mount, read_mounts


class Mounted:
    """Remembers where a file system is mounted."""

    def __init__(self, directory: Path) -> None:
        self._directory = os.path.abspath(directory)
        self._mount_point = self._now().mount_point

    def why_not(self) -> str:
        """Return why it is not the same file system; empty where it is, or where it is mounted once it is used."""
        mount = self._now()
        if len(mount.mount_point) >= len(self._mount_point):
            self._mount_point = mount.mount_point
        elif mount.file_system != "autofs":
            return f"nothing is mounted on {self._mount_point} any more"
        return ""

    @property
    def remote(self) -> bool:
        """Tell whether servers are behind it."""
        return self._now().remote

    def _now(self) -> Mount:
        return find_mount(read_mounts(), self._directory)
