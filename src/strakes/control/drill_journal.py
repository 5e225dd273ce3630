"""The journal of faults: one file in the store's directory ``drills`` for each fault that must be undone.

Each file is written before its fault is caused. Usually the drill undoes the fault. If the drill is killed, its guard
process (``drill_guard``) undoes it. If the guard is killed too or the power fails, the next strakes command undoes it.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from strakes.base.errors import BadInputError, MeasurementError, StrakesError
from strakes.base.files import closing, open_directory, open_kept, open_own, own_directory, read_whole, remove_kept
from strakes.base.finite import parse_json
from strakes.base.foreign_text import command_line
from strakes.base.processes import commands_of, lock_file
from strakes.control.drill_undo import COMMAND_S, Undo
from strakes.control.knob_journal import Owner
from strakes.model.record import Record, from_record, to_record
from strakes.runs.store_files import store_error, write_json
from strakes.targets.command import DEFAULT_TIMEOUT_S, Completed, run_unmarked

# Environment variable of the commands that cause a fault. Its value identifies the drill.
CAUSED_BY = "STRAKES_FAULT_CAUSED_BY"
_MOST_BYTES = 1 << 20
_LOOK_EVERY_S = 0.1
# Names of variables that choose the cluster of a command begin so. Another shell may have other values.
_CLUSTER_VARIABLES = ("CIB_", "CEPH_")
_WHAT, _REMEDY = "a drill's journal", "Ask that user to run strakes failover undo, or undo the fault by hand."


@dataclass(frozen=True)
class Pending(Record):
    """Fault to undo, recorded in the file ``path``. ``directory``: path and inode number of the working directory.

    ``environment``: NAME=VALUE of the variables that choose the cluster.
    """

    fault: str
    owner: Owner
    command: tuple[str, ...]
    undo: Undo
    directory: tuple[str, str]
    environment: tuple[str, ...] = ()
    path: Path = Path()


def _directory(root: Path) -> Path:
    return root / "drills"


def announce(root: Path, fault: str, undo: Undo) -> Path:
    """Record in a new file how to undo a fault, and return the path of the file.

    Raises StrakesError if the file cannot be written. In this case, the fault must not be caused.
    """
    try:
        with own_directory(_directory(root)):
            here = os.getcwd(), _inode(os.stat("."))
    except OSError as error:
        raise store_error(error, _directory(root)) from error
    path = _directory(root) / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}.json"
    pending = Pending(fault, Owner.this_process(), command_line(), undo, here, _cluster_environment())
    write_json(path, to_record(pending))
    return path


def _cluster_environment() -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in os.environ.items() if name.startswith(_CLUSTER_VARIABLES))


def put_right(path: Path) -> str:
    """Undo one fault. Return how it was undone, or "" if another process has already undone it.

    Raises StrakesError if the fault cannot be undone.
    """
    try:
        file = open_own(path, _WHAT, _REMEDY)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise store_error(error, path) from error
    with file:
        return put_right_open(path, file.fileno(), there=False, is_caused=False)


def put_right_open(
    path: Path,
    descriptor: int,
    journal: int | None = None,
    *,
    there: bool = True,
    is_caused: bool = True,
    needed: bool = True,
) -> str:
    """Undo the fault recorded in an open file, even if the file was moved or removed.

    Returns and raises the same as :func:`put_right`. An empty file means that the fault is already undone.
    ``there``: whether the current directory is the drill's directory. ``journal``: descriptor of the file in the store,
    if ``descriptor`` is a copy in memory. The copy is needed if the drill stops the servers of the store.
    ``is_caused``: whether the commands that cause the fault have ended for certain. ``needed``: whether to undo it.
    """
    try:
        with closing(_reopened(path, descriptor)) as own:
            with suppress(OSError):  # Without locks here, two processes may undo a fault. This does no harm.
                lock_file(own, path, COMMAND_S)
            content = os.pread(own, _MOST_BYTES + 1, 0)
            if not content:
                return ""
            pending = _pending(path, content)
            if not is_caused:
                _wait_for_commands(pending.owner)
            done = "nothing, because the fault did not begin"
            if needed:
                done = (pending.undo.do() if there else _undo_elsewhere(pending)) or pending.undo.text
            os.ftruncate(own, 0)
            with suppress(OSError):
                if journal is not None:
                    with closing(_reopened(path, journal)) as stored:
                        os.ftruncate(stored, 0)
                remove_kept(path)
            return done
    except StrakesError:
        raise
    except Exception as error:  # After any error the fault stays on record, and undoing it is repeated.
        why = f"{type(error).__name__}: {error}"
        raise MeasurementError("a fault could not be undone", where=str(path), why=why) from error


def _wait_for_commands(owner: Owner) -> None:
    """Wait for the end of the commands that cause a fault. If they ended after the undoing, the fault would remain."""
    deadline = time.monotonic() + COMMAND_S
    while owner.this_boot and time.monotonic() < deadline:
        try:  # Do not wait for processes that a command leaves running: only the command leads a session.
            if not any(os.getsid(pid) == pid for pid in commands_of(owner.pid, owner.started, CAUSED_BY)):
                return
        except ProcessLookupError:
            continue
        except OSError:  # There is no /proc.
            return
        time.sleep(_LOOK_EVERY_S)


def _inode(found: os.stat_result) -> str:
    return f"{found.st_dev}:{found.st_ino}"


def _undo_elsewhere(pending: Pending) -> str:
    """Undo a fault in the drill's directory, or in / if that directory was replaced or does not answer."""
    path, inode = pending.directory
    with ExitStack() as stack:
        there = "/"
        with suppress(OSError, StrakesError):
            run_unmarked(("stat", path))  # Unlike open(2), this command has a time limit, in case a server is dead.
            found = stack.enter_context(closing(open_directory(Path(path))))
            if _inode(os.fstat(found)) == inode:
                there = f"/proc/{os.getpid()}/fd/{found}"

        def ask(argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
            others = (word for name in os.environ if name.startswith(_CLUSTER_VARIABLES) for word in ("-u", name))
            same = ("env", *others, *pending.environment)
            return run_unmarked(("sh", "-c", 'cd -P "$0" || cd /; exec "$@"', there, *same, *argv), timeout_s)

        try:
            return pending.undo.do(ask)
        except StrakesError as error:
            if there == "/":
                error.why = f"the command ran in /, because {path} was replaced or does not answer. {error.why}"
                by_hand = f"If the command needs that directory, undo the fault by hand, then remove {pending.path}."
                error.remedy = error.remedy or by_hand
            raise


def _reopened(path: Path, descriptor: int) -> int:
    """Open the file again, because processes with inherited descriptors share one flock(2) lock."""
    with suppress(OSError):
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
    try:
        return open_kept(path, os.O_RDWR)
    except OSError as error:
        raise store_error(error, path) from error


def read_all(root: Path) -> tuple[tuple[Pending, ...], tuple[StrakesError, ...]]:
    """Return all faults that are not undone, oldest first, and errors for files that are damaged or of another user."""
    faults, errors = list[Pending](), list[StrakesError]()
    for path in sorted(_directory(root).glob("[!.]*.json")):
        try:
            with open_own(path, _WHAT, _REMEDY) as file:
                content = read_whole(file, path, _MOST_BYTES)
            if content:
                faults.append(_pending(path, content))
        except FileNotFoundError:
            continue
        except (OSError, StrakesError) as error:
            errors.append(store_error(error, path) if isinstance(error, OSError) else error)
    return tuple(faults), tuple(errors)


def try_all(
    root: Path, complain: Callable[[StrakesError], object], *, known_dead: bool = False
) -> Iterator[tuple[Pending, str, str]]:
    """Undo the faults of drills that have ended, newest first. Yield each with how it was undone, or with an error.

    ``known_dead``: skip drills that are running or belong to another host or container. By default, they are errors.
    ``complain``: called with an error for each file that is damaged or belongs to another user.
    """
    faults, errors = read_all(root)
    for error in errors:
        complain(error)
    for pending in reversed(faults):
        life = pending.owner.life()
        if life == "dead":
            try:
                yield pending, put_right(pending.path), ""
            except StrakesError as error:
                yield pending, "", str(error)
        elif life == "alive" and not known_dead:
            both = f"continue the drill (kill -CONT {pending.owner.pid}) or end it (kill -KILL {pending.owner.pid})"
            yield pending, "", f"this drill is still running; to undo the fault, {both}"
        elif life == "elsewhere" and not known_dead:
            gone = f"If that is gone, undo the fault by hand ({pending.undo.text}), then remove {pending.path}."
            yield pending, "", f"this is of another host or container: run strakes failover undo there. {gone}"


def put_right_abandoned(root: Path, say: Callable[[str], None]) -> None:
    """Undo the faults of killed drills. Call ``say`` with a report of each."""
    for pending, done, error in try_all(root, lambda error: say(str(error)), known_dead=True):
        outcome = f"; done now: {done}" if done else f", and undoing it now failed: {error}"
        if done or error:
            say(f"{pending.owner} ended without undoing its fault ({pending.fault}){outcome}")


def _pending(path: Path, content: bytes) -> Pending:
    try:
        return replace(from_record(Pending, parse_json(content)), path=path)
    except ValueError as error:
        remedy = "Carry out the undo entries of this file by hand, then remove the file."
        raise BadInputError("a drill's journal is damaged", where=str(path), why=str(error), remedy=remedy) from error
