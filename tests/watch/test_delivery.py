"""A finding arrives where people look: in a real Alertmanager, by its own way and by the shipped rules, and as mail."""

from __future__ import annotations

import json
import shutil
import socket
import socketserver
import struct
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from email import message_from_string
from email.policy import default
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from conftest import ROOT
from strakes.watch.alerts import AlertSender, Way, to_alertmanager, to_command, to_mail
from strakes.watch.live import LiveWatch
from strakes.watch.metrics import MOST_SERIES, Metrics, Now, serve
from strakes.watch.reading import CounterReading
from strakes.watch.ring import Ring
from strakes.watch.values import WatchEvent

PACKAGING = ROOT / "packaging"
# Debian gives it a name of its own.
ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager") or ""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(log: Path, *words: str) -> Iterator[None]:
    with log.open("w") as file:
        process = subprocess.Popen(words, stdout=file, stderr=file)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def asked(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def wait_for(question: Callable[[], Any], log: Path) -> Any:
    """Return the first answer that is not empty."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            if answer := question():
                return answer
        except OSError:
            pass
        time.sleep(0.5)
    raise AssertionError(log.read_text())


class FullDisk:
    """A source with a planted finding: a target that is 97 % full."""

    name, every_s = "planted", 10.0

    def read(self, time_s: float) -> CounterReading:
        return CounterReading("planted", time_s, full={"OST0007": 0.97})

    def lacking(self, reading: CounterReading) -> tuple[str, ...]:
        return ()


@pytest.mark.more
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
@pytest.mark.skipif(not ALERTMANAGER, reason="Alertmanager is not installed")
def test_a_planted_finding_arrives_at_alertmanager_by_both_ways(tmp_path: Path) -> None:
    manager, own = free_port(), free_port()
    (tmp_path / "am.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    told = list[WatchEvent]()
    alerts = AlertSender([to_alertmanager(f"http://127.0.0.1:{manager}")])
    live = LiveWatch([], [FullDisk()], Ring(tmp_path / "store"), alerts, say=told.append)
    port, _ = serve(live.metrics, "127.0.0.1", 0)
    (tmp_path / "p.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"scrape_configs: [{{job_name: strakes-watch, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
        f"rule_files: ['{PACKAGING}/prometheus/strakes-watch.rules.yml']\n"
        f"alerting: {{alertmanagers: [{{static_configs: [{{targets: ['127.0.0.1:{manager}']}}]}}]}}\n"
    )
    manager_words = (
        ALERTMANAGER,
        f"--config.file={tmp_path}/am.yml",
        f"--storage.path={tmp_path}/am",
        f"--web.listen-address=127.0.0.1:{manager}",
        "--cluster.listen-address=",
    )
    prometheus_words = (
        "prometheus",
        f"--config.file={tmp_path}/p.yml",
        f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{own}",
    )
    with running(tmp_path / "am.log", *manager_words), running(tmp_path / "p.log", *prometheus_words):
        wait_for(lambda: asked(f"http://127.0.0.1:{manager}/api/v2/status"), tmp_path / "am.log")
        live.step()
        assert alerts.settle() == 0
        assert [event.kind for event in told] == ["saturation"] and not alerts.failed, alerts.failed

        def alert(name: str) -> Any:
            rows = asked(f"http://127.0.0.1:{manager}/api/v2/alerts")
            return [row for row in rows if row["labels"]["alertname"] == name]

        (direct,) = wait_for(lambda: alert("strakes-saturation"), tmp_path / "am.log")
        (ruled,) = wait_for(lambda: alert("StrakesWatchAlarm"), tmp_path / "p.log")
        assert direct["labels"]["subject"] == ruled["labels"]["subject"] == told[0].subject
        assert direct["annotations"]["summary"] == told[0].text and "OST0007" in told[0].text
        assert direct["status"]["state"] == "active"
        # It is repeated each minute; Alertmanager's own limit (resolve_timeout) must not end it before.
        assert 240 < datetime.fromisoformat(direct["endsAt"]).timestamp() - time.time() <= 300

        # What is over is over at once.
        alerts.tell([replace(told[0], ended_s=time.time())])
        assert alerts.settle() == 0
        wait_for(lambda: not alert("strakes-saturation"), tmp_path / "am.log")

        # Every question of the shipped dashboard is one that Prometheus understands.
        panels = json.loads((PACKAGING / "grafana" / "strakes-watch.json").read_text())["panels"]
        questions = [target["expr"] for panel in panels for target in panel.get("targets", ())]
        assert questions
        for question in questions:
            query = urllib.parse.quote(question.replace("$__rate_interval", "5m"))
            assert asked(f"http://127.0.0.1:{own}/api/v1/query?query={query}")["status"] == "success", question


class _Sink(socketserver.StreamRequestHandler):
    """As much of a mail server as a client needs (RFC 5321)."""

    def handle(self) -> None:
        server = self.server
        assert isinstance(server, _SinkServer)
        self.wfile.write(b"220 sink\r\n")
        while line := self.rfile.readline():
            word = line.split()[0].upper()
            if word == b"RCPT" and server.refuses:
                self.wfile.write(b"550 nobody of that name\r\n")
            elif word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = list(iter(self.rfile.readline, b".\r\n"))
                server.mails.append(b"".join(lines).decode())
                self.wfile.write(b"250 kept\r\n")
            elif word == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 sink\r\n")


class _SinkServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Sink)
        self.mails: list[str] = []
        self.refuses = False


def test_an_alarm_arrives_as_mail_and_waits_while_the_server_refuses() -> None:
    with _SinkServer() as sink:
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        alerts = AlertSender([to_mail("operators@example.org", "127.0.0.1", int(sink.server_address[1]))])
        sink.refuses = True
        alerts.tell([WatchEvent("heavy", "job 7", 1.0, 2.0, "job 7 causes\r\nBcc: all 91 % of the load")])
        alerts.settle(0.5)
        assert alerts.waiting == 1 and "nobody of that name" in alerts.failed and not sink.mails
        sink.refuses = False
        assert alerts.settle() == 0
        sink.shutdown()
    (text,) = sink.mails
    mail = message_from_string(text, policy=default)
    assert mail["To"] == "operators@example.org" and mail["Bcc"] is None
    assert mail["Subject"] == "strakes: job 7 causes Bcc: all 91 % of the load"
    readable, attached = mail.iter_parts()
    assert "1970-01-01 00:00:01 UTC heavy       job 7 causes" in readable.get_content()
    assert json.loads(attached.get_content())["kind"] == "heavy" and alerts.waiting == 0


def test_silent_connections_do_not_keep_a_scrape_out(capfd: pytest.CaptureFixture[str]) -> None:
    port, _ = serve(Metrics(), "127.0.0.1", 0)
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        assert answer.status == 200
    dropped = 0
    for connection in silent:
        connection.setblocking(False)
        with suppress(BlockingIOError):
            dropped += connection.recv(1) == b""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    assert dropped >= 40
    assert capfd.readouterr().err == ""


def test_series_stay_bounded_with_ten_thousand_jobs_and_targets() -> None:
    metrics = Metrics()
    port, _ = serve(metrics, "127.0.0.1", 0)
    many = {f"t{number}": 0.5 for number in range(10_000)}
    metrics.now = Now(
        latencies={("/fs", f"o{number}", "50"): 0.1 for number in range(10_000)},
        full=many,
        service_s=many,
        top={"operations": [(f'job"{number}\n', 0.1, 0.0) for number in range(10_000)]},
        alarms={("heavy", f"job{number}"): 1 for number in range(10_000)},
        missed={f"s{number}": 1 for number in range(10_000)},
        events={"heavy": 3},
    )
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    series = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert 500 < len(series) <= MOST_SERIES
    assert 'strakes_watch_events_total{kind="heavy"} 3.0' in series
    left_out = next(line for line in series if line.startswith("strakes_watch_series_left_out"))
    assert float(left_out.split()[1]) == 6 * 10_000 + 1 - (len(series) - 1)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="prometheus is not installed")
def test_promtool_finds_nothing_wrong_with_the_metrics() -> None:
    metrics = Metrics()
    port, _ = serve(metrics, "127.0.0.1", 0)
    pair = {("one", "two"): 1}
    metrics.now = Now(
        latencies={("/fs", "create", "99"): 0.1},
        full={"/fs": 0.5},
        service_s={"OST0000": 0.1},
        top={"operations": [("job", 0.1, 0.0)]},
        alarms=pair,
        events={"gap": 1},
        budgets={"level": 1.0},
        missed={"source": 1},
        counters=pair,
        own={"processor share": 0.01, "memory bytes": 1.0},
        deliveries=pair,
    )
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        told = answer.read()
    done = subprocess.run(["promtool", "check", "metrics"], input=told, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b""), done
    # None is left out above.
    names = {line.split()[2] for line in told.decode().splitlines() if line.startswith("# TYPE")}
    samples = {line.partition("{")[0] for line in told.decode().splitlines() if "{" in line}
    assert samples == names - {"strakes_watch_series_left_out"}


def test_a_name_that_is_not_utf_8_is_scraped_escaped() -> None:
    metrics = Metrics()
    port, _ = serve(metrics, "127.0.0.1", 0)
    metrics.now = Now(latencies={("/x/l\udcff", "create", "50"): 0.1})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        assert "/x/l" in (text := answer.read().decode()) and "udcff" in text


def test_alarms_reach_alertmanager_again_after_it_was_away(tmp_path: Path) -> None:
    got: list[list[dict[str, object]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if self.path == "/api/v2/alerts" else 404)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    alerts = AlertSender([to_alertmanager(f"http://127.0.0.1:{server.server_port}")])
    port = server.server_port
    server.server_close()
    alerts.tell(
        [WatchEvent("heavy", "job", 1.0, 2.0, "begun"), WatchEvent("level", "x", 1.0, 2.0, "known", cause="fullness")]
    )
    alerts.settle(0.3)
    assert alerts.waiting == 1 and alerts.failed.endswith(": Connection refused")
    (trouble,) = alerts.troubles(10.0)
    assert "an alarm (heavy, job) cannot be delivered by Alertmanager http://127.0.0.1" in trouble.text
    assert not trouble.alarm
    server = HTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    alerts.tell([WatchEvent("heavy", "job", 1.0, 2.0, "begun", ended_s=9.0)])
    assert alerts.settle() == 0
    server.shutdown()
    server.server_close()
    (again,) = alerts.troubles(70.0)
    assert again.key == trouble.key and again.ended_s == 70.0 and "again; not all could be for about 60 s" in again.text
    # It is over when it is told: nobody is told that it lasts.
    ((alert,),) = got
    assert datetime.fromisoformat(str(alert["endsAt"])).timestamp() < 400


def test_an_alertmanager_that_redirects_has_told_nobody() -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(302)
            self.send_header("Location", "/login")
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    alerts = AlertSender([to_alertmanager(f"http://127.0.0.1:{server.server_port}")])
    alerts.tell([WatchEvent("heavy", "job", 1.0, 2.0, "begun")])
    assert alerts.settle(0.5) == 1 and "302" in alerts.failed
    server.shutdown()
    server.server_close()


def test_alertmanager_is_told_again_what_lasts_and_for_a_while_what_was_short() -> None:
    got: list[WatchEvent] = []
    alerts = AlertSender([Way("all", got.append, repeats=True)])
    lasting = WatchEvent("heavy", "job", 1000.0, 1010.0, "begun")
    alerts.tell([lasting], [], 1010.0)
    for now_s in range(1011, 1200):
        alerts.tell([], [lasting], float(now_s))
        alerts.settle()
    assert 4 <= len(got) <= 5 and set(map(id, got)) == {id(lasting)}


def test_whoever_hangs_or_fails_holds_nobody_up_and_is_asked_ever_more_rarely() -> None:
    asked = []

    def hangs(event: WatchEvent) -> None:
        asked.append(event)
        time.sleep(1.1)
        raise OSError("timed out")

    failed: list[float] = []

    def fails(event: WatchEvent) -> None:
        failed.append(time.monotonic())
        raise OSError("status 500")

    got: list[WatchEvent] = []
    alerts = AlertSender([Way("slow", hangs), Way("broken", fails), Way("good", got.append)])
    began_s = time.monotonic()
    for number in range(20):
        alerts.tell([WatchEvent("heavy", f"job {number}", 1000.0, 1010.0, "begun")])
    assert time.monotonic() - began_s < 1
    assert alerts.settle(4.0) == 40 and len(got) == 20
    assert len(asked) <= 3 and len(failed) == 3 and failed[2] - failed[1] > 1.8
    assert {event.subject for event in alerts.troubles(5.0)} == {"alarms by slow", "alarms by broken"}
    assert alerts.counts["broken", "waiting"] == 20 and alerts.counts["good", "delivered"] == 20


def test_an_alarm_that_is_refused_holds_up_no_other_and_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.watch.alerts._RETRY_S", 0.05)
    refuses, got = {"job 0"}, list[str]()
    tries = list[float]()

    def send(event: WatchEvent) -> None:
        if event.subject in refuses:
            tries.append(time.monotonic())
            raise ValueError("HTTP Error 400: Bad Request")
        got.append(event.subject)

    alerts = AlertSender([Way("all", send, repeats=True)])
    lasting = [WatchEvent("heavy", f"job {number}", 1000.0, 1010.0, "begun") for number in range(4)]
    gaps = list[WatchEvent]()
    for second, event in enumerate(lasting):
        alerts.tell([event], lasting[:second], 1010.0 + second)
        time.sleep(0.1)
        gaps += alerts.troubles(1010.0 + second)
    assert got == ["job 1", "job 2", "job 3"]
    alerts.tell([], lasting, 1080.0)
    time.sleep(0.5)
    assert got[3:] == ["job 1", "job 2", "job 3"] and alerts.waiting == 1
    # Ever more rarely, however often others are taken.
    assert 3 <= len(tries) <= 5 and tries[-1] - tries[-2] > 1.8 * (tries[1] - tries[0])
    assert len(gaps) == 1 and "an alarm (heavy, job 0) cannot be delivered by all: HTTP Error 400" in gaps[0].text
    assert not alerts.troubles(1090.0)
    refuses.clear()
    assert alerts.settle() == 0 and got[-1] == "job 0"
    (again,) = alerts.troubles(1100.0)
    assert again.key == gaps[0].key and again.ended_s == 1100.0


def test_an_alarm_that_is_refused_for_a_day_while_others_are_taken_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.watch.alerts._RETRY_S", 0.02)
    monkeypatch.setattr("strakes.watch.alerts._GIVE_UP_S", 0.2)

    def send(event: WatchEvent) -> None:
        if event.subject == "bad":
            raise ValueError("refused")

    alerts = AlertSender([Way("picky", send), Way("broken", Mock(side_effect=OSError("gone")))])
    for subject in ("bad", "good"):
        alerts.tell([WatchEvent("heavy", subject, 1.0, 2.0, "begun")])
    time.sleep(1.0)
    assert alerts.counts["picky", "dropped"] == 1 and alerts.counts["picky", "waiting"] == 0
    assert alerts.counts["broken", "dropped"] == 0 and alerts.counts["broken", "waiting"] == 2


def test_an_end_that_is_refused_less_than_its_beginning_waits_for_it() -> None:
    got, refused = list[bool](), list[WatchEvent]()

    def send(event: WatchEvent) -> None:
        if not refused:
            refused.append(event)
            raise OSError("busy")
        got.append(event.ended_s is None)

    alerts = AlertSender([Way("mail", send)])
    event = WatchEvent("heavy", "job", 1000.0, 1010.0, "begun")
    alerts.tell([event])
    alerts.tell([replace(event, ended_s=1020.0)])
    assert alerts.settle() == 0 and got == [True, False]


def test_a_command_gets_the_event_on_its_standard_input(tmp_path: Path) -> None:
    alerts = AlertSender([to_command(["sh", "-c", f"cat > {tmp_path}/event"]), to_command(["false"])])
    alerts.tell([WatchEvent("saturation", "disk", 1.0, 2.0, "full")])
    alerts.settle(1.0)
    assert json.loads((tmp_path / "event").read_text())["subject"] == "disk"
    assert alerts.waiting == 1 and alerts.failed == "the command false: it ended with status 1"


def test_a_token_in_the_address_of_alertmanager_is_no_label_and_in_no_message() -> None:
    alerts = AlertSender([to_alertmanager("http://127.0.0.1:1/s3cr3t?token=s3cr3t")])
    alerts.tell([WatchEvent("heavy", "job", 1.0, 2.0, "begun")])
    alerts.settle(0.3)
    assert alerts.failed.startswith("Alertmanager http://127.0.0.1:1/...: ")
    assert "s3cr3t" not in f"{alerts.failed} {alerts.counts} {alerts.troubles(1.0)}"
