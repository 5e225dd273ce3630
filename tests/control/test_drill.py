"""Drills on a directory that loses files on purpose, and on a CephFS whose server is killed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import StrakesRunner
from lab.running import Labs
from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError
from strakes.cli.main import run
from strakes.control import drill_run, fault_cephfs
from strakes.control.drill_outcome import outcome_of, pending
from strakes.control.fault import Ask, Seen
from strakes.control.fault_registry import FAULTS, make_fault
from strakes.failover.timeline import Moment
from strakes.model.plan import Plan
from strakes.model.recovery_clients import Timing, watch_phase
from strakes.runs.messages import LoggedOperation

AGREED = "--yes-this-interrupts-service"
SHORT = ("--clients", "2", "--rate", "20", "--before", "1s", "--after", "1s", AGREED)
QUICK = "ceph --osds 1 --mds 1 --standby 1 --store memstore --osd-size 2GiB --beacon-interval 0.25s --beacon-grace 1.5s"


def test_no_fault_is_caused_without_consent_or_in_a_dry_run(strakes: StrakesRunner, tmp_path: Path) -> None:
    mark = tmp_path / "done"
    commands = ("--fault-command", f"touch {mark}", "--restore-command", f"rm {mark}")
    refused = strakes("failover", "drill", tmp_path, *commands)
    assert refused.returncode == 2 and AGREED in refused.stderr
    rehearsed = strakes("failover", "drill", tmp_path, *commands, "--dry-run", AGREED)
    assert rehearsed.returncode == 0 and f"run: touch {mark}" in rehearsed.stderr
    assert f"when the clients have ended; if they hang, 90.0 s after the fault: run: rm {mark}" in rehearsed.stderr
    assert not any(tmp_path.iterdir())


def test_a_harmless_fault_loses_no_files_and_leaves_no_files(strakes: StrakesRunner, tmp_path: Path) -> None:
    done = strakes("failover", "drill", tmp_path, "--fault-command", "true", *SHORT, "--json", "-")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["acknowledged"] == 80 and document["lost"] == document["failed"] == document["damaged"] == 0
    assert document["read"] and document["clients"] == "2 clients (threads on this machine's mount)"
    kill = "sh -c 'pkill -KILL -P $PPID strakes-engine'"
    killed = strakes("failover", "drill", tmp_path, "--fault-command", kill, *SHORT)
    assert killed.returncode == 1 and "ended before the end of the drill" in killed.stderr, killed.stderr
    assert [one["hit"] for one in document["line"]["outages"]] == [False, False] and document["back_after_s"] is None
    assert any(one["text"] == "true" for one in document["line"]["moments"]) and not any(tmp_path.iterdir())


def test_acknowledged_files_that_are_missing_or_have_wrong_content_count_as_lost(
    strakes: StrakesRunner, tmp_path: Path
) -> None:
    place = f"{tmp_path}/strakes-*/drill/probe.1.probe"
    harm = f"truncate -s 4095 {place}/f1.000; truncate -s 1T {place}/f1.003; printf x | dd of=$(ls {place}/f1.001) bs=1 seek=9 conv=notrunc"
    cover = f"cd {place}/..; mv probe.0.probe away; touch probe.0.probe"
    commands = ("--fault-command", f"sh -c '{harm}; rm {place}/f1.002'", "--restore-command", f"sh -c '{cover}'")
    done = strakes("failover", "drill", tmp_path, *commands, *SHORT)
    assert done.returncode == 1, done.stderr
    assert "80 files acknowledged, 4 of them missing or damaged (3 damaged) afterwards" in done.stdout
    assert "the files of 1 client were not read back: Not a directory" in done.stdout and not any(tmp_path.iterdir())


def test_files_of_an_exchanged_directory_are_not_read_back(strakes: StrakesRunner, tmp_path: Path) -> None:
    exchange = f"cd {tmp_path}; name=$(echo strakes-*); mv $name away; mkdir -p $name/drill/probe.1.probe"
    done = strakes("failover", "drill", tmp_path, "--fault-command", f"sh -c '{exchange}'", *SHORT)
    assert done.returncode == 1 and "missing afterwards" not in done.stdout, done.stderr
    assert "cannot be read back" in done.stdout and "was renamed or replaced" in done.stdout
    assert not (tmp_path / "away").exists()


def test_a_fault_that_fails_is_reported_also_if_the_caller_ignores_the_ends_of_children(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "strakes", "failover", "drill", str(tmp_path), "--fault-command", "ls /nowhere"]
    ignoring = ["bash", "-c", "trap '' CHLD; exec \"$@\"", "-"]
    done = subprocess.run([*ignoring, *words, *SHORT], capture_output=True, text=True)
    assert done.returncode == 1 and "the fault could not be caused" in done.stderr and "No such file" in done.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fault", "words", "said"),
    [
        ("mds-kill", {}, "this fault works only on CephFS"),
        ("lustre-client-cut", {}, "works only on Lustre"),
        ("drbd-disconnect", {}, "not on a DRBD device"),
        ("command", {}, "is empty"),
        ("command", {"fault_command": "sh -c 'x"}, "cannot be read"),
        ("command", {"fault_command": "true", "restore_command": "/nowhere/ip up"}, "/nowhere/ip is not found"),
        ("mds-stop", {"restore_command": "true"}, "--restore-command cannot be used with the fault mds-stop"),
        ("power-off", {"bmc": "fe80::1"}, "--bmc and --bmc-password-file are required"),
        ("earthquake", {}, "no fault"),
    ],
)
def test_unknown_or_incomplete_faults_are_refused(fault: str, words: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises((BadInputError, EnvironmentLacksError), match=said):
        make_fault(fault, Ask(tmp_path, **words))  # type: ignore[arg-type]


def test_a_drill_with_too_many_files_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["failover", "drill", str(tmp_path), "-n", "1000", "--rate", "1000", "--fault-command", "true"]) == 2
    assert "too many files" in capsys.readouterr().err


def test_only_a_server_of_the_file_system_of_the_directory_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    active = {name: {"name": name, "rank": 0, "state": "up:active"} for name in "ab"}
    systems = [{"mdsmap": {"fs_name": name, "flags": 18, "info": {"1": active[name]}}} for name in "ab"]
    dump: Any = {"filesystems": systems, "standbys": [{"name": "c", "rank": -1, "state": "up:standby"}]}
    monitors = {"f0": nullcontext(SimpleNamespace(command=lambda _words: dump))}
    target = SimpleNamespace(describe=lambda: SimpleNamespace(file_system_name="b"), cluster_id=lambda: "f0")
    monkeypatch.setattr(fault_cephfs, "Monitors", lambda _, cluster: monitors[cluster])
    monkeypatch.setattr(fault_cephfs, "is_cephfs", lambda _directory: True)
    monkeypatch.setattr(fault_cephfs, "detect", lambda _directory: target)
    fault = make_fault("mds-fail", Ask(tmp_path))
    assert "ceph mds fail b," in fault.text and not fault.changed()
    active["b"]["name"] = "d"  # Another server has taken over meanwhile.
    assert "ceph mds fail d," in fault.changed()
    active["b"]["name"] = "b"
    standby = dump["standbys"][0]
    # A standby-replay server takes over only its own rank.
    for rank, flags, said in ((-1, 19, "c is up:standby, joinable is false"), (1, 18, "c is up:standby-replay")):
        systems[1]["mdsmap"]["flags"] = flags
        standby |= {"rank": rank, "state": said.split()[2].strip(",")}
        with pytest.raises(BadInputError, match="no standby metadata server that may take over") as refused:
            make_fault("mds-fail", Ask(tmp_path))
        assert refused.value.why == f"b is up:active, {said}"
    wrong: tuple[Any, ...] = (None, [], {"filesystems": None}, dump | {"standbys": [None]}, dump | {"standbys": [{}]})
    for dump in wrong:  # noqa: B007 - the monitors answer with it
        with pytest.raises(MeasurementError, match="ceph fs dump is not understood"):
            make_fault("mds-fail", Ask(tmp_path))


def test_lost_damaged_unanswered_and_repeated_operations_are_counted_separately() -> None:
    def operation(number: int, errno: str = "") -> LoggedOperation:
        return LoggedOperation("watch", 0, number, number, number, number + 0.1, errno)

    log = [operation(0), operation(1), operation(2, "EIO"), operation(3, "EEXIST"), operation(4, "EIO"), operation(5)]
    expected = {(0, number): f"sum {number}" for number in range(6)}
    read = {(0, 0): "sum 0", (0, 3): "sum 3", (0, 4): "", (0, 5): "of a short write"}
    found = outcome_of("1 client", log, expected, read, 1.5, [], [], "", {}, 0.0)
    assert (found.acknowledged, found.lost, found.damaged) == (3, 2, 1)
    assert (found.failed, found.unanswered, found.repeated) == (3, 2, 1) and found.errors == {"EIO": 2, "EEXIST": 1}


def test_operations_that_are_pending_when_a_drill_ends_count_as_waiting_since_they_were_due() -> None:
    timing = Timing(before_s=10, after_s=60)
    plan = Plan(3, (phase := watch_phase(10, timing, sessions=False),), seed=1)

    def ended(rank: int, until_s: float, took_s: float = 0.01) -> list[LoggedOperation]:
        due = [(number, 100 + (number + rank / 3) / 10) for number in range(700)]
        return [LoggedOperation("watch", rank, k, at, at, at + took_s, "") for k, at in due if at + took_s < until_s]

    log = [*ended(0, 110), *ended(1, 150.02)]
    left = pending(plan, phase, log, 150)
    assert left == {0: pytest.approx(110), 2: pytest.approx(100 + 2 / 30)}
    hung, well, silent = outcome_of("", log, {}, None, 110, [], [], "", left, 150).line.outages
    assert hung.hit and hung.back_after_s is None and hung.stall_s == pytest.approx(40) and hung.operations == 100
    assert not well.hit and well.known
    assert not silent.hit and not silent.known and silent.operations == 0
    # A wait that is too short to judge is undecided.
    left = pending(plan, phase, log, 110.15)
    assert not outcome_of("", log[:100], {}, None, 110, [], [], "", left, 110.15).line.outages[0].known
    assert pending(plan, phase, [one for rank in range(3) for one in ended(rank, 200)], 200) == {}


def test_recovery_needs_consent_and_other_studies_refuse_a_fault(strakes: StrakesRunner, tmp_path: Path) -> None:
    refused = strakes("study", "recovery", tmp_path, "--fault-command", "true")
    assert refused.returncode == 2 and AGREED in refused.stderr
    refused = strakes("study", "open-close", tmp_path, "--fault-command", "true")
    assert refused.returncode == 2 and "causes no fault" in refused.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.lab
@pytest.mark.more
def test_the_standby_of_a_killed_metadata_server_takes_over_without_loss(labs: Labs, strakes: StrakesRunner) -> None:
    mount = labs.up(QUICK)
    for clients in (1, 10):
        timing = ("-n", str(clients), "--before", "2s", "--after", "3s", "--rate", "5", AGREED, "--json", "-")
        words = ("failover", "drill", mount, "--fault", "mds-kill", *timing)
        done = strakes(*words, environment=labs.environment, timeout_s=300)
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        assert document["acknowledged"] == 25 * clients and document["lost"] == document["repeated"] == 0
        first, _, last = document["back_after_s"]
        assert 1.0 < first <= last
        (taken_over,) = document["line"]["targets"]
        assert taken_over["target"].endswith("rank 0") and taken_over["status"] == "up:active"
        assert taken_over["duration_s"] > 0
        texts = [one["text"] for one in document["line"]["moments"]]
        struck = next(place for place, text in enumerate(texts) if text.startswith("kill -KILL"))
        assert struck < texts.index("up:active, rank 0") < texts.index("the servers have recovered")
    # The killed server is a standby again, and the lab reports no fault.
    assert labs.status("ceph")["condition"] == "up"
    assert not [path for path in mount.iterdir() if path.name.startswith("strakes-")]


@pytest.mark.lab
@pytest.mark.long
def test_the_recovery_study_repeats_drills_with_more_clients_and_plots_the_published_times(
    labs: Labs, strakes: StrakesRunner
) -> None:
    mount = labs.up(QUICK)
    words = ("study", "recovery", mount, AGREED, "--budget", "15m", "--quiet", "--json", "-")
    done = strakes(*words, environment=labs.environment, timeout_s=1500)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    findings = {one["id"]: one for one in document["findings"]}
    assert findings["recovery-nothing-lost"]["verdict"] == "holds", findings
    (figure,) = document["figures"]
    assert {len(one["points"]) for one in figure["series"]} == {4}
    assert figure["references"][0]["points"][0] == [50.0, 10.0]


def test_changes_of_servers_that_do_not_end_are_not_all_kept() -> None:
    def watch(seen: Seen, _stop: threading.Event) -> None:
        while True:
            seen(Moment(0.0, "node a", "online" * 100_000))

    moments: list[Moment] = []
    drill_run._watch(watch, moments.append, threading.Event())
    assert 10 < len(moments) < 100 and moments[-1].text.endswith("the states of the servers change too often")


def test_the_list_of_faults_states_where_each_works(strakes: StrakesRunner, tmp_path: Path) -> None:
    listed = {
        line.split()[0]: line for line in strakes("failover", "drill", tmp_path, "--fault", "list").stdout.splitlines()
    }
    for name, entry in FAULTS.items():
        assert entry.works_on in listed[name] and listed[name].endswith(entry.summary)
