"""The side that asks: an agent on each node, started by the launcher, and one connection to each."""

from __future__ import annotations

import os
import queue
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from strakes.base.errors import EnvironmentLacksError
from strakes.base.processes import python_module
from strakes.base.units import counted
from strakes.runs.choice import Launch
from strakes.runs.nodes_agent import SECRET, own_addresses
from strakes.runs.nodes_channel import Channel, OpenConnections
from strakes.targets.command import output_file, output_text

# Starting Python on a node reads its files from a shared file system, all nodes at once.
_START_S = 60.0
_LAGGARD_S = 10.0
_ANSWER_S = 30.0
_LEAVE_S = 2.0
_PROOF_S = 5.0
# Who has connected and not proved himself yet.
_MOST_UNPROVED = 64
_TICK_S = 0.1
_QUESTIONS = 32
_LINK_S = 0.1
_LINK_ROUNDS = 6
_STREAMS = 4
# More nodes than this are measured in pairs at once.
_ONE_BY_ONE = 8


@dataclass(frozen=True)
class ClockReading:
    """How far a node's wall clock is ahead of ours, and by how much that may be wrong."""

    ahead_s: float
    uncertainty_s: float


@dataclass
class NodeAgent:
    """One node that answers."""

    host: str
    facts: Mapping[str, Any]
    channel: Channel

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send it a message. Raises EnvironmentLacksError when its connection is lost."""
        try:
            self.channel.send(message, _ANSWER_S)
        except OSError as error:
            raise self._silence(error) from error

    def hear(self) -> Mapping[str, Any]:
        """Return its next message. Raises EnvironmentLacksError when it says nothing in time."""
        try:
            return self.channel.receive(_ANSWER_S)
        except (OSError, EOFError) as error:
            raise self._silence(error) from error

    def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send it a message and return its answer. Raises EnvironmentLacksError when none comes in time."""
        self.tell(message)
        return self.hear()

    def _silence(self, error: Exception) -> EnvironmentLacksError:
        return EnvironmentLacksError(
            "a node does not answer",
            where=self.host,
            why=str(error),
            remedy="Check that node, or leave it out of --hosts.",
        )


class Hub:
    """Context manager over the agents of all nodes of a launch."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._secret = secrets.token_bytes(32)
        addresses = _addresses_towards(launch.hosts)
        self._listeners = [socket.create_server((address, 0)) for address in addresses or [""]]
        self._addresses = addresses or own_addresses()
        self._proved: queue.SimpleQueue[NodeAgent] = queue.SimpleQueue()
        self._unproved = OpenConnections(_MOST_UNPROVED)
        self._started: list[subprocess.Popen[bytes]] = []
        self._words = output_file("words of launchers")
        self.agents: list[NodeAgent] = []

    @property
    def where(self) -> str:
        """Addresses and ports at which the hub listens, separated by commas."""
        ports = [listener.getsockname()[1] for listener in self._listeners]
        if len(ports) < len(self._addresses):
            ports *= len(self._addresses)
        return ",".join(f"{address}:{port}" for address, port in zip(self._addresses, ports, strict=True))

    def __enter__(self) -> Self:
        """Start an agent on each node. Raises EnvironmentLacksError that names the nodes that do not answer."""
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and wait for the launchers; kill them after a time-out."""
        for agent in self.agents:
            agent.channel.close()
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # ends the wait of its thread
            listener.close()
        for process in self._started:
            try:
                process.wait(_LEAVE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._words.close()

    def clock(self, agent: NodeAgent) -> ClockReading:
        """Cristian's method (Distributed Computing 3, 1989): the answer with the shortest way counts."""
        best = ClockReading(0.0, float("inf"))
        for _ in range(_QUESTIONS):
            before = time.monotonic_ns()
            ours = time.time_ns()
            theirs = int(agent.ask({"do": "clock"})["wall_ns"])
            way = time.monotonic_ns() - before
            if way * 1e-9 / 2 < best.uncertainty_s:
                best = ClockReading((theirs - ours - way / 2) * 1e-9, way * 1e-9 / 2)
        return best

    def look(self, directory: str, file: str) -> dict[str, Mapping[str, Any]]:
        """Return what each node sees in a directory, by host; all are asked at once."""
        for agent in self.agents:
            agent.tell({"do": "look", "directory": directory, "file": file})
        return {agent.host: agent.hear() for agent in self.agents}

    def links(self) -> dict[tuple[str, str], list[float]]:
        """Bytes a second from each node to the next one, by both, in several rounds; TCP with several streams."""
        count = len(self.agents)
        rates: dict[tuple[str, str], list[float]] = {}
        if count < 2:
            return rates
        turns = (
            [[first] for first in range(count)]
            if count <= _ONE_BY_ONE
            else [list(range(start, count, 2)) for start in (0, 1)]
        )
        for _ in range(_LINK_ROUNDS):
            for turn in turns:
                pairs = [(self.agents[first], self.agents[(first + 1) % count]) for first in turn]
                for sender, receiver in pairs:
                    to = receiver.facts["places"]
                    sender.tell({"do": "send", "to": to, "seconds": _LINK_S, "streams": _STREAMS})
                for sender, receiver in pairs:
                    answer = sender.hear()
                    if "why" in answer:
                        raise EnvironmentLacksError(
                            "two nodes cannot reach each other",
                            where=f"{sender.host} to {receiver.host}",
                            why=str(answer["why"]),
                        )
                    rates.setdefault((sender.host, receiver.host), []).append(
                        float(answer["bytes"]) / float(answer["seconds"])
                    )
        return rates

    def _start(self) -> None:
        wanted = starts(self._launch, self.where)
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        for command, _ in wanted:
            try:
                self._started.append(self._start_agent(command))
            except OSError as error:
                raise EnvironmentLacksError(
                    "the launcher cannot be started", where=command[0], why=error.strerror or ""
                ) from error
        names = [host for _, hosts in wanted for host in hosts]
        count = sum(len(hosts) for _, hosts in wanted)
        began = time.monotonic()
        patience_s = _START_S
        while len(self.agents) < count:
            if self._take_one():
                # From the first one on it is known how long starting takes here.
                patience_s = min(patience_s, _LAGGARD_S + 3 * (time.monotonic() - began))
            here = {agent.host for agent in self.agents}
            lacking = [
                process for process, (_, hosts) in zip(self._started, wanted, strict=True) if not here.issuperset(hosts)
            ]
            over = time.monotonic() - began > patience_s or all(process.poll() is not None for process in lacking)
            if over and len(self.agents) < count:
                raise self._absent(names, count)
        if len({agent.host for agent in self.agents}) < count:
            raise EnvironmentLacksError(
                "the launcher started several processes on one node",
                where=", ".join(sorted(agent.host for agent in self.agents)),
                remedy="Spread them with {nodes} and {ranks_per_node}, or {hosts}, in the launcher's command.",
            )
        order = {name: place for place, name in enumerate(names)}
        self.agents.sort(key=lambda agent: (order.get(agent.host, count), agent.host))

    def _start_agent(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start an agent; pass the secret in the environment and on standard input, since launchers may drop either."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._words,
            process_group=0,
            env={**os.environ, SECRET: self._secret.hex()},
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(self._secret.hex().encode() + b"\n")
        return process

    def _take_one(self) -> bool:
        """Return whether an agent has authenticated; connections authenticate concurrently."""
        try:
            self.agents.append(self._proved.get(timeout=_TICK_S))
        except queue.Empty:
            return False
        return True

    def _accept(self, listener: socket.socket) -> None:
        """Accept all connections until the listener is closed, so that strangers cannot fill its queue."""
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self._unproved.add(connection)
                threading.Thread(target=self._prove, args=(connection,), daemon=True).start()

    def _prove(self, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                channel = Channel(connection, self._secret, asks=True, limit_s=_PROOF_S)
            finally:
                self._unproved.remove(connection)
            facts = channel.receive(_ANSWER_S)
            self._proved.put(NodeAgent(str(facts["host"]), facts, channel))
        except (OSError, EOFError, KeyError):
            connection.close()

    def _absent(self, names: Sequence[str], count: int) -> EnvironmentLacksError:
        here = {agent.host for agent in self.agents}
        absent = [name for name in names if name and name not in here]
        lines = [line for line in output_text(self._words).splitlines() if line.strip()]
        return EnvironmentLacksError(
            "not all nodes answer",
            where=", ".join(absent) or f"{len(here)} of {counted(count, 'node')}",
            why=" | ".join(lines[-4:]) or "nothing was heard from them",
            remedy="Check that the launcher reaches the nodes, that strakes is installed on them, and that they "
            "reach this host by TCP.",
        )


def _addresses_towards(hosts: Sequence[str]) -> list[str]:
    """Return this host's addresses on the routes to the hosts; empty if a host name does not resolve."""
    addresses: dict[str, None] = {}
    for host in hosts:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect((host, 9))  # nothing is sent
                addresses[probe.getsockname()[0]] = None
        except OSError:
            return []
    return list(addresses)


def starts(launch: Launch, where: str) -> list[tuple[list[str], list[str]]]:
    """Return the commands that start an agent on each node, and the nodes of each command ("": name unknown).

    With mpiexec each host gets its own command, so that an unreachable host does not block the others.
    """
    agent = python_module("strakes.runs.nodes_agent", where)
    if launch.launcher == "mpi":
        from strakes.runs.mpi import find_mpiexec, placed

        mpiexec = find_mpiexec(launch.mpiexec)
        return [([*placed(mpiexec, 1, [host], 1), *launch.options, *agent, host], [host]) for host in launch.hosts]
    if launch.launcher == "slurm":
        from strakes.runs import slurm

        nodes = len(launch.hosts) or slurm.allocation().nodes
        command = [
            *slurm.placed(slurm.find_srun(), nodes, launch.hosts, 1),
            f"--nodes={nodes}",
            *launch.options,
            "--mpi=none",
            "--overlap",
            *agent,
        ]
        return [(command, list(launch.hosts) or [""] * nodes)]
    from strakes.runs.template import filled

    nodes = len(launch.hosts) or -(-(launch.ranks or 1) // (launch.ranks_per_node or 1))
    return [(filled(launch.command, agent, nodes, launch.hosts, 1), list(launch.hosts) or [""] * nodes)]
