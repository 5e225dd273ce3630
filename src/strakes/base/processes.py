"""Start modules of strakes as processes, and find and identify processes."""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import select
import shlex
import shutil
import signal
import site
import stat
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.files import closing, default_root, open_directory, open_kept

if TYPE_CHECKING:
    import subprocess

_STARTED_BY = "STRAKES_STARTED_BY"
# Bit of SIGKILL in the mask of pending signals (proc_pid_status(5)).
_KILL = 1 << (signal.SIGKILL - 1)
# Kernel functions where clients of FUSE, Lustre, NFS, CephFS and SMB wait for a server. FUSE servers wait in fuse_dev_.
_SERVER_WAIT = re.compile(
    "request_wait_answer|fuse_(?!dev_)|ptlrpc_|ldlm_|cl_sync_io|osc_|rpc_wait|nfs|ceph_|cifs_|wait_for_resp"
)

_MOST_POLL_S = 2e6
_DAY_S = 86_400
_SYS_ADMIN = 1 << 21  # Mask of CAP_SYS_ADMIN (capabilities(7)).
_LOOK_EVERY_S = 0.05
_MOST_WORDS_BYTES = 8 << 20  # The kernel allows 6 MiB of arguments (execve(2)).
_CEPH_CONF = "/etc/ceph/ceph.conf"


def secure_environment() -> None:
    """Change environment variables that could make programs read or run files of other users.

    Relative directories are removed from PATH and PYTHONPATH. If other users can replace files in HOME or TMPDIR,
    another directory is set. The variables of unsafe cache or settings directories are removed. CEPH_CONF is set,
    because Ceph's tools otherwise search the current directory. UTC replaces a time zone (TZ) with an offset of a day
    or more. Variables that make Pacemaker's tools read and change a file in place of the running cluster are removed.
    """
    for name in ("CIB_file", "CIB_shadow"):
        os.environ.pop(name, None)
    if max(abs(time.timezone), abs(time.altzone)) >= _DAY_S:
        os.environ["TZ"] = "UTC0"
        time.tzset()
    if bundle := os.environ.get("AWS_CA_BUNDLE"):
        with suppress(FileNotFoundError):  # the current directory was removed
            os.environ["AWS_CA_BUNDLE"] = os.path.abspath(bundle)
    _drop_relative_paths()
    if "HOME" in os.environ and not _is_own_directory(os.environ["HOME"]):
        os.environ["STRAKES_STORE"] = os.environ.get("STRAKES_STORE") or str(default_root())
        try:
            os.environ["HOME"] = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            os.environ["HOME"] = "/"
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR"):  # caches and settings of Matplotlib
        if name in os.environ and not _is_own_directory(os.environ[name]):
            del os.environ[name]
    temporary = (*map(os.environ.get, ("TMPDIR", "TEMP", "TMP")), "/tmp", "/var/tmp", os.path.expanduser("~"))
    usable = (
        place for place in temporary if place and os.access(place, os.W_OK) and _is_own_directory(place, sticky=True)
    )
    tempfile.tempdir = os.environ["TMPDIR"] = next(usable, "/")
    if not os.environ.get("CEPH_CONF"):
        own = os.path.expanduser("~/.ceph/ceph.conf")
        only_own = not os.path.exists(_CEPH_CONF) and os.path.isabs(own) and os.path.exists(own)
        os.environ["CEPH_CONF"] = own if only_own else _CEPH_CONF
    os.environ |= _mpi_variables()


_MPI_DIRECTORY, _RUN = "OMPI_MCA_orte_top_session_dir", "/run"


def _mpi_variables() -> dict[str, str]:
    """Return variables that keep MPI from what other users prepared.

    Open MPI would use a directory of another user, and follow links in it. Only root can make one in /run, which is on
    all nodes. Others get a directory of a secret name in ``TMPDIR``, unless only they write there.
    hwloc would wait without end for the sockets of X displays, and shared file pointers of Open MPI, which strakes does
    not use, for a semaphore of a known name: any user can make these. An engine without launcher would start a daemon,
    which uses shared memory of known names.
    """
    defaults = {
        "HWLOC_COMPONENTS": "-gl",
        "OMPI_MCA_sharedfp": "individual",
        "OMPI_MCA_ess_singleton_isolated": "1",
    }
    variables = {name: os.environ.get(name, value) for name, value in defaults.items()}
    if os.geteuid() == 0 and os.access(_RUN, os.W_OK) and _is_own_directory(_RUN):
        return variables | {"OMPI_MCA_orte_tmpdir_base": _RUN}
    place = os.environ.get("TMPDIR") or "/tmp"
    with suppress(OSError):
        if os.stat(place).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            variables[_MPI_DIRECTORY] = os.path.join(place, f"strakes_{os.urandom(16).hex()}")
    return variables


@contextmanager
def private_mpi_directory() -> Iterator[dict[str, str]]:
    """Yield the variables for one start of MPI. Then remove the private directories of its files from this node."""
    secret = f"_{os.urandom(16).hex()}"
    variables, descriptor = {**_mpi_variables(), "STRAKES_SHARED_NAMES": secret}, -1
    path = variables.get(_MPI_DIRECTORY, "")
    with suppress(OSError):
        os.mkdir(path, 0o700)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield variables
    finally:
        # Open MPI may have removed it, and another user may have made a directory of the same name since.
        if descriptor >= 0 and os.fstat(descriptor).st_nlink > 0:
            shutil.rmtree(".", ignore_errors=True, dir_fd=descriptor)
            with suppress(OSError):
                os.rmdir(path)
        if descriptor >= 0:
            os.close(descriptor)
        with suppress(OSError):  # engine/mpi/shared_names.cpp makes it; a rank that was killed leaves it
            shared = os.open(f"/dev/shm/strakes{secret}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with closing(shared):
                about = os.fstat(shared)
                if about.st_uid == os.geteuid() and about.st_mode & (stat.S_IRWXG | stat.S_IRWXO) == 0:
                    for name in os.listdir(shared):
                        os.unlink(name, dir_fd=shared)
                    os.rmdir(f"/dev/shm/strakes{secret}")


def secure_environment_unseen() -> None:
    """Change the environment like :func:`secure_environment`, but without access to directories that may hang."""
    _drop_relative_paths()
    os.environ |= {"HOME": "/", "TMPDIR": "/tmp", "CEPH_CONF": os.environ.get("CEPH_CONF") or _CEPH_CONF}


def _drop_relative_paths() -> None:
    for name, default in (("PATH", os.defpath), ("PYTHONPATH", "")):  # Tools may be Python programs, as ceph.
        if name in os.environ:
            places = filter(os.path.isabs, os.environ[name].split(os.pathsep))
            os.environ[name] = os.pathsep.join(places) or default


def _is_own_directory(path: str, *, sticky: bool = False) -> bool:
    with suppress(OSError), closing(open_directory(Path(path), guarded=True)) as directory:
        mode = os.fstat(directory).st_mode
        return os.path.isabs(path) and (sticky or not mode & (stat.S_IWGRP | stat.S_IWOTH))
    return False


def wait_for_end(child: subprocess.Popen[bytes], timeout_s: float) -> int:
    """Return the exit status of a child without a polling delay.

    Raises subprocess.TimeoutExpired after ``timeout_s`` seconds.
    """
    try:
        ended = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # Linux before 5.3 has no pidfd_open(2).
        return child.wait(timeout_s)
    with closing(ended):
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        over = poll.poll(max(0.0, min(timeout_s, _MOST_POLL_S)) * 1000)
    return child.wait(None if over else 0)


def engine_path() -> Path:
    """Return the path of the engine: $STRAKES_ENGINE, or the engine inside the package."""
    if chosen := os.environ.get("STRAKES_ENGINE"):
        return Path(chosen)
    # Search both package directories of an editable installation. Only one of them contains the built engine.
    places = [Path(place, "bin", "strakes-engine") for place in sys.modules["strakes"].__path__]
    return next(filter(Path.exists, places), places[0])


def python_module(module: str, *words: str) -> list[str]:
    """Return a command that runs a Python module of strakes.

    Unlike ``python -m``, it imports nothing from the current directory, where another user may have planted code.
    """
    place = Path(__file__).resolve().parents[2]
    user_site = site.getusersitepackages() if site.ENABLE_USER_SITE else None
    named = [*filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    # Option -I ignores PYTHONPATH (Spack) and the user's site directory, so use -P if strakes is installed there.
    if not sys.flags.isolated and any(Path(name).resolve() == place for name in named):
        return ["/usr/bin/env", f"PYTHONPATH={os.pathsep.join(named)}", sys.executable, "-P", "-m", module, *words]
    isolation = "-P" if user_site and Path(user_site).resolve() == place else "-I"
    byte_code = ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []  # as ./strakes
    return [sys.executable, isolation, *byte_code, "-m", module, *words]


def by_env(words: Sequence[str]) -> list[str]:
    """Return the command that starts ``words`` by env(1), which then waits for dead directories, and not this process.

    A program with "=" in its path is started directly, because env takes it for a variable.
    """
    return [*(() if "=" in words[0] else ("/usr/bin/env", "--")), *words]


def words_of(option: str, text: str) -> tuple[str, ...]:
    """Split the command in an option into words. Raises BadInputError for an unclosed quote or an empty command."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        remedy = f"Close the quotation mark, as in {option} 'first \"second word\"'."
        raise BadInputError(f"{option} cannot be read", where=text, why=str(error), remedy=remedy) from error
    if not words:
        raise BadInputError(f"{option} is empty")
    return words


def trusted_processes(program: str, proc: Path = Path("/proc")) -> Iterator[tuple[int, list[str]]]:
    """Yield the process id and arguments of each process of this user or root that runs a program."""
    for number in sorted(filter(str.isdigit, os.listdir(proc))):
        words = [os.fsdecode(word) for word in trusted_words(proc / number, "cmdline")[:-1]]
        if words and os.path.basename(words[0]) == program:
            yield int(number), words[1:]


def is_trusted(process: Path) -> bool:
    """Return whether all user ids of a process are root or this user. ``process``: its directory in /proc.

    Root of a container without privileges is not trusted.
    """
    users, may_administer = _credentials(process)
    if 0 in users and not may_administer and (os.geteuid() != 0 or _credentials(Path("/proc/self"))[1]):
        return False
    return users <= {0, os.geteuid()}


def _credentials(process: Path) -> tuple[set[int], bool]:
    status = (process / "status").read_text(errors="replace")
    fields = dict(line.split(":", 1) for line in status.splitlines() if line.startswith(("Uid:", "CapEff:")))
    return {int(word) for word in fields["Uid"].split()}, bool(int(fields["CapEff"], 16) & _SYS_ADMIN)


def ending(status: int) -> str:
    """Describe an exit status: "exit status 3" or, for a signal (negative), "killed by SIGKILL"."""
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):  # Real-time signals have no names.
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"


def lock_file(descriptor: int, path: Path, limit_s: float) -> None:
    """Lock a file. Raises OSError if flock(2) fails, EnvironmentLacksError if another process keeps the lock."""
    ends_s = time.monotonic() + limit_s
    while True:
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if time.monotonic() >= ends_s:
            what, holder = "another strakes process does not release a file", lock_holder(descriptor)
            why = f"process {holder} has locked the file for {limit_s:g} s" if holder else ""
            remedy = f"If it is suspended, continue it: kill -CONT {holder or 'PROCESS'}. Or end it."
            raise EnvironmentLacksError(what, where=str(path), why=why, remedy=remedy)
        time.sleep(_LOOK_EVERY_S)


def is_locked(path: Path) -> bool:
    """Return whether a process has locked a file. A missing file, or one without locks, counts as not locked."""
    with suppress(OSError), closing(open_kept(path, os.O_RDONLY)) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # Several processes may test at once.
        except BlockingIOError:
            return True
    return False


def lock_holder(path: Path | int) -> str:
    """Return the id of the process of this user or root that has locked a file with flock(2), or ""."""
    with suppress(OSError):
        lines = Path("/proc/locks").read_text()
        for pid in re.findall(rf"FLOCK +\w+ +WRITE +(\d+) +\S+:{os.stat(path).st_ino} ", lines):
            # The lock may belong to another user's file with the same inode number on another file system.
            with suppress(OSError):
                if is_trusted(Path("/proc", pid)):
                    return str(pid)
    return ""


def trusted_words(process: Path, name: str) -> list[bytes]:
    """Return the words of ``environ`` or ``cmdline`` of a process, or [] if it has ended or is not trusted.

    The kernel reads these files from the memory of the process. An untrusted process could make them endless, or block
    the reader for ever.
    """
    with suppress(OSError):
        if is_trusted(process):
            with open(process / name, "rb") as file:
                return file.read(_MOST_WORDS_BYTES).split(b"\0")
    return []


def process_start(pid: int) -> int | None:
    """Return the start time in clock ticks since boot (proc_pid_stat(5)), or None if the process has ended."""
    fields = _fields(pid)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


def running_processes() -> Iterator[tuple[int, int, int, str]]:
    """Yield the id, session, start time (clock ticks since boot) and program of each process that has not ended."""
    with suppress(OSError):  # There may be no /proc.
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):  # Some systems hide the processes of other users.
                if (fields := _fields(pid)) and fields[0] not in "ZX":
                    yield int(pid), int(fields[3]), int(fields[19]), _proc_text(pid, "comm").rstrip("\n")


def kill_sessions(leaders: Collection[int]) -> list[int]:
    """Send SIGKILL to all running processes of sessions. Return their ids."""
    found = [pid for pid, session, *_ in running_processes() if session in leaders]
    for pid in found:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return found


def lives_in_container(pid: int, started: int, namespace: str) -> bool:
    """Return whether a process in a container still runs. ``pid``: its id inside the container.

    ``namespace``: PID namespace, such as ``pid:[4026531836]``. ``started``: start of the process in clock ticks.
    """
    for number in filter(str.isdigit, os.listdir("/proc")):
        own = re.search(r"^NSpid:.*\s(\d+)$", _proc_text(number, "status"), re.MULTILINE)
        if own and int(own[1]) == pid and (begun := process_start(int(number))) is not None:
            with suppress(OSError):
                if os.readlink(f"/proc/{number}/ns/pid") != namespace:
                    continue
                if os.readlink(f"/proc/{number}/ns/time") != os.readlink("/proc/self/ns/time"):
                    return True
            if begun == started:
                return True
    return False


def mark_of(pid: int, started: int) -> dict[str, str]:
    """Return an environment variable (name -> value) that marks all commands started by a process."""
    return {_STARTED_BY: f"{pid}:{started}"}


def commands_of(pid: int, started: int) -> tuple[int, ...]:
    """Return the ids of the running processes that a process has marked with :func:`mark_of`.

    Processes of other users are ignored, because the mark can be copied.
    """
    mark = f"{_STARTED_BY}={pid}:{started}".encode()
    numbers = filter(str.isdigit, os.listdir("/proc"))
    return tuple(int(number) for number in numbers if mark in trusted_words(Path("/proc", number), "environ"))


def descendants_of(pid: int) -> tuple[int, ...]:
    """Return the sorted ids of all descendants of a process."""
    parents = dict[int, int]()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(PermissionError):  # Also some processes of this user are hidden, such as ssh-agent.
            if fields := _fields(name):
                parents[int(name)] = int(fields[1])
    family = {pid}
    while new := {process for process, parent in parents.items() if parent in family} - family:
        family |= new
    return tuple(sorted(family - {pid}))


def kernel_waits(pid: int) -> dict[int, int]:
    """Return thread id -> number of voluntary context switches, for the threads that wait in the kernel."""
    waits = {}
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            place = f"{pid}/task/{thread}"
            status = dict(line.split(":", 1) for line in _proc_text(place, "status").splitlines() if ":" in line)
            state = status.get("State", "").split()[:1]
            killed = int(status.get("SigPnd", "0"), 16) & _KILL
            # A thread that waits for a server may be in state S (interruptible), so check its kernel function.
            if state and (state[0] in "DI" or killed or _SERVER_WAIT.match(_proc_text(place, "wchan"))):
                waits[int(thread)] = int(status.get("voluntary_ctxt_switches", "0"))
    return waits


def wait_in_words(pid: int, thread: int) -> str:
    """Return a text that names a process's program, and the kernel function where a thread waits."""
    program = _proc_text(str(pid), "comm").strip() or "unknown"
    function = _proc_text(f"{pid}/task/{thread}", "wchan").strip()
    told = f"in the kernel's {function}" if function not in ("", "0") else "the kernel does not name the call"
    return f"({program}), waiting for the file system ({told})"


def _proc_text(place: str, name: str) -> str:
    try:
        return Path(f"/proc/{place}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def _fields(pid: int | str) -> list[str]:
    # The program's name may contain spaces and parentheses, so skip /proc/PID/stat to the last parenthesis.
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    except PermissionError:  # With hidepid=1, /proc denies access to processes of other users.
        try:
            os.kill(int(pid), 0)
        except (PermissionError, ProcessLookupError):
            return []
        raise
