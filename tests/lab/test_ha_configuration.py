"""The configuration of the lab's HA pair equals the plan, except for features that the lab's nodes lack."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from strakes.failover.plan import alert_files, drbd_files
from strakes.lab.ha_configuration import cluster, machine_cib, namespace_cib

KINDS = ("namespaces", "machines")


def cib(kind: str, directory: Path) -> str:
    if kind == "namespaces":
        return namespace_cib(
            cluster(directory, 1.0, device="/dev/null", mount="/none", drbd="9"), directory, "/journal"
        )
    return machine_cib(cluster(directory, 5.0, device="/dev/vdb", mount="/srv/journal", drbd="8.4"), directory)


@pytest.mark.parametrize("kind", KINDS)
def test_pacemaker_accepts_the_configuration(kind: str, tmp_path: Path) -> None:
    if shutil.which("crm_simulate", path="/usr/sbin") is None:
        pytest.skip("pacemaker-cli-utils is not installed")
    (tmp_path / "cib.xml").write_text(cib(kind, tmp_path))
    words = f"--xml-file {tmp_path}/cib.xml --node-up mds-a --node-up mds-b --quorum true --simulate"
    done = subprocess.run(["/usr/sbin/crm_simulate", *words.split()], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert "start" in done.stdout.lower()


@pytest.mark.parametrize("kind", KINDS)
def test_fencing_has_the_method_and_cipher_of_the_bmc_and_the_delay_of_its_kind(kind: str, tmp_path: Path) -> None:
    devices = [one for one in Xml.fromstring(cib(kind, tmp_path)).iter("primitive") if one.get("class") == "stonith"]
    assert len(devices) == 2
    for device in devices:
        values = {pair.get("name"): pair.get("value") for pair in device.iter("nvpair")}
        assert (values["method"], values["cipher"]) == ("onoff", "3")
        delay = "" if values["pcmk_host_list"] != "mds-a" else "3s" if kind == "namespaces" else "10s"
        assert values.get("pcmk_delay_base", "") == delay


def test_virtual_machines_have_the_planned_replication_and_namespaces_a_substitute(tmp_path: Path) -> None:
    types = {kind: {one.get("type") for one in Xml.fromstring(cib(kind, tmp_path)).iter("primitive")} for kind in KINDS}
    assert {"drbd", "Filesystem", "IPaddr2", "anything"} <= types["machines"]
    assert "Stateful" in types["namespaces"] and not types["namespaces"] & {"drbd", "Filesystem", "IPaddr2"}
    planned = cluster(tmp_path, 5.0, device="/dev/vdb", mount="/srv/journal", drbd="8.4")
    resource = next(file.text for file in drbd_files(planned) if file.path.endswith("journal.res"))
    assert "protocol C;" in resource and "fencing resource-and-stonith;" in resource


def test_alerts_run_the_planned_programs_and_notify_actions_send_no_mail(tmp_path: Path) -> None:
    planned = cluster(tmp_path, 1.0, device="/dev/null", mount="/none", drbd="9")
    for path in (one.get("path", "") for one in Xml.fromstring(cib("namespaces", tmp_path)).iter("alert")):
        assert Path(path).parent == tmp_path
    mail = next(file for file in alert_files(planned) if file.path.endswith("alert-mail"))
    (tmp_path / "alert-mail").write_text(mail.text)
    (tmp_path / "mail").write_text('#!/bin/sh\necho "$2"\n')
    (tmp_path / "mail").chmod(0o755)
    told = {}
    for task, status in (("notify", "0"), ("monitor", "0"), ("monitor", "7"), ("start", "0")):
        happened = {"task": task, "rc": status, "kind": "resource"} | dict.fromkeys(
            ("rsc", "node", "desc", "recipient"), "x"
        )
        environment = {f"CRM_alert_{name}": value for name, value in happened.items()}
        environment["PATH"] = f"{tmp_path}:/usr/bin:/bin"
        words = ["sh", str(tmp_path / "alert-mail")]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=10)
        told[task, status] = bool(done.stdout)
    assert told == {("notify", "0"): False, ("monitor", "0"): False, ("monitor", "7"): True, ("start", "0"): True}
