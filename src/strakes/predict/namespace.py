"""Share the directories of a live tree among metadata targets."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from strakes.errors import BadInputError


@dataclass
class Tally:
    """Entries below one directory, and how many of them changed lately."""

    path: Path
    entries: int = 0
    changed: int = 0
    parts: list[Tally] = field(default_factory=list)


@dataclass(frozen=True)
class Walk:
    """``read``: directories that were listed. ``told``: directories whose counters CephFS gave.

    ``whole``: False if the time limit ended it. ``unread``: directories that could not be read. ``mounts``: other file
    systems, left out.
    """

    tally: Tally
    whole: bool
    read: int
    told: int
    unread: tuple[Path, ...]
    mounts: tuple[Path, ...]
    took_s: float


@dataclass(frozen=True)
class Share:
    """Directories for one metadata target; ``load``: of all changes, or of all entries where nothing changed."""

    target: int
    directories: tuple[Path, ...]
    load: float


@dataclass(frozen=True)
class NamespacePlan:
    """``shares``: of every target, the first first. ``largest``: what cannot be shared further, with its load."""

    root: Path
    entries: int
    changed: int
    shares: tuple[Share, ...]
    largest: tuple[Path, float]


def walk(root: Path, *, since_s: float, limit_s: float, depth: int = 2) -> Walk:
    """Count below ``root``, its directories to ``depth`` apart from one another, for at most ``limit_s``.

    Follows no symbolic link and enters no other file system. Where CephFS counts entries itself, the numbers are its
    own and nothing below ``depth`` is read. Raises BadInputError.
    """
    try:
        status = os.stat(root)
        os.scandir(root).close()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise BadInputError("the directory cannot be read", where=str(root), why=why) from error
    began = time.monotonic()
    walker = _Walker(status.st_dev, time.time() - since_s, began + limit_s)
    tally = walker.count(root, depth)
    took_s = time.monotonic() - began
    return Walk(tally, not walker.late, walker.read, walker.told, tuple(walker.unread), tuple(walker.mounts), took_s)


class _Walker:
    def __init__(self, device: int, changed_after_s: float, until_s: float) -> None:
        self._device, self._after, self._until = device, changed_after_s, until_s
        self.late = False
        self.read = self.told = 0
        self.unread: list[Path] = []
        self.mounts: list[Path] = []

    def count(self, path: Path, apart: int) -> Tally:
        """Count one directory; ``apart``: how many levels below it have a tally of their own."""
        tally = Tally(path)
        pending = [path]
        while pending:
            here = pending.pop()
            self.read += 1
            for entry in self._entries(here):
                if time.monotonic() > self._until:
                    self.late = True
                    return tally
                tally.entries += 1
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone meanwhile
                tally.changed += max(status.st_mtime, status.st_ctime) >= self._after
                if not stat.S_ISDIR(status.st_mode):
                    continue
                if status.st_dev != self._device:
                    self.mounts.append(Path(entry.path))
                elif apart > 0:
                    part = self._told(Path(entry.path)) if apart == 1 else None
                    part = part or self.count(Path(entry.path), apart - 1)
                    tally.parts.append(part)
                    tally.entries += part.entries
                    tally.changed += part.changed
                else:
                    pending.append(Path(entry.path))
        return tally

    def _told(self, path: Path) -> Tally | None:
        """Return what CephFS itself knows of a directory and all below; None elsewhere."""
        try:
            entries = int(os.getxattr(path, "ceph.dir.rentries"))
            changed = float(os.getxattr(path, "ceph.dir.rctime")) >= self._after
        except (OSError, ValueError):
            return None
        self.told += 1
        # rctime is the time of the latest change in the whole tree.
        return Tally(path, entries, entries if changed else 0)

    def _entries(self, path: Path) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(path) as listing:
                yield from listing
        except (FileNotFoundError, NotADirectoryError):
            return  # gone meanwhile
        except OSError:
            self.unread.append(path)


def place(tally: Tally, targets: int) -> NamespacePlan:
    """Assign the directories to metadata targets, the largest first to the target with the least load.

    A directory above a fair share is split into its subdirectories as far as they were counted (Graham 1969, LPT rule).
    """
    by_changes = tally.changed > 0
    total = max(1, tally.changed if by_changes else tally.entries)

    def load(part: Tally) -> int:
        return part.changed if by_changes else part.entries

    def own(part: Tally) -> int:
        return load(part) - sum(map(load, part.parts))

    parts = list(tally.parts)
    apart = [tally]
    while (large := max(parts, key=load, default=None)) is not None and load(large) > total / targets and large.parts:
        parts.remove(large)
        apart.append(large)
        parts += large.parts
    loads = [0] * targets
    directories: list[list[Path]] = [[] for _ in range(targets)]
    for part in sorted(parts, key=lambda each: (-load(each), each.path)):
        target = loads.index(min(loads))
        loads[target] += load(part)
        directories[target].append(part.path)
    # Entries of the root and of split directories stay on the first target.
    loads[0] += total - sum(loads)
    pieces = [(load(part), part.path) for part in parts] + [(own(part), part.path) for part in apart]
    most, largest = max(pieces, key=lambda piece: piece[0])
    shares = [
        Share(number, tuple(sorted(paths)), summed / total)
        for number, (paths, summed) in enumerate(zip(directories, loads, strict=True))
    ]
    return NamespacePlan(tally.path, tally.entries, tally.changed, tuple(shares), (largest, most / total))


def commands(plan: NamespacePlan, file_system: str) -> list[tuple[str, ...]]:
    """Return the commands that place the directories, as argument lists; only CephFS and Lustre have any."""
    placed = [(str(share.target), str(path)) for share in plan.shares for path in share.directories]
    if "ceph" in file_system:
        return [("setfattr", "-n", "ceph.dir.pin", "-v", target, path) for target, path in placed]
    return [("lfs", "migrate", "-m", *each) for each in placed] if file_system == "lustre" else []
