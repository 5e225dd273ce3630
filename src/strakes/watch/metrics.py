"""The OpenMetrics endpoint (for Prometheus), with a bounded number of time series."""

from __future__ import annotations

import errno
import io
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from strakes.base.foreign_text import escaped

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

# Maximum number of time series, in total and in one metric family. The size of a scrape grows in proportion.
MOST_SERIES, _MOST_OF_A_FAMILY = 2000, 400
_AGAIN_S = 5.0
_MOST_CONNECTIONS = 16  # Maximum number of simultaneous connections. Each has a thread, so memory grows in proportion.
_MOST_REQUEST_BYTES = 8192  # Maximum size of a request. Prometheus sends about 300 bytes.

# Key of Metrics.now -> name, labels and help text of a metric family. Prometheus reserves the labels "quantile" and
# "job".
_FAMILIES = {
    "latencies": ("latency_seconds directory operation percentile", "Latencies of the probe in the last minute."),
    "alarms": ("alarm kind subject", "1 for an open alarm, or one that was reported less than five minutes ago."),
    "events": ("events_total kind", "Number of events since this watch began."),
    "levels": ("service_level_met level", "1 if the last minute met the service level, else 0."),
    "missed": ("missed_total source", "Number of failed readings of a source; for the store, of lines not written."),
    "deliveries": ("alerts command state", "Alarms since this watch began: delivered, waiting or failed."),
    "top": ("load_share unit rank name", "Share of one job or client in the load of the last hour, weighted by age."),
    "full": ("full_ratio target", "Share of the space or of the files of a target that is used."),
    "service_s": ("service_seconds target", "Mean service time of a request on a target in the last 15 s."),
}


class Metrics:
    """Collector of metrics for prometheus-client. ``now``: values by metric family and labels.

    To update the values, replace the whole mapping ``now``. Any thread may replace it.
    """

    def __init__(self) -> None:
        self.now: Mapping[str, Mapping[Any, float]] = {}

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yield all metric families, with at most MOST_SERIES series in total."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        now = self.now
        served = left_out = 0
        for key, (words, help_text) in _FAMILIES.items():
            name, *labels = words.split()
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family = kind(f"strakes_watch_{name}", help_text, labels=labels)
            values: Mapping[str | tuple[str, ...], float] = now.get(key, {})
            room = min(_MOST_OF_A_FAMILY, MOST_SERIES - 1 - served)
            for labelled, value in islice(values.items(), room):
                # Escape names of jobs and targets, because they may contain control characters and invalid UTF-8.
                parts = (labelled,) if isinstance(labelled, str) else labelled
                family.add_metric([escaped(part).replace("\r", "\\r") for part in parts], float(value))
            served += min(len(values), room)
            left_out += max(0, len(values) - room)
            yield family
        text = "Number of series that are left out because there are too many."
        yield GaugeMetricFamily("strakes_watch_series_left_out", text, value=left_out)


def serve(metrics: Metrics, address: str, port: int, say: Callable[[str], None]) -> int:
    """Serve the metrics over HTTP in a thread, and return the port. Raises OSError if the address cannot be used.

    While another process uses the port, report this once by ``say``, and retry.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app

    registry = CollectorRegistry()
    registry.register(metrics)
    ProcessCollector(registry=registry)
    _Server.address_family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]

    def start() -> WSGIServer:
        return make_server(address, port, make_wsgi_app(registry), _Server, _Handler)

    def work(server: WSGIServer | None) -> None:
        while server is None:
            time.sleep(_AGAIN_S)
            with suppress(OSError):
                server = start()
        server.serve_forever()

    server = None
    try:
        server = start()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        say(f"another process uses port {port}: metrics are served when it is free")
    threading.Thread(target=work, args=(server,), daemon=True).start()
    return int(server.server_port) if server else port


class _Handler(WSGIRequestHandler):
    timeout = 5.0  # close a connection after this number of seconds without data
    get_stderr = staticmethod(io.StringIO)  # Discard tracebacks of invalid requests.

    def handle(self) -> None:
        """Handle a request. Read at most 8 KiB of it, because http.server would read up to 6 MiB of headers."""
        request = b""
        while len(request) < _MOST_REQUEST_BYTES and not re.search(rb"\n\r?\n", request):
            # recv() returns no bytes if the client has closed the connection. An empty line then ends the request.
            request += self.connection.recv(_MOST_REQUEST_BYTES - len(request)) or b"\n\n"
        self.rfile = io.BytesIO(request)
        super().handle()

    def log_message(self, *_: object) -> None:
        """Do not log scrapes."""

    def get_environ(self) -> dict[str, Any]:
        """Return the request without the header Accept, because prometheus_client fails if its version is no number."""
        environ = super().get_environ()
        environ.pop("HTTP_ACCEPT", None)
        return environ


class _Server(ThreadingMixIn, WSGIServer):
    """HTTP server that, at its limit of connections, closes the oldest one. start_http_server has no limit."""

    daemon_threads = True
    request_queue_size = socket.SOMAXCONN  # With the default of 5, clients wait for a second during a flood.

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
