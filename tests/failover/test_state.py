"""Rules on the state of a cluster, with states simulated by crm_simulate and printed by crm_mon."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from failover.clusters import need, planned
from strakes.failover.check import findings
from strakes.failover.setup import read_live
from strakes.targets.command import Completed

_NODES = ("--node-up", "nfs1", "--node-up", "nfs2")


def _simulated(cib: Path, new: Path, *words: str) -> Path:
    command = ["crm_simulate", "--xml-file", str(cib), "--quorum", "1", "--simulate", "--save-output", str(new), *words]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    return new


def _told(plan: Path, cib: Path) -> set[str]:
    environment = {**os.environ, "CIB_file": str(cib)}
    command = ["crm_mon", "--one-shot", "--inactive", "--output-as=xml"]
    state = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout
    answers = {"cibadmin": cib.read_text(), "crm_mon": state}
    setup = read_live(
        lambda argv, timeout_s=0: Completed(
            tuple(argv), 0 if argv[0] in answers else 127, answers.get(argv[0], ""), ""
        ),
        root=plan,
    )
    return {finding.rule for finding in findings(setup)[0] if finding.rule in _RULES}


_RULES = ("cluster-degraded", "service-not-running", "fencing-device-does-not-answer", "failures-not-cleaned-up")
_ATTRIBUTE = '><instance_attributes id="x"><nvpair id="x-1" name="standby" value="on"/></instance_attributes></node>'


@pytest.mark.parametrize(
    ("old", "new", "rules"),
    [
        ("", "", set()),
        (r'(<node id="2" uname="nfs2") ?/>', rf"\1{_ATTRIBUTE}", {"cluster-degraded"}),
        (r'(<node_state [^>]*uname="nfs2"[^>]*in_ccm=)"[^"]*"', r'\1"false"', {"cluster-degraded"}),
        (
            r'(<group id="serve-home">)',
            r'\1<meta_attributes id="x"><nvpair id="x-1" name="is-managed" value="false"/></meta_attributes>',
            {"service-not-running"},
        ),
        (r'(?s)<primitive id="notify-home".*?</primitive>', "", {"service-not-running"}),
    ],
)
def test_a_degraded_node_or_service_is_found(old: str, new: str, rules: set[str], tmp_path: Path) -> None:
    need("crm_simulate", "crm_mon")
    plan = planned("nfs-san", tmp_path / "plan")
    cib = _simulated(plan / "pacemaker/cib.xml", tmp_path / "healthy.xml", *_NODES)
    if old:
        text, times = re.subn(old, new, cib.read_text())
        assert times
        cib.write_text(text)
    assert _told(plan, cib) == rules


@pytest.mark.parametrize(
    ("failed", "rule"),
    [
        ("fence-nfs1_monitor_60000@nfs2=1", "fencing-device-does-not-answer"),
        ("mount-home_monitor_20000@nfs1=7", "failures-not-cleaned-up"),
    ],
)
def test_a_failed_operation_is_found(failed: str, rule: str, tmp_path: Path) -> None:
    need("crm_simulate", "crm_mon")
    plan = planned("nfs-san", tmp_path / "plan")
    cib = _simulated(plan / "pacemaker/cib.xml", tmp_path / "healthy.xml", *_NODES)
    assert rule in _told(plan, _simulated(cib, tmp_path / "failed.xml", "--op-inject", failed))
