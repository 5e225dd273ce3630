"""Interface of a file system. Each type of file system has a module with a subclass of Target (``registry.py``)."""

from __future__ import annotations

import errno
import math
import os
import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError, MeasurementError, StrakesError
from strakes.base.machine import load_average, memory_sizes
from strakes.base.version import __version__
from strakes.targets import calls
from strakes.targets.block_device import BlockDevice, kernel_text
from strakes.targets.command import Runner, Servers, run
from strakes.targets.description import (
    ConnectionChange,
    DataTargetState,
    Description,
    Interruption,
    Layout,
    Limit,
    Observation,
    Placement,
    Striping,
    TargetRecovery,
)
from strakes.targets.marker import MARKER_NAME
from strakes.targets.mountinfo import Mount

# Sizes in bytes of the direct writes to try. O_DIRECT needs multiples of the device's block size or of a larger unit.
_DIRECT_BYTES = ("4096", "65536", "1048576")
_PROBE = ".strakes-direct"


def said(error: StrakesError) -> str:
    """Return an error as text without its remedy."""
    return "; ".join(part for part in (error.what, error.where, error.why) if part)


@dataclass(frozen=True)
class TargetFacts:
    """Facts about the file system that contains ``path``.

    ``total_inodes`` is 0 on file systems without inodes. ``direct_io`` is None if O_DIRECT was not tried.
    """

    path: Path
    file_system: str
    device: str
    mount_point: str
    mount_options: tuple[str, ...]
    total_bytes: int
    free_bytes: int
    total_inodes: int
    free_inodes: int
    direct_io: bool | None
    remote: bool
    notes: tuple[str, ...] = ()
    block_device: BlockDevice | None = None
    quotas: tuple[str, ...] = ()
    """A sentence for each quota. The free sizes are limited by the quotas."""


@dataclass(frozen=True)
class LostServer:
    """A server that does not serve this client. ``host``: "" if unknown. ``state``: state of the connection, as text.

    ``refuses``: the host is up but refuses connections, as during a fail-over. ``answers``: the server answers, but its
    target is still in recovery.
    """

    host: str
    state: str
    refuses: bool = False
    answers: bool = False

    def sentence(self, target: str) -> str:
        return f"{target}{f' on {self.host}' if self.host else ''} does not answer: {self.state}."


class UnsupportedError(BadInputError):
    """The file system, or strakes on this file system, does not support a request."""


class Target:
    """The file system of a directory.

    Only :meth:`probe_direct`, :meth:`set_layout` and :meth:`make_directory` write, and only inside a workspace.
    ``servers``: prefix of commands on servers. Without ``servers``, only this client is queried.
    """

    # Whether the file system moves new directories to other metadata servers some seconds after their creation.
    moves_directories = False
    # Remedy for errors about missing permission.
    permission = ""

    def __init__(self, path: Path, mount: Mount, *, servers: Servers | None = None, runner: Runner = run) -> None:
        self.path = path
        self.mount = mount
        self.servers = servers
        self.unread: Mapping[str, str] = {}
        self.run = calls.through_held(runner)

    @classmethod
    def claims(cls, mount: Mount) -> bool:  # noqa: ARG003 - every mount of the type in ``registry.py``
        """Return whether this class handles a mount. By default, it handles all mounts of its registered types."""
        return True

    def facts(self, workspace: Path | None = None) -> TargetFacts:
        """Return the facts about the file system. With a ``workspace``, also try direct I/O in it."""
        mount, sizes = self.mount, self._sizes()
        return TargetFacts(
            path=self.path,
            file_system=mount.file_system,
            device=mount.source,
            mount_point=mount.mount_point,
            mount_options=mount.all_options,
            total_bytes=sizes.total_bytes,
            free_bytes=sizes.free_bytes,
            total_inodes=sizes.total_inodes,
            free_inodes=sizes.free_inodes,
            direct_io=None if workspace is None else self.probe_direct(workspace),
            remote=mount.remote,
            notes=("This is a network file system, measured only from this client.",) if mount.remote else (),
            quotas=tuple(map(str, sizes.quotas)),
        )

    def controls(self) -> tuple[str, ...]:
        """Return a line of text for each setting that strakes can change."""
        return ()

    def describe(self) -> Description:
        """Return the description of the file system, as far as it is known."""
        return Description(self.mount.source, version="", client={"mount options": ",".join(self.mount.all_options)})

    def cluster_id(self) -> str:
        """Return the id of the mounted cluster (Ceph) or volume (GlusterFS), or "" if the client does not report it."""
        return ""

    def layout(self, path: Path) -> Layout | None:
        """Return the layout of new files in a directory, or None if it is unknown."""
        return None

    def set_layout(self, directory: Path, wanted: Layout) -> Layout:
        """Set the layout of new files in a directory. Return the layout that new files really get.

        Raises UnsupportedError if layouts cannot be set, and StrakesError if the file system refuses this layout.
        """
        raise self._unsupported("the layout of files cannot be set here")

    def striping(self) -> Striping | None:
        """Return the possible layouts, or None if layouts cannot be set."""
        return None

    def placement(self, directory: Path) -> Placement | None:
        """Return the placement of a directory on metadata targets, or None if it is unknown."""
        return None

    def make_directory(self, parent: Path, name: str, wanted: Placement) -> Placement:
        """Create a directory with a placement. Return the actual placement.

        Raises UnsupportedError if placements cannot be chosen, and StrakesError if the file system refuses ``wanted``.
        """
        if wanted.kind != "inherit":
            raise self._unsupported("the placement of directories cannot be chosen here")
        self._call("the directory was not made", "mkdir", str(parent / name))
        return self.placement(parent / name) or wanted

    def observe(self) -> Observation:
        """Return the present counters of servers and targets, or {} without counters.

        Counters are never cleared. ``unread`` gets a sentence for each server whose counters cannot be read.
        """
        return {}

    def data_target_states(self) -> Mapping[str, DataTargetState]:
        """Return name of a data target -> its state in the last observation; {} if states are unknown."""
        return {}

    def require_answers(self) -> None:
        """Raise an error if tools or servers do not answer.

        EnvironmentLacksError: a tool hangs, or --servers does not reach a server. UnansweredError: a server is dead.
        """

    def client_requests(self) -> Mapping[str, float]:
        """Return client -> number of its requests since the first call; {} if unknown."""
        return {}

    def trouble(self) -> tuple[str, ...]:
        """Return a sentence for each problem of a server. Dead servers delay the result by only some seconds."""
        return ()

    def named(self, error: calls.UnansweredError) -> calls.UnansweredError:
        """Add the problems of servers to an exception, unless its message already names servers."""
        return error if error.names_servers else error.naming(self.trouble())

    def lost_servers(self) -> Mapping[str, LostServer] | None:
        """Return target -> server that does not answer now, or None if states are unknown. Never waits for a server."""
        return None

    def interruptions(self) -> tuple[Interruption, ...]:
        """Return the recent interruptions of service for this client, as far as the file system records them."""
        return ()

    def connection_changes(self) -> tuple[ConnectionChange, ...]:
        """Return the recent state changes of lost connections, as far as the file system records them."""
        return ()

    def recoveries(self) -> tuple[TargetRecovery, ...]:
        """Return the current recovery, else the last recovery, of each target whose server can be queried."""
        return ()

    def limits(self) -> tuple[Limit, ...]:
        """Return the operations that are impossible on this file system, each with the reason."""
        why = f"strakes cannot do this on {self.mount.file_system}"
        what = "describe servers and targets, set the layout of files, place directories, read counters of servers"
        return tuple(Limit(one, why) for one in what.split(", "))

    def _unsupported(self, what: str) -> UnsupportedError:
        why = f"strakes sets no layouts or placements on {self.mount.file_system}"
        return UnsupportedError(what, where=str(self.path), why=why)

    def probe_direct(self, workspace: Path) -> bool:
        """Return whether O_DIRECT writes and reads work in a workspace.

        Raises BadInputError for a directory that is no workspace, and MeasurementError if the file system fails.
        """
        try:
            return bool(calls.call("direct", str(workspace), MARKER_NAME, _PROBE, *_DIRECT_BYTES))
        except calls.RefusedError as error:
            where, why = str(workspace), os.strerror(error.errno or 0)
            if error.errno == errno.ENOENT:
                what, why = "this directory was not made by strakes", f"the directory has no {MARKER_NAME}"
                raise BadInputError(what, where=where, why=why) from error
            remedy = "Check the free space: strakes target DIR"
            raise MeasurementError("direct I/O could not be tested", where=where, why=why, remedy=remedy) from error

    def fullness(self) -> dict[str, float]:
        """Return name -> used share (0 to 1), for the space, the inodes and each quota.

        Raises MeasurementError if the file system does not answer.
        """
        sizes = self._sizes()
        shares = {str(self.path): sizes.full, f"{self.path} (files)": sizes.full_inodes}
        for quota in sizes.quotas:
            shares[f"{self.path} (quota of {quota.whose})"] = quota.used_bytes / (quota.limit_bytes or math.inf)
            shares[f"{self.path} (files, quota of {quota.whose})"] = quota.used_files / (quota.limit_files or math.inf)
        return {name: share for name, share in shares.items() if share > 0}

    def _sizes(self) -> calls.Sizes:
        return calls.Sizes.of(*self._call("the size of the file system is unknown", "sizes", str(self.path)))

    def _call(self, what: str, name: calls.Call, path: str, *rest: str, remedy: str = "") -> Any:
        try:
            return calls.call(name, path, *rest, ask=self.run)
        except calls.RefusedError as error:
            raise error.as_strakes_error(what, (error.errno == errno.EPERM and self.permission) or remedy) from error


def capture(mount: Mount) -> dict[str, Any]:
    """Return facts about this machine and a mount, with sizes in bytes. Unknown facts are empty or 0."""
    memory, distribution = memory_sizes(), ""
    with suppress(OSError):
        distribution = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    # The field of /proc/cpuinfo with the processor's name depends on the architecture (x86, MIPS, ARM).
    processors = kernel_text(Path("/proc/cpuinfo"))
    cpu = re.search(r"^(?:model name|cpu model|Model|Processor)\s*:\s*(\S.*)", processors, re.MULTILINE)
    return {
        "host": platform.node(),
        "kernel": platform.release(),
        "distribution": distribution,
        "architecture": platform.machine(),
        "cpu_model": cpu[1].strip() if cpu else platform.machine(),
        # processors that this process may use; a container or batch job may limit them
        "cpus": len(os.sched_getaffinity(0)),
        "cpus_of_machine": os.cpu_count() or 0,
        "memory_bytes": memory.get("MemTotal", 0),
        "memory_available_bytes": memory.get("MemAvailable", 0),
        "mount": {
            "mount_point": mount.mount_point,
            "device": mount.source,
            "file_system": mount.file_system,
            "options": [*mount.all_options],
            "root": mount.root,
        },
        "python": platform.python_version(),
        "strakes": __version__,
        "load_average": load_average(),
    }
