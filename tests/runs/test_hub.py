"""The hub with simulated nodes: assignment of agents to nodes, time-outs, and measurements of links and clocks."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.runs import mpi, slurm
from strakes.runs import nodes_hub as hub_module
from strakes.runs.choice import Launch
from strakes.runs.nodes_channel import Channel
from strakes.runs.nodes_hub import Hub, NodeAgent, starts

LIMIT_S = 20.0


def connect(hub: Hub) -> socket.socket:
    address, _, port = hub.where.split(",")[0].rpartition(":")
    return socket.create_connection((address, int(port)), LIMIT_S)


def answer_as(hub: Hub, first: Mapping[str, object]) -> Channel:
    """Connect to the hub as an authenticated node, send the first message and return the channel."""
    channel = Channel(connect(hub), hub._secret, asks=False, limit_s=LIMIT_S)
    channel.send(first, LIMIT_S)
    return channel


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Hub]]:
    """Return a function that makes hubs; each argument is a launcher's command and the nodes that it starts."""
    hubs: list[Hub] = []

    def make(*wanted: tuple[list[str], list[str]]) -> Hub:
        monkeypatch.setattr(hub_module, "starts", lambda launch, where: list(wanted))
        monkeypatch.setattr(hub_module, "_LEAVE_S", 0.05)
        hubs.append(Hub(Launch("mpi", hosts=("localhost",))))
        return hubs[-1]

    yield make
    for hub in hubs:
        hub.close()


STAYS = ["sleep", "100"]


def test_nodes_are_in_the_order_of_the_hosts_whichever_answers_first(waiting: Callable[..., Hub]) -> None:
    hub = waiting((STAYS, ["b"]), (STAYS, ["a"]), (STAYS, ["c"]))
    address, _, port = hub.where.rpartition(":")
    channels = [answer_as_later(hub, name) for name in ("c", "a", "b")]
    with hub:
        assert [agent.host for agent in hub.agents] == ["b", "a", "c"]
        assert hub._unproved._connections == {}
        for agent in hub.agents:
            assert agent.channel._connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert all(os.getpgid(process.pid) == process.pid for process in hub._started)
    assert [process.poll() for process in hub._started] == [-9] * 3
    for thread, ended in channels:
        thread.join()
        assert ended == ["end"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address, int(port)), LIMIT_S)


def answer_as_later(hub: Hub, name: str) -> tuple[threading.Thread, list[str]]:
    """Start a node in a thread; return the thread and a list that gets "end" when the hub closes the connection."""
    ended: list[str] = []

    def answer() -> None:
        channel = answer_as(hub, {"host": name})
        try:
            channel.receive(LIMIT_S)
        except EOFError:
            ended.append("end")
        channel.close()

    thread = threading.Thread(target=answer)
    thread.start()
    return thread, ended


@pytest.mark.parametrize(
    ("answers_at_s", "gives_up_after_s"),
    [({}, 60.0), ({4.0: "a"}, 10.0 + 3 * 4.0), ({4.0: "a", 6.0: "b"}, 10.0 + 3 * 4.0), ({50.0: "a"}, 60.0)],
)
def test_late_nodes_are_waited_for_as_long_as_the_document_states(
    waiting: Callable[..., Hub],
    monkeypatch: pytest.MonkeyPatch,
    answers_at_s: dict[float, str],
    gives_up_after_s: float,
) -> None:
    """Each poll advances the fake clock by half a second, a step without rounding errors."""
    hub = waiting((STAYS, ["a", "b", "c"]))
    now, began = [100.0], 100.0

    def look(*, timeout: float) -> NodeAgent:
        assert timeout == hub_module._TICK_S
        now[0] += 0.5
        if (host := answers_at_s.get(now[0] - began)) is None:
            raise queue.Empty
        return NodeAgent(host, {}, cast("Channel", SimpleNamespace(close=lambda: None)))

    monkeypatch.setattr(hub_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    hub._proved = cast("queue.SimpleQueue[NodeAgent]", SimpleNamespace(get=look))
    with pytest.raises(EnvironmentLacksError, match="not all nodes answer"):
        hub._start()
    assert now[0] - began == gives_up_after_s + 0.5


def test_two_that_answer_as_one_node_are_refused(waiting: Callable[..., Hub]) -> None:
    hub = waiting((STAYS, ["", ""]))
    for _ in range(2):
        answer_as_later(hub, "a")
    with pytest.raises(EnvironmentLacksError, match="several processes on one node") as refused:
        hub.__enter__()
    assert refused.value.where == "a, a"


def test_nodes_that_do_not_answer_are_named_with_the_last_output_of_the_launcher(waiting: Callable[..., Hub]) -> None:
    hub = waiting((STAYS, ["a"]), (["sh", "-c", "for line in 1 2 3 '' 4 5; do echo $line >&2; done"], ["b"]))
    answer_as_later(hub, "a")
    with pytest.raises(EnvironmentLacksError, match="not all nodes answer") as refused:
        hub.__enter__()
    assert refused.value.where == "b" and refused.value.why == "2 | 3 | 4 | 5"
    assert hub._words.closed and all(process.poll() is not None for process in hub._started)


def test_nodes_without_names_that_do_not_answer_are_counted(waiting: Callable[..., Hub]) -> None:
    with pytest.raises(EnvironmentLacksError) as refused:
        waiting((["true"], ["", ""])).__enter__()
    assert refused.value.where == "0 of 2 nodes" and refused.value.why == "nothing was heard from them"
    with pytest.raises(EnvironmentLacksError) as refused:
        waiting((["sh", "-c", "echo no such node >&2"], [""])).__enter__()
    assert refused.value.why == "no such node"


def test_a_launcher_that_cannot_be_started_is_named(waiting: Callable[..., Hub], tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacksError, match="the launcher cannot be started") as refused:
        waiting(([str(tmp_path / "none")], ["a"])).__enter__()
    assert refused.value.where == str(tmp_path / "none") and "No such file" in refused.value.why


def test_an_authenticated_client_that_does_not_name_its_node_is_disconnected(waiting: Callable[..., Hub]) -> None:
    hub = waiting((STAYS, ["a"]))
    threading.Thread(target=hub._accept, args=(hub._listeners[0],), daemon=True).start()
    channel = answer_as(hub, {"name": "a"})
    with pytest.raises(EOFError):
        channel.receive(LIMIT_S)
    channel.close()
    assert not hub._take_one() and hub._unproved._connections == {}


def test_a_connection_is_counted_until_it_is_authenticated_and_is_accepted_once(
    waiting: Callable[..., Hub],
) -> None:
    hub = waiting((STAYS, ["a"]))
    threading.Thread(target=hub._accept, args=(hub._listeners[0],), daemon=True).start()
    until = time.monotonic() + LIMIT_S
    with connect(hub):
        while not hub._unproved._connections:
            assert time.monotonic() < until, "he is not counted"
            time.sleep(0.01)
    channel = answer_as(hub, {"host": "a"})
    while not hub._take_one():
        assert time.monotonic() < until, "nobody was taken"
    assert [agent.host for agent in hub.agents] == ["a"] and not hub._take_one()
    channel.close()


def test_a_hub_for_hosts_it_does_not_know_listens_at_one_port_of_all_its_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "own_addresses", lambda: ["192.0.2.1", "192.0.2.2"])
    hub = Hub(Launch("command", hosts=("no such host.invalid",)))
    port = hub._listeners[0].getsockname()[1]
    assert hub.where == f"192.0.2.1:{port},192.0.2.2:{port}"
    hub.close()
    assert hub_module._addresses_towards(["127.0.0.1", "localhost"]) == ["127.0.0.1"]
    assert hub_module._addresses_towards(["127.0.0.1", "no such host.invalid"]) == []


def test_a_hub_that_listens_at_several_addresses_says_the_port_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "_addresses_towards", lambda hosts: ["127.0.0.1", "127.0.0.2"])
    hub = Hub(Launch("mpi", hosts=("a", "b")))
    for place in hub.where.split(","):
        address, _, port = place.rpartition(":")
        socket.create_connection((address, int(port)), LIMIT_S).close()
    assert len(set(hub.where.split(","))) == 2
    hub.close()


class FakeNode:
    """An agent that records the messages it gets and answers with ``says()``."""

    def __init__(self, host: str, log: list[str], says: Callable[[], Mapping[str, Any]]) -> None:
        self.host, self.log, self.says = host, log, says
        self.facts = {"places": [[host, 1]]}
        self.told: list[Mapping[str, Any]] = []

    def tell(self, message: Mapping[str, Any]) -> None:
        self.log.append(f"tell {self.host}")
        self.told.append(message)

    def hear(self) -> Mapping[str, Any]:
        self.log.append(f"hear {self.host}")
        return self.says()

    def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        self.tell(message)
        return self.hear()


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub(Launch("mpi", hosts=("localhost",)))
    yield hub
    hub.agents = []
    hub.close()


def with_nodes(hub: Hub, count: int, says: Callable[[], Mapping[str, Any]]) -> tuple[list[FakeNode], list[str]]:
    log: list[str] = []
    nodes = [FakeNode(f"n{number}", log, says) for number in range(count)]
    hub.agents = cast("list[NodeAgent]", nodes)
    return nodes, log


@pytest.mark.parametrize("count", [2, 3, 8, 9, 10])
def test_every_link_is_measured_equally_often_and_few_links_one_at_a_time(hub: Hub, count: int) -> None:
    nodes, log = with_nodes(hub, count, lambda: {"bytes": 30, "seconds": 2})
    rates = hub.links()
    assert rates == {(f"n{at}", f"n{(at + 1) % count}"): [15.0] * 6 for at in range(count)}
    for at, node in enumerate(nodes):
        assert all(message["to"] == [[f"n{(at + 1) % count}", 1]] for message in node.told)
        assert all((message["do"], message["streams"], message["seconds"]) == ("send", 4, 0.1) for message in node.told)
    asked, most = 0, 0
    for words in log:
        asked += 1 if words.startswith("tell") else -1
        most = max(most, asked)
    assert most == (1 if count <= 8 else (count + 1) // 2)


def test_one_node_has_no_link_and_nodes_that_cannot_reach_each_other_are_named(hub: Hub) -> None:
    with_nodes(hub, 1, dict)
    assert hub.links() == {}
    with_nodes(hub, 2, lambda: {"why": "no route"})
    with pytest.raises(EnvironmentLacksError, match="cannot reach each other") as refused:
        hub.links()
    assert refused.value.where == "n0 to n1" and refused.value.why == "no route"


def test_the_clock_reading_with_the_shortest_round_trip_counts(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000]
    ways = iter(
        [8_000_000, 2_000_000, 2_500_000, 2_000_000] + [5_000_000] * 28
    )  # the first of two equally short ones counts

    def says() -> Mapping[str, Any]:
        ours = now[0]
        way = next(ways)
        now[0] += way
        best = way == 2_000_000 and now[0] == 11_000_000
        return {"wall_ns": ours + way // 2 + 3_000_000_000 + (0 if best else 9)}

    monkeypatch.setattr(time, "monotonic_ns", lambda: now[0])
    monkeypatch.setattr(time, "time_ns", lambda: now[0])
    nodes, _ = with_nodes(hub, 1, says)
    reading = hub.clock(cast("NodeAgent", nodes[0]))
    assert reading.ahead_s == pytest.approx(3.0, abs=1e-12) and reading.uncertainty_s == pytest.approx(0.001)
    assert nodes[0].told == [{"do": "clock"}] * 32


class BrokenChannel:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def send(self, message: object, limit_s: float) -> None:
        raise self.error

    def receive(self, limit_s: float) -> Mapping[str, Any]:
        raise self.error


@pytest.mark.parametrize("error", [TimeoutError("late"), ConnectionResetError("late"), EOFError("late")])
def test_a_node_whose_connection_is_lost_is_named(error: Exception) -> None:
    agent = NodeAgent("n1", {}, cast("Channel", BrokenChannel(error)))
    calls: Sequence[Callable[[], object]] = [agent.hear]
    if not isinstance(error, EOFError):
        calls = [agent.hear, lambda: agent.tell({}), lambda: agent.ask({})]
    for call in calls:
        with pytest.raises(EnvironmentLacksError, match="does not answer") as refused:
            call()
        assert (refused.value.where, refused.value.why) == ("n1", "late")


@pytest.mark.parametrize(
    ("ranks", "per_node", "hosts", "nodes", "names"),
    [
        (5, 2, (), "3", ["", "", ""]),
        (None, None, (), "1", [""]),
        (8, 2, ("a", "b"), "2", ["a", "b"]),
    ],
)
def test_another_launcher_starts_one_agent_on_each_node(
    ranks: int | None, per_node: int | None, hosts: tuple[str, ...], nodes: str, names: list[str]
) -> None:
    launch = Launch("command", ranks, hosts, per_node, command="x {nodes} {ranks_per_node} {engine}")
    if hosts:
        launch = Launch("command", ranks, hosts, per_node, command="x {nodes} {ranks_per_node} {hosts} {engine}")
    ((command, found_names),) = starts(launch, "here:1")
    assert command[:3] == ["x", nodes, "1"] and command[-1] == "here:1" and found_names == names


def test_mpi_starts_the_nodes_one_by_one_and_slurm_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi, "find_mpiexec", lambda given: Path("/mpiexec"))
    monkeypatch.setattr(mpi, "placed", lambda mpiexec, ranks, hosts, per: [str(mpiexec), str(ranks), *hosts, str(per)])
    commands = starts(Launch("mpi", hosts=("a", "b"), options=("-x",)), "here:1")
    assert [hosts for _, hosts in commands] == [["a"], ["b"]]
    assert all(words[:5] == ["/mpiexec", "1", host, "1", "-x"] and words[-1] == host for words, (host,) in commands)
    monkeypatch.setattr(slurm, "find_srun", lambda: Path("/srun"))
    monkeypatch.setattr(slurm, "placed", lambda srun, ranks, hosts, per: [str(srun), str(ranks), *hosts, str(per)])
    ((words, hosts),) = starts(Launch("slurm", hosts=("a", "b")), "here:1")
    assert words[:6] == ["/srun", "2", "a", "b", "1", "--nodes=2"] and hosts == ["a", "b"]
    monkeypatch.setattr(slurm, "allocation", lambda: SimpleNamespace(nodes=3))
    assert starts(Launch("slurm"), "here:1")[0][1] == ["", "", ""]
