"""A mounted Lustre file system. Servers are queried only with --servers, or if this node is the server."""

from __future__ import annotations

import os
import platform
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from strakes.base.errors import EnvironmentLacksError, StrakesError
from strakes.base.foreign_text import shown_command
from strakes.targets import calls, lustre_servers
from strakes.targets import lustre_layouts as layouts
from strakes.targets.command import Command, CommandTimeout, Runner, Servers, run
from strakes.targets.description import (
    ConnectionChange,
    Description,
    Interruption,
    Layout,
    Limit,
    Observation,
    Placement,
    Striping,
    TargetRecovery,
)
from strakes.targets.lustre_lfs import VERSION, ClientName, getname, pool_list, quota, target_list
from strakes.targets.lustre_parameters import (
    FULL,
    IDLE,
    UNREACHED_STATES,
    StateChange,
    States,
    continued,
    lost_changes,
    service_addresses,
    working_address,
)
from strakes.targets.lustre_servers import (
    NOTHING,
    THIS_NODE,
    addresses,
    ask_health,
    host_of,
    hosts,
    state_query,
    states,
    target_in,
    ways_to_servers,
)
from strakes.targets.lustre_tool import Answers, get_param, of_mount
from strakes.targets.mountinfo import Mount
from strakes.targets.target import LostServer, Target, said

T = TypeVar("T")

_PROBE = ".strakes-layout"
# If a machine dies, a client reports the losses of its targets within this number of seconds of each other.
_FOLLOW_S = 5.0
# Maximum number of stripes of a file (LOV_MAX_STRIPE_COUNT; Lustre Operations Manual).
_MOST_STRIPES = 2000
# A client detects a dead server on all connections to this server within this number of seconds.
NOTICE_S = 16.0


class LustreTarget(Target):
    """A Lustre mount. All calls have a time limit."""

    def __init__(self, path: Path, mount: Mount, *, servers: Servers | None = None, runner: Runner = run) -> None:
        super().__init__(path, mount, servers=servers, runner=runner)
        self._connections = Connections(self.file_system_name, self._instance)
        self._hung: dict[str, tuple[float, StrakesError]] = {}

    def _answers(self) -> Answers:
        return Answers(self.run, self._hung)

    @classmethod
    def claims(cls, mount: Mount) -> bool:
        # Mounted devices of a server also have the type lustre. Only the source of a client's mount contains ":/".
        return ":/" in mount.source

    def _sizes(self) -> calls.Sizes:
        sizes = super()._sizes()
        with suppress(StrakesError):
            return sizes.within([self._ask(quota(str(os.getuid()), str(self.path)))])
        return sizes

    def controls(self) -> tuple[str, ...]:
        return (
            "stripe size, count, first target and pool of new files; composite, on MDTs, overstriped (lfs setstripe)",
            "metadata targets of new directories, by hand or striped (lfs mkdir, lfs setdirstripe; root)",
        )

    def describe(self) -> Description:
        answers = self._answers()
        try:
            name = self._name
        except EnvironmentLacksError as error:
            name_in_mount = self.mount.source.partition(":/")[2]
            return replace(super().describe(), file_system_name=name_in_mount, notes=(said(error),))
        return lustre_servers.describe(answers, str(self.path), self.mount, name, self.servers)

    def layout(self, path: Path) -> Layout | None:
        with suppress(EnvironmentLacksError):
            return self._ask(layouts.getstripe("-d", str(path)))
        return None

    def set_layout(self, directory: Path, wanted: Layout) -> Layout:
        self._ask(layouts.setstripe(str(directory), wanted))
        probe = str(directory / _PROBE)
        what = "no file can be made with this layout"
        self._call(what, "create", probe)
        try:
            return self._ask(layouts.getstripe(probe))
        finally:
            self._call(what, "unlink", probe)

    def striping(self) -> Striping | None:
        try:
            number = len(self._ask(target_list("osts", str(self.path))))
        except StrakesError:
            return None
        kinds = layout_kinds(number)
        with suppress(StrakesError):
            kinds |= {f"pool {name}": f"-c -1 -p {name}" for name in self._ask(pool_list(self.file_system_name))}
        with suppress(StrakesError):
            now = self._ask(layouts.getstripe("-d", str(self.path)))
            if any(part.mirror for part in now.components):
                kinds["mirrored as it is"] = " ".join(layouts.options_of(now))
        return Striping(number, layouts.STRIPE_UNIT_BYTES, kinds)

    def placement(self, directory: Path) -> Placement | None:
        path = str(directory)
        return layouts.placement(self._ask(layouts.dir_stripe(path)), self._ask(layouts.dir_stripe("-D", path)))

    def make_directory(self, parent: Path, name: str, wanted: Placement) -> Placement:
        path = str(parent / name)
        if wanted.kind == "inherit":
            self._call("the directory was not made", "mkdir", path)
        else:
            self._ask(layouts.mkdir(path, targets=wanted.metadata_targets, count=wanted.count))
        if wanted.inherited:
            self._ask(layouts.set_default(path, wanted.count))
        given = self.placement(Path(path)) or wanted
        # lfs getdirstripe does not show whether the targets were chosen manually, so compare them with the request.
        manual = wanted.kind == "manual" and given.metadata_targets == wanted.metadata_targets
        return replace(given, kind="manual") if manual else given

    def observe(self) -> Observation:
        try:
            name = self._name
        except EnvironmentLacksError:
            return {}
        seen, unread = lustre_servers.observe(self.run, name, self.servers)
        self.unread = {
            host: f"The counters of server {host} cannot be read: {shown_command(self._words(host))} ({why})."
            for host, why in unread.items()
        }
        return seen

    def trouble(self) -> tuple[str, ...]:
        answers = self._answers()
        if (lost := self._connections.lost(answers)) is None and (why := self._connections.why_unread(answers)):
            return (f"strakes cannot detect dead servers, because it cannot read the states of connections: {why}.",)
        return _sentences(lost) or self._health(answers)[1]

    def named(self, error: calls.UnansweredError) -> calls.UnansweredError:
        last_s = ends_s = time.monotonic() + NOTICE_S
        names = set[str]()
        while not error.names_servers:
            lost, now_s = self._connections.lost(self._answers()), time.monotonic()
            if lost is not None and {*lost} != names:
                names, ends_s = {*lost}, min(last_s, now_s + _FOLLOW_S)
            if lost is None or now_s >= ends_s:
                return error.naming(_sentences(lost))
            time.sleep(1.0)
        return error

    def _silent_targets(self) -> tuple[str, ...]:
        return _sentences(self._connections.lost(self._answers()))

    def lost_servers(self) -> Mapping[str, LostServer] | None:
        lost = self._connections.lost(self._answers())
        return lost and {name: server for name, server in lost.items() if not server.answers}

    def _health(self, answers: Answers) -> tuple[tuple[TargetRecovery, ...], tuple[str, ...]]:
        on = hosts(addresses(answers, self.file_system_name, self._instance).values())
        return ask_health(answers, ways_to_servers(self.run, self.servers, on), self.file_system_name)

    def connection_changes(self) -> tuple[ConnectionChange, ...]:
        known = self._connections.states(self._answers())
        return tuple(
            ConnectionChange(name, change.unix_s, change.state)
            for name, of in known.items()
            for change in lost_changes(of.changes)
        )

    def recoveries(self) -> tuple[TargetRecovery, ...]:
        return self._health(self._answers())[0]

    def interruptions(self) -> tuple[Interruption, ...]:
        known = self._connections.states(self._answers())
        return tuple(lost for name, of in known.items() for lost in of.interruptions(name))

    def server_addresses(self) -> dict[str, str]:
        """Return target -> address of its present server, metadata targets first."""
        return addresses(self._answers(), self.file_system_name, self._instance)

    def servers_of(self, name: str) -> tuple[str, ...]:
        """Return the hosts configured for a target, or all server hosts if the configuration is unreadable."""
        imports = self._answers().get(get_param(f"*.{name}-*.import"), NOTHING).values.values()
        configured = hosts(address for text in imports for address in service_addresses(text))
        return configured or hosts(self.server_addresses().values())

    @property
    def file_system_name(self) -> str:
        return self.mount.source.partition(":/")[2].partition("/")[0]

    def _instance(self) -> str:
        return self._name.instance

    def limits(self) -> tuple[Limit, ...]:
        unread = self._unread()
        limits = [Limit(f"read counters of server {host}", why) for host, why in unread.items()]
        if self.servers is None and unread:
            why = "; ".join(dict.fromkeys(unread.values()))
            limits = [Limit("read counters of servers", f"{why} ({', '.join(unread)})")]
        if os.geteuid() != 0:
            root = "Lustre lets only root do that"
            group = f"{root}, or a group that mdt.*.enable_remote_dir_gid names on the servers"
            limits += [Limit("place directories", group), Limit("read this client's counters", root)]
        try:
            targets = self._ask(target_list("mdts", str(self.path)))
        except StrakesError as error:
            limits.append(Limit("describe targets, set layouts, place directories", said(error)))
        else:
            if len(targets) == 1:
                limits.append(Limit("spread directories", "there is only one metadata target"))
        return tuple(limits)

    def require_answers(self) -> None:
        for command in (VERSION, getname(self.mount.mount_point)):
            try:
                command.ask(self.run)
            except CommandTimeout as error:
                # Use lctl, which reads only from the kernel. lfs getname may wait for a dead server.
                lost = () if command is VERSION else self._silent_targets()
                if lost:
                    dead = calls.UnansweredError(error.what, where=error.where, why=error.why, remedy=error.remedy)
                    raise dead.naming(lost) from error
                what, why = f"{command.argv[0]} hangs on {platform.node()}", f"{error.what}: {error.why}"
                remedy = "Run it by hand, and look for its cause in the kernel's log (dmesg)."
                raise EnvironmentLacksError(what, where=error.where, why=why, remedy=remedy) from error
            except StrakesError:
                continue
        for where, why in (self._unread() if self.servers else {}).items():
            what, remedy = "a server cannot be read", f"Try: {shlex.join(self._words(where))} - or leave out --servers."
            raise EnvironmentLacksError(what, where=where, why=why, remedy=remedy)

    def _words(self, host: str) -> tuple[str, ...]:
        words = ("lctl", "get_param", "mdt.*.md_stats", "obdfilter.*.stats")
        return words if self.servers is None or host == THIS_NODE else self.servers.argv(host, words)

    def _unread(self) -> dict[str, str]:
        answers = self._answers()
        on = hosts(addresses(answers, self.file_system_name, self._instance).values())
        if not on:
            return {THIS_NODE: "; ".join(answers.notes) or "lctl shows only root on which servers the targets are"}
        ways = ways_to_servers(self.run, self.servers, on)
        not_reached = {host: "give --servers to reach it" for host in on if host not in ways}
        return not_reached | lustre_servers.server_counters(ways, self.file_system_name)[1]

    @cached_property
    def _name(self) -> ClientName:
        return getname(self.mount.mount_point).ask(self.run)

    def _ask(self, command: Command[T]) -> T:
        try:
            return command.ask(self.run)
        except CommandTimeout as error:
            why = "; ".join((error.why, *self._silent_targets()))
            raise CommandTimeout(error.what, where=error.where, why=why, remedy=error.remedy) from error

    def _call(self, what: str, name: calls.Call, path: str, *rest: str, remedy: str = "") -> Any:
        try:
            return super()._call(what, name, path, *rest, remedy=remedy)
        except calls.UnansweredError as error:
            raise self.named(error) from None


def _sentences(lost: Mapping[str, LostServer] | None) -> tuple[str, ...]:
    return tuple(server.sentence(name) for name, server in (lost or {}).items())


def layout_kinds(data_targets: int) -> dict[str, str]:
    """Return name of a layout -> options of ``lfs setstripe``, for progressive, overstriped and similar layouts."""
    few = max(1, min(4, data_targets // 2))
    kinds = {
        "progressive": f"-E 1M -c 1 -E 64M -c {few} -E -1 -c -1",
        "data on metadata target": "-E 1M -L mdt -E -1 -c 1",
    }
    # With overstriping, a file may have more stripes than there are targets.
    if data_targets < _MOST_STRIPES:
        kinds["overstriped"] = f"-C {min(2 * data_targets, _MOST_STRIPES)}"
    return kinds


class Connections:
    """The connections of a Lustre mount, with state changes and servers that the kernel no longer reports.

    After a loss, the kernel reports the server to which it tries to connect. The lost server is the last connected one
    or, if unknown, any configured one. A server is alive if another connection to it is FULL NOTICE_S s after the loss.
    """

    def __init__(self, file_system: str, ask_instance: Callable[[], str]) -> None:
        self._file_system, self._ask_instance = file_system, ask_instance
        self._changes: dict[str, tuple[StateChange, ...]] = {}
        self._read: Mapping[str, States] = {}
        self._last: dict[str, str] = {}
        self._possible: dict[str, tuple[str, ...]] = {}

    def states(self, answers: Answers) -> dict[str, States]:
        """Return target -> states of its connection, including past changes that the kernel no longer lists."""
        known = states(answers, self._file_system, self._ask_instance)
        for name, of in known.items():
            self._changes[name] = continued(self._changes.get(name, ()), of.changes)
        return {name: replace(of, changes=self._changes[name]) for name, of in known.items()}

    def lost(self, answers: Answers) -> dict[str, LostServer] | None:
        """Return Lustre target -> server that does not answer, or None if the kernel shows no connection states."""
        known = self.states(answers)
        if not known:
            return None
        if known != self._read:
            self._read = known
            self._read_servers(answers, known)
        now_s = time.time()
        connected = {self._last[name]: name for name, of in known.items() if of.current == FULL and name in self._last}
        lost = {name: self._lost(name, of, connected, now_s) for name, of in known.items() if of.lost(now_s)}
        # An idle connection does not notice the loss of its server, so other connections to this server decide.
        dead = {server.host for server in lost.values() if not server.refuses and not server.answers} - {*connected}
        return lost | {
            name: LostServer(self._last[name], f"{IDLE}, and its server is dead")
            for name, of in known.items()
            if of.current == IDLE and self._last.get(name) in dead
        }

    def _lost(self, name: str, of: States, connected: Mapping[str, str], now_s: float) -> LostServer:
        on = (self._last[name],) if name in self._last else self._possible.get(name, ())
        silent = [host for host in on if host not in connected]
        state = of.in_words(now_s)
        if on and not silent and now_s - (of.not_working_since() or 0.0) > NOTICE_S:
            state += f"; {connected[on[0]]} on its server {on[0]} is connected"
        elif not silent:
            silent = [*on]
        return LostServer(" or ".join(silent), state, of.refused(now_s), of.current not in UNREACHED_STATES)

    def why_unread(self, answers: Answers) -> str:
        """Return why connection states cannot be read although this user should be able to, or ""."""
        params = answers.get(state_query(self._file_system), NOTHING)
        if params.cut_off and (self._read or os.geteuid() == 0):
            return params.why or "lctl get_param fails"
        return "; ".join(answers.notes) if self._read or answers.hangs("lctl") or answers.misread else ""

    def _read_servers(self, answers: Answers, known: Mapping[str, States]) -> None:
        names = (f"{kind}.{self._file_system}-*.import" for kind in ("mdc", "osc"))
        values = answers.get(get_param(*names), NOTHING).values
        for parameter, text in of_mount(values, self._file_system, self._ask_instance).items():
            name, address = target_in(parameter), working_address(text)
            self._possible[name] = hosts(service_addresses(text))
            if address and name in known and known[name].working:
                self._last[name] = host_of(address)
