"""The journal of faults: one file in the store's directory ``drills`` for each fault that must be undone.

Each file is written before its fault is caused. Usually the drill undoes the fault. If the drill is killed, its guard
process (``drill_guard``) undoes it. If the guard is killed too or the power fails, the next strakes command undoes it.
"""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from strakes.base.errors import BadInputError, MeasurementError, StrakesError
from strakes.base.files import closing, open_directory, open_kept, open_own, own_directory, read_whole, remove_kept
from strakes.base.finite import parse_json, to_json
from strakes.base.processes import lock_file, running_processes, trusted_words, wait_for_end
from strakes.control.drill_undo import COMMAND_S, Undo
from strakes.control.knob_journal import Owner
from strakes.model.record import Record, from_record, to_record
from strakes.runs.store_files import files_in, replace_text, store_errors
from strakes.targets.command import DEFAULT_TIMEOUT_S, Completed, run, search_path

NOT_BEGUN = b"The fault has not begun.\n"  # Last line of a file until its fault begins.
SHELL = "/bin/sh"  # The PATH may lack it. The name of its process is compared.
# Shell command that causes a fault if it can take the byte of a drill's pipe ($0). $1: file name of the record.
CAUSE = 'read -r _ <"$0" || { echo "another process has ended the drill" >&2; exit 1; }; shift; (exec "$@"); exit'
# Shell command that undoes a fault in the directory $0. $1: file name of the record.
_UNDO = 'cd -P "$0"; unset PWD OLDPWD; shift; (exec "$@"); exit'
# When a shell starts, it asks the servers of these directories and of the current one, which may be dead.
_NO_PWD = {"PWD": "", "OLDPWD": ""}
_END_S, _ANSWER_S = 5.0, 2.0  # The fault lasts longer by the time in which the server of the directory may answer.
_MOST_BYTES = 1 << 20
_looks: dict[str, subprocess.Popen[bytes]] = {}  # The last look at a directory, which may not have ended.
_LOOK_EVERY_S = 0.1
# Variables that choose the cluster of a command begin so. They are recorded as NAME=VALUE.
_CLUSTER_VARIABLES = ("CIB_", "CEPH_")
_WHAT, _REMEDY = "a drill's journal", "Ask that user to run strakes failover undo, or undo the fault by hand."


@dataclass(frozen=True)
class Pending(Record):
    """Fault to undo, recorded in the file ``path``. ``directory``: path and inode number of the working directory.

    ``begun``: whether the fault may have begun.
    """

    fault: str
    owner: Owner
    undo: Undo
    directory: tuple[str, str]
    environment: tuple[str, ...] = ()
    path: Path = Path()
    begun: bool = True


def announce(root: Path, fault: str, undo: Undo, *, begun: bool = True) -> Path:
    """Record in a new file how to undo a fault. Return its path. Raises StrakesError: do not cause the fault.

    ``begun``: if False, the fault is undone only after :func:`set_begun`.
    """
    path = root / "drills" / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(4)}.json"
    with store_errors(path.parent), own_directory(path.parent):
        here = os.getcwd(), _inode(os.stat("."))
    environment = tuple(f"{name}={value}" for name, value in os.environ.items() if name.startswith(_CLUSTER_VARIABLES))
    text = to_json(to_record(Pending(fault, Owner.this_process(), undo, here, environment)), indent=1) + "\n"
    if len(text) > _MOST_BYTES - len(NOT_BEGUN):
        raise BadInputError("the record of the fault is too large", why="its commands or variables CEPH_*, CIB_* are")
    replace_text(path, text if begun else text + NOT_BEGUN.decode())
    return path


def set_begun(path: Path, descriptor: int) -> None:
    """Record on disk that a fault begins. Raises StrakesError."""
    with store_errors(path), closing(_reopened(path, descriptor)) as file:
        os.ftruncate(file, len(os.pread(file, _MOST_BYTES, 0).removesuffix(NOT_BEGUN)))
        os.fsync(file)


def put_right(path: Path, *, needed: bool = True) -> str:
    """Undo one fault, or forget it if that is not ``needed``. Return and raise as :func:`put_right_open`."""
    try:
        with store_errors(path, FileNotFoundError):
            file = open_own(path, _WHAT, _REMEDY)
    except FileNotFoundError:
        return ""
    with file, closing(_copy_of_guard(path.name)) as copy:
        if copy >= 0:
            lock_file(copy, path, COMMAND_S)
            if os.fstat(copy).st_size == 0:
                return ""
        return put_right_open(path, file.fileno(), copy, there=False, needed=needed)


def _copy_of_guard(name: str) -> int:
    """Open the copy of a record in the memory of its guard, which locks this copy. Return -1 if there is no guard."""
    for pid, session, *_ in running_processes():
        words = trusted_words(Path("/proc", str(pid)), "cmdline") if pid == session else []
        with suppress(ValueError, OSError):
            at = words.index(b"strakes.control.drill_guard")  # Options of Python are before it.
            if words[at + 1].endswith(name.encode()):
                os.kill(pid, signal.SIGCONT)
                return os.open(f"/proc/{pid}/fd/{int(words[at + 2])}", os.O_RDWR | os.O_CLOEXEC)
    return -1


def put_right_open(
    path: Path,
    descriptor: int,
    journal: int | None = None,
    *,
    there: bool = True,
    needed: bool = True,
) -> str:
    """Undo the fault recorded in an open file, even if the file was moved or removed. Return how. Raises StrakesError.

    Returns "" if the file is empty: another process has already undone the fault. ``there``: whether the current
    directory is the drill's. ``journal``: descriptor of the other copy. One is in the store, and one in the memory of
    the guard, which is needed if the drill stops the servers of the store. ``needed``: whether to undo it.
    """
    try:
        with closing(_reopened(path, descriptor)) as own:
            with suppress(OSError):  # Without locks here, two processes may undo a fault. This does no harm.
                lock_file(own, path, COMMAND_S)
            done, content = "", os.pread(own, _MOST_BYTES + 1, 0)
            if content:
                pending = _pending(path, content)
                left = _end_commands(path.name)
                done = "nothing, because the fault did not begin"
                if needed and pending.begun:
                    done = _undo(pending, there=there) or pending.undo.text
                if left:
                    what, where = "the command that causes the fault still runs", f"processes {str(left)[1:-1]}"
                    why = f"SIGKILL does not end it. The fault may come (again). Done: {done if needed else 'nothing'}"
                    raise MeasurementError(what, where=where, why=why, remedy="When it ends: strakes failover undo")
                os.ftruncate(own, 0)
            elif not there:
                return ""
            # Also if the drill was killed before this, after it had undone the fault.
            try:
                if journal is not None:
                    with closing(_reopened(path, journal)) as stored:
                        os.ftruncate(stored, 0)
            except (OSError, StrakesError) as error:
                why, done = getattr(error, "why", getattr(error, "strerror", "")), done or "another process did it"
                done += f". Its record stays ({why}): remove {path}, or the next command undoes the fault again"
            with suppress(OSError):
                remove_kept(path)
            return done
    except StrakesError:
        raise
    except Exception as error:  # After any error the fault stays on record, and undoing it is repeated.
        why = f"{type(error).__name__}: {error}"
        raise MeasurementError("a fault could not be undone", where=str(path), why=why) from error


def _end_commands(name: str) -> list[int]:
    """Wait for commands that cause or undo a fault, and kill them at their time limit. ``name``: that of the record.

    If one ended after the undoing, the fault could come again, and two that undo it would disturb each other. Services
    that they have started in other sessions are not killed. Returns the ids of causing processes that stay.
    """
    scripts, ends_s = (CAUSE.encode(), _UNDO.encode()), time.monotonic() + COMMAND_S
    while True:
        now_s = time.monotonic()
        for leader, session, started, program in running_processes():
            # Reading the command line of another program could hang with its file system.
            ours = leader == session and program == os.path.basename(SHELL)
            words = trusted_words(Path("/proc", str(leader)), "cmdline") if ours else []
            if words[4:5] == [name.encode()] and words[2] in scripts:
                age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
                break
        else:
            return []
        ends_s = min(ends_s, now_s + COMMAND_S - age_s)
        if now_s >= ends_s:
            break
        time.sleep(_LOOK_EVERY_S)
    ends_s = time.monotonic() + _END_S
    while (
        left := [pid for pid, session, *_ in running_processes() if session == leader]
    ) and time.monotonic() < ends_s:
        for pid in [pid for pid in left if pid != leader] or left:  # The leader ends when its command has ended.
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_EVERY_S)
    return left if words[2] == scripts[0] else []


def _inode(found: os.stat_result) -> str:
    return f"{found.st_dev}:{found.st_ino}"


def _undo(pending: Pending, *, there: bool) -> str:
    """Undo a fault in the drill's directory, or in / if that directory was replaced or does not answer."""
    path, inode = pending.directory
    with ExitStack() as stack:
        place, same, current = "/", tuple[str, ...](), f"/proc/{os.getpid()}/cwd"
        others = [name for name in os.environ if name.startswith(_CLUSTER_VARIABLES)]
        # Programs would wait for dead directories of PATH, LD_LIBRARY_PATH, PYTHONPATH, HOME and others.
        lists = {name: value.split(":") for name, value in {**os.environ, "PATH": search_path()}.items()}
        silent = _silent({current if there else path, *filter(os.path.isabs, chain(*lists.values()))})
        cut = {name: ":".join(filter(lambda word: word not in silent, words)) for name, words in lists.items()}
        variables = {name: cut[name] for name in cut.keys() - others if silent.intersection(lists[name])} | _NO_PWD
        with suppress(OSError, StrakesError, ValueError):
            if (current if there else path) in silent:
                raise TimeoutError
            found = -1 if there else stack.enter_context(closing(open_directory(Path(path))))
            if there or _inode(os.fstat(found)) == inode:
                place = current if there else f"/proc/{os.getpid()}/fd/{found}"
        if not there:
            # Every user sees command lines, so they do not have the values (CIB_passwd).
            variables |= dict(each.split("=", 1) for each in pending.environment)
            unset = (word for name in others if name not in variables for word in ("-u", name))
            # The shell also searches PATH behind a directory that fails, and env(1) does not.
            same = ("/usr/bin/env", *unset, SHELL, "-c", 'exec "$@"', SHELL)

        def ask(argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
            words = (SHELL, "-c", _UNDO, place, pending.path.name, *same, *argv)
            try:
                return run(words, timeout_s, mark=variables, cwd="/")
            except StrakesError as error:
                error.where = shlex.join(argv)
                raise

        try:
            return pending.undo.do(ask)
        except StrakesError as error:
            if place == "/":
                error.why = f"the command ran in /, because {path} was replaced or does not answer. {error.why}"
                by_hand = f"If the command needs that directory, undo the fault by hand, then remove {pending.path}."
                error.remedy = error.remedy or by_hand
            raise


def _silent(places: Set[str]) -> set[str]:
    """Return the directories that do not answer within 2 s after / has answered."""
    null, silent = subprocess.DEVNULL, set[str]()
    # The kernel asks the server for a name that it does not know. No secret may be on a command line.
    look = (SHELL, "-c", f'cd -P "$PLACE" && [ -e {secrets.token_hex(8)} ]')
    for place in {*places, "/"}:
        if place not in _looks or _looks[place].poll() is not None:
            with suppress(OSError, ValueError):  # At the limit of processes, it counts as answering.
                env = {"PLACE": place}
                _looks[place] = subprocess.Popen(look, stdin=null, stdout=null, stderr=null, cwd="/", env=env)
    if "/" in _looks:
        _looks["/"].wait()
    ends_s = time.monotonic() + _ANSWER_S
    for place in _looks.keys() & places:
        try:
            wait_for_end(_looks[place], ends_s - time.monotonic())
        except subprocess.TimeoutExpired:
            _looks[place].kill()
            silent.add(place)
    return silent


def _reopened(path: Path, descriptor: int) -> int:
    """Open the file again, because processes with inherited descriptors share one flock(2) lock."""
    with suppress(OSError):
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
    with store_errors(path):
        return open_kept(path, os.O_RDWR)


def read_all(root: Path) -> tuple[tuple[Pending, ...], tuple[StrakesError, ...]]:
    """Return all faults that are not undone, oldest first, and errors for files that are damaged or of another user."""
    faults, errors = list[Pending](), list[StrakesError]()
    for path in files_in(root / "drills", ".json"):
        try:
            with store_errors(path, FileNotFoundError), open_own(path, _WHAT, _REMEDY) as file:
                content = read_whole(file, path, _MOST_BYTES)
            if content:
                faults.append(_pending(path, content))
        except FileNotFoundError:
            continue
        except StrakesError as error:
            errors.append(error)
    return tuple(faults), tuple(errors)


def try_all(
    root: Path, complain: Callable[[StrakesError], object], *, known_dead: bool = False, needed: bool = True
) -> Iterator[tuple[Pending, str, str]]:
    """Undo (``needed``) or forget the faults of ended drills, newest first. Yield each with how, or with an error.

    ``known_dead``: skip drills that run or belong to another host or container, which are errors by default. Calls
    ``complain`` with an error for each file that is damaged or belongs to another user.
    """
    faults, errors = read_all(root)
    for error in errors:
        complain(error)
    for pending in reversed(faults):
        life = pending.owner.life()
        if life == "dead":
            try:
                yield pending, put_right(pending.path, needed=needed), ""
            except StrakesError as error:
                yield pending, "", f"{error}; to forget it: strakes failover undo --forget"
        elif life == "alive" and not known_dead:
            both = f"continue the drill (kill -CONT {pending.owner.pid}) or end it (kill -KILL {pending.owner.pid})"
            yield pending, "", f"this drill is still running; to undo the fault, {both}"
        elif life == "elsewhere" and not known_dead:
            gone = f"If that is gone, undo the fault by hand ({pending.undo.text}), then remove {pending.path}."
            yield pending, "", f"this is of another host or container: run strakes failover undo there. {gone}"


def put_right_abandoned(root: Path, say: Callable[[str], None]) -> None:
    """Undo the faults of killed drills. Call ``say`` with a report of each."""
    for pending, done, error in try_all(root, lambda error: say(str(error)), known_dead=True):
        outcome = f", and undoing it now failed: {error}" if error else f"; done now: {done or 'by another process'}"
        say(f"{pending.owner} ended without undoing its fault ({pending.fault}){outcome}")


def _pending(path: Path, content: bytes) -> Pending:
    try:
        begun, record = not content.endswith(NOT_BEGUN), parse_json(content.removesuffix(NOT_BEGUN))
        return replace(from_record(Pending, record), path=path, begun=begun)
    except ValueError as error:
        remedy = "Let its drill end. Then run the strakes that wrote it, or its undo entries by hand, and remove it."
        raise BadInputError("a drill's journal is damaged", where=str(path), why=str(error), remedy=remedy) from error
