"""Complete the catalogue's commands for one file system: fill in its devices, mounts and servers."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.control.knob import PLACEHOLDERS, Knob
from strakes.control.knob_place import KnobPlace, inode_above
from strakes.targets.answers import not_understood
from strakes.targets.block_device import block_device_of
from strakes.targets.command import DEFAULT_TIMEOUT_S, CommandTimeout, Completed, Runner, Servers, share
from strakes.targets.description import Server
from strakes.targets.gluster import SOURCE
from strakes.targets.lustre_lfs import ClientName, getname
from strakes.targets.lustre_tool import queries, read_params
from strakes.targets.target import Target

ROLES = {"metadata server": ("mds",), "data server": ("oss",)}
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")
_SERVERS_S = 12.0  # Limit in seconds for all queries to servers. ``strakes knobs`` must end within 30 s.
_MOST_PLACES = 10_000  # Maximum number of places of a setting. Journals of twice the number would have 30 MB.


class ServerUnreadError(EnvironmentLacksError):
    """The setting of a server could not be read. ``everywhere``: whether no server at all could be read."""

    everywhere = False


def remembering(run: Runner, servers: Servers | None = None) -> Runner:
    """Return a runner that caches the output of each command.

    If a server or a program does not answer in time, it is not asked again. The total time for all servers is limited.
    """
    known: dict[tuple[str, ...], Completed] = {}
    silent: dict[tuple[str, ...], StrakesError] = {}
    words = shlex.split(servers.template) if servers else []
    begun: list[float] = []

    def ask(argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        command, by_server = tuple(argv), bool(words) and argv[0] == words[0]
        way = command[: len(words)] if by_server else command[:1]
        if way in silent:
            raise silent[way]
        if command not in known:
            if by_server:
                begun.append(time.monotonic())
                timeout_s = max(0.1, min(timeout_s, begun[0] + _SERVERS_S - begun[-1]))
            try:
                known[command] = run(command, timeout_s)
            except CommandTimeout as error:
                silent[way] = error
                raise
        return known[command]

    return ask


class Bindings:
    """Properties of one file system, which replace the placeholders of commands."""

    def __init__(self, target: Target, run: Runner | None = None) -> None:
        self.target = target
        self._run = run or target.run

    def places(self, knob: Knob) -> tuple[KnobPlace, ...]:
        """Return all places where a knob is stored. Raises BadInputError if none, StrakesError if a query fails."""
        if knob.by_hand:
            raise BadInputError(f"{knob.name} can only be set by hand", why=knob.meaning, remedy=knob.by_hand)
        if knob.file:
            path = self._text(knob, knob.file)
            if not os.path.exists(path):
                raise self._absent(knob, f"there is no {path}")
            inode = inode_above(path)
            return (KnobPlace(knob.name, path, file=path, answer=knob.answer, field=knob.field, inode=inode),)
        if knob.where in ROLES:
            hosts = self._hosts(knob)
            with queries(len(hosts)) as pool:
                found = list(pool.map(lambda host: self._on_server(knob, host), hosts))
            errors = [each for each in found if isinstance(each, ServerUnreadError)]
            for error in errors:
                error.everywhere = len(errors) == len(hosts)
                raise error
            return tuple(place for places in found if isinstance(places, tuple) for place in places)
        return self._by_words(knob, "")

    def _on_server(self, knob: Knob, host: str) -> tuple[KnobPlace, ...] | ServerUnreadError:
        try:
            return self._by_words(knob, host)
        except BadInputError:
            raise
        except StrakesError as error:
            return self._unread(knob, host, "; ".join(filter(None, (error.what, error.why))))

    def _unread(self, knob: Knob, host: str, why: str) -> ServerUnreadError:
        words = self.words(knob, knob.read)
        command = shlex.join(self.target.servers.argv(host, words) if self.target.servers else words)
        remedy = f"Try: {command} - or leave out --servers."
        return ServerUnreadError("a setting cannot be read", where=host, why=f"{command}: {why}", remedy=remedy)

    def _by_words(self, knob: Knob, host: str) -> tuple[KnobPlace, ...]:
        servers = self.target.servers
        template = servers.template if host and servers else ""
        run = servers.runner(host, self._run) if host and servers else self._run
        read = self.words(knob, knob.read)
        if knob.answer != "lctl":
            write, unset = self.words(knob, knob.write), self.words(knob, knob.unset)
            place = KnobPlace(knob.name, knob.name, "", read, write, unset, knob.answer, knob.field, host, template)
            if knob.cluster:
                place = replace(place, cluster_words=self.words(knob, knob.cluster))
                place = replace(place, cluster=self._cluster or place.cluster_reached(run))
            return (place,)
        params = read_params(run(read))
        if host and params.cut_off and not params.values:
            raise self._unread(knob, host, params.why or "lctl failed")
        if len(params.values) > (most := share(_MOST_PLACES)):
            raise not_understood("lctl get_param", read[-1], f"it has more than {most} parameters")
        if not params.values:
            raise self._absent(knob, params.why or f"lctl does not know {read[-1]}")
        return tuple(
            KnobPlace(knob.name, name, "", (*read[:-1], name), knob.write, (), knob.answer, knob.field, host, template)
            for name in params.values
        )

    def words(self, knob: Knob, words: Sequence[str]) -> tuple[str, ...]:
        """Return a command of the catalogue, with its placeholders filled in."""
        return tuple(each for word in words for each in (self._ceph if word == "{ceph}" else (self._text(knob, word),)))

    def _text(self, knob: Knob, text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: self._value(knob, match[1]), text)

    def _value(self, knob: Knob, name: str) -> str:
        value = str(getattr(self._client, name) if name in ("instance", "file_system") else getattr(self, f"_{name}"))
        if not value or value.startswith("-"):  # Commands would take it for an option.
            lacking = {"device": "DIR is not on one disk", "bdi": "DIR is on a local disk; use queue.read_ahead_kb"}
            raise self._absent(knob, lacking.get(name, f"its {name} is unknown"))
        return value

    def _absent(self, knob: Knob, why: str) -> BadInputError:
        remedy = "List the settings that are available: strakes knobs list DIR"
        return BadInputError(f"{knob.name} is not available here", where=str(self.target.path), why=why, remedy=remedy)

    def _hosts(self, knob: Knob) -> tuple[str, ...]:
        if self.target.servers is None:
            raise self._absent(knob, "the setting is on the servers; give --servers to reach them")
        addresses = [server.address for server in self._servers if server.role in ROLES[knob.where]]
        hosts = dict.fromkeys("localhost" if address == "0@lo" else address.partition("@")[0] for address in addresses)
        if not hosts:
            raise self._absent(knob, f"no {knob.where} of this file system is known")
        return tuple(hosts)

    @cached_property
    def _servers(self) -> tuple[Server, ...]:
        return self.target.describe().servers

    @cached_property
    def _device(self) -> str:
        device = None if self.target.mount.remote else block_device_of(self.target.mount)
        return device.name if device else ""

    @cached_property
    def _bdi(self) -> str:
        # Skip mounts of disks, because the read-ahead of a disk is a separate knob.
        mount = self.target.mount
        return f"{mount.major}:{mount.minor}" if mount.major == 0 else ""

    @cached_property
    def _client(self) -> ClientName:
        return getname(self.target.mount.mount_point).ask(self._run)

    @cached_property
    def _ceph(self) -> tuple[str, ...]:
        from strakes.targets.ceph_tool import access_of

        return (*access_of(self.target.mount).lasting_options, "--connect-timeout", "5")

    @cached_property
    def _cluster(self) -> str:
        return self.target.cluster_id()

    @cached_property
    def _volume(self) -> str:
        return match["volume"] if (match := SOURCE.fullmatch(self.target.mount.source)) else ""


def knobs_of(target: Target, knobs: Sequence[Knob]) -> tuple[Knob, ...]:
    """Return the knobs of a target's file system and of the kernel."""
    kind = "" if target.mount.of_another_user else target.mount.file_system
    return tuple(knob for knob in knobs if kind in knob.file_systems or "*" in knob.file_systems)
