"""Faults of the rank-0 metadata server of CephFS: kill it, stop it, or let the monitors replace it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.control.drill_undo import RepairLab
from strakes.control.fault import Ask, Fault, Seen, looks
from strakes.failover.timeline import Moment
from strakes.lab.ceph_monitor import Monitors
from strakes.lab.manager import all_labs
from strakes.targets.answers import understood
from strakes.targets.calls import mount_of
from strakes.targets.ceph_tool import FILE_SYSTEMS, Access, access_of, ceph
from strakes.targets.command import run
from strakes.targets.description import TargetRecovery
from strakes.targets.registry import detect

_LOOK_EVERY_S = 0.1
_FLUSH_S = 120.0
_NOT_JOINABLE_FLAG = 1  # CEPH_MDSMAP_NOT_JOINABLE in the map of a file system: no standby gets a rank.
_ACTIVE, _STANDBYS = "up:active", ("up:standby", "up:standby-replay")
_USUAL_CONFIGURATION = "/etc/ceph/ceph.conf"


@dataclass(frozen=True)
class CephDaemon:
    """Metadata server as listed by the monitors. ``rank``: -1 for a standby."""

    name: str
    state: str
    rank: int


class MetadataServerFault(Fault):
    """Fault of the metadata server with rank 0. Raises BadInputError if there is no standby server."""

    def __init__(self, ask: Ask) -> None:
        real, labs = ask.directory.resolve(), all_labs(lambda _: None)
        self.lab = next((lab for lab in labs if lab.kind == "ceph" and real.is_relative_to(lab.mount_point)), None)
        if not is_cephfs(ask.directory):
            remedy = "On other file systems, give a command: --fault-command 'ssh mds1 reboot -f'"
            raise BadInputError("this fault works only on CephFS", where=str(ask.directory), remedy=remedy)
        given = access_of(mount_of(ask.directory)).configuration or os.environ.get("CEPH_CONF") or _USUAL_CONFIGURATION
        self.config, target = Path(self.lab.facts["ceph_conf"] if self.lab else given), detect(ask.directory)
        self._cluster = target.cluster_id()
        with Monitors(self.config, self._cluster) as monitors:
            found = _file_systems(monitors)
        self._file_system = target.describe().file_system_name if len(found) > 1 else "".join(found)
        if self._file_system not in found:
            why = f"the cluster has {', '.join(found) or 'no file system'}"
            raise BadInputError("the file system that DIR is on is unknown", where=str(ask.directory), why=why)
        flags, self.before = found[self._file_system]
        victim = next((server for server in self.before.values() if server.rank == 0 and server.state == _ACTIVE), None)
        said = [f"{server.name} is {server.state}" for server in self.before.values()]
        said += ["joinable is false"] if (closed := flags & _NOT_JOINABLE_FLAG) else []
        if victim is None or closed or not any(one.state in _STANDBYS and one.rank < 1 for one in self.before.values()):
            what = "the file system has no standby metadata server that may take over"
            remedy = "Start a standby, or wait for the end of the maintenance (ceph fs set NAME joinable true)."
            raise BadInputError(what, where=self._file_system, why=", ".join(said), remedy=remedy)
        self.victim = victim
        self._changes: list[tuple[float, CephDaemon]] = []

    def level(self) -> None:
        """Flush the journal, so that the new server replays an empty journal in every drill."""
        words = ("tell", f"mds.{self.victim.name}", "flush", "journal")
        ceph(Access(("--conf", str(self.config))), *words, limit_s=_FLUSH_S).ask(run)

    def watch(self, seen: Seen, stop: threading.Event) -> None:
        known: Mapping[str, CephDaemon] = self.before
        with Monitors(self.config, self._cluster) as monitors:
            for _ in looks(stop, _LOOK_EVERY_S):
                now, at_s = _file_systems(monitors).get(self._file_system, (0, {}))[1], time.time()
                for name in sorted(known.keys() | now.keys()):
                    server = now.get(name, CephDaemon(name, "gone", -1))
                    if server != known.get(name):
                        self._changes.append((at_s, server))
                        rank = f", rank {server.rank}" if server.rank >= 0 else ""
                        seen(Moment(at_s, f"mds.{name}", f"{server.state}{rank}"))
                known = now

    def recoveries(self) -> tuple[TargetRecovery, ...]:
        recoveries = []
        for name in dict.fromkeys(server.name for _, server in self._changes if server.state == _ACTIVE):
            changes = ((at_s, server) for at_s, server in self._changes if server.name == name and server.rank >= 0)
            steps = [(at_s, server) for at_s, server in changes if server.state not in _STANDBYS]
            took_s = round(max(at_s for at_s, server in steps if server.state == _ACTIVE) - steps[0][0], 1)
            last = steps[-1][1]
            recoveries.append(TargetRecovery(f"mds.{name}, rank {last.rank}", last.state, took_s))
        return tuple(recoveries)

    def lacking(self) -> str:
        with Monitors(self.config, self._cluster) as monitors:
            now = _file_systems(monitors).get(self._file_system, (0, {}))[1]
        wanted, there = (sorted(server.state for server in servers.values()) for servers in (self.before, now))
        return "" if wanted == there else f"the metadata servers are {', '.join(there)}, but were {', '.join(wanted)}"


class SignalServer(MetadataServerFault):
    """Send a signal to the metadata server with rank 0. ``word``: KILL, or STOP: it keeps its connections."""

    def __init__(self, ask: Ask, word: str) -> None:
        super().__init__(ask)
        self._word = word
        role = f"mds.{self.victim.name}"
        if self.lab is None:
            ssh = "ssh HOST systemctl"
            kill, start = (f"'{ssh} {what} ceph-mds@{self.victim.name}'" for what in ("kill -s KILL", "start"))
            what = "strakes can kill or stop a metadata server only in a lab on this machine"
            remedy = f"Elsewhere, give the commands: --fault-command {kill} --restore-command {start}"
            raise BadInputError(what, where=str(ask.directory), remedy=remedy)
        self._pid = next((process.pid for process in self.lab.processes if process.role == role and process.alive), 0)
        if not self._pid:
            raise BadInputError(f"{role} is active but was not started by this lab", where=self.lab.name)
        self.undo = RepairLab(self.lab.directory, self.victim.name)
        self.text = f"kill -{word} {role} (process {self._pid}), the active metadata server"

    def strike(self) -> tuple[Moment, ...]:
        os.kill(self._pid, signal.Signals[f"SIG{self._word}"])
        return (Moment(time.time(), "drill", f"kill -{self._word} mds.{self.victim.name}"),)


class FailServer(MetadataServerFault):
    """Let the monitors replace the metadata server with rank 0, which restarts as a standby."""

    undo = None

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask)
        self.text = f"ceph mds fail {self.victim.name}, the active metadata server (it restarts as a standby)"

    def strike(self) -> tuple[Moment, ...]:
        with Monitors(self.config, self._cluster) as monitors:
            began = time.time()
            monitors.command("mds fail", role_or_gid=self.victim.name)
        return (Moment(began, "drill", f"ceph mds fail {self.victim.name}"),)


def is_cephfs(directory: Path) -> bool:
    """Return whether a directory is on a CephFS mount."""
    mount = mount_of(directory)
    return mount.file_system in FILE_SYSTEMS and not mount.of_another_user


def _file_systems(monitors: Monitors) -> dict[str, tuple[int, dict[str, CephDaemon]]]:
    """Return file system -> flags of its map, and its metadata servers and all standbys by name."""
    dump = monitors.command("fs dump")
    with understood("ceph fs dump"):
        found = {}
        for mdsmap in (each["mdsmap"] for each in dump["filesystems"]):
            infos = (*mdsmap["info"].values(), *dump["standbys"])
            servers = (CephDaemon(str(info["name"]), str(info["state"]), int(info["rank"])) for info in infos)
            found[str(mdsmap["fs_name"])] = int(mdsmap["flags"]), {server.name: server for server in servers}
        return found
