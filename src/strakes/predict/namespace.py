"""Distribute the directories of a tree over metadata targets, by their entries and recent changes."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import shell_line
from strakes.base.units import counted
from strakes.report.numbers import percent


@dataclass
class Tally:
    """Number of entries below one directory, and how many of them changed recently. ``parts``: subdirectories."""

    path: Path
    entries: int = 0
    changed: int = 0
    parts: list[Tally] = field(default_factory=list)


@dataclass
class Walk:
    """Counts entries below directories. ``read``: number of listed directories. ``told``: of trees that CephFS counted.

    ``device``: number of the device; other file systems (``mounts``) are left out. ``after``: Unix time; entries
    changed later count as changed. ``until``: monotonic time at which counting stops, so that the result is not
    ``whole``. ``unread``: directories that could not be read.
    """

    device: int
    after: float
    until: float
    whole: bool = True
    read: int = 0
    told: int = 0
    unread: list[Path] = field(default_factory=list)
    mounts: list[Path] = field(default_factory=list)

    def count(self, path: Path, apart: int) -> Tally:
        """Count the entries below a directory. ``apart``: depth to which subdirectories have their own tallies."""
        tally = Tally(path)
        pending = [path]
        while pending:
            here = pending.pop()
            self.read += 1
            for entry in self._entries(here):
                if time.monotonic() > self.until:
                    self.whole = False
                    return tally
                tally.entries += 1
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # the entry was deleted meanwhile
                tally.changed += max(status.st_mtime, status.st_ctime) >= self.after
                if not stat.S_ISDIR(status.st_mode):
                    continue
                if status.st_dev != self.device:
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
        """Return the number of entries that CephFS keeps for a whole tree, or None on other file systems."""
        try:
            entries = int(os.getxattr(path, "ceph.dir.rentries"))
            changed = float(os.getxattr(path, "ceph.dir.rctime")) >= self.after
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
            return  # the directory was deleted meanwhile
        except OSError:
            self.unread.append(path)


@dataclass(frozen=True)
class Share:
    """Directories for one metadata target. ``load``: share of all changes, or of all entries if nothing changed."""

    target: int
    directories: tuple[Path, ...]
    load: float


@dataclass(frozen=True)
class NamespacePlan:
    """Distribution of a tree. ``shares``: by target number. ``largest``: largest indivisible directory, its load."""

    root: Path
    entries: int
    changed: int
    shares: tuple[Share, ...]
    largest: tuple[Path, float]


def walk(root: Path, *, since_s: float, limit_s: float, depth: int = 2) -> tuple[Tally, Walk]:
    """Count the entries below ``root`` for at most ``limit_s`` seconds, with separate tallies down to ``depth``.

    Entries changed in the last ``since_s`` seconds count as changed. Symbolic links are not followed, and other file
    systems not entered. On CephFS, its own counts replace listing below ``depth``. Raises BadInputError.
    """
    try:
        status = os.stat(root)
        os.scandir(root).close()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise BadInputError("the directory cannot be read", where=str(root), why=why) from error
    walker = Walk(status.st_dev, time.time() - since_s, time.monotonic() + limit_s)
    return walker.count(root, depth), walker


def place(tally: Tally, targets: int) -> NamespacePlan:
    """Assign the directories to metadata targets, the largest first to the target with the least load.

    A directory with more than a fair share is split into its counted subdirectories (Graham 1969, LPT rule).
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
    # Entries that are directly in the root or in split directories stay on the first target.
    loads[0] += total - sum(loads)
    pieces = [(load(part), part.path) for part in parts] + [(own(part), part.path) for part in apart]
    most, largest = max(pieces, key=lambda piece: piece[0])
    shares = [
        Share(number, tuple(sorted(paths)), summed / total)
        for number, (paths, summed) in enumerate(zip(directories, loads, strict=True))
    ]
    return NamespacePlan(tally.path, tally.entries, tally.changed, tuple(shares), (largest, most / total))


def commands(plan: NamespacePlan, file_system: str) -> list[tuple[str, ...]]:
    """Return commands that place the directories, as argument lists; empty unless on CephFS or Lustre."""
    placed = [(str(share.target), str(path)) for share in plan.shares for path in share.directories]
    if "ceph" in file_system:
        return [("setfattr", "-n", "ceph.dir.pin", "-v", target, path) for target, path in placed]
    return [("lfs", "migrate", "-m", *each) for each in placed] if file_system == "lustre" else []


def render_namespace(plan: NamespacePlan, walk: Walk, commands: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of the report on a distribution."""
    weighed = "recent changes" if plan.changed else "all entries, because none changed recently"
    yield (
        f"{counted(plan.entries, 'entry', 'entries')} below {shell_line([str(plan.root)])}, {plan.changed:,} changed "
        f"recently. Load: {weighed}."
    )
    yield from _walk_lines(walk)
    fair = 1 / len(plan.shares)
    for share in plan.shares:
        below = counted(len(share.directories), "directory", "directories")
        yield f"target {share.target}: {_share(share.load)} of the load (a fair share is {_share(fair)}), {below}"
        yield from (f"  {shell_line([str(path)])}" for path in share.directories)
    path, load = plan.largest
    if load > fair:
        yield (
            f"{shell_line([str(path)])} alone has {_share(load)} of the load. Spread that directory over several "
            "targets (lfs mkdir -c, ceph.dir.pin.distributed), or give it as DIR to distribute its subdirectories."
        )
    if commands:
        yield "Commands for bash that place the directories (moving takes time; run them when the tree is not in use):"
        yield from (f"  {shell_line(command)}" for command in commands)
    else:
        yield "This file system has no command that puts a directory on a metadata target."


def _walk_lines(walk: Walk) -> Iterator[str]:
    read = f"{counted(walk.read, 'directory', 'directories')} read"
    if walk.told:
        yield (
            f"Counted by CephFS (ceph.dir.rentries, ceph.dir.rctime) for {counted(walk.told, 'tree')}, {read}. If "
            "anything in one of these trees changed, the whole tree counts as changed."
        )
    else:
        yield f"{read}."
    if not walk.whole:
        yield "Counting ended after the time of --limit, so entries are missing. Give a larger --limit."
    if walk.unread:
        yield f"Counted as empty, because they could not be read: {_named(walk.unread)}"
    if walk.mounts:
        yield f"Left out, because other file systems are mounted there: {_named(walk.mounts)}"


def _named(paths: Sequence[Path]) -> str:
    return shell_line([str(path) for path in paths])


def _share(share: float) -> str:
    return percent(round(share, 2 if share >= 0.01 else 4))
