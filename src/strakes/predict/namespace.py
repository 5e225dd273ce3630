"""Share the directories of a live tree among metadata targets."""

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
    """Entries below one directory, and how many of them changed lately."""

    path: Path
    entries: int = 0
    changed: int = 0
    parts: list[Tally] = field(default_factory=list)


@dataclass
class Walk:
    """Counts entries below directories. ``read``: directories that were listed. ``told``: trees that CephFS counted.

    ``device``: other file systems are left out, in ``mounts``. ``after``: entries with a later time stamp count as
    changed. ``until``: monotonic time at which counting ends; then it is not ``whole``. ``unread``: directories that
    could not be read.
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
        """Count one directory; ``apart``: levels below it with separate tallies."""
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
                    continue  # gone meanwhile
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
        """Return the tally that CephFS keeps of a whole tree, or None."""
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
            return  # gone meanwhile
        except OSError:
            self.unread.append(path)


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


def walk(root: Path, *, since_s: float, limit_s: float, depth: int = 2) -> tuple[Tally, Walk]:
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
    walker = Walk(status.st_dev, time.time() - since_s, time.monotonic() + limit_s)
    return walker.count(root, depth), walker


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


def render_namespace(plan: NamespacePlan, walk: Walk, commands: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of the report."""
    weighed = "recent changes" if plan.changed else "all entries, as none changed lately"
    yield (
        f"{counted(plan.entries, 'entry', 'entries')} below {shell_line([str(plan.root)])}, {plan.changed:,} changed "
        f"lately. Weighed: {weighed}."
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
            "targets (lfs mkdir -c, ceph.dir.pin.distributed), or give it as DIR to share its parts."
        )
    if commands:
        yield "Commands that place them, for bash (moving takes time; run them when the tree is quiet):"
        yield from (f"  {shell_line(command)}" for command in commands)
    else:
        yield "This file system has no command that puts a directory on a metadata target."


def _walk_lines(walk: Walk) -> Iterator[str]:
    read = f"{counted(walk.read, 'directory', 'directories')} read"
    if walk.told:
        yield (
            f"Counted by CephFS (ceph.dir.rentries, ceph.dir.rctime) for {counted(walk.told, 'tree')}, {read}. If "
            "anything in such a tree changed, all of it counts as changed."
        )
    else:
        yield f"{read}."
    if not walk.whole:
        yield "Counting ended by --limit; the rest is missing. Give a larger --limit."
    if walk.unread:
        yield f"Could not be read, and so count as empty: {_named(walk.unread)}"
    if walk.mounts:
        yield f"Left out, because other file systems are mounted there: {_named(walk.mounts)}"


def _named(paths: Sequence[Path]) -> str:
    return shell_line([str(path) for path in paths])


def _share(share: float) -> str:
    return percent(round(share, 2 if share >= 0.01 else 4))
