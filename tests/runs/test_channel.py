"""The authenticated channel and the hub against peers that do not know the secret, send too much, or send nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.base.processes import python_module
from strakes.runs import nodes_hub as hub_module
from strakes.runs.choice import Launch
from strakes.runs.nodes_agent import _receive, link_addresses, main
from strakes.runs.nodes_channel import MOST_BYTES, Channel, OpenConnections, StrangerError, stream_pass
from strakes.runs.nodes_hub import Hub

SECRET, OTHER = b"s" * 32, b"o" * 32
LIMIT_S = 2.0


@pytest.fixture(autouse=True)
def closed_sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the socket pairs of a test after it."""
    made: list[socket.socket] = []
    make = socket.socketpair

    def remember() -> tuple[socket.socket, socket.socket]:
        ends = make()
        made.extend(ends)
        return ends

    monkeypatch.setattr(socket, "socketpair", remember)
    yield
    for each in made:
        each.close()


def pair(asks: bytes = SECRET, answers: bytes = SECRET) -> tuple[Channel | Exception, Channel | Exception]:
    """Return both ends of a connection, each a Channel or the exception of its handshake."""
    ends: dict[bool, Channel | Exception] = {}
    near, far = socket.socketpair()

    def open_end(connection: socket.socket, secret: bytes, asking: bool) -> None:
        try:
            ends[asking] = Channel(connection, secret, asks=asking, limit_s=LIMIT_S)
        except (OSError, EOFError) as error:
            ends[asking] = error
            connection.close()

    other = threading.Thread(target=open_end, args=(far, answers, False))
    other.start()
    open_end(near, asks, True)
    other.join()
    return ends[True], ends[False]


@pytest.fixture
def channels() -> Iterator[tuple[Channel, Channel]]:
    near, far = pair()
    assert isinstance(near, Channel) and isinstance(far, Channel)
    yield near, far
    near.close()
    far.close()


def test_a_stranger_is_refused_on_either_side() -> None:
    near, far = pair(answers=OTHER)
    assert isinstance(near, StrangerError) and isinstance(far, EOFError)
    near, far = pair(asks=OTHER)
    assert isinstance(near, StrangerError) and isinstance(far, EOFError)


def test_a_proof_that_is_sent_back_is_refused() -> None:
    """A fake hub that returns the agent's own proof (a reflection attack) is refused."""
    near, far = socket.socketpair()
    failures: list[Exception] = []

    def answer() -> None:
        try:
            Channel(far, SECRET, asks=False, limit_s=LIMIT_S)
        except (OSError, EOFError) as error:
            failures.append(error)

    answering = threading.Thread(target=answer)
    answering.start()
    near.sendall(b"n" * 32)
    proof = near.recv(64, socket.MSG_WAITALL)[32:]
    near.sendall(proof)
    answering.join()
    assert isinstance(failures[0], StrangerError)


@pytest.mark.parametrize("change", ["a bit", "again", "left out", "its own words"])
def test_a_forged_or_repeated_message_is_refused(change: str) -> None:
    near, far = pair()
    assert isinstance(near, Channel) and isinstance(far, Channel)
    wire, tap = socket.socketpair()
    near._connection, straight = wire, near._connection
    for number in range(2):
        near.send({"number": number}, LIMIT_S)
    size = len(tap.recv(1 << 16)) // 2
    near._sent = 0
    for number in range(2):
        near.send({"number": number}, LIMIT_S)
    first, second = (tap.recv(size, socket.MSG_WAITALL) for _ in range(2))
    said = {
        "a bit": first[:-1] + bytes([first[-1] ^ 1]),
        "again": first + first,
        "left out": second,
        "its own words": b"",
    }[change]
    straight.sendall(said)
    if change == "its own words":
        far.send({"number": 0}, LIMIT_S)
        straight.sendall(straight.recv(1 << 16))

    def hear_all() -> None:
        for _ in range(2):
            far.receive(LIMIT_S)

    with pytest.raises(StrangerError):
        hear_all()


def test_a_message_that_is_too_long_is_not_read() -> None:
    near, far = pair()
    assert isinstance(near, Channel) and isinstance(far, Channel)
    near._connection.sendall((MOST_BYTES + 1).to_bytes(4) + b"x" * 32)
    with pytest.raises(StrangerError, match=str(MOST_BYTES + 1)):
        far.receive(LIMIT_S)


def test_the_longest_allowed_message_is_read(channels: tuple[Channel, Channel]) -> None:
    near, far = channels
    text = "x" * (MOST_BYTES - len(json.dumps({"text": ""})))
    sending = threading.Thread(target=near.send, args=({"text": text}, 30.0))
    sending.start()
    assert far.receive(30.0) == {"text": text}
    sending.join()
    assert MOST_BYTES == 1 << 20


def test_a_peer_that_does_not_read_is_not_waited_for() -> None:
    """The limit applies to the handshake and to later messages."""
    near, far = pair()
    assert isinstance(near, Channel) and isinstance(far, Channel)

    def send_all() -> None:
        for _ in range(100):
            near.send({"text": "x" * 500_000}, 0.2)

    with pytest.raises(TimeoutError):
        send_all()
    full, _other = socket.socketpair()
    full.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            full.send(b"x" * 65536)
    full.setblocking(True)
    with pytest.raises(TimeoutError):
        Channel(full, SECRET, asks=True, limit_s=0.2)


def test_a_message_after_the_deadline_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline applies even if the whole message has already arrived."""
    near, far = pair()
    assert isinstance(near, Channel) and isinstance(far, Channel)
    near.send({"a": 1}, LIMIT_S)
    now = iter([0.0] + [LIMIT_S + 1.0] * 100)
    monkeypatch.setattr("strakes.runs.nodes_channel.time.monotonic", lambda: next(now))
    with pytest.raises(TimeoutError):
        far.receive(LIMIT_S)


@pytest.mark.parametrize("message", ["[]", "5", "[" * 100_000])
def test_an_invalid_message_is_refused(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = pair()
    assert isinstance(near, Channel) and isinstance(far, Channel)
    monkeypatch.setattr("strakes.runs.nodes_channel.json.dumps", lambda _: message)
    near.send({}, LIMIT_S)
    with pytest.raises(StrangerError, match="no message"):
        far.receive(LIMIT_S)


def test_a_peer_that_sends_one_byte_at_a_time_gets_no_more_time() -> None:
    near, far = socket.socketpair()
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.05):
            far.send(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        Channel(near, SECRET, asks=True, limit_s=0.5)
    stop.set()
    dripping.join()
    assert time.monotonic() - began < 5.0


def template(tmp_path: Path, body: str) -> Launch:
    """Return a launcher that runs a shell script of this body with the agent's command line."""
    script = tmp_path / "launcher"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return Launch("command", ranks=1, ranks_per_node=1, command=f"{script} {{engine}}")


@pytest.mark.parametrize("way", ['exec "$@"', 'exec "$@" </dev/null', 'unset STRAKES_HUB_SECRET; exec "$@"'])
def test_an_agent_answers_by_a_secret_that_is_on_no_command_line(tmp_path: Path, way: str) -> None:
    commands = tmp_path / "commands"
    with Hub(template(tmp_path, f'echo "$@" >{commands}\n{way}')) as hub:
        assert hub.agents[0].facts["cpus"] >= 1
        assert hub.clock(hub.agents[0]).uncertainty_s < 1.0
        assert hub._secret.hex() not in commands.read_text() and len(hub._secret) == 32


def test_a_launcher_that_does_not_pass_on_the_secret_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacksError, match="not all nodes answer") as caught:
        Hub(template(tmp_path, 'unset STRAKES_HUB_SECRET; exec "$@" </dev/null')).__enter__()
    assert "STRAKES_HUB_SECRET" in caught.value.why


def test_strangers_that_connect_first_delay_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(template(tmp_path, 'exec "$@"'))
    places = [place.rpartition(":") for place in hub.where.split(",")]
    strangers = [socket.create_connection((places[0][0], int(places[0][2]))) for _ in range(40)]
    for number, stranger in enumerate(strangers):
        stranger.sendall([b"", b"[]\n", b"[" * 100_000, os.urandom(64), b'{"secret": "x", "host": "me"}\n'][number % 5])
    began = time.monotonic()
    with hub:
        assert len(hub.agents) == 1
        assert hub.agents[0].host != "me"
        assert time.monotonic() - began < hub_module._START_S / 2
    for stranger in strangers:
        stranger.close()


def test_a_flood_of_strangers_keeps_no_node_out(tmp_path: Path) -> None:
    """More silent clients than the hub has slots for, which reconnect as soon as they are disconnected."""
    hub = Hub(template(tmp_path, 'exec "$@"'))
    address, _, port = hub.where.split(",")[0].rpartition(":")
    stop = threading.Event()

    def come_again() -> None:
        held: list[socket.socket] = []
        while not stop.is_set():
            with suppress(OSError):
                held.append(socket.create_connection((address, int(port)), 1.0))
            for stranger in held[:-20]:
                stranger.close()
            del held[:-20]
            stop.wait(0.01)
        for stranger in held:
            stranger.close()

    strangers = [threading.Thread(target=come_again) for _ in range(5)]
    for thread in strangers:
        thread.start()
    try:
        with hub:
            assert len(hub.agents) == 1
    finally:
        stop.set()
        for thread in strangers:
            thread.join()


def test_too_many_unproved_connections_close_the_oldest() -> None:
    unproved, pairs = OpenConnections(2), [socket.socketpair() for _ in range(4)]
    for near, _ in pairs[:3]:
        unproved.add(near)
    assert pairs[0][1].recv(1) == b""
    unproved.remove(pairs[1][0])
    unproved.add(pairs[3][0])
    for near, far in pairs[1:]:
        near.send(b"x")
        assert far.recv(1) == b"x"


def test_the_hub_listens_only_where_its_hosts_are_reached_from() -> None:
    hub = Hub(Launch("mpi", hosts=("localhost",)))
    assert [place.rpartition(":")[0] for place in hub.where.split(",")] == ["127.0.0.1"]
    assert [listener.getsockname()[0] for listener in hub._listeners] == ["127.0.0.1"]
    hub.close()


@pytest.mark.parametrize(
    ("towards_hub", "where", "expected"),
    [
        ("10.0.0.2", "10.0.0.1:5", ["10.0.0.2"]),
        ("10.0.0.2", "127.0.0.1:4,10.0.0.1:5", ["10.0.0.2"]),
        ("127.0.0.1", "127.0.0.1:4,10.0.0.1:5,10.1.0.1:6", ["10.0.0.1", "10.1.0.1"]),
        ("127.0.0.1", "127.0.0.1:4", ["127.0.0.1"]),
    ],
)
def test_a_node_takes_streams_only_where_other_nodes_reach_it(
    towards_hub: str, where: str, expected: list[str]
) -> None:
    assert link_addresses(towards_hub, where) == expected


def test_an_agent_on_the_hubs_own_node_listens_on_no_other_address(tmp_path: Path) -> None:
    launch = template(tmp_path, 'shift && exec "$@"')
    command = launch.command.replace("{engine}", "{hosts} {engine}")
    with Hub(replace(launch, hosts=("localhost",), command=command)) as hub:
        ((address, port),) = hub.agents[0].facts["places"]
        assert address == "127.0.0.1"
        socket.create_connection((address, port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))


def test_an_agent_tells_a_false_hub_nothing_about_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("STRAKES_HUB_SECRET", SECRET.hex())

        def listen() -> None:
            connection, _ = listener.accept()
            connection.sendall(b"n" * 32)
            heard.append(connection.recv(1 << 16))
            connection.sendall(b"x" * 32)
            heard.append(connection.recv(1 << 16))
            connection.close()

        listening = threading.Thread(target=listen)
        listening.start()
        with pytest.raises(OSError, match="secret"):
            main([f"127.0.0.1:{listener.getsockname()[1]}", "n1"])
        listening.join()
    assert len(heard[0]) == 64 and heard[1] == b""


def test_an_agent_without_a_secret_does_not_start() -> None:
    words = python_module("strakes.runs.nodes_agent", "127.0.0.1:9", "n1")
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "STRAKES_HUB_SECRET" in done.stderr and "Traceback" not in done.stderr
    assert sys.executable in words


@pytest.mark.parametrize(("passed", "believed"), [(SECRET, True), (OTHER, False)])
def test_only_a_stream_with_the_right_pass_is_counted(passed: bytes, believed: bool) -> None:
    near, far = socket.socketpair()
    unproved = OpenConnections(1)
    unproved.add(far)
    receiving = threading.Thread(target=_receive, args=(far, SECRET, unproved))
    receiving.start()
    with suppress(BrokenPipeError):  # the receiver may already have closed the connection
        near.sendall(stream_pass(passed) + b"x" * 1000)
        near.shutdown(socket.SHUT_WR)
    near.settimeout(LIMIT_S)
    with suppress(ConnectionResetError):
        assert near.recv(100) == (b"1000\n" if believed else b"")
    receiving.join()
    assert not unproved._connections
