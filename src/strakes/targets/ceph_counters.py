"""Queries to admin sockets, and the counters in a daemon's ``perf dump`` under the common names."""

from __future__ import annotations

import json
import math
import socket
import struct
from collections.abc import Mapping
from typing import Any

from strakes.base.errors import MeasurementError
from strakes.base.units import KIB
from strakes.targets.remote import add_up

# Time-out in seconds. A daemon on this machine answers within a millisecond, unless it is stopped.
_SOCKET_S = 2.0
_DATA = {
    "data.read_bytes": ("op_r_out_bytes", "op_rw_out_bytes"),
    "data.write_bytes": ("op_w_in_bytes", "op_rw_in_bytes"),
    "data.read_requests": ("op_r",),
    "data.write_requests": ("op_w", "op_rw"),
}
# Latencies of BlueStore. Commits have the first name in older releases and the second one in newer ones.
_STORED = ("commit_lat", "txc_commit_lat", "read_lat")
# Bytes that BlueStore had to read from its device, in older and newer releases.
_FROM_DEVICE = ("bluestore_buffer_miss_bytes", "buffer_miss_bytes")


def ask_socket(path: str, prefix: str) -> Any:
    """Return a daemon's answer by its socket. Raises MeasurementError if it cannot be reached or does not answer."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_SOCKET_S)
            connection.connect(path)
            connection.sendall(json.dumps({"prefix": prefix, "format": "json"}).encode() + b"\0")
            (length,) = struct.unpack(">I", _receive(connection, 4))
            return json.loads(_receive(connection, length))
    except TimeoutError as error:
        raise MeasurementError(
            "a daemon does not answer", where=path, why=f"no answer within {_SOCKET_S:g} s"
        ) from error
    except (OSError, ValueError) as error:
        raise MeasurementError("a daemon cannot be reached", where=path, why=str(error)) from error


def _receive(connection: socket.socket, length: int) -> bytes:
    answer = b""
    while len(answer) < length:
        part = connection.recv(length - len(answer))
        if not part:
            raise ConnectionError("it closed the connection")
        answer += part
    return answer


def metadata_counters(dump: Mapping[str, Any]) -> dict[str, float]:
    """Return a metadata server's request counts under the common names, and its memory if it reports that."""
    counts = {
        name.removeprefix("req_").removesuffix("_latency"): float(value["avgcount"])
        for name, value in dump.get("mds_server", {}).items()
        if name.startswith("req_") and isinstance(value, Mapping)
    }
    seen = {name: count for name, count in add_up(counts).items() if name.startswith("md.")}
    resident_kib = dump.get("mds_mem", {}).get("rss")
    memory = {} if resident_kib is None else {"now.memory_bytes": float(resident_kib * KIB)}
    return {**seen, "md.requests": sum(counts.values()), **memory}


def data_counters(dump: Mapping[str, Any]) -> dict[str, float]:
    """Return an object store's counters under the common names, including the metadata servers' objects."""
    own = dump.get("osd", {})
    # An OSD operation waits for all replicas, so only BlueStore's latencies separate a slow store from its partners.
    store = dump.get("bluestore", {})
    latencies = [_latency(store, name) for name in _STORED]
    if not any(count for count, _ in latencies):
        latencies = [_latency(own, "op_latency")]
    times = {
        "data.waited_requests": sum(count for count, _ in latencies),
        "data.waited_s": sum(seconds for _, seconds in latencies),
    }
    told = [float(store[name]) for name in _FROM_DEVICE if name in store]
    missed = {"data.device_read_bytes": told[0]} if told else {}
    moved = {common: float(sum(own.get(name, 0) for name in names)) for common, names in _DATA.items()}
    return {**moved, **times, **missed}


def used_share(dump: Mapping[str, Any]) -> float | None:
    """Return the used share of an object store, including its database, or None if it does not report it."""
    own = dump.get("osd", {})
    total, used = own.get("stat_bytes", 0), own.get("stat_bytes_used")
    return float(used / total) if total and used is not None else None


def _latency(counters: Mapping[str, Any], name: str) -> tuple[float, float]:
    value = counters.get(name)
    return (float(value["avgcount"]), float(value["sum"])) if isinstance(value, Mapping) else (0.0, 0.0)


# Ceph's default of mds_request_load_average_decay_rate.
_HALF_S = 60.0


def loads_of_clients(sessions: object) -> dict[str, float] | None:
    """Return the load of each client of a metadata server from ``session ls``, or None without an answer."""
    if not isinstance(sessions, list):
        return None
    loads = {}
    for session in sessions:
        load = session.get("request_load_avg")
        if isinstance(load, int | float) and load >= 0:
            host = session.get("client_metadata", {}).get("hostname", "")
            loads[f"client.{session['id']}" + (f" on {host}" if host else "")] = float(load)
    return loads


class ClientRequests:
    """Adds up the requests of clients. The load alone shows a change only after a minute."""

    def __init__(self) -> None:
        self._loads: dict[str, tuple[float, Mapping[str, float]]] = {}
        self._sent: dict[str, float] = {}

    def add(self, time_s: float, loads: Mapping[str, Mapping[str, float] | None]) -> dict[str, float]:
        """Add loads (server -> client -> load); return the requests of each client since the first call.

        The requests of a server that does not answer (None) are added when it answers again. Clients without a session
        on any server are dropped.

        >>> requests = ClientRequests()
        >>> requests.add(0.0, {"mds.a": {"client.1": 100.0}})
        {'client.1': 0.0}
        >>> requests.add(60.0, {"mds.a": {"client.1": 50.0, "client.2": 0.0}})
        {'client.1': 0.0, 'client.2': 0.0}
        """
        before, self._loads = self._loads, {}
        sent: dict[str, float] = {}
        for server, of_server in loads.items():
            earlier_s, earlier = before.get(server, (time_s, {}))
            # Without an answer, reuse the previous load, which adds no requests.
            now_s, now = (earlier_s, earlier) if of_server is None else (time_s, of_server)
            self._loads[server] = (now_s, now)
            halves = (now_s - earlier_s) / _HALF_S
            # Load per request, if the requests are evenly distributed over that time.
            left = 0.5**halves
            each = (1 - left) / (halves * math.log(2)) if halves > 0 else math.inf
            for client, load in now.items():
                more = max(0.0, load - left * earlier.get(client, 0.0)) / each
                sent[client] = sent.get(client, self._sent.get(client, 0.0)) + more
        self._sent = sent
        return dict(sent)
