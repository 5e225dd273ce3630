"""Access to a Ceph cluster: options of a mount, the ``ceph`` command, admin sockets and counters."""

from __future__ import annotations

import json
import math
import os
import re
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.processes import trusted_processes
from strakes.base.units import KIB
from strakes.targets.answers import from_json, understood
from strakes.targets.calls import mount_of
from strakes.targets.command import MOST_OUTPUT_BYTES, Command, Completed, Runner
from strakes.targets.mountinfo import Mount
from strakes.targets.remote import add_up

FILE_SYSTEMS = ("ceph", "fuse.ceph-fuse", "fuse.ceph")
_SHORT = {"-c": "conf", "-n": "name", "-i": "id", "-k": "keyring", "-m": "mon-host", "-r": "client-mountpoint"}
_FOR_TOOL = {"conf": "--conf", "name": "--name", "id": "--id", "keyring": "--keyring", "mon-host": "--mon-host"}
_FILE_SYSTEM = ("client-fs", "client-mds-namespace", "fs", "mds-namespace")


@dataclass(frozen=True)
class Access:
    """Options that make ``ceph`` select a cluster, and the name of the mounted file system ("" if unknown)."""

    options: tuple[str, ...] = ()
    file_system: str = ""

    @property
    def configuration(self) -> str:
        """The configuration file, or "" for Ceph's default ($CEPH_CONF, else /etc/ceph/ceph.conf)."""
        return dict(zip(self.options[::2], self.options[1::2], strict=True)).get("--conf", "")

    @property
    def lasting_options(self) -> tuple[str, ...]:
        """Return the options and those of CEPH_ARGS and CEPH_CONF, without secrets and files with relative names."""
        options = dict(zip(self.options[::2], self.options[1::2], strict=True))
        given, _ = _read(os.environ.get("CEPH_ARGS", "").split())
        if os.path.exists(file := os.environ.get("CEPH_CONF", "")):
            given.setdefault("conf", os.path.abspath(file))
        for key, option in _FOR_TOOL.items():
            if (value := given.get(key, "")) and (key not in ("conf", "keyring") or os.path.isabs(value)):
                options.setdefault(option, value)
        return tuple(chain.from_iterable(options.items()))


def access_of(mount: Mount, proc: Path = Path("/proc")) -> Access:
    """Return the ``ceph`` options for the cluster of a mount. Options that cannot be found keep Ceph's defaults."""
    if mount.file_system == "ceph":
        return _of_kernel(mount)
    for pid, words in trusted_processes("ceph-fuse", proc):
        settings, places = _read(words)
        here, environment = "/", b""
        with suppress(OSError):
            here = os.readlink(proc / str(pid) / "cwd")
            environment = (proc / str(pid) / "environ").read_bytes()
        if any(os.path.normpath(os.path.join(here, place)) == mount.mount_point for place in places):
            variables = dict(os.fsdecode(entry).partition("=")[::2] for entry in environment.split(b"\0"))
            if "conf" not in settings and variables.get("CEPH_CONF"):
                settings["conf"] = variables["CEPH_CONF"]
            options = []
            for key, option in _FOR_TOOL.items():
                if value := settings.get(key):
                    options += [option, os.path.join(here, value) if key in ("conf", "keyring") else value]
            return Access(tuple(options), next((settings[key] for key in _FILE_SYSTEM if key in settings), ""))
    return Access()


def _of_kernel(mount: Mount) -> Access:
    # The source is ``MONITORS:/DIR`` or, since Linux 5.17, ``USER@FSID.NAME=/DIR``.
    options = dict(option.partition("=")[::2] for option in mount.super_options)
    user, named = match.groups() if (match := re.match(r"([^/@]*)@[^/.]*\.([^/]*)=/", mount.source)) else ("", "")
    name = options.get("name", user)
    given = (options[key.replace("-", "_")] for key in _FILE_SYSTEM if key.replace("-", "_") in options)
    file_system = next(given, "") or named
    return Access(("--id", name) if name and not name.startswith("-") else (), file_system)


def _read(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Parse a ceph-fuse command line into options and other arguments.

    >>> _read(["-c", "/lab/ceph.conf", "-n", "client.admin", "--client_fs=home", "/mnt"])
    ({'conf': '/lab/ceph.conf', 'name': 'client.admin', 'client-fs': 'home'}, ['/mnt'])
    """
    settings, rest = {}, []
    words = list(words)
    while words:
        word = words.pop(0)
        if word in _SHORT and words:
            settings[_SHORT[word]] = words.pop(0)
        elif word.startswith("--"):
            key, equals, value = word[2:].partition("=")
            key = key.replace("_", "-")
            # ceph-fuse accepts ``--conf FILE`` and ``--conf=FILE``.
            if not equals and key in (*_FOR_TOOL, *_FILE_SYSTEM, "client-mountpoint") and words:
                value = words.pop(0)
            settings[key] = value
        elif not word.startswith("-"):
            rest.append(word)
    return settings, rest


@dataclass(frozen=True)
class Inside:
    """The arguments that libcephfs needs for a directory: its path in the file system, and environment variables."""

    directory: PurePosixPath
    environment: Mapping[str, str]


def inside(directory: Path) -> Inside:
    """Return the arguments that libcephfs needs for a directory. Raises BadInputError if it is not on CephFS."""
    mount = mount_of(directory)
    if mount.file_system not in FILE_SYSTEMS or mount.of_another_user:
        what = "the backend cephfs needs a directory on a Ceph file system"
        why = f"{mount.mount_point} is {mount.file_system}"
        remedy = "Mount the Ceph file system. strakes makes its workspace through a mount."
        raise BadInputError(what, where=str(directory), why=why, remedy=remedy)
    return Inside(_path_inside(mount, directory.resolve()), _for_libcephfs(access_of(mount)))


def _path_inside(mount: Mount, directory: Path) -> PurePosixPath:
    """Return the path of a directory from the root of the Ceph file system.

    Sources of kernel mounts name the mounted directory (``a,b:/DIR``, ``user@fsid.fs=/DIR``). ceph-fuse mounts "/".

    >>> kernel = Mount(1, 0, 1, "/", "/mnt", (), "ceph", "10.0.0.1:6789,10.0.0.2:6789:/home", ())
    >>> _path_inside(kernel, Path("/mnt/a/b"))
    PurePosixPath('/home/a/b')
    """
    mounted = re.search("[:=](/.*)", mount.source) if mount.file_system == "ceph" else None
    top = PurePosixPath(mounted[1] if mounted else "/")
    return top / mount.root.lstrip("/") / directory.relative_to(mount.mount_point).as_posix()


def _for_libcephfs(access: Access) -> dict[str, str]:
    """Return the environment variables for libcephfs, from the options of the mount and CEPH_ARGS of the user.

    >>> _for_libcephfs(Access(("--conf", "/c", "--id", "me")))["CEPH_ARGS"]
    '--id me'
    """
    options = dict(zip(access.options[::2], access.options[1::2], strict=True))
    given = {
        "CEPH_CONF": options.pop("--conf", ""),
        "CEPH_ARGS": " ".join(f"{option} {value}" for option, value in options.items()),
    }
    if access.file_system:
        given["CEPH_ARGS"] = f"{given['CEPH_ARGS']} --client-fs {access.file_system}".strip()
    return {name: value for name, value in given.items() if value and (name == "CEPH_CONF" or name not in os.environ)}


# Maximum seconds for ``ceph`` to connect to a monitor (--connect-timeout).
_CONNECT_S = 5
_LIMIT_S = 10.0
# Error messages of ``ceph`` if the user lacks permission, or if a configuration file is missing.
_NOT_ALLOWED = "EACCES|EPERM|Operation not permitted|access denied|[Pp]ermission denied"
_NOT_CONFIGURED = "ObjectNotFound|unable to get monitor info|no keyring found|InvalidArgument"


def ceph(access: Access, *words: str, limit_s: float = _LIMIT_S) -> Command[Any]:
    """Return a ``ceph`` command with JSON output. A failed command raises EnvironmentLacksError or MeasurementError."""
    argv = ("ceph", *access.options, "--connect-timeout", str(_CONNECT_S), *words, "--format", "json")

    def read(done: Completed) -> Any:
        if done.status != 0:
            raise _refusal(done, words)
        return from_json(done.stdout, f"ceph {' '.join(words)}")

    return Command(argv, read, limit_s)


def _refusal(done: Completed, words: tuple[str, ...]) -> StrakesError:
    why, where = done.last_line, f"ceph {' '.join(words)}"
    if re.search(_NOT_ALLOWED, done.stderr):
        remedy = "Mount with a Ceph user that can read the state of the cluster (caps: mon 'allow r', mgr 'allow r')."
        return EnvironmentLacksError("no permission to query the Ceph cluster", where=where, why=why, remedy=remedy)
    if re.search(_NOT_CONFIGURED, done.stderr):
        remedy = "Put the cluster's ceph.conf and a keyring into /etc/ceph, or set CEPH_CONF to the file."
        return EnvironmentLacksError("strakes cannot query the Ceph cluster", where=where, why=why, remedy=remedy)
    remedy = "Check the monitors: ceph health detail"
    return MeasurementError("the Ceph cluster does not answer", where=where, why=why, remedy=remedy)


# Maximum number of object stores (OSDs) that are queried one by one. A query of a remote OSD takes half a second.
MOST_ELSEWHERE = 32
_TELL_S = 4.0


class Daemons:
    """Access to the daemons of a Ceph cluster: local ones by admin sockets, remote ones by ``ceph tell``."""

    def __init__(self, run: Runner, access: Access) -> None:
        self._run = run
        self._access = access
        self._sockets: dict[str, str] = {}

    def is_here(self, daemon: str) -> bool:
        """Return whether a daemon runs on this machine and this process may open its admin socket."""
        return os.access(self._socket(daemon), os.R_OK | os.W_OK)

    def ask_all(self, daemons: Iterable[str], prefix: str) -> dict[str, Any]:
        """Send the command ``prefix`` to daemons. Return daemon -> its parsed answer, or the exception of a failure."""

        def ask(daemon: str) -> Any:
            try:
                if self.is_here(daemon):
                    return ask_socket(self._socket(daemon), prefix)
                return ceph(self._access, "tell", daemon, *prefix.split(), limit_s=_TELL_S).ask(self._run)
            except StrakesError as error:
                return error

        names = list(daemons)
        self._sockets = {} if len(self._sockets) > 10_000 else self._sockets  # Names may not end.
        with ThreadPoolExecutor() as pool:
            return dict(zip(names, pool.map(ask, names), strict=True))

    def _socket(self, daemon: str) -> str:
        if daemon not in self._sockets:
            conf = ("--conf", self._access.configuration) if self._access.configuration else ()
            self._sockets[daemon] = ""
            with suppress(StrakesError):
                done = self._run(("ceph-conf", *conf, "--name", daemon, "--show-config-value", "admin_socket"))
                self._sockets[daemon] = done.stdout.strip() if done.status == 0 else ""
        return self._sockets[daemon]


# Time-out in seconds for an answer from an admin socket. It normally comes within a millisecond.
_SOCKET_S = 2.0
_DATA = {
    "data.read_bytes": ("op_r_out_bytes", "op_rw_out_bytes"),
    "data.write_bytes": ("op_w_in_bytes", "op_rw_in_bytes"),
    "data.read_requests": ("op_r",),
    "data.write_requests": ("op_w", "op_rw"),
}
# BlueStore's latency counters. In different releases, the counter of commits has different names.
_STORED = ("commit_lat", "txc_commit_lat", "read_lat")
# BlueStore's counter of bytes read from the device, with its names in different releases.
_FROM_DEVICE = ("bluestore_buffer_miss_bytes", "buffer_miss_bytes")


def ask_socket(path: str, prefix: str) -> Any:
    """Send the command ``prefix`` to an admin socket; return the parsed answer, or raise MeasurementError."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_SOCKET_S)
            connection.connect(path)
            connection.sendall(json.dumps({"prefix": prefix, "format": "json"}).encode() + b"\0")
            with connection.makefile("rb") as answer:
                (length,) = struct.unpack(">I", answer.read(4))
                return from_json(answer.read(min(length, MOST_OUTPUT_BYTES)), f"the daemon at {path}")
    except TimeoutError as error:
        why = f"no answer within {_SOCKET_S:g} s"
        raise MeasurementError("a Ceph daemon does not answer", where=path, why=why) from error
    except (OSError, ValueError, struct.error) as error:
        raise MeasurementError("a Ceph daemon cannot be reached", where=path, why=str(error)) from error


def metadata_counters(dump: Mapping[str, Any]) -> dict[str, float]:
    """Return the counters of a metadata server: requests by kind (``md.open``, ...), and memory in bytes."""
    counts = {
        name.removeprefix("req_").removesuffix("_latency"): float(value["avgcount"])
        for name, value in dump.get("mds_server", {}).items()
        if name.startswith("req_") and isinstance(value, Mapping)
    }
    seen = {name: count for name, count in add_up(counts).items() if name.startswith("md.")}
    resident_kib = dump.get("mds_mem", {}).get("rss")
    memory = {} if resident_kib is None else {"now.memory_bytes": float(resident_kib * KIB)}
    return {**seen, "md.requests": sum(counts.values()), **memory}


def data_counters(dump: Mapping[str, Any]) -> dict[str, float]:
    """Return the I/O counters of an object store (``data.read_bytes``, ...), which include I/O by metadata servers."""
    own = dump.get("osd", {})
    # The latencies of the OSD's operations include replication to other OSDs, so use the latencies of BlueStore.
    store = dump.get("bluestore", {})
    latencies = [_latency(store, name) for name in _STORED]
    if not any(count for count, _ in latencies):
        latencies = [_latency(own, "op_latency")]
    times = {
        "data.waited_requests": sum(count for count, _ in latencies),
        "data.waited_s": sum(seconds for _, seconds in latencies),
    }
    told = [float(store[name]) for name in _FROM_DEVICE if name in store]
    missed = {"data.device_read_bytes": told[0]} if told else {}
    moved = {common: float(sum(own.get(name, 0) for name in names)) for common, names in _DATA.items()}
    return {**moved, **times, **missed}


def used_share(dump: Mapping[str, Any]) -> float | None:
    """Return the used share (0 to 1) of an object store's space, including its databases, or None if unknown."""
    own = dump.get("osd", {})
    total, used = own.get("stat_bytes", 0), own.get("stat_bytes_used")
    return float(used / total) if total and used is not None else None


def _latency(counters: Mapping[str, Any], name: str) -> tuple[float, float]:
    value = counters.get(name)
    return (float(value["avgcount"]), float(value["sum"])) if isinstance(value, Mapping) else (0.0, 0.0)


# Half-life in seconds of Ceph's request load averages (default of mds_request_load_average_decay_rate).
_HALF_S = 60.0


def loads_of_clients(sessions: Any) -> dict[str, float] | None:
    """Return client -> load average of its requests, from ``session ls`` of a metadata server, or None if invalid."""
    loads = {}
    with suppress(StrakesError), understood("a daemon of Ceph"):
        for session in sessions:
            load = session.get("request_load_avg")
            if isinstance(load, int | float) and load >= 0:
                host = session.get("client_metadata", {}).get("hostname", "")
                loads[f"client.{session['id']}" + (f" on {host}" if host else "")] = float(load)
        return loads
    return None


class ClientRequests:
    """Estimator of the requests of each CephFS client, from load averages with a half-life of a minute."""

    def __init__(self) -> None:
        self._loads: dict[str, tuple[float, Mapping[str, float]]] = {}
        self._sent: dict[str, float] = {}

    def add(self, time_s: float, loads: Mapping[str, Mapping[str, float] | None]) -> dict[str, float]:
        """Return the requests of each client since the first call. ``loads``: load averages by server and client."""
        before, self._loads = self._loads, {}
        sent: dict[str, float] = {}
        for server, of_server in loads.items():
            earlier_s, earlier = before.get(server, (time_s, {}))
            # For a server that did not answer (None), keep the previous load averages.
            now_s, now = (earlier_s, earlier) if of_server is None else (time_s, of_server)
            self._loads[server] = (now_s, now)
            halves = (now_s - earlier_s) / _HALF_S
            # N requests, spread evenly over h half-lives, leave a load average of N * (1 - 2**-h) / (h * ln 2).
            left = 0.5**halves
            each = (1 - left) / (halves * math.log(2)) if halves > 0 else math.inf
            for client, load in now.items():
                more = max(0.0, load - left * earlier.get(client, 0.0)) / each
                sent[client] = sent.get(client, self._sent.get(client, 0.0)) + more
        self._sent = sent
        return dict(sent)
