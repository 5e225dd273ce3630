"""Requests of clients, from the metadata servers' decaying loads, in which a request's weight halves every minute."""

from __future__ import annotations

import math
from collections.abc import Mapping

# mds_request_load_average_decay_rate, as Ceph comes.
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
            # Requests that come evenly in that time add this load each.
            left = 0.5**halves
            each = (1 - left) / (halves * math.log(2)) if halves > 0 else math.inf
            for client, load in now.items():
                more = max(0.0, load - left * earlier.get(client, 0.0)) / each
                sent[client] = sent.get(client, self._sent.get(client, 0.0)) + more
        self._sent = sent
        return dict(sent)
