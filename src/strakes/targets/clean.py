"""Remove workspaces of killed runs. Keep directories that strakes did not make, or that a process still uses."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from itertools import chain, islice
from pathlib import Path

from strakes.base.errors import BadInputError, MeasurementError
from strakes.base.files import closing, open_directory
from strakes.targets.marker import STALE_S, WATCH_RUN, WORKSPACE_PREFIX, Marker, NoMarker, are_live, read_marker
from strakes.targets.registry import detect
from strakes.targets.removal import MOST_LISTED, Left, enter, remove_workspace
from strakes.targets.workspace import holds_nothing, refuse_place_of_others, refuse_workspace

# Errors which prove that a name is not a workspace of this user. Other errors, such as EMFILE, prove nothing.
_NOT_OURS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EXDEV)
_OWN_NAME = re.compile(WORKSPACE_PREFIX + rf"(\d{{8}}-\d{{6}}-.+|{WATCH_RUN}[0-9a-f]{{8}})")

_MOST_OPEN = 64  # Maximum number of open workspaces. Double the number needs double the limit on open files.
_MOST_NAMES = 100_000  # Maximum number of names of workspaces in memory, about 1,000 bytes each.


@dataclass(frozen=True)
class CleanReport:
    """Result of ``strakes clean``. ``ignored``: directories with a workspace's name, but without a valid marker."""

    removed: tuple[str, ...]
    skipped_live: tuple[Left, ...]
    left: tuple[Left, ...]
    ignored: tuple[Left, ...]


def clean(directory: Path, *, dry_run: bool = False, force: bool = False) -> CleanReport:
    """Remove workspaces (strakes-RUN) that killed runs left in a directory. Raises BadInputError if it does not exist.

    ``dry_run``: only list them. ``force``: remove them even if they seem in use.
    """
    target = detect(directory)
    real = target.path
    refuse_workspace(real)
    with ExitStack() as opened:
        try:
            parent = opened.enter_context(closing(open_directory(real)))
            refuse_place_of_others(real, parent, squashed=target.mount.remote)
            names = _names_like_ours(parent, real)
        except OSError as error:
            what, why = "this directory cannot be read", os.strerror(error.errno or 0)
            remedy = "Check its file system, or run strakes as a user with read access."
            raise BadInputError(what, where=str(real), why=why, remedy=remedy) from error
        groups = (names[begin : begin + _MOST_OPEN] for begin in range(0, len(names), _MOST_OPEN))
        parts = [_clean(parent, real, group, dry_run=dry_run, force=force) for group in groups]
    lists = (chain.from_iterable(getattr(part, field.name) for part in parts) for field in fields(CleanReport))
    return CleanReport(*map(tuple, lists))


def _clean(parent: int, real: Path, names: Sequence[str], *, dry_run: bool, force: bool) -> CleanReport:
    removed, live, left, ignored = list[str](), list[Left](), list[Left](), list[Left]()
    ours: list[tuple[int, str, Marker | NoMarker]] = []
    with ExitStack() as opened:
        for name in names:
            path = str(real / name)
            try:
                directory = enter(parent, name)
                opened.callback(os.close, directory)
                marker = read_marker(directory, name)
                unfinished = isinstance(marker, NoMarker) and _was_never_finished(directory, name, marker)
            except OSError as error:
                why = f"this directory cannot be entered ({os.strerror(error.errno or 0)})"
                (ignored if error.errno in _NOT_OURS else left).append(Left(path, why))
                continue
            if unfinished or isinstance(marker, Marker):
                ours.append((directory, name, marker))
            else:
                (left if marker.unread else ignored).append(Left(path, marker.why))
        live_ones = [False] * len(ours) if force else are_live(ours)
        for (directory, name, marker), lives in zip(ours, live_ones, strict=True):
            path = str(real / name)
            if lives:
                user = marker.process if isinstance(marker, Marker) else "a process that is creating it"
                live.append(Left(path, f"{user} is using it"))
            elif remains := () if dry_run else remove_workspace(parent, name, directory, path):
                left += remains
            else:
                removed.append(path)
    return CleanReport(tuple(removed), tuple(live), tuple(left), tuple(ignored))


def others_at_work(directory: Path, run: str) -> tuple[str, ...]:
    """Return a text (run, process, user, host) for each measurement in a directory, except for the run ``run``."""
    others = []
    with suppress(OSError, MeasurementError), closing(open_directory(directory)) as opened:
        for name in _names_like_ours(opened, directory):
            with suppress(OSError):
                with closing(enter(opened, name)) as inside:
                    marker = read_marker(inside, name)
                if not isinstance(marker, Marker) or marker.run.startswith(WATCH_RUN):
                    continue
                if marker.run.split(".")[0] != run and marker.seems_live():
                    others.append(f"run {marker.run}, {marker.process}")
    return tuple(others)


def _was_never_finished(directory: int, name: str, marker: NoMarker) -> bool:
    begun = marker.unfinished and _OWN_NAME.fullmatch(name)
    return bool(begun) and time.time() - os.fstat(directory).st_mtime > STALE_S and holds_nothing(directory)


def _names_like_ours(directory: int, path: Path) -> list[str]:
    # The names may not all fit into memory, so keep only names of workspaces. If other users have made too many
    # workspaces, keep only names of workspaces of this user and of root.
    for only_own in (False, True):
        with os.scandir(directory) as entries:
            alike = (entry for entry in islice(entries, MOST_LISTED) if entry.name.startswith(WORKSPACE_PREFIX))
            names = sorted(entry.name for entry in islice(filter(_is_own, alike) if only_own else alike, _MOST_NAMES))
            if next(entries, None) is None:
                return names
        if len(names) < _MOST_NAMES:
            break
    why = f"it has more than {MOST_LISTED:,} names, or more than {_MOST_NAMES:,} directories {WORKSPACE_PREFIX}*"
    remedy = "Check its server, or give a directory with fewer files."
    raise MeasurementError("a directory cannot be searched for workspaces", where=str(path), why=why, remedy=remedy)


def _is_own(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid in (0, os.geteuid())
    return False
