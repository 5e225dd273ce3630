"""The agent, which the launcher starts on each node.

It describes the node, answers the hub's requests, and ends when the hub is gone.

``python -m strakes.runs.nodes_agent WHERE [NAME]``, where WHERE is the text from ``Hub.where``.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import platform
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from strakes.runs.nodes_channel import Channel, OpenConnections, StrangerError, stream_pass

SECRET = "STRAKES_HUB_SECRET"
_MOST_SECRET = 256
_MOST_STREAMS = 64
_CONNECT_S = 5.0
_FIND_S = 10.0
_AGAIN_S = 0.2
# The agent ends after this time in seconds without a request: the hub has died.
_QUIET_S = 120.0
_PIECE = bytes(1 << 20)
_ANSWER_S = 10.0
_SIOCGIFADDR = 0x8915  # netdevice(7)


def main(arguments: Sequence[str]) -> int:
    """Connect to the hub at the given addresses, and answer it until it ends the connection; return exit status 0."""
    secret = _read_secret()
    name = arguments[1] if len(arguments) > 1 else os.environ.get("SLURMD_NODENAME", platform.node())
    hub = _find_hub(arguments[0], secret)
    listeners = _listen(link_addresses(hub.own_address, arguments[0]))
    unproved = OpenConnections(_MOST_STREAMS)
    for listener in listeners:
        threading.Thread(target=_receive_all, args=(listener, secret, unproved), daemon=True).start()
    places = [list(listener.getsockname()[:2]) for listener in listeners]
    hub.send({"host": name, **_facts(places)}, _ANSWER_S)
    with suppress(EOFError):
        while True:
            hub.send(_answer(hub.receive(_QUIET_S), secret), _ANSWER_S)
    return 0


def _read_secret() -> bytes:
    """Take the secret from the environment or a line of standard input; launchers pass on one or the other.

    Command lines can be read by everybody.
    """
    text = os.environ.pop(SECRET, "") or sys.stdin.readline(_MOST_SECRET).strip()
    if not text:
        raise SystemExit(f"strakes: the launcher passes on neither the variable {SECRET} nor standard input")
    return bytes.fromhex(text)


def _find_hub(where: str, secret: bytes) -> Channel:
    """Connect to the first of the hub's addresses that answers; try again for 10 s, then raise the last OSError.

    Raises StrangerError if the other side does not know the secret.
    """
    failure = OSError("it has no address")
    until = time.monotonic() + _FIND_S
    while True:
        for place in where.split(","):
            address, _, port = place.rpartition(":")
            try:
                return Channel(_connected([(address, int(port))]), secret, asks=False, limit_s=_CONNECT_S)
            except StrangerError:
                raise
            except (OSError, EOFError) as error:
                failure = OSError(str(error))
        if time.monotonic() > until:
            raise failure
        time.sleep(_AGAIN_S)


def _answer(asked: Mapping[str, Any], secret: bytes) -> Mapping[str, Any]:
    if asked["do"] == "clock":
        return {"wall_ns": time.time_ns()}
    if asked["do"] == "look":
        return _look(Path(asked["directory"]), str(asked["file"]))
    return _send(asked["to"], float(asked["seconds"]), int(asked["streams"]), secret)


def link_addresses(towards_hub: str, where: str) -> list[str]:
    """Return the addresses over which other nodes reach this one: that towards the hub, and no other of this node's.

    On the hub's own node that may be the loop, which others do not reach: there it is the hub's other addresses.
    """
    if not towards_hub.startswith("127."):
        return [towards_hub]
    of_hub = [place.rpartition(":")[0] for place in where.split(",")]
    return [address for address in of_hub if not address.startswith("127.")] or [towards_hub]


def _listen(addresses: Sequence[str]) -> list[socket.socket]:
    return [socket.create_server((address, 0)) for address in addresses]


def _facts(places: Sequence[Sequence[str | int]]) -> dict[str, Any]:
    from strakes.base.memory import memory_sizes
    from strakes.base.version import __version__
    from strakes.runs.mpi_family import find_mpi_engine

    engine = ""
    with suppress(Exception):
        done = subprocess.run(
            [find_mpi_engine(), "--version"], capture_output=True, text=True, timeout=_ANSWER_S, check=False
        )
        engine = done.stdout.strip()
    memory = memory_sizes()
    return {
        "strakes": __version__,
        "engine": engine,
        "kernel": platform.release(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": memory.get("MemTotal", 0),
        "memory_available_bytes": memory.get("MemAvailable", 0),
        "places": places,
    }


def _look(directory: Path, file: str) -> dict[str, Any]:
    """Return the mount of the directory and the contents of the file; calls on a dead mount time out."""
    from strakes.base.errors import BadInputError, StrakesError
    from strakes.base.files import read_regular
    from strakes.targets.calls import mount_of, sizes_of

    try:
        mount = mount_of(directory)
        sizes = sizes_of(str(directory))
        content = ""
        with suppress(BadInputError):
            content = read_regular(directory / file, _MOST_SECRET).decode(errors="replace").strip()
    except StrakesError as error:
        return {"why": f"{error.what}: {error.why}"}
    except OSError as error:
        return {"why": error.strerror or str(error)}
    return {
        "file_system": mount.file_system,
        "source": mount.source,
        "mount_point": mount.mount_point,
        "read_only": "ro" in mount.options,
        "total_bytes": sizes.total_bytes,
        "content": content,
    }


def _send(places: Sequence[Sequence[Any]], seconds: float, streams: int, secret: bytes) -> dict[str, Any]:
    """Send data for ``seconds`` and wait until the other side has received all of it."""
    sent = [0] * streams
    try:
        connections = [_connected(places) for _ in range(streams)]
    except OSError as error:
        return {"why": error.strerror or str(error)}
    began = time.monotonic()

    def send(number: int) -> None:
        with connections[number] as connection, suppress(OSError):
            connection.sendall(stream_pass(secret))
            while time.monotonic() - began < seconds:
                connection.sendall(_PIECE)
            connection.shutdown(socket.SHUT_WR)
            sent[number] = int(connection.makefile("r").readline(_MOST_SECRET) or 0)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"bytes": sum(sent), "seconds": time.monotonic() - began}


def _receive_all(listener: socket.socket, secret: bytes, unproved: OpenConnections) -> None:
    def receive(connection: socket.socket) -> None:
        _receive(connection, secret, unproved)

    while True:
        connection, _ = listener.accept()
        unproved.add(connection)
        threading.Thread(target=receive, args=(connection,), daemon=True).start()


def _receive(connection: socket.socket, secret: bytes, unproved: OpenConnections) -> None:
    """Receive one stream and send back its length."""
    buffer, received = bytearray(len(_PIECE)), 0
    with connection, suppress(OSError):
        connection.settimeout(_CONNECT_S)
        expected = stream_pass(secret)
        try:
            if not hmac.compare_digest(connection.recv(len(expected), socket.MSG_WAITALL), expected):
                return
        finally:
            unproved.remove(connection)
        while count := connection.recv_into(buffer):
            received += count
        connection.sendall(f"{received}\n".encode())


def own_addresses() -> list[str]:
    """Return the IPv4 addresses of this node without loopback addresses."""
    addresses = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # one that has none
                request = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()))
                addresses.append(socket.inet_ntoa(request[20:24]))
    return [address for address in addresses if not address.startswith("127.")]


def _connected(places: Sequence[Sequence[Any]]) -> socket.socket:
    """Connect to the first address and port that answers. Raises OSError, the last one, when none does."""
    failure = OSError("it has no address")
    for address, port in places:
        try:
            connection = socket.create_connection((str(address), int(port)), _CONNECT_S)
        except OSError as error:
            failure = error
            continue
        connection.settimeout(_QUIET_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    raise failure


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
