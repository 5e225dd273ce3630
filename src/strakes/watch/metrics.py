"""The OpenMetrics endpoint, with a bounded number of series."""

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
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

# Limits of all series and of one family; a further series reports the number beyond them.
MOST_SERIES = 2000
_MOST_OF_A_FAMILY = 400
_MOST_CONNECTIONS = 16


@dataclass
class Now:
    """Values for the next scrape; replaced as a whole."""

    latencies: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """(directory, operation, percentile) -> seconds."""
    full: Mapping[str, float] = field(default_factory=dict)
    service_s: Mapping[str, float] = field(default_factory=dict)
    """Target -> service time of a request."""
    top: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)
    alarms: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(kind, subject) that last now."""
    events: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, float] = field(default_factory=dict)
    missed: Mapping[str, int] = field(default_factory=dict)
    counters: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(source, counter) -> value."""
    deliveries: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(command, "delivered", "waiting" or "failed") -> alarms."""


class Metrics:
    """A collector for prometheus-client. ``now`` may be set from any thread."""

    def __init__(self) -> None:
        self.now = Now()

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Return all families, never more than MOST_SERIES series."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        now = self.now
        left_out = 0
        told = 0
        families = (
            (
                GaugeMetricFamily,
                "strakes_watch_latency_seconds",
                "How long operations of the probe took in the last minute.",
                # A label "quantile" would make it a summary: promtool check metrics.
                ("directory", "operation", "percentile"),
                now.latencies,
            ),
            (
                GaugeMetricFamily,
                "strakes_watch_alarm",
                "1 for an open alarm, or one that was reported less than five minutes ago.",
                ("kind", "subject"),
                now.alarms,
            ),
            (
                CounterMetricFamily,
                "strakes_watch_events",
                "Number of events since this watch began.",
                ("kind",),
                {(kind,): n for kind, n in now.events.items()},
            ),
            (
                GaugeMetricFamily,
                "strakes_watch_service_level_met",
                "1 if the last minute met the service level, else 0.",
                ("level",),
                {(k,): v for k, v in now.levels.items()},
            ),
            (
                CounterMetricFamily,
                "strakes_watch_missed",
                "How many readings of a source failed since this watch began; of the store, lines not written.",
                ("source",),
                {(k,): v for k, v in now.missed.items()},
            ),
            (
                GaugeMetricFamily,
                "strakes_watch_alerts",
                "How many alarms the command got since this watch began, wait for it, or failed.",
                ("command", "state"),
                now.deliveries,
            ),
            (
                GaugeMetricFamily,
                "strakes_watch_load_share",
                "Share of the load of the last hour that one job or client causes; recent load counts more.",
                # Prometheus reserves the label "job".
                ("unit", "rank", "name"),
                _ranked(now.top),
            ),
            (
                GaugeMetricFamily,
                "strakes_watch_source_value",
                "A counter as its source counts it.",
                ("source", "counter"),
                now.counters,
            ),
            (
                GaugeMetricFamily,
                "strakes_watch_full_ratio",
                "Share of the space or of the files of a target that is used.",
                ("target",),
                {(k,): v for k, v in now.full.items()},
            ),
            (
                GaugeMetricFamily,
                "strakes_watch_service_seconds",
                "Seconds for which a request kept a target busy, the mean of the last 15 s.",
                ("target",),
                {(k,): v for k, v in now.service_s.items()},
            ),
        )
        for kind, name, help_text, labels, values in families:
            family = kind(name, help_text, labels=labels)
            for number, (key, value) in enumerate(values.items()):
                if number >= _MOST_OF_A_FAMILY or told >= MOST_SERIES - 1:
                    left_out += len(values) - number
                    break
                # OpenMetrics requires UTF-8, but names may have other bytes.
                family.add_metric([part.encode("utf-8", "backslashreplace").decode() for part in key], float(value))
                told += 1
            yield family
        yield GaugeMetricFamily(
            "strakes_watch_series_left_out", "How many series are left out because there are too many.", value=left_out
        )


def _ranked(top: Mapping[str, Sequence[tuple[str, float]]]) -> dict[tuple[str, str, str], float]:
    """Return the shares by unit, rank and name."""
    return {(unit, str(rank), job): share for unit, rows in top.items() for rank, (job, share) in enumerate(rows, 1)}


def serve(metrics: Metrics, address: str, port: int) -> int:
    """Answer scrapes in a thread; return the port. Raises OSError if the address cannot be used."""
    from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app

    registry = CollectorRegistry()
    registry.register(metrics)
    # Processor time and memory of the watch itself.
    ProcessCollector(registry=registry)
    _Server.address_family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    server = make_server(address, port, make_wsgi_app(registry), _Server, _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_port)


class _Handler(WSGIRequestHandler):
    timeout = 5.0  # seconds of silence

    def log_message(self, *_: object) -> None:
        """Do not log scrapes."""


class _Server(ThreadingMixIn, WSGIServer):
    """A server that closes the oldest of too many connections; start_http_server has no limit of them."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self._open: dict[int, socket.socket] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= _MOST_CONNECTIONS:
                with suppress(OSError):
                    self._open.pop(next(iter(self._open))).shutdown(socket.SHUT_RDWR)
            self._open[id(request)] = request
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(id(request), None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""
