"""The shipped dashboard, rules and unit use only metrics and options that exist."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess

import pytest

from conftest import ROOT
from strakes.cli.watch import run_command
from strakes.watch.metrics import Metrics

PACKAGING = ROOT / "packaging"
OWN = re.compile(r"strakes_watch_\w+")


@pytest.mark.parametrize("path", ["grafana/strakes-watch.json", "prometheus/strakes-watch.rules.yml"])
def test_every_metric_in_use_is_served(path: str) -> None:
    text = (PACKAGING / path).read_text()
    asked = set(OWN.findall(text))
    served = {family.name + ("_total" if family.type == "counter" else "") for family in Metrics().collect()}
    assert asked and asked <= served
    if path.endswith(".json"):
        assert json.loads(text)["panels"]


def test_no_label_is_a_reserved_one_of_prometheus() -> None:
    metrics = Metrics()
    metrics.now = {"top": {("operations", "1", "job 7"): 0.5}, "missed": {"oss1": 1}}
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
