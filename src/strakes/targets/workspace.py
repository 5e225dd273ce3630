"""The workspace: the directory in which strakes creates files during a run, with a marker file and a heartbeat."""

from __future__ import annotations

import errno
import os
import shlex
import stat
import subprocess
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from strakes.base.errors import BadInputError, MeasurementError, ServersDeadError
from strakes.base.files import buffered, closing, open_directory
from strakes.base.processes import wait_for_end
from strakes.targets import calls
from strakes.targets.calls import DISCONNECTED, find_directory
from strakes.targets.child import NEW_FILE, OPEN_DIRECTORY
from strakes.targets.marker import (
    HEARTBEAT_S,
    MARKER_NAME,
    WORKSPACE_PREFIX,
    Marker,
    NoMarker,
    are_live,
    is_run_id,
    name_of_user,
    read_marker,
)
from strakes.targets.mountinfo import Mount
from strakes.targets.removal import UNANSWERED, Left, remove_with_limit, remove_workspace

_FULL = ("the file system is full", "Free some space there, or choose another directory.")
_PROBLEMS = {
    **DISCONNECTED,
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _FULL),
    errno.EIO: ("the file system fails", "Check the file system and its servers, or choose another directory."),
    errno.EROFS: ("the file system is read-only", "Mount it read-write, or choose another directory."),
}
_OTHER_PROBLEM = ("strakes cannot work in this directory", "Give a directory that you can write to.")
# On NFS with root_squash, this user owns root's files (exports(5)). On local file systems, it is an ordinary user.
_SQUASHED_UID = 65534
# Seconds until the first heartbeat on a local file system.
_FIRST_BEAT_S = 1.0
# Seconds to wait for the end of the heartbeat's child process.
_LAST_BEAT_S = 10.0
_HANGING_BEAT_S = 0.5


class Heart:
    """A child process that writes the time into the marker file, until :meth:`stop` or the end of this process.

    The child starts after a second, or immediately (``at_once``) if other hosts can see the file system. If the child
    is killed, another child starts.
    """

    def __init__(self, directory: int, descriptor: int, marker: Marker, *, at_once: bool) -> None:
        self._directory, self._descriptor, self._marker = directory, descriptor, marker
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        wait_s = 0.0 if at_once else _FIRST_BEAT_S
        self._starter = threading.Thread(target=self._keep_started, args=(wait_s,), name="strakes-heart", daemon=True)
        self._starter.start()

    def _keep_started(self, wait_s: float) -> None:
        while not self._stopping.wait(wait_s):
            wait_s = _FIRST_BEAT_S
            if self._child is None or self._child.poll() is not None:
                self._start()

    def _start(self) -> None:
        with suppress(OSError):
            if self._child is not None and self._child.stdin is not None:
                self._child.stdin.close()
            if self._descriptor < 0:
                flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                self._descriptor = os.open(MARKER_NAME, flags, dir_fd=self._directory)
            self._child = subprocess.Popen(
                (*calls.CHILD, "beat", str(self._descriptor), str(HEARTBEAT_S), self._marker.to_bytes().decode()),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[self._descriptor],
                start_new_session=True,
            )
            self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):  # Ignore errors of earlier writes, which close() may report.
            os.close(descriptor)

    def stop(self, patience_s: float) -> bool:
        """Stop the heartbeat. Return False if its child process does not end within ``patience_s`` seconds."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._starter.join(patience_s)
        if self._child is None:
            self._close()
            return True
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            wait_for_end(self._child, patience_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return False
        return True


class Workspace:
    """The directory ``DIR/strakes-RUN`` with a marker and a heartbeat. The end of the ``with`` block removes it."""

    def __init__(self, path: Path, parent: int, directory: int, heart: Heart, *, keep: bool) -> None:
        self.path = path
        self._parent = parent
        self._directory = directory
        self.keep = keep
        self.kept: Path | None = None
        """Directory of the last measured cell. It is kept unless another measurement follows."""
        self._closed = False
        self._hangs = False
        self._heart = heart
        calls.hold(str(path), directory)

    @classmethod
    def create(
        cls, directory: Path, run_id: str, *, mount: Mount | None = None, keep: bool = False, adopt: bool = False
    ) -> Self:
        """Make a workspace in ``directory``.

        ``adopt``: reuse the workspace of a killed process of the same run. ``keep``: do not remove the workspace at the
        end. Raises BadInputError if ``directory`` cannot be used, or if another process measures the same run there.
        Raises MeasurementError if the servers of ``directory`` do not answer.
        """
        if not is_run_id(run_id):
            raise BadInputError(f"not a run id: {run_id!r}")
        # If the caller knows a local mount, skip find_directory(), which may wait for a dead server.
        real, mount = (directory, mount) if mount and not mount.remote else find_directory(directory)
        name, marker = WORKSPACE_PREFIX + run_id, Marker.of_this_process(run_id)
        with ExitStack() as undo:
            try:
                parent = open_directory(real)
                undo.callback(os.close, parent)
                refuse_workspace(real)
                refuse_place_of_others(real, parent, squashed=mount.remote)
                if mount.remote:
                    with suppress(OSError):
                        calls.call("try", str(real / name), MARKER_NAME)
                opened = _take_over(parent, name, marker) if adopt else None
                if opened is None:
                    directory_now = _make_directory(real, parent, name)
                    undo.callback(_undo, parent, name, directory_now)
                    opened = directory_now, _write_marker(directory_now, marker)
                    undo.callback(os.close, opened[1])
                    _refuse_exchanged(real / name, *opened)
                    refuse_place_of_others(real, parent, squashed=os.fstat(opened[1]).st_uid == _SQUASHED_UID)
                heart = Heart(*opened, marker, at_once=mount.remote)
            except OSError as error:
                what, remedy = _PROBLEMS.get(error.errno or 0, _OTHER_PROBLEM)
                raise BadInputError(what, where=str(real), why=os.strerror(error.errno or 0), remedy=remedy) from error
            undo.pop_all()
        return cls(real / name, parent, opened[0], heart, keep=keep)

    def remove(self) -> tuple[Left, ...]:
        """Stop the heartbeat and remove the workspace. Return the entries that remain."""
        if self._closed:
            return ()
        # Close the marker first. On NFS, a file that is removed while it is open remains as .nfsXXXX.
        if not self._heart.stop(_HANGING_BEAT_S if self._hangs else _LAST_BEAT_S) or self._hangs:
            return (Left(str(self.path), UNANSWERED),)
        self._closed = True
        calls.held_paths.pop(str(self.path), None)
        try:
            if self.keep:
                return ()
            return remove_with_limit(self._parent, self.path.name, str(self.path), self._directory)
        finally:
            os.close(self._directory)
            os.close(self._parent)

    def write_file(self, name: str, text: str) -> None:
        """Create a small file in the workspace. Raises OSError if this fails."""
        with buffered(os.open(name, NEW_FILE, 0o644, dir_fd=self._directory), "wb") as file:
            file.write(text.encode())

    def remove_file(self, name: str) -> None:
        """Remove a file of the workspace if it exists. Raises OSError if this fails."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._directory)

    def answers(self) -> bool:
        """Return whether the file system replies if asked to create a file. An error is a reply, a time-out is not."""
        try:
            with suppress(OSError):
                calls.call("try", str(self.path / "answers"), MARKER_NAME)
        except MeasurementError:
            return False
        return True

    def leave_alone(self) -> None:
        """Do not remove the workspace at the end, because its file system hangs."""
        self._hangs = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the workspace, except with ``keep`` or after its servers died.

        Raises UnansweredError if the file system does not answer, and MeasurementError if files remain.
        """
        if isinstance(error, ServersDeadError):
            self.leave_alone()
        left = self.remove()
        if not left:
            return
        kind = calls.UnansweredError if left[0].why == UNANSWERED else MeasurementError
        what = f"not all files of strakes could be removed ({len(left)} left)"
        remedy = f"Solve the cause, then run: strakes clean {shlex.quote(str(self.path.parent))}"
        failure = kind(what, where=left[0].path, why=left[0].why, remedy=remedy)
        if error is None:
            raise failure
        error.add_note(str(failure))


def sweep(directory: Path, name: str) -> tuple[str, ...]:
    """Remove a directory inside a workspace of this process. Return the paths that were not removed.

    The removal uses the workspace's open descriptor, because another user may replace the directory at its path.
    """
    try:
        workspace = calls.open_held(directory)
    except OSError:
        return (str(directory / name),)
    with closing(workspace):
        return tuple(left.path for left in remove_with_limit(workspace, name, str(directory / name)))


def _take_over(parent: int, name: str, marker: Marker) -> tuple[int, int] | None:
    try:
        directory = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        return None
    with ExitStack() as undo:
        undo.callback(os.close, directory)
        left = read_marker(directory, name)
        if not isinstance(left, Marker) or any(are_live([(directory, name, left)])):
            return None
        heart = os.open(MARKER_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        os.ftruncate(heart, 0)
        os.pwrite(heart, marker.to_bytes(), 0)
        os.fsync(heart)
        undo.pop_all()
    return directory, heart


def refuse_workspace(real: Path) -> None:
    """Raise BadInputError if a directory is a workspace or inside one."""
    for place in (real, *real.parents):
        if not place.name.startswith(WORKSPACE_PREFIX):
            continue
        with suppress(OSError), closing(os.open(place, OPEN_DIRECTORY)) as directory:
            if isinstance(read_marker(directory, place.name), Marker):
                clean = f"strakes clean {shlex.quote(str(place.parent))}"
                remedy = f"Give {place.parent} instead, or remove this directory with: {clean}"
                raise BadInputError("this directory is a workspace of strakes", where=str(place), remedy=remedy)


def refuse_place_of_others(real: Path, directory: int, *, squashed: bool) -> None:
    """Raise BadInputError if this process runs as root and other users can rename the entries of a directory.

    They could replace a workspace by another directory, which root would then use or remove. ``squashed``: whether a
    server may map root to user nobody.
    """
    status = os.fstat(directory)
    free = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    of_root = status.st_uid == 0 or (squashed and status.st_uid == _SQUASHED_UID)
    if os.geteuid() != 0 or (of_root and not free):
        return
    owner = f"it belongs to user {name_of_user(status.st_uid)}"
    why = owner if status.st_uid else f"its mode is {stat.filemode(status.st_mode)}"
    inside = shlex.quote(str(real / "of-root"))
    what = "other users can replace what root creates in this directory"
    remedy = f"Make a directory in it that belongs to root: mkdir {inside}. Or do not run strakes as root."
    raise BadInputError(what, where=str(real), why=why, remedy=remedy)


def _make_directory(real: Path, parent: int, name: str) -> int:
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        _remove_remains(real, parent, name)
        os.mkdir(name, 0o700, dir_fd=parent)
    try:
        directory = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
        if holds_nothing(directory):
            return directory
        os.close(directory)  # The directory is not empty, so another user replaced it after mkdir().
        raise OSError(errno.ENOTEMPTY, "")
    except OSError:
        with suppress(OSError):
            os.rmdir(name, dir_fd=parent)
        raise


def _refuse_exchanged(path: Path, directory: int, marker: int) -> None:
    """Raise BadInputError if the owner of the parent directory has replaced the new directory by another one.

    Compare the directory with the new marker file, because servers may change the owner and the mode of new files.
    """
    made, ours = os.fstat(directory), os.fstat(marker)
    if made.st_uid != ours.st_uid or made.st_mode & ~ours.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        what, remedy = "another directory took the place of the new one", "Measure in a directory of a trusted owner."
        raise BadInputError(what, where=str(path), why=f"it belongs to user {made.st_uid}", remedy=remedy)


def _remove_remains(real: Path, parent: int, name: str) -> None:
    path = str(real / name)
    what, remedy = ("strakes did not create this directory", "Check the contents, then remove the directory.")
    try:
        directory = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    except OSError as error:
        raise BadInputError(what, where=path, why=os.strerror(error.errno or 0), remedy=remedy) from error
    with closing(directory):
        marker = read_marker(directory, name)
        if isinstance(marker, NoMarker) and not (marker.unfinished and holds_nothing(directory)):
            raise BadInputError(what, where=path, why=marker.why, remedy=remedy)
        given_up = isinstance(marker, Marker) and marker.is_of_this_process and path not in calls.held_paths
        if isinstance(marker, Marker) and not given_up and any(are_live([(directory, name, marker)])):
            what, why = "another process is executing this run", f"{marker.process} is still running"
            raise BadInputError(what, where=path, why=why, remedy="Wait until that process ends, or stop it.")
        if left := remove_workspace(parent, name, directory, path):
            what = "files of an earlier attempt of this run cannot be removed"
            raise MeasurementError(what, where=left[0].path, why=left[0].why)


def holds_nothing(directory: int) -> bool:
    """Return whether an open directory is empty except for a marker."""
    with os.scandir(directory) as entries:
        return all(entry.name == MARKER_NAME for entry in entries)


def _write_marker(directory: int, marker: Marker) -> int:
    heart = os.open(MARKER_NAME, NEW_FILE, 0o644, dir_fd=directory)
    try:
        left = marker.to_bytes()
        while left and (written := os.write(heart, left)):
            left = left[written:]
        if left:
            raise OSError(errno.EIO, "")
        os.fsync(heart)
        os.fsync(directory)
    except BaseException:
        os.close(heart)
        raise
    return heart


def _undo(parent: int, name: str, directory: int) -> None:
    with suppress(OSError):
        os.unlink(MARKER_NAME, dir_fd=directory)
    with suppress(OSError):
        os.rmdir(name, dir_fd=parent)
    os.close(directory)
