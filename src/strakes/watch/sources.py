"""Sources of counters for a live watch."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from strakes.base.errors import StrakesError
from strakes.targets.command import Runner, Servers, run
from strakes.targets.description import SERVER, SINCE, DataTargetState, Interruption, Observation
from strakes.targets.local import LocalTarget
from strakes.targets.lustre_lfs import getname
from strakes.targets.lustre_servers import addresses, hosts, ways_to_servers
from strakes.targets.lustre_target import LustreTarget
from strakes.targets.lustre_tool import Answers, get_param
from strakes.targets.target import Target
from strakes.watch.lustre import CLIENT_PARAMETERS, SERVER_PARAMETERS, disk_lines, reading_of
from strakes.watch.probing import MountCheck, describe_failure
from strakes.watch.reading import DATA_TARGETS, DISKS, METADATA_TARGETS, CounterReading, Work

_JOBS = ".job_stats"
# If counters show which server serves each target, only every fourth reading includes the outages. With every
# second reading, the processor time would double.
_WAITS_EACH = 4
_FULL_EACH_S = 120.0
# Readings may use 0.7 % of a processor, averaged over 4 readings. If readings use more, the interval between readings
# grows from 30 s up to 300 s.
_EVERY_S, _MOST_SHARE, _READINGS, _SELDOM_S = 30.0, 0.007, 4, 300.0


def _spent_s() -> float:
    return sum(os.times()[:4])


class CounterSource(Protocol):
    """Source of readings. Errors are listed in ``missing`` of a reading, not raised."""

    name: str
    every_s: float

    def read(self, time_s: float) -> CounterReading:
        """Return the reading at ``time_s`` (Unix time)."""

    def lacking(self, reading: CounterReading) -> tuple[str, ...]:
        """Return a message for each kind of event that cannot be detected from the counters in this first reading."""


@dataclass
class LustreSource:
    """Source that reads Lustre's counters by ``lctl`` on one machine: a client, a server, or both."""

    name: str
    ask: Runner
    parameters: tuple[str, ...]
    disks: bool
    every_s: float = 10.0
    alone: bool = False
    _jobs_s: float = 0.0

    def read(self, time_s: float) -> CounterReading:
        """Read all Lustre parameters by one command. If job statistics are large, most readings omit them."""
        before_s = _spent_s()
        jobs = not 0 < self._jobs_s - time_s <= _SELDOM_S
        wanted = [parameter for parameter in self.parameters if jobs or not parameter.endswith(_JOBS)]
        try:
            params = get_param(*wanted).ask(self.ask)
            disks = disk_lines(self.ask(("cat", "/proc/diskstats")).stdout) if self.disks else {}
        except StrakesError as error:
            return CounterReading(self.name, time_s, missing=(describe_failure(error),))
        reading = reading_of(self.name, time_s, params, disks)
        if jobs:
            self._jobs_s = time_s + min((_spent_s() - before_s) / _MOST_SHARE, _SELDOM_S)
        return reading

    def lacking(self, reading: CounterReading) -> tuple[str, ...]:
        """Return a message for each kind of event that this machine's counters cannot show."""
        served, elsewhere = reading.work.keys() - {DISKS}, not self.alone
        lines = {
            "slow targets: no counters of servers here; give the servers with --servers": served or elsewhere,
            "slow targets: the counters of servers have no service times": not served or reading.has_service_times,
            "who causes the load: no job_stats here (set jobid_var on the servers)": reading.jobs or elsewhere,
            "outages: lctl shows neither serving targets nor connections to targets here": reading.serving
            or reading.connected
            or elsewhere,
        }
        return tuple(line for line, there in lines.items() if not there)


@dataclass
class TargetSource:
    """Source for the server counters and used space of any kind of file system."""

    name: str
    target: Target
    every_s: float = _EVERY_S
    probed: bool = True
    _cost_s: float = 0.0
    _numbers: dict[str, tuple[float, float]] = field(default_factory=dict)
    _servers: dict[str, float | None] = field(default_factory=dict)
    _changed_s: float = -math.inf
    _waits_s: float = -math.inf
    _full_s: float = -math.inf

    def __post_init__(self) -> None:
        self._mounted = MountCheck(self.target.path)

    def read(self, time_s: float) -> CounterReading:
        """Return counters, interruptions and used space. If reading takes much processor time, increase ``every_s``."""
        if why_not := self._mounted.why_not():
            return CounterReading(self.name, time_s, missing=(why_not,))
        before_s = _spent_s()
        reading = self._read(time_s)
        self._cost_s += (_spent_s() - before_s - self._cost_s) / _READINGS
        self.every_s = min(max(_EVERY_S, self._cost_s / _MOST_SHARE), _SELDOM_S)
        return reading

    def _read(self, time_s: float) -> CounterReading:
        self._numbers = {} if len(self._numbers) > 10_000 else self._numbers  # Names may not end (watch.py).
        missing: tuple[str, ...] = ()
        observation: Observation = {}
        waits: tuple[Interruption, ...] = ()
        clients: Mapping[str, float] = {}
        full = {}
        states: Mapping[str, DataTargetState] = {}
        try:
            observation = self.target.observe()
            states = self.target.data_target_states()
            full = {name: state.used for name, state in states.items() if state.used is not None}
            if self._waits_due(time_s, observation):
                waits = self.target.interruptions()
            clients = self.target.client_requests()
            # fullness() starts a process, so call it rarely if a probe tests the file system.
            if not self.probed or not 0 <= time_s - self._full_s < _FULL_EACH_S:
                full |= self.target.fullness()
                self._full_s = time_s
        except StrakesError as error:
            missing = (describe_failure(error),)
        group = DISKS if isinstance(self.target, LocalTarget) else DATA_TARGETS
        work: dict[str, dict[str, Work]] = {}
        serving = {name: 0.0 for name, state in states.items() if state.serving}
        for target, counters in observation.items():
            if counters.get(SERVER) is not None:
                serving[target] = self._since(target, counters[SERVER], time_s)
            elif SINCE in counters:
                serving[target] = counters[SINCE]
            requests = counters.get("data.read_requests", 0.0) + counters.get("data.write_requests", 0.0)
            requests = counters.get("data.waited_requests", requests)
            busy = counters.get("data.waited_s", counters.get("data.busy_s"))
            if busy is not None:
                work.setdefault(group, {})[target] = Work(requests, busy)
            if "md.waited_s" in counters:
                done = Work(counters.get("md.requests", 0.0), counters["md.waited_s"])
                work.setdefault(METADATA_TARGETS, {})[target] = done
        listed = serving if serving or states else None
        return CounterReading(
            self.name, time_s, work=work, clients=clients, full=full, serving=listed, waits=waits, missing=missing
        )

    def lacking(self, reading: CounterReading) -> tuple[str, ...]:
        """Return a message for each kind of event that the counters in this first reading cannot show."""
        local, lines = isinstance(self.target, LocalTarget), []
        if not reading.work:
            reasons = [limit.why for limit in self.target.limits() if "counters" in limit.what]
            lines.append(f"slow targets: {next(iter(reasons), 'no counters of targets can be read')}")
        elif reading.work.keys() == {DISKS}:
            lines.append("slow targets: a local disk has no peers to compare with")
        if reading.serving is None and not local:
            rest = "; only hanging operations of the probe are detected" if self.probed else ""
            lines.append(f"outages: no counters show which targets are in service{rest}")
        if not reading.clients and local:
            lines.append("who causes the load: a local file system does not count requests by process")
        elif not reading.clients:
            lines.append("who causes the load: the servers do not report the requests of each client")
        return tuple(lines)

    def _waits_due(self, time_s: float, observation: Observation) -> bool:
        servers = {target: counters.get(SERVER) for target, counters in observation.items()}
        if servers != self._servers:
            self._changed_s = time_s if self._servers else self._changed_s
            self._servers = servers
        known = any(server is not None for server in servers.values())
        long_s = _WAITS_EACH * self.every_s
        if known and not 0 <= time_s - self._changed_s <= long_s and 0 <= time_s - self._waits_s < long_s:
            return False
        self._waits_s = time_s
        return True

    def _since(self, target: str, number: float, time_s: float) -> float:
        before, since = self._numbers.get(target, (number, 0.0))
        self._numbers[target] = (number, since if number == before else time_s)
        return self._numbers[target][1]


def sources_of(
    target: Target, servers: Servers | None, asking: Runner = run, *, probed: bool = True
) -> list[CounterSource]:
    """Return the sources for a target. ``probed``: whether a probe runs operations in its directory."""
    name = str(target.path)
    if not isinstance(target, LustreTarget):
        return [TargetSource(name, target, probed=probed)]
    parameters = (*CLIENT_PARAMETERS, *SERVER_PARAMETERS)
    found = [LustreSource(name, asking, parameters, disks=os.geteuid() == 0)]
    if servers is not None:
        try:
            mount_name = getname(str(target.path)).ask(asking)
            where = addresses(Answers(asking), mount_name.file_system, lambda: mount_name.instance)
            ways = ways_to_servers(asking, servers, hosts(where.values()))
        except StrakesError:
            ways = {}
        found += [LustreSource(host, way, SERVER_PARAMETERS, disks=True) for host, way in ways.items()]
    return [replace(source, alone=len(found) == 1) for source in found]
