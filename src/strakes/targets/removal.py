"""Remove a directory tree without following symbolic links or entering other mounts.

Only one directory is open at a time, even in a deep tree. After a return through "..", the removal checks that the
directory is the recorded parent. A child process imports this module, so it imports little.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections import namedtuple
from contextlib import suppress
from itertools import chain, islice

from strakes.targets.child import MARKER_NAME, NEW_FILE, OPEN_DIRECTORY, READ_FILE, mount_id_of

TYPE_CHECKING = False  # Importing TYPE_CHECKING from typing would double the start time of the child process.
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

# The removal stops if this number of entries cannot be removed. The result lists them, so it grows in proportion.
_MOST_NAMED = 100
# The removal stops after this number of passes over a directory without progress, because a server may list removed
# names again. Run time grows in proportion to the limit.
_MOST_IDLE_PASSES = 3
# Maximum number of listed names that do not exist, because a faulty server may list names without end. On tmpfs, a
# million names take seconds.
_MOST_VANISHED = 1_000_000
# Maximum number of subdirectory names in memory at the top level, about 100 bytes each. Deeper levels may have fewer.
_MOST_INNER = 100_000
# Maximum depth of directories, because a faulty server may nest them without end. Plans have 17 levels. On tmpfs, this
# depth takes 1 s, and double the depth 3 s.
_MOST_LEVELS = 10_000
# Maximum number of names that a search of a directory reads. The search of 10 million names takes 10 seconds.
MOST_LISTED = 10_000_000
_NOT_EMPTY = os.strerror(errno.ENOTEMPTY)
_PAUSES_S = (0.2, 0.5, 1.0, 2.0)
_MOST_FILE_BYTES = 65536  # Also the size of buffers, because a server may report 4 GiB for it (st_blksize).
_MOUNTED = "something else is mounted there"
_KEPT = "the server still lists it after its removal, or a process made it again"
UNANSWERED = "the file system does not answer"
# Seconds without any processor time after which the child process counts as blocked by a server.
_STUCK_S = 20.0
_TICK_S = 0.02
_REMOVE = "import sys; sys.path.insert(0, sys.argv[1]); from strakes.targets.removal import work; work(*sys.argv[2:])"


class Left(namedtuple("Left", ("path", "why"))):  # An import of typing.NamedTuple would double the child's start time.
    """An entry that could not be removed, and the reason."""

    path: str
    why: str


class _OpenDirectory:
    def __init__(self, name: str, identity: tuple[int, int], left_before: int) -> None:
        self.name, self.identity, self.left_before = name, identity, left_before
        self.inner: list[str] = []
        self.more = False


class _TooMuchLeftError(Exception):
    """A removal ended early, because too many entries cannot be removed, or because the tree was moved."""


def enter(parent: int, name: str) -> int:
    """Open a subdirectory, and return its descriptor. Raises OSError (EXDEV if something is mounted there)."""
    directory = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    try:
        # A Btrfs subvolume is not entered either: it is not a mount, but has its own device number.
        same_device = os.fstat(directory).st_dev == os.fstat(parent).st_dev
        if not same_device or mount_id_of(directory) != mount_id_of(parent):
            raise OSError(errno.EXDEV, _MOUNTED)
    except BaseException:
        os.close(directory)
        raise
    return directory


def remove_tree(parent: int, name: str, path: str = "") -> tuple[Left, ...]:
    """Remove a directory tree, and return the entries that remain.

    A missing directory is no error. An entry ``name`` that is not a directory is not removed.
    """
    path = path or name
    try:
        directory = enter(parent, name)
    except OSError as error:
        return () if error.errno == errno.ENOENT else (Left(path, _why(error)),)
    try:
        return empty_directory(directory, path) or remove_empty(parent, name, directory, path)
    finally:
        os.close(directory)


def remove_empty(parent: int, name: str, directory: int, path: str) -> tuple[Left, ...]:
    """Remove an open, empty directory, even if it was renamed. If this fails, return an entry with the reason."""
    try:
        now = _name_now(parent, name, directory)
        if now is None:
            os.stat(name, dir_fd=parent, follow_symlinks=False)
            return (Left(path, "another directory has taken its place"),)
        os.rmdir(now, dir_fd=parent)
        return (Left(path, _KEPT),) if _kept(parent, now.__eq__) else ()
    except OSError as error:
        return () if error.errno == errno.ENOENT else (Left(path, _why(error)),)


def _kept(directory: int, is_removed: Callable[[str], bool]) -> list[str]:
    names: list[str] = []
    for pause_s in (0.0, *_PAUSES_S):
        time.sleep(pause_s)
        with os.scandir(directory) as entries:
            listed = islice(entries, MOST_LISTED)
            kept = (entry.name for entry in listed if is_removed(entry.name) and _is_there(entry))
            names = sorted(islice(kept, _MOST_NAMED))
        if not names:
            break
    return names


def _is_there(entry: os.DirEntry[str]) -> bool:
    try:
        entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return True


def _name_now(parent: int, name: str, directory: int) -> str | None:
    own = os.fstat(directory)
    with os.scandir(parent) as entries:
        same = (entry.name for entry in islice(entries, MOST_LISTED) if entry.inode() == own.st_ino)
        for entry in chain((name,), same):
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(entry, dir_fd=parent, follow_symlinks=False), own):
                    return entry
    return None


def empty_directory(directory: int, path: str, spare: str = "") -> tuple[Left, ...]:
    """Remove all entries of an open directory except ``spare``. Return the entries that remain."""
    return _Emptying(directory, path, spare).run()


class _Emptying:
    def __init__(self, directory: int, path: str, spare: str) -> None:
        self._spare = spare
        self._left: list[Left] = []
        self._here = os.open(".", OPEN_DIRECTORY, dir_fd=directory)
        self._levels = [_OpenDirectory(path, _identity(self._here), 0)]

    def run(self) -> tuple[Left, ...]:
        try:
            self._sweep(self._levels[0])
            while True:
                level = self._levels[-1]
                if level.inner:
                    self._descend(level.inner.pop())
                elif level.more:
                    self._sweep(level)
                elif len(self._levels) > 1:
                    self._ascend()
                else:
                    break
        except OSError as error:
            self._left.append(Left(self._path(), _why(error)))
        except _TooMuchLeftError:
            self._left.append(Left(self._levels[0].name, "too many entries cannot be removed, so strakes gave up"))
        finally:
            os.close(self._here)
        return tuple(self._left)

    def _descend(self, name: str) -> None:
        if len(self._levels) == _MOST_LEVELS:
            self._leave(self._path(), f"it is nested {_MOST_LEVELS:,} levels deep")
            raise _TooMuchLeftError
        try:
            inner = enter(self._here, name)
        except OSError as error:
            if error.errno != errno.ENOENT:
                self._leave(self._path(name), _why(error))
            return
        os.close(self._here)
        self._here = inner
        level = _OpenDirectory(name, _identity(inner), len(self._left))
        self._levels.append(level)
        self._sweep(level)

    def _ascend(self) -> None:
        emptied = self._levels.pop()
        above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._here)
        if _identity(above) != self._levels[-1].identity:
            os.close(above)
            self._leave(self._path(emptied.name), "it was moved while it was being removed")
            raise _TooMuchLeftError
        os.close(self._here)
        self._here = above
        try:
            os.rmdir(emptied.name, dir_fd=above)
        except OSError as error:
            if error.errno != errno.ENOENT and len(self._left) == emptied.left_before:
                self._leave(self._path(emptied.name), _why(error))

    def _sweep(self, level: _OpenDirectory) -> None:
        spared = {self._spare} if len(self._levels) == 1 else set()
        inner: dict[str, None] = {}
        fewest = idle = 0
        removed = 1
        level.more = False
        while removed and not level.more:
            removed = met = vanished = 0
            for entry in self._entries():
                if entry.name in spared or entry.name in inner:
                    continue
                met += 1
                try:
                    is_directory = entry.is_dir(follow_symlinks=False)
                    (os.rmdir if is_directory else os.unlink)(entry.name, dir_fd=self._here)
                    removed += 1
                except FileNotFoundError:
                    vanished += 1
                    if vanished == _MOST_VANISHED:
                        self._leave(self._path(), f"its list does not end ({vanished:,} of {met:,} names do not exist)")
                        raise _TooMuchLeftError from None
                except OSError as error:
                    if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                        inner[entry.name] = None
                        level.more = len(inner) >= _MOST_INNER // len(self._levels)
                        if level.more:
                            break
                    else:
                        spared.add(entry.name)
                        self._leave(self._path(entry.name), _why(error))
            idle += bool(fewest) and met >= fewest
            fewest = min(met, fewest or met)
            if removed and idle == _MOST_IDLE_PASSES:
                names = (entry.name for entry in self._entries())
                for name in islice((name for name in names if name not in spared and name not in inner), _MOST_NAMED):
                    self._leave(self._path(name), _KEPT)
                break
        level.inner.extend(inner)

    def _path(self, *names: str) -> str:
        return "/".join((*(level.name for level in self._levels), *names))

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self._here) as entries:
                yield from entries
        except OSError as error:
            self._leave(self._path(), _why(error))

    def _leave(self, path: str, why: str) -> None:
        self._left.append(Left(path, why))
        if len(self._left) >= _MOST_NAMED:
            raise _TooMuchLeftError


def _identity(directory: int) -> tuple[int, int]:
    status = os.fstat(directory)
    return status.st_dev, status.st_ino


def _why(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "it is not a directory"
    if error.errno in (errno.EBUSY, errno.EXDEV):
        return _MOUNTED
    return os.strerror(error.errno or 0)


def remove_workspace(parent: int, name: str, directory: int, path: str) -> tuple[Left, ...]:
    """Remove an open workspace, its marker file last. Return the entries that remain."""
    try:
        if objects := tuple(_remove_noted_objects(directory, name)):
            return objects
        for pause_s in (*_PAUSES_S, None):
            left = empty_directory(directory, path, spare=MARKER_NAME)
            if not left:
                break
            if pause_s is None or any(entry.why != _NOT_EMPTY for entry in left):
                return left
            # Wait for the engine of a killed run, which stops making files within a second.
            time.sleep(pause_s)
        if kept := _kept(directory, MARKER_NAME.__ne__):
            return tuple(Left(f"{path}/{name}", _KEPT) for name in kept)
        if _name_now(parent, name, directory) is None:
            return remove_empty(parent, name, directory, path)
        marker = b""
        with suppress(FileNotFoundError):
            with os.fdopen(os.open(MARKER_NAME, READ_FILE, dir_fd=directory), "rb", _MOST_FILE_BYTES) as file:
                marker = file.read(_MOST_FILE_BYTES)
            os.unlink(MARKER_NAME, dir_fd=directory)
    except OSError as error:
        return (Left(path, os.strerror(error.errno or 0)),)
    left = remove_empty(parent, name, directory, path)
    if left and marker:
        with suppress(OSError), os.fdopen(os.open(MARKER_NAME, NEW_FILE, 0o644, dir_fd=directory), "wb", 0) as file:
            file.write(marker)
    return left


def remove_with_limit(parent: int, name: str, path: str, directory: int = -1) -> tuple[Left, ...]:
    """In a child process, remove a tree in the open directory ``parent``, or the open workspace ``directory``.

    Return the entries that remain, or ``path`` if the file system does not answer. Ctrl-C does not stop the removal.
    """
    import ast
    import subprocess
    from pathlib import Path

    from strakes.base.processes import engine_path

    words = [sys.executable, "-I", "-S", "-c", _REMOVE, str(Path(__file__).parents[2])]
    with suppress(OSError), os.fdopen(os.memfd_create("answer"), "r+b") as output:  # Without a child, work here.
        worker = subprocess.Popen(
            [*words, str(parent), name, path, str(directory)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            # The child may outlive strakes. If it kept standard error open, a shell might wait for its end.
            stderr=subprocess.DEVNULL,
            pass_fds=[descriptor for descriptor in (parent, directory) if descriptor >= 0],
            start_new_session=True,
            # Python without site packages (-S) cannot find the engine of an editable installation, so pass its path.
            env={**os.environ, "STRAKES_ENGINE": str(engine_path())},
        )
        if not _ends(worker):
            return (Left(path, UNANSWERED),)
        output.seek(0)
        if worker.returncode == 0:
            return tuple(Left(*entry) for entry in ast.literal_eval(output.read().decode()))
    return _remove(parent, name, path, directory)


def _remove(parent: int, name: str, path: str, directory: int) -> tuple[Left, ...]:
    return remove_tree(parent, name, path) if directory < 0 else remove_workspace(parent, name, directory, path)


def work(parent: str, name: str, path: str, directory: str) -> None:
    """Run the removal in the child process. Print the entries that remain as a Python literal."""
    sys.stdout.write(ascii([tuple(left) for left in _remove(int(parent), name, path, int(directory))]))


def _ends(worker: subprocess.Popen[bytes]) -> bool:
    import subprocess
    from pathlib import Path

    from strakes.base.processes import wait_for_end

    proc, progress, since = Path(f"/proc/{worker.pid}"), list[str](), time.monotonic()
    while True:
        with suppress(subprocess.TimeoutExpired):
            wait_for_end(worker, _TICK_S)
            return True
        now = []
        with suppress(OSError):
            stat, status = ((proc / name).read_text(errors="replace") for name in ("stat", "status"))
            # Growth of these numbers means progress: processor time (user, system) and voluntary context switches.
            now = [*stat.rpartition(")")[2].split()[11:13], *status.partition("\nvoluntary")[2].split()[:2]]
        if now != progress:
            progress, since = now, time.monotonic()
        elif time.monotonic() - since > _STUCK_S:
            worker.kill()
            return False


# Prefix of the names of files that list S3 objects to remove (engine/workspace/workspace.hpp).
NOTE = ".strakes-objects-"
# Time limit in seconds for removing S3 objects. The engine gives up after an hour.
_LIMIT_S = 3700.0
_NAMES = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "STRAKES_S3_BUCKET")


def _remove_noted_objects(workspace: int, workspace_name: str) -> Iterator[Left]:
    with os.scandir(workspace) as entries:
        notes = (entry.name for entry in islice(entries, MOST_LISTED) if entry.name.startswith(NOTE))
        names = sorted(islice(notes, _MOST_INNER))
    for name in names:
        from strakes.base.errors import StrakesError
        from strakes.base.finite import parse_json

        where = name
        try:
            with os.fdopen(os.open(name, READ_FILE, dir_fd=workspace), "rb", _MOST_FILE_BYTES) as file:
                note = parse_json(file.read(_MOST_FILE_BYTES))
            where = f"s3://{note['bucket']}/{note['prefix']}"
            why = _other_store(note, workspace_name) or _remove_below(note["prefix"])
        except (ValueError, KeyError, TypeError, AttributeError):
            why = "the file that lists its S3 objects cannot be read"
        except (OSError, StrakesError) as error:
            why = str(error)
        if why:
            yield Left(where, why)
        else:
            os.unlink(name, dir_fd=workspace)


def _other_store(note: dict[str, str], workspace_name: str) -> str:
    noted = (note["endpoint"], note["bucket"])
    lacking = [name for name in _NAMES if not os.environ.get(name)]
    rest = note["prefix"].rpartition("/")[2]
    if lacking:
        why = f"{', '.join(lacking)} is not set"
    elif (os.environ["AWS_ENDPOINT_URL"].rstrip("/"), os.environ["STRAKES_S3_BUCKET"]) != noted:
        why = f"AWS_ENDPOINT_URL and STRAKES_S3_BUCKET name another store than {', '.join(noted)}"
    elif note["prefix"].count("/") != 2 or not note["prefix"].startswith(f"{workspace_name}/") or rest:
        why = "these are not the objects of this workspace"
    else:
        return ""
    return f"{why}. Set them and run strakes clean again."


def _remove_below(prefix: str) -> str:
    import json

    from strakes.base.processes import engine_path
    from strakes.targets.command import run

    done = run([str(engine_path()), "--remove-objects", prefix], _LIMIT_S)
    try:
        why = json.loads(done.stdout).get("why", "")
    except ValueError:
        why = done.stderr.strip() or f"the engine ended with status {done.status}"
    if not why:
        return ""
    return f"{why}; to remove it yourself: aws s3 rm --recursive s3://{os.environ['STRAKES_S3_BUCKET']}/{prefix}"
