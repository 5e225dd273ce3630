"""What a run is of: the file system that it measured, and a hash of all that was measured there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from strakes.store import Run


@dataclass(frozen=True)
class MeasuredFileSystem:
    """``kind``: its type as mounts call it; ``source``: what is mounted; empty where the run does not tell."""

    kind: str = ""
    source: str = ""
    mount_point: str = ""

    def is_same_as(self, other: MeasuredFileSystem) -> bool:
        """Tell whether both are one file system, by its type and what is mounted.

        A source that names no server, device or dataset (``ceph-fuse``, ``tmpfs``) is one at one mount point only.

        >>> nfs = MeasuredFileSystem("nfs4", "srv:/x", "/mnt/a")
        >>> nfs.is_same_as(MeasuredFileSystem("nfs4", "srv:/x", "/mnt/b"))
        True
        >>> MeasuredFileSystem("tmpfs", "tmpfs", "/a").is_same_as(MeasuredFileSystem("tmpfs", "tmpfs", "/b"))
        False
        """
        if (self.kind, self.source) != (other.kind, other.source):
            return False
        return "/" in self.source or ":" in self.source or self.mount_point == other.mount_point

    @property
    def text(self) -> str:
        """Return it in words."""
        if not self.kind:
            return "a file system that the run does not describe"
        return f"{self.kind} ({self.source}) at {self.mount_point}"


def file_system_of(run: Run) -> MeasuredFileSystem:
    """Return what the facts of a run say of its file system."""
    facts = run.facts
    return MeasuredFileSystem(*(str(facts.get(key) or "") for key in ("file_system", "device", "mount_point")))


def contents_of(run: Run) -> str:
    """Return a hash over all that a forecast reads of a run: its cells, visits and events."""
    whole = hashlib.sha256()
    for name in ("cells", "visits", "events"):
        path = run.path / f"{name}.jsonl"
        told = path.read_bytes() if path.exists() else b""
        whole.update(f"{name} {len(told)}\n".encode() + told)
    return whole.hexdigest()
