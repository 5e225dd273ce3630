"""The shipped dashboard, rules, unit and check use only metrics and options that exist."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT
from strakes.cli.watch import run_command
from strakes.watch.metrics import Metrics, Now

PACKAGING = ROOT / "packaging"
OWN = re.compile(r"strakes_watch_\w+")


def served() -> set[str]:
    return {family.name + ("_total" if family.type == "counter" else "") for family in Metrics().collect()}


@pytest.mark.parametrize("path", ["grafana/strakes-watch.json", "prometheus/strakes-watch.rules.yml"])
def test_every_metric_in_use_is_served(path: str) -> None:
    text = (PACKAGING / path).read_text()
    asked = set(OWN.findall(text))
    assert asked and asked <= served()
    if path.endswith(".json"):
        assert json.loads(text)["panels"]


def test_no_label_is_a_reserved_one_of_prometheus() -> None:
    metrics = Metrics()
    metrics.now = Now(top={"operations": [("job 7", 0.5)]}, missed={"oss1": 1}, counters={("oss1", "reads"): 1})
    labels = {label for family in metrics.collect() for sample in family.samples for label in sample.labels}
    assert {"name", "source"} <= labels and not {"job", "instance"} & labels


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_the_rules_are_valid() -> None:
    rules = PACKAGING / "prometheus" / "strakes-watch.rules.yml"
    subprocess.run(["promtool", "check", "rules", rules], check=True, capture_output=True)


def test_the_unit_starts_the_command_with_existing_options() -> None:
    text = (PACKAGING / "systemd" / "strakes-watch@.service").read_text()
    words = shlex.split(next(line for line in text.splitlines() if line.startswith("ExecStart=")).partition("=")[2])
    assert words[1:3] == ["strakes", "watch"]
    known = {option for parameter in run_command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_the_check_compiles_and_matches_the_printed_verdict(tmp_path: Path) -> None:
    path = PACKAGING / "reframe" / "strakes_watch.py"
    source = path.read_text()
    compile(source, str(path), "exec")
    said = "/fs probe create: SLOWER, latency +12.0% (+8.0% to +15.0%); 100 hours before, 100 after"
    slower = re.search(r'assert_not_found\(r"([^"]+)"', source)
    cost = re.search(r'extractall\(r"([^"]+)"', source)
    assert slower and re.search(slower[1], said)
    assert cost and (match := re.search(cost[1], said)) and match[1] == "+12.0"


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
def test_a_real_prometheus_scrapes_it(tmp_path: Path) -> None:
    import socket
    import time
    import urllib.request

    from strakes.watch.metrics import Now, serve

    metrics = Metrics()
    metrics.now = Now(top={"operations": [(f"job{number}", 0.0001) for number in range(10_000)]})
    port = serve(metrics, "127.0.0.1", 0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = free.getsockname()[1]
    (tmp_path / "p.yml").write_text(
        f"scrape_configs: [{{job_name: strakes-watch, scrape_interval: 1s, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]"
        f"\nrule_files: ['{PACKAGING}/prometheus/strakes-watch.rules.yml']\n"
    )
    words = ["prometheus", f"--config.file={tmp_path}/p.yml", f"--storage.tsdb.path={tmp_path}/data"]
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen([*words, f"--web.listen-address=127.0.0.1:{own}"], stdout=log, stderr=log)
    try:
        query = f"http://127.0.0.1:{own}/api/v1/query?query=count(%7Bjob%3D%22strakes-watch%22%7D)"
        count = 0
        deadline = time.monotonic() + 60
        while count < 100 and time.monotonic() < deadline:
            time.sleep(1)
            try:
                result = json.load(urllib.request.urlopen(query, timeout=5))["data"]["result"]
            except OSError:
                continue
            count = int(result[0]["value"][1]) if result else 0
        # Including the series that Prometheus adds to every scrape.
        assert 100 < count <= 2000 + 10, (tmp_path / "log").read_text()
    finally:
        process.terminate()
        process.wait(30)
