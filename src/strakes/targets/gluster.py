"""GlusterFS: volume, bricks and free space from the ``gluster`` command, and counters if the volume is profiled."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

from strakes.base.errors import EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.files import read_kept
from strakes.base.finite import whole
from strakes.base.processes import trusted_processes
from strakes.base.units import counted
from strakes.targets.answers import from_xml, understood
from strakes.targets.command import Command, Completed
from strakes.targets.description import Description, Limit, Observation, Server, StorageTarget
from strakes.targets.mountinfo import Mount
from strakes.targets.remote import RemoteTarget, add_up

# Source of a mount: HOSTS:/VOLUME/DIRECTORY. Exclude names with a leading hyphen, which commands take for options.
SOURCE = re.compile(r"(?P<hosts>(?!-)[\w.,:\[\]%-]+):/?(?P<volume>(?!-)[\w-]+)(/.*)?", re.DOTALL)
_SOCKET = re.compile(r"^[ \t]*option[ \t]+glusterd-sockfile[ \t]+(\S+)", re.MULTILINE)
_MOST_BYTES = 1 << 20
_SIZES = ("sizeTotal", "sizeFree", "inodesTotal", "inodesFree")
_ID, _NODES = "./volInfo/volumes/volume/id", "./volStatus/volumes/volume/node"


def gluster(words: Sequence[str], *options: str) -> Command[ElementTree.Element]:
    """Return a ``gluster`` command with XML output.

    Raises EnvironmentLacksError if the daemon cannot be reached, and MeasurementError if the command fails.
    """

    def read(done: Completed) -> ElementTree.Element:
        where = f"gluster {' '.join(words)}"
        if not done.stdout.lstrip().startswith("<"):
            remedy = "Run strakes on a server of the volume, or give --servers to reach one."
            what = "the Gluster volume cannot be queried"
            raise EnvironmentLacksError(what, where=where, why=done.last_line, remedy=remedy)
        root = from_xml(done.stdout, where)
        if _text(root, "opRet") not in ("0", ""):
            why = _text(root, "opErrstr") or f"exit status {done.status}"
            raise MeasurementError("the GlusterFS volume does not report its state", where=where, why=why)
        return root

    return Command(("gluster", "--mode=script", *options, "--xml", *words), read)


class GlusterTarget(RemoteTarget):
    """A GlusterFS mount. The ``gluster`` command queries the volume through the server in the mount's source."""

    cannot = (
        ("set the layout of files", "GlusterFS places files by a hash of their names; shards are a volume option"),
        ("place directories", "every directory is on all bricks"),
    )

    @classmethod
    def claims(cls, mount: Mount) -> bool:
        return SOURCE.fullmatch(mount.source) is not None

    def _parts(self, known: Description) -> Description:
        return describe(self._volume, self._ask("volume", "status", self._name, "detail"))

    def observe(self) -> Observation:
        with suppress(StrakesError):
            return counters(self._profile())
        return {}

    def limits(self) -> tuple[Limit, ...]:
        try:
            self._profile()
        except StrakesError as error:
            start = f"gluster volume profile {self._name} start, on a server"
            remedy = start if isinstance(error, MeasurementError) else error.remedy
            return (*super().limits(), Limit("read counters of servers", f"{error.why or error.what} ({remedy})"))
        return super().limits()

    def cluster_id(self) -> str:
        return _text(self._volume, _ID)

    @property
    def _server(self) -> str:
        return SOURCE.sub(r"\g<hosts>", self.mount.source).split(",")[0]

    @property
    def _name(self) -> str:
        return SOURCE.sub(r"\g<volume>", self.mount.source)

    @cached_property
    def _volume(self) -> ElementTree.Element:
        return self._ask("volume", "info", self._name)

    def _ask(self, *words: str) -> ElementTree.Element:
        return gluster(words, f"--remote-host={self._server}").ask(self.run_near_servers)

    def _profile(self) -> ElementTree.Element:
        words = ("volume", "profile", self._name, "info", "cumulative")
        if self.servers is not None:
            return gluster(words).ask(self.servers.runner(self._server, self.run))
        if self._own_daemon is None:
            what = "the profile of the GlusterFS volume cannot be read"
            why = "only servers report profiles, and this machine is not a server of the volume"
            remedy = "Give --servers to reach the servers of the volume."
            raise EnvironmentLacksError(what, why=why, remedy=remedy)
        return gluster(words, *self._own_daemon).ask(self.run)

    @cached_property
    def _own_daemon(self) -> tuple[str, ...] | None:
        for options in daemons():
            with suppress(StrakesError):
                volume = gluster(("volume", "info", self._name), *options).ask(self.run)
                if _text(volume, _ID) == self.cluster_id():
                    return options
        return None


@understood("gluster")
def describe(volume: ElementTree.Element, status: ElementTree.Element) -> Description:
    """Return the description of a GlusterFS volume. Raises MeasurementError if the output names no volume."""
    volume_info = volume.find("./volInfo/volumes/volume")
    if volume_info is None:
        raise MeasurementError("the volume is unknown", why="the output of gluster names no volume")
    bricks = []
    # The status lacks the bricks of servers that are down (glusterd_op_status_volume() in glusterd-op-sm.c).
    nodes = {f"{_text(node, 'hostname')}:{_text(node, 'path')}": node for node in status.iterfind(_NODES)}
    names = [_text(brick, "name") for brick in volume_info.iterfind("./bricks/brick")]
    for number, name in enumerate(dict.fromkeys(filter(None, (*names, *nodes)))):
        node, host = nodes.get(name, ElementTree.Element("node")), name.partition(":/")[0]
        total, free, inodes, free_inodes = (_number(node, size) for size in _SIZES)
        state = {"1": "online", "": "not reported"}.get(_text(node, "status"), "offline")
        bricks.append(StorageTarget(name, number, host, state, total, free, inodes, free_inodes))
    hosts = Counter(brick.server for brick in bricks)
    online = Counter(brick.server for brick in bricks if brick.state == "online")
    options = {_text(option, "name"): _text(option, "value") for option in volume_info.iterfind("./options/option")}
    copies = _number(volume_info, "replicaCount") or 1
    copied = "one copy" if copies == 1 else f"{copies} copies"
    shown = ("features.shard", "performance.", "cluster.")
    return Description(
        file_system_name=_text(volume_info, "name"),
        version="",
        servers=tuple(
            Server(host, "brick server", host, f"{online[host]} of {counted(number, 'brick')} online")
            for host, number in hosts.items()
        ),
        data_targets=tuple(bricks),
        notes=(
            f"Volume of type {_text(volume_info, 'typeStr')}: {counted(len(bricks), 'brick')}, {copied} of every file.",
            *(f"{name} = {value}" for name, value in options.items() if name.startswith(shown)),
        ),
    )


@understood("gluster")
def counters(profile: ElementTree.Element) -> dict[str, dict[str, float]]:
    """Return brick -> counter -> value since profiling began or the brick's server started."""
    seen = {}
    for brick in profile.iterfind("./volProfile/brick"):
        own = brick.find("cumulativeStats")
        if own is None:
            continue
        hits = {_text(fop, "name"): float(_number(fop, "hits")) for fop in own.iterfind("./fopStats/fop")}
        common = add_up(hits)
        common["md.requests"] = sum(value for name, value in common.items() if name.startswith("md."))
        common["data.read_bytes"] = float(_number(own, "totalRead"))
        common["data.write_bytes"] = float(_number(own, "totalWrite"))
        seen[_text(brick, "brickName")] = common
    return seen


def daemons() -> list[tuple[str, ...]]:
    """Return, for each management daemon (glusterd) on this node, the ``gluster`` options that select its socket."""
    socket_options: list[tuple[str, ...]] = []
    for _, words in trusted_processes("glusterd"):
        files = [Path(words[words.index("-f") + 1])] if "-f" in words[:-1] else []
        with suppress(OSError, StrakesError):
            texts = [os.fsdecode(read_kept(file, _MOST_BYTES)) for file in files]
            sockets = [match[1] for text in texts if (match := _SOCKET.search(text))]
            socket_options.append((f"--glusterd-sock={sockets[0]}",) if sockets else ())
    return socket_options


def _text(element: ElementTree.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _number(element: ElementTree.Element, path: str) -> int:
    number = whole(_text(element, path) or "0")
    if number < 0:
        raise ValueError(f"the value of {path} is negative")
    return number
