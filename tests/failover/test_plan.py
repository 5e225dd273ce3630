from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from conftest import StrakesRunner
from failover.clusters import EXAMPLES, need, planned
from strakes.failover.cluster import Alerts
from strakes.failover.description import read_description
from strakes.failover.plan import plan_files, recovery_limits, write_plan


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", EXAMPLES)
def test_pacemaker_accepts_the_planned_configuration_without_a_warning(name: str, tmp_path: Path) -> None:
    need("crm_simulate", "crm_verify")
    cib, running = planned(name, tmp_path) / "pacemaker" / "cib.xml", tmp_path / "running.xml"
    nodes = [node.name for node in read_description(EXAMPLES[name])[0].nodes]
    up = [word for node in nodes for word in ("--node-up", node)]
    assert run("crm_simulate", "-x", cib, "--quorum", "1", *up, "-S", "-O", running).returncode == 0
    judged = run("crm_verify", "-V", "-x", running)
    assert judged.returncode == 0 and not judged.stderr, judged.stderr


def test_a_value_of_the_description_is_one_word_of_a_command() -> None:
    odd = "/x; touch y"
    cluster = replace(read_description(EXAMPLES["tianhe2"])[0], quorum_host=odd, alerts=Alerts(webhook_url_file=odd))
    lines = plan_files(cluster)[-1].text.splitlines()
    commands = [line for line in lines if re.match(".*printf .*haclient|.*certutil", line)]
    assert [odd in shlex.split(line) for line in commands] == [True, True]


@pytest.mark.parametrize("name", ["tianhe2", "nfs"])
def test_pcs_reads_the_planned_configuration(name: str, tmp_path: Path) -> None:
    need("pcs")
    cib = planned(name, tmp_path) / "pacemaker" / "cib.xml"
    shown = run("pcs", "-f", cib, "constraint")
    assert shown.returncode == 0, shown.stderr
    for target in read_description(EXAMPLES[name])[0].targets:
        assert f"promote drbd-{target.name}-clone then start serve-{target.name}" in shown.stdout


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("dialect", ["8.4", "9"])
def test_drbdadm_accepts_the_resources_of_both_versions(name: str, dialect: str, tmp_path: Path) -> None:
    program = "/lib/drbd/drbdadm-84" if dialect == "8.4" else "/usr/sbin/drbdadm"
    need(program)
    if not any(target.replicated for target in read_description(EXAMPLES[name])[0].targets):
        pytest.skip("its nodes share their disks")
    text = EXAMPLES[name].read_text()
    text = (
        text.replace('drbd = "8.4"\n', "")
        .replace('drbd = "9"\n', "")
        .replace("[cluster]\n", f'[cluster]\ndrbd = "{dialect}"\n')
    )
    description = tmp_path / "cluster.toml"
    description.write_text(text)
    for file in plan_files(read_description(description)[0]):
        path = tmp_path / "plan" / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
    dumped = run(program, "-c", tmp_path / "plan" / "etc" / "drbd.conf", "dump")
    assert dumped.returncode == 0, dumped.stderr
    for target in read_description(description)[0].targets:
        assert f"resource {target.name} {{" in dumped.stdout
    assert "resource-and-stonith" in dumped.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_cib_has_no_password_and_only_the_survivor_has_a_delay(name: str, tmp_path: Path) -> None:
    cib = Xml.parse(planned(name, tmp_path) / "pacemaker" / "cib.xml")
    devices = [one for one in cib.iter("primitive") if one.get("class") == "stonith"]
    assert len(devices) >= 2
    delayed = set()
    for device in devices:
        values = {pair.get("name"): pair.get("value") or "" for pair in device.iter("nvpair")}
        assert values["password_script"].startswith("/") and not {"password", "passwd"} & set(values)
        if "pcmk_delay_base" in values:
            delayed.add((values.get("pcmk_host_list") or values["pcmk_host_map"]).partition(":")[0])
    cluster = read_description(EXAMPLES[name])[0]
    # With more than two nodes the majority survives, so no delay is needed.
    assert delayed == ({cluster.survivor} if len(cluster.nodes) == 2 else set())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_run_book_explains_every_protective_setting(name: str) -> None:
    files = {file.path: file for file in plan_files(read_description(EXAMPLES[name])[0])}
    book = files["RUNBOOK.md"].text
    lines = [line for file in files.values() for line in file.lines]
    assert len(lines) > 20 and (name != "tianhe2" or "it replaces: the serial heartbeat line" in book)
    for line in lines:
        assert line.why and " ".join(line.text.split()) in book and line.why in book


def test_lustre_targets_and_clients_name_both_servers_and_corosync_the_quorum_device() -> None:
    files = {file.path: file.text for file in plan_files(read_description(EXAMPLES["lustre-active-active"])[0])}
    made = files["lustre/make-targets.sh"]
    assert made.count("--servicenode=10.30.0.1@o2ib") == 3 and made.count("--servicenode=10.30.0.2@o2ib") == 3
    assert made.count("--mgsnode=") == 4  # two nodes for each of the two targets besides the MGS
    for names, count in (([], 3), (["mdt1"], 1), ([""], 0)):  # "$TARGET" may be empty
        counted = subprocess.run(["bash", "-c", f"mkfs.lustre() {{ echo; }}\n{made}", "-", *names], capture_output=True)
        assert len(counted.stdout) == count, counted.stderr
    assert "10.30.0.1@o2ib:10.30.0.2@o2ib:/scratch" in files["lustre/mount-clients.sh"]
    corosync = files["etc/corosync/corosync.conf"]
    assert "host: 10.20.0.9" in corosync and "two_node" not in corosync  # the quorum device replaces it


def test_recovery_limits_follow_from_the_number_of_clients(tmp_path: Path) -> None:
    description = tmp_path / "cluster.toml"
    for clients, hard in ((100, 900), (2000, 900), (10_000, 4200)):
        description.write_text(EXAMPLES["tianhe2"].read_text().replace("clients = 2000", f"clients = {clients}"))
        assert recovery_limits(read_description(description)[0])[1] == hard


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_command_of_the_run_book_replaces_a_configuration_with_a_newer_epoch(name: str, tmp_path: Path) -> None:
    need("cibadmin")
    plan = planned(name, tmp_path / "plan")
    (command,) = set(re.findall(r"`(cibadmin --replace [^`]*)`", (plan / "RUNBOOK.md").read_text()))
    running = tmp_path / "running.xml"
    text = (plan / "pacemaker/cib.xml").read_text()
    running.write_text(text.replace(' epoch="1"', ' epoch="12"').replace('value="1000"', 'value="1"'))
    done = subprocess.run(
        command.split(),
        cwd=plan,
        env={**os.environ, "CIB_file": str(running)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert 'value="1000"' in running.read_text() and ' epoch="13"' in running.read_text()


def test_the_tie_breaker_of_the_quorum_device_is_the_survivor_and_the_run_book_starts_it() -> None:
    cluster = read_description(EXAMPLES["lustre-active-active"])[0]
    for number, node in enumerate(cluster.nodes, 1):
        files = {file.path: file.text for file in plan_files(replace(cluster, survivor=node.name))}
        assert f"tie_breaker: {number}" in files["etc/corosync/corosync.conf"]
        for step in ("systemctl enable --now corosync-qdevice", "corosync-qnetd", "corosync-qdevice-net-certutil"):
            assert step in files["RUNBOOK.md"]


def test_outlets_have_the_parameters_of_their_snmp_version(tmp_path: Path) -> None:
    text = EXAMPLES["lustre-active-active"].read_text()
    older = text.replace('snmp_version = "3"', 'snmp_version = "2c"\ncommunity = "fence"')
    older = older.replace('user = "fence"\npassword_script = "/etc/strakes/pdu-password"\n', "")
    description = tmp_path / "cluster.toml"
    for given, wanted, unwanted in (
        (text, {"snmp_version": "3", "username": "fence", "snmp_sec_level": "authNoPriv"}, "community"),
        (older, {"snmp_version": "2c", "community": "fence"}, "username"),
    ):
        description.write_text(given)
        files = {file.path: file.text for file in plan_files(read_description(description)[0])}
        primitives = Xml.fromstring(files["pacemaker/cib.xml"]).iter("primitive")
        outlets = [one for one in primitives if "outlet" in one.get("id", "")]
        assert len(outlets) == 4
        for outlet in outlets:
            values = {pair.get("name"): pair.get("value") for pair in outlet.iter("nvpair")}
            assert wanted.items() <= values.items() and unwanted not in values


def test_nfs_keeps_its_state_on_the_exported_disk_and_notifies_clients_from_the_service_address() -> None:
    files = {file.path: file.text for file in plan_files(read_description(EXAMPLES["nfs"])[0])}
    cib = Xml.fromstring(files["pacemaker/cib.xml"])
    group = next(cib.iter("group"))
    agents = [member.get("type") for member in group.iter("primitive")]
    assert agents == ["Filesystem", "nfsserver", "exportfs", "IPaddr2", "nfsnotify"]
    values = {pair.get("name"): pair.get("value") or "" for pair in group.iter("nvpair")}
    assert values["source_host"] == values["ip"] == "192.168.10.10" and values["fsid"]
    state = values["nfs_shared_infodir"]
    assert state.startswith("/srv/home/") and not state.startswith("/srv/home/export")
    assert "mkdir /srv/home/export /srv/home/nfs-state" in files["RUNBOOK.md"]


def test_a_node_that_its_clients_cannot_reach_hands_its_service_over(tmp_path: Path) -> None:
    need("crm_simulate")
    plan = planned("tianhe2", tmp_path)
    up = ["--node-up", "mds-a", "--node-up", "mds-b"]
    cib = Xml.parse(plan / "pacemaker/cib.xml")
    for node in cib.iter("node"):
        attributes = Xml.SubElement(node, "instance_attributes", id=f"reached-{node.get('id')}")
        reached = "20000" if node.get("uname") == "mds-b" else "0"
        Xml.SubElement(attributes, "nvpair", id=f"r-{node.get('id')}", name="clients-network", value=reached)
        Xml.SubElement(attributes, "nvpair", id=f"m-{node.get('id')}", name="master-drbd-mdt0", value="10000")
    cib.write(tmp_path / "cut.xml")
    run("crm_simulate", "-x", tmp_path / "cut.xml", "--quorum", "1", "-S", *up, "-O", tmp_path / "after.xml")
    told = run("crm_simulate", "-x", tmp_path / "after.xml", "--quorum", "1", "-S")
    assert re.search(r"mount-mdt0\t.*Started mds-b", told.stdout.partition("Revised Cluster Status")[2]), told.stdout


def test_scripts_are_valid_shell_and_executable(tmp_path: Path) -> None:
    plan = planned("tianhe2", tmp_path)
    scripts = [path for path in plan.rglob("*") if path.is_file() and path.read_text().startswith("#!")]
    assert len(scripts) == 4
    for script in scripts:
        assert stat.S_IMODE(script.stat().st_mode) == 0o755 and run("sh", "-n", script).returncode == 0


def test_an_alert_reaches_the_webhook_whose_address_is_in_a_file(tmp_path: Path) -> None:
    need("curl")
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    received: list[bytes] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    plan = planned("tianhe2", tmp_path / "plan")
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        address = tmp_path / "webhook-url"
        address.write_text(f"http://127.0.0.1:{server.server_port}/secret\n")
        environment = {
            "PATH": "/usr/bin:/bin",
            "CRM_alert_kind": "fencing",
            "CRM_alert_desc": 'mds-a "off"',
            "CRM_alert_recipient": str(address),
        }
        done = subprocess.run(
            [plan / "etc/strakes/alert-webhook"], env=environment, capture_output=True, text=True, timeout=60
        )
        thread.join(10)
    assert done.returncode == 0, done.stderr
    import json

    (body,) = received
    assert json.loads(body)["text"].endswith('fencing: mds-a "off"')


def test_plan_writes_files_and_overwrites_them_only_with_replace(strakes: StrakesRunner, tmp_path: Path) -> None:
    first = strakes("failover", "plan", EXAMPLES["tianhe2"], "-o", tmp_path / "plan")
    assert first.returncode == 0 and "RUNBOOK.md" in first.stdout, first.stderr
    again = strakes("failover", "plan", EXAMPLES["tianhe2"], "-o", tmp_path / "plan")
    assert again.returncode == 2 and "--replace" in again.stderr
    assert strakes("failover", "plan", EXAMPLES["tianhe2"], "-o", tmp_path / "plan", "--replace").returncode == 0
    other = strakes("failover", "plan", EXAMPLES["nfs-san"], "-o", tmp_path / "plan", "--replace")
    assert other.returncode == 2 and "etc/drbd.d/mdt0.res" in other.stderr
    for name in ("cluster.toml", "pacemaker/cib.xml"):  # with SNMP communities
        assert stat.S_IMODE((tmp_path / "plan" / name).stat().st_mode) == 0o600
    refused = strakes("failover", "plan", tmp_path / "none.toml", "-o", tmp_path / "other")
    assert refused.returncode == 2 and "none.toml" in refused.stderr and "cannot be read" in refused.stderr
    assert not (tmp_path / "other").exists()
    book = tmp_path / "plan" / "RUNBOOK.md"
    book.write_text(Path(EXAMPLES["tianhe2"]).read_text())
    refused = strakes("failover", "plan", book, "-o", book.parent, "--replace")
    assert "would overwrite its description" in refused.stderr
    assert book.read_text() == Path(EXAMPLES["tianhe2"]).read_text()
    (book.parent / "cluster.toml").unlink()  # Without it, the directory is no plan, but for example / with its etc.
    assert strakes("failover", "plan", EXAMPLES["tianhe2"], "-o", book.parent, "--replace").returncode == 2


def test_a_replaced_plan_is_not_written_through_symbolic_links(strakes: StrakesRunner, tmp_path: Path) -> None:
    directory, outside = planned("tianhe2", tmp_path), tmp_path / "outside"
    outside.mkdir()
    (directory / "RUNBOOK.md").unlink()
    (directory / "RUNBOOK.md").symlink_to(outside / "book")
    (directory / "etc").rename(directory / "etc.old")
    (directory / "etc").symlink_to(outside)
    words = ("failover", "plan", str(EXAMPLES["tianhe2"]), "-o", str(directory), "--replace")
    assert strakes(*words).returncode == 2
    (directory / "etc").unlink()
    assert strakes(*words).returncode == 0
    assert os.listdir(outside) == [] and not (directory / "RUNBOOK.md").is_symlink()
    (tmp_path / "link").symlink_to(outside)
    if os.geteuid() == 0:
        os.chown(tmp_path / "link", 65534, 65534, follow_symlinks=False)
        refused = strakes(*words[:-2], tmp_path / "link" / "a" / "b")
        assert refused.returncode == 2 and "link of another user" in refused.stderr and os.listdir(outside) == []


def test_a_plan_has_the_description_that_was_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    description = tmp_path / "cluster.toml"
    description.write_bytes(EXAMPLES["nfs"].read_bytes())
    # After the check, its owner replaces the description with a link to a secret.
    monkeypatch.setattr("strakes.failover.plan.plan_files", lambda _: [description.write_text("secret")][:0])
    write_plan(description, tmp_path / "plan", replace=False)
    assert (tmp_path / "plan" / "cluster.toml").read_bytes() == EXAMPLES["nfs"].read_bytes()
