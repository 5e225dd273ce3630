"""Delivery of alarms: to a real Alertmanager by the shipped rules, in the metrics, and to a command."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from mounts import faulty_mounted
from strakes.watch.alerts import AlertSender, run_command
from strakes.watch.live import LiveWatch
from strakes.watch.metrics import MOST_SERIES, Metrics, serve
from strakes.watch.reading import CounterReading
from strakes.watch.ring import Ring
from strakes.watch.values import WatchEvent

PACKAGING = ROOT / "packaging"
# Debian names the program prometheus-alertmanager.
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
    name, every_s = "planted", 10.0

    def read(self, time_s: float) -> CounterReading:
        return CounterReading("planted", time_s, full={"OST0007": 0.97})

    def lacking(self, reading: CounterReading) -> tuple[str, ...]:
        return ()


@pytest.mark.more
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
@pytest.mark.skipif(not ALERTMANAGER, reason="Alertmanager is not installed")
def test_a_planted_finding_arrives_at_alertmanager_by_the_rules(tmp_path: Path) -> None:
    manager, own = free_port(), free_port()
    (tmp_path / "am.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    told = list[WatchEvent]()
    live = LiveWatch([], [FullDisk()], Ring(tmp_path / "store"), AlertSender(), say=told.append)
    port = serve(live.metrics, "127.0.0.1", 0, print)
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
        assert [event.kind for event in told] == ["saturation"]

        def alert(name: str) -> Any:
            rows = asked(f"http://127.0.0.1:{manager}/api/v2/alerts")
            return [row for row in rows if row["labels"]["alertname"] == name]

        (ruled,) = wait_for(lambda: alert("StrakesWatchAlarm"), tmp_path / "p.log")
        assert ruled["labels"]["subject"] == told[0].subject

        # Prometheus accepts every query of the shipped dashboard.
        panels = json.loads((PACKAGING / "grafana" / "strakes-watch.json").read_text())["panels"]
        questions = [target["expr"] for panel in panels for target in panel.get("targets", ())]
        assert questions
        for question in questions:
            query = urllib.parse.quote(question.replace("$__rate_interval", "5m"))
            assert asked(f"http://127.0.0.1:{own}/api/v1/query?query={query}")["status"] == "success", question


def test_a_used_port_and_silent_connections_do_not_block_a_scrape(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("strakes.watch.metrics._AGAIN_S", 0.01)
    said = list[str]()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = serve(Metrics(), "127.0.0.1", other.getsockname()[1], said.append)
    assert said == [f"another process uses port {port}: metrics are served when it is free"]
    wait_for(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read(), Path("/dev/null"))
    began_s = time.monotonic()
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
    assert time.monotonic() - began_s < 1
    accept = {"Accept": "application/openmetrics-text;version=a"}
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=accept)) as answer:
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


def test_a_request_is_read_only_as_far_as_one_of_prometheus_needs() -> None:
    port = serve(Metrics(), "127.0.0.1", 0, print)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nx: " + b"y" * 8192)
        assert connection.recv(100).startswith(b"HTTP/1.0 200 OK")


@pytest.mark.parametrize(
    "request_text", [b"GET /" + b"a" * 100_000, b"GET /metrics HTTP/1.1\r\n" + b"x: y\r\n" * 1000, b"\0" * 1000]
)
def test_an_invalid_request_prints_nothing(capfd: pytest.CaptureFixture[str], request_text: bytes) -> None:
    port = serve(Metrics(), "127.0.0.1", 0, print)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request_text + b"\r\n\r\n")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        assert answer.status == 200
    time.sleep(0.5)
    assert capfd.readouterr().err == ""


def scraped(now: Mapping[str, Mapping[Any, float]]) -> str:
    metrics = Metrics()
    port = serve(metrics, "127.0.0.1", 0, print)
    metrics.now = now
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return str(answer.read().decode())


def test_series_stay_bounded_with_ten_thousand_jobs_and_targets() -> None:
    many = {f"t{number}": 0.5 for number in range(10_000)}
    now: dict[str, Mapping[Any, float]] = {
        "latencies": {("/fs", f"o{number}", "50"): 0.1 for number in range(10_000)},
        "full": many,
        "service_s": many,
        "top": {("operations", "1", f'job"{number}\n'): 0.1 for number in range(10_000)},
        "alarms": {("heavy", f"job{number}"): 1 for number in range(10_000)},
        "missed": {f"s{number}": 1 for number in range(10_000)},
        "events": {"heavy": 3},
    }
    series = [line for line in scraped(now).splitlines() if line.startswith("strakes_")]
    assert 500 < len(series) <= MOST_SERIES
    assert 'strakes_watch_events_total{kind="heavy"} 3.0' in series
    left_out = next(line for line in series if line.startswith("strakes_watch_series_left_out"))
    assert float(left_out.split()[1]) == 6 * 10_000 + 1 - (len(series) - 1)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="prometheus is not installed")
def test_promtool_finds_nothing_wrong_with_the_metrics() -> None:
    pair = {("one", "two"): 1}
    now: dict[str, Mapping[Any, float]] = {
        "latencies": {("/fs", "create", "99"): 0.1},
        "full": {"/fs": 0.5},
        "service_s": {"OST0000": 0.1},
        "top": {("operations", "1", "job"): 0.1},
        "alarms": pair,
        "events": {"gap": 1},
        "levels": {"level": 1.0},
        "missed": {"source": 1},
        "deliveries": pair,
    }
    told = scraped(now)
    done = subprocess.run(["promtool", "check", "metrics"], input=told, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, ""), done
    # The metric of omitted series is absent, because no series was omitted.
    names = {line.split()[2] for line in told.splitlines() if line.startswith("# TYPE strakes_")}
    samples = {line.partition("{")[0] for line in told.splitlines() if line.startswith("strakes_") and "{" in line}
    assert samples == names - {"strakes_watch_series_left_out"}


def test_names_with_control_characters_and_other_bytes_are_scraped_escaped() -> None:
    text = scraped({"top": {("bytes", "1", "a\x1b[31m\u202e\r\n\t\udcff"): 0.1}})
    assert all(code in text for code in ("x1b", "u202e", "udcff"))
    assert all(character.isprintable() or character in "\n\t" for character in text)


def test_a_command_gets_each_alarm_once_on_its_standard_input(tmp_path: Path) -> None:
    alerts = AlertSender(["sh", "-c", f"cat >> {tmp_path}/events; echo >> {tmp_path}/events"])
    alarm = WatchEvent("saturation", "disk", 1.0, 2.0, "full")
    alerts.tell([alarm, WatchEvent("gap", "disk", 1.0, 2.0, "not read")], 2.0)
    alerts.tell([], 2.0)
    assert alerts.settle() == 0 and not alerts.why
    assert [json.loads(row)["subject"] for row in (tmp_path / "events").read_text().splitlines()] == ["disk"]


def test_a_command_without_end_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.watch.alerts._LIMIT_S", 1.0)
    words = ["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/child; wait"]
    with pytest.raises(OSError, match="did not end within 1 s"):
        run_command(words, WatchEvent("saturation", "disk", 1.0, 2.0, "full"))
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    wait_for(lambda: not child.exists() or child.read_text().split()[2] in "ZX", tmp_path / "child")
    with pytest.raises(OSError, match="No such file"):
        run_command([f"{tmp_path}/a=b"], WatchEvent("saturation", "disk", 1.0, 2.0, "full"))
    with faulty_mounted() as mount:
        subprocess.run(["install", "-m", "755", "/bin/true", program := f"{mount.place}/true"], check=True)
        for call, words in (("create", ["touch", f"{mount.place}/x"]), ("open", [program])):
            mount.hang(call)
            with pytest.raises(OSError, match="did not end within 1 s"):  # SIGKILL does not end it.
                run_command(words, WatchEvent("saturation", "disk", 1.0, 2.0, "full"))
        mount.mend()


def test_a_failing_command_is_reported_once_and_again_when_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    fails = True

    def send(words: Sequence[str], event: WatchEvent) -> None:
        if fails:
            raise OSError("it ended with status 1")

    monkeypatch.setattr("strakes.watch.alerts.run_command", send)
    alerts = AlertSender(["page"])
    alarm = WatchEvent("saturation", "disk", 1.0, 2.0, "full")
    gaps = [gap for _ in range(2) for gap in alerts.tell([alarm], 10.0)]
    alerts.settle()
    (gap,) = [*gaps, *alerts.tell([], 10.0)]
    assert "page: it ended with status 1; strakes does not retry" in gap.text and not alerts.tell([], 11.0)
    fails = False
    gaps = alerts.tell([alarm], 20.0)
    alerts.settle()
    (over,) = [*gaps, *alerts.tell([], 20.0)]
    assert over.told_s == 20.0 and over.text == "alarms are delivered by page again; 2 were lost"
    assert alerts.counts == {("page", "delivered"): 1, ("page", "waiting"): 0, ("page", "failed"): 2}
