"""The OpenMetrics endpoint: a bounded number of series, whatever runs on the file system."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

# Of all names together; a family of many targets is cut before it is reached, and the cut is told.
MOST_SERIES = 2000
_MOST_OF_A_FAMILY = 400
_MOST_CONNECTIONS = 16


@dataclass
class Now:
    """What is told at the next scrape; replaced as a whole."""

    latencies: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """(directory, operation, quantile) -> seconds."""
    full: Mapping[str, float] = field(default_factory=dict)
    service_s: Mapping[str, float] = field(default_factory=dict)
    """Target -> seconds of work a request."""
    top: Mapping[str, Sequence[tuple[str, float, float]]] = field(default_factory=dict)
    alarms: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(kind, subject) that last now."""
    events: Mapping[str, int] = field(default_factory=dict)
    budgets: Mapping[str, float] = field(default_factory=dict)
    missed: Mapping[str, int] = field(default_factory=dict)
    counters: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(source, counter) -> value."""
    own: Mapping[str, float] = field(default_factory=dict)
    """load of the watch itself"""


class Metrics:
    """A collector for prometheus-client. ``now`` may be set from any thread."""

    def __init__(self) -> None:
        self.now = Now()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return all families, never more than MOST_SERIES series."""
        from prometheus_client.core import GaugeMetricFamily

        now = self.now
        left_out = 0
        told = 0
        families = (
            (
                "strakes_watch_latency_seconds",
                "of the probe in the last minute",
                ("directory", "operation", "quantile"),
                now.latencies,
            ),
            (
                "strakes_watch_alarm",
                "lasts, or was told less than five minutes ago",
                ("kind", "subject"),
                now.alarms,
            ),
            (
                "strakes_watch_events",
                "told since this watch began",
                ("kind",),
                {(kind,): n for kind, n in now.events.items()},
            ),
            (
                "strakes_watch_error_budget_left",
                "share, below 0 when it is exceeded",
                ("level",),
                {(k,): v for k, v in now.budgets.items()},
            ),
            ("strakes_watch_own", "load of the watch itself", ("figure",), {(k,): v for k, v in now.own.items()}),
            (
                "strakes_watch_missed",
                "readings that failed since this watch began",
                ("source",),
                {(k,): v for k, v in now.missed.items()},
            ),
            (
                "strakes_watch_load_share",
                "of the heaviest jobs or clients in the last hour",
                # A label "job" would be renamed: Prometheus has one of its own.
                ("unit", "rank", "name"),
                _ranked(now.top),
            ),
            ("strakes_watch_counter", "as a source counts it", ("source", "counter"), now.counters),
            (
                "strakes_watch_full_ratio",
                "of space or files",
                ("target",),
                {(k,): v for k, v in now.full.items()},
            ),
            (
                "strakes_watch_service_seconds",
                "of work a request in the last 15 s",
                ("target",),
                {(k,): v for k, v in now.service_s.items()},
            ),
        )
        for name, help_text, labels, values in families:
            family = GaugeMetricFamily(name, help_text, labels=labels)
            for number, (key, value) in enumerate(values.items()):
                if number >= _MOST_OF_A_FAMILY or told >= MOST_SERIES - 1:
                    left_out += len(values) - number
                    break
                family.add_metric(list(key), float(value))
                told += 1
            yield family
        yield GaugeMetricFamily("strakes_watch_series_left_out", "because there are too many", value=left_out)


def _ranked(top: Mapping[str, Sequence[tuple[str, float, float]]]) -> dict[tuple[str, str, str], float]:
    return {(unit, str(rank), job): share for unit, rows in top.items() for rank, (job, share, _) in enumerate(rows, 1)}


def serve(metrics: Metrics, address: str, port: int) -> tuple[int, threading.Thread]:
    """Answer scrapes in a thread; returns the port. Raises OSError where it cannot listen."""
    from prometheus_client import CollectorRegistry, make_wsgi_app

    registry = CollectorRegistry()
    registry.register(metrics)
    family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    server_class = type("_Server", (_Server,), {"address_family": family})
    server: WSGIServer = make_server(address, port, make_wsgi_app(registry), server_class, _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    return int(server.server_port), thread


class _Handler(WSGIRequestHandler):
    timeout = 5.0  # without a word

    def log_message(self, *_: Any) -> None:
        """Keep quiet: a scrape is no news."""


class _Server(ThreadingMixIn, WSGIServer):
    """A server of which strangers can take no more than a few connections; who says nothing goes first."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self._open: dict[Any, None] = {}
        self._taking = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._taking:
            self._open[request] = None
            for oldest in list(self._open)[:-_MOST_CONNECTIONS]:
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._taking:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: a client that goes away is no news."""
