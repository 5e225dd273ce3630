"""A real pair on this machine: Corosync, Pacemaker, and fencing by software BMCs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import wait_for
from integration.conftest import labs
from lab.running import Labs
from strakes.lab.ha_lab import HaLab, HaOptions
from strakes.lab.packages import missing

pytestmark = [pytest.mark.lab, pytest.mark.long]

__all__ = ["labs"]
A, B = "mds-a", "mds-b"
_VM_UP_S = 600


def tried(labs: Labs, *words: str, timeout_s: float = 300) -> dict[str, Any]:
    """Run ``strakes failover pair``, require that no trial had split brain or lost records, and return its document."""
    done = subprocess.run(
        [sys.executable, "-m", "strakes", "failover", "pair", *words, "--json", "-"],
        env=labs.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    bad = [
        one
        for one in document["trials"]
        if one["judgement"]["split_brain"] or one["judgement"]["lost"] or one["judgement"]["twice"]
    ]
    assert done.returncode == 0 and not bad, bad
    return document


def moments(trial: dict[str, Any], source: str) -> list[tuple[float, str]]:
    line = trial["line"]
    return [(one["at_s"] - line["fault_s"], one["text"]) for one in line["moments"] if one["source"].startswith(source)]


def checked_live(labs: Labs, node: str) -> set[str]:
    commands = labs.status("ha")["facts"]["commands"]
    words = [*commands[node], sys.executable, "-m", "strakes", "failover", "check", "--live", "--json", "-"]
    checked = subprocess.run(words, capture_output=True, text=True, timeout=60)
    return {one["rule"] for one in json.loads(checked.stdout)["findings"]}


def power_off_ended_well(trial: dict[str, Any]) -> None:
    """Require that the peer serves only after the BMC confirmed the power-off, with alerts by mail and webhook."""
    served, other = trial["served_before"], trial["served_after"]
    assert {served, other} == {A, B} and set(trial["switched_off"]) == {served}
    first_answer = min(at for at, text in moments(trial, "client") if text == "is answered again")
    assert trial["switched_off"][served] < first_answer
    for way in ("mail", "webhook"):
        told = [text for _, text in moments(trial, f"alert by {way}")]
        assert any(text.startswith(f"[{other}] fencing: Operation off of {served}") for text in told), told
        assert f"[{other}] node {served} is now lost" in told


def cut_of_one_link_ended_well(trial: dict[str, Any]) -> None:
    assert trial["served_after"] == trial["served_before"] and not trial["switched_off"] and not trial["told"]
    assert not [text for _, text in moments(trial, "BMC") if text.startswith("set")]


def cut_of_all_links_ended_well(trial: dict[str, Any]) -> None:
    assert len(trial["switched_off"]) == 1 and trial["served_after"] not in trial["switched_off"]


def hung_service_was_started_anew(trial: dict[str, Any]) -> None:
    """Require that the service was restarted without fencing; its monitor must detect a process that hangs."""
    assert not trial["switched_off"] and trial["outage_s"] > 1.0
    assert any(text == "is answered again" for _, text in moments(trial, "client"))


_ENDED_WELL = {
    "service-hung": hung_service_was_started_anew,
    "power-off": power_off_ended_well,
    "cut-one": cut_of_one_link_ended_well,
    "cut-all": cut_of_all_links_ended_well,
}


def test_five_trials_of_each_fault_end_without_split_brain(labs: Labs) -> None:
    labs.up("ha")
    assert labs.status("ha")["condition"] == "up"
    # The only findings are the short time-outs that the lab uses for speed.
    assert checked_live(labs, A) == {"cluster-time-doubtful"}

    document = tried(labs, "ha", "--repeat", "5", timeout_s=1200)
    for trial in document["trials"]:
        _ENDED_WELL[trial["fault"]](trial)
    assert sorted(trial["fault"] for trial in document["trials"]) == sorted([*_ENDED_WELL] * 5)

    said = labs.run("exec", "ha", A, "sh", "-c", "uname -n; exit 7")
    assert (said.stdout, said.returncode) == (f"{A}\n", 7)
    assert labs.run("exec", "ha", A, "strakes", "--version").stdout.startswith("strakes")
    assert "its nodes are: mds-a, mds-b" in labs.run("exec", "ha", "mds-c", "true").stderr
    used = labs.footprint()
    labs.down("ha")
    assert not labs.remains(used)


def test_a_cut_link_is_restored_when_the_drill_is_killed(labs: Labs) -> None:
    labs.up("ha")
    facts = labs.status("ha")["facts"]
    # Root opens logs there, so nobody else may put links there.
    logs = [Path(labs.status("ha")["directory"], name, "var/log").stat() for name in ("a", "b")]
    assert [(log.st_uid, log.st_mode & 0o022) for log in logs] == [(0, 0)] * 2

    def connected() -> bool:
        words = [*facts["commands"][B], "ip", "-o", "link", "show", "ring0"]
        return "LOWER_UP" in subprocess.run(words, capture_output=True, text=True).stdout

    subprocess.run([*facts["links"]["0"], "down"], check=True)
    wait_for(lambda: "cluster-degraded" in checked_live(labs, A))
    subprocess.run([*facts["links"]["0"], "up"], check=True)

    words = [sys.executable, "-m", "strakes", "failover", "pair", "ha", "--fault", "cut-one", "--repeat", "1"]
    drill = subprocess.Popen(words, env=labs.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: not connected())
    finally:
        drill.kill()
        drill.communicate()
    wait_for(connected)
    labs.down("ha")


def test_virtual_machines_keep_every_acknowledged_record_on_a_replicated_device(labs: Labs) -> None:
    lacking = missing(HaLab.packages_for(HaOptions(uml=True)))
    if lacking:
        pytest.skip(f"packages for such machines are missing: {', '.join(one.name for one in lacking)}")
    up = labs.run("up", "ha", "--uml", timeout_s=_VM_UP_S)
    assert up.returncode == 0, up.stderr
    facts = labs.status("ha")["facts"]
    seen = labs.run("exec", "ha", A, "cat", "/proc/drbd").stdout
    assert "cs:Connected" in seen and "ds:UpToDate/UpToDate C" in seen
    assert sum(one["memory_bytes"] for one in labs.status("ha")["processes"]) <= 1.5 * 2**30

    killed, all_cut = tried(labs, "ha", "--repeat", "1", "--fault", "power-off", "--fault", "cut-all", timeout_s=1500)[
        "trials"
    ]
    assert (killed["served_before"], killed["served_after"]) == (A, B) and killed["judgement"]["acknowledged"] > 10
    assert len(all_cut["switched_off"]) == 1 and all_cut["judgement"]["acknowledged"] > 10
    assert Path(facts["bmc_log"]).read_text().count("set power 0") >= 2
    used = labs.footprint()
    labs.down("ha")
    assert not labs.remains(used)
