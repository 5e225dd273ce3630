"""Faults of Lustre, on stubs that answer as the recorded client and server did."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest

from control.drilled_machine import HOST, SERVED, SERVERS, LustreMachine, lustre_mount
from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError
from strakes.control.drill_run import ConnectionWatch, Drill, play
from strakes.control.drill_undo import Undo
from strakes.control.fault import Ask, Fault
from strakes.control.fault_lustre import mounted_targets
from strakes.control.fault_registry import make_fault
from strakes.failover.timeline import Moment
from strakes.model.recovery_clients import Timing
from strakes.targets import registry
from strakes.targets.command import Servers

MDT1 = "/mnt/lt/mdt1"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LustreMachine:
    made = LustreMachine(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    return made


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "place"
    directory.mkdir()
    monkeypatch.setattr(registry, "find_directory", lambda path: (path, lustre_mount(directory)))
    return directory


def fault_at(place: Path, name: str, target: str = "labfs-MDT0001", servers: str | None = SERVERS) -> Fault:
    return make_fault(name, Ask(place, target=target, servers=Servers(servers) if servers else None))


def undo(fault: Fault) -> None:
    assert fault.undo is not None
    Undo.from_json(json.loads(json.dumps(fault.undo.to_json()))).do()


def test_targets_are_read_from_the_mounts_of_a_server_in_their_start_order(tmp_path: Path) -> None:
    names = [target.name for target in mounted_targets(SERVED)]
    assert names == ["MGS", *(f"labfs-{kind}{number:04}" for kind in ("MDT", "OST") for number in range(4))]
    options = "nosvc,user_xattr,errors=remount-ro"
    assert mounted_targets(SERVED)[0].mount_unless_mounted.endswith(f"lustre -o {options} /dev/vdb /mnt/lt/mgs")
    shown = "/dev/sda /m lustre ro,noatime,svname=l-OST0001,mgsnode=a@tcp,osd=osd-ldiskfs,a,discard,a 0 0"
    assert mounted_targets(shown)[0].mount_unless_mounted.endswith("mount -t lustre -o discard,a /dev/sda /m")
    client = "192.168.77.1@tcp:/labfs /mnt/labfs lustre rw,checksum,flock,nouser_xattr 0 0\n"
    assert mounted_targets(client) == ()
    spaced = "pool/mdt\\0401 /mnt/a\\040b lustre ro,svname=l-MDT0001,osd=osd-zfs 0 0"
    assert mounted_targets(spaced)[0].mount_unless_mounted.endswith("mount -t lustre 'pool/mdt 1' '/mnt/a b'")
    # Since Lustre 2.16 targets have the file-system type lustre_tgt.
    assert mounted_targets("/dev/sda /m lustre_tgt rw,svname=l-OST000a,mgsnode=a@tcp 0 0")[0].name == "l-OST000a"
    # A FUSE mount of an ordinary user can have any source.
    source = "svname=l-MDT0001,\u2028a\xa0b\xa0lustre\xa0svname=l-MDT0001 /m fuse.x rw,user_id=9 0 0"
    looked = mounted_targets(spaced)[0].mount_unless_mounted.partition("||")[0]
    for mounts, found in ((source, False), (spaced, True)):
        (tmp_path / "mounts").write_text(f"{mounts}\n")
        done = subprocess.run(["sh", "-c", looked.replace("/proc/mounts", str(tmp_path / "mounts"))])
        assert bool(mounted_targets(mounts)) == (done.returncode == 0) == found


@pytest.mark.parametrize(("name", "how"), [("lustre-umount", "umount"), ("lustre-umount-force", "umount-f")])
def test_a_target_is_unmounted_and_mounted_again_and_its_client_reports_the_reconnection(
    machine: LustreMachine, place: Path, name: str, how: str
) -> None:
    before = machine.mounts
    fault = fault_at(place, name)
    assert HOST in fault.text and MDT1 in fault.text and not fault.lacking() and machine.log == []
    watch, moments, stop = ConnectionWatch(place, Servers(SERVERS)), list[Moment](), threading.Event()
    watcher = threading.Thread(target=watch.watch, args=(moments.append, stop))
    watcher.start()
    began_s = time.time()
    (struck, _) = fault.strike()
    assert len(machine.mounts) == len(before) - 1 and "labfs-MDT0001" in fault.lacking()
    undo(fault)
    undo(fault)
    assert machine.mounts == before and machine.log == [(how, "labfs-MDT0001"), ("mount", "labfs-MDT0001")]
    assert not fault.lacking()
    (machine.state / "health").write_text("\ndevice labfs-OST0001 reported unhealthy\nNOT HEALTHY\n")
    assert f"{HOST} is not healthy: device labfs-OST0001 reported unhealthy." in fault.lacking()
    stop.set()
    watcher.join()
    states = [moment.text for moment in moments if moment.source == "connection to labfs-MDT0001"]
    assert states[0] == "DISCONN" and states[-1] == "FULL" and ("EVICTED" in states) == (how == "umount-f")
    assert all(began_s - 0.5 <= moment.at_s <= time.time() + 1 for moment in moments)
    (lost,) = watch.interruptions()
    assert lost.target == "labfs-MDT0001" and lost.evicted == (how == "umount-f")
    assert lost.began_unix_s < struck.at_s + 9
    (recovery,) = watch.recoveries()
    assert (recovery.target, recovery.duration_s, recovery.clients) == ("labfs-MDT0001", 5, 4)
    assert (recovery.evicted, recovery.replayed) == (1, 7)
    assert ("labfs-MDT0001", "COMPLETE") in [(moment.source, moment.text) for moment in moments]


def test_the_services_of_a_server_start_in_order_and_stop_in_reverse(machine: LustreMachine, place: Path) -> None:
    before = machine.mounts
    fault = fault_at(place, "lustre-server-stop", "labfs-OST0002")
    fault.strike()
    assert machine.mounts == [] and "labfs-MDT0000" in fault.lacking()
    undo(fault)
    undo(fault)
    assert machine.mounts == before
    started = [what[1] for what in machine.log if what[0] == "mount"]
    stopped = [what[1] for what in machine.log if what[0] == "umount"]
    assert started == stopped[::-1] and started[0] == "MGS" and started[-1] == "labfs-OST0003"
    # A server that is partly stopped is started again.
    (machine.state / "mounts").write_text("".join(f"{line}\n" for line in before if "OST0002" not in line))
    with pytest.raises(MeasurementError, match=r"(?s)a command failed.*not mounted"):
        fault.strike()
    undo(fault)
    assert machine.mounts == before


@pytest.mark.parametrize(
    ("servers", "own", "rules"),
    [
        ("10.1.0.1@o2ib", "10.2.0.9@tcp", ["*@o2ib *@tcp"]),
        ("10.1.0.1@tcp2", "0@lo\n10.2.0.9@tcp\n10.3.0.9@o2ib1", ["*@tcp2 *@tcp", "*@tcp2 *@o2ib1"]),
        ("10.1.0.1@tcp", "0@lo", ["*@tcp *@tcp"]),
    ],
)
def test_a_client_behind_a_router_is_cut_off_in_its_own_network(
    machine: LustreMachine, place: Path, servers: str, own: str, rules: list[str]
) -> None:
    names = [f"labfs-{kind}{number:04}" for kind in ("MDT", "OST") for number in range(4)]
    # The client is not connected to this target.
    addresses = [*(f"{name} {servers}\n" for name in names[1:]), f"{names[0]} <none>"]
    (machine.state / "addresses").write_text("".join(addresses))
    (machine.state / "nids").write_text(own)
    fault = fault_at(place, "lustre-client-cut", target="", servers=None)
    fault.strike()
    kept = (machine.state / "rules").read_text().splitlines()
    assert kept == [f"--source {rule.split()[0]} --dest {rule.split()[1]}" for rule in rules]
    undo(fault)
    undo(fault)
    assert (machine.state / "rules").read_text() == ""


def test_a_rule_that_cannot_be_removed_is_reported_and_others_are_removed(machine: LustreMachine, place: Path) -> None:
    (machine.state / "addresses").write_text("labfs-OST0000 10.1.0.1@o2ib\n")
    fault = fault_at(place, "lustre-client-cut", target="", servers=None)
    fault.strike()
    with pytest.raises(BadInputError, match="LNet drops messages already") as refused:
        fault_at(place, "lustre-client-cut", target="", servers=None)
    assert "*@tcp->*@tcp" in refused.value.why and len((machine.state / "rules").read_text().splitlines()) == 2
    (machine.state / "kept").write_text("--source *@tcp")
    with pytest.raises(MeasurementError, match="a command failed"):
        undo(fault)
    assert (machine.state / "rules").read_text().splitlines() == ["--source *@tcp --dest *@tcp"]
    (machine.state / "kept").unlink()
    for _ in range(2):
        undo(fault)
        assert (machine.state / "rules").read_text() == ""


@pytest.mark.parametrize("theirs", ["other", "labfs-2", "lab"])
def test_targets_of_another_file_system_on_the_server_are_left_alone(
    machine: LustreMachine, place: Path, theirs: str
) -> None:
    line = f"/dev/vdz /mnt/lt/other lustre rw,svname={theirs}-OST0007,mgsnode=10.0.0.1@tcp,osd=osd-ldiskfs 0 0\n"
    for name in ("mounts", "disks"):
        (machine.state / name).write_text(line + SERVED)
    before = machine.mounts
    fault = fault_at(place, "lustre-server-stop", "labfs-OST0002")
    fault.strike()
    # The MGS stays mounted, as it serves both file systems.
    assert [line.split()[1] for line in machine.mounts] == ["/mnt/lt/mgs", "/mnt/lt/other"]
    undo(fault)
    assert machine.mounts == before


@pytest.mark.parametrize(
    ("told", "refused"),
    [
        (state, True)
        for state in ("active", "activating", "deactivating", "inactive\nactive", "mds1: active", "inactive", "")
    ]
    + [(state, False) for state in ("inactive\ninactive", "failed\ninactive", "mds1: unknown\nmds1: inactive")],
)
def test_a_server_is_refused_unless_its_pacemaker_is_known_to_be_stopped(
    machine: LustreMachine, place: Path, told: str, refused: bool
) -> None:
    (machine.state / "pacemaker").write_text(told)
    if refused:
        with pytest.raises(BadInputError, match="Pacemaker manages") as error:
            fault_at(place, "lustre-umount")
        assert "node-standby" in error.value.remedy
    else:
        assert fault_at(place, "lustre-umount").text
    assert machine.log == []


def test_impossible_faults_are_refused_before_any_change(machine: LustreMachine, place: Path) -> None:
    with pytest.raises(BadInputError, match="not a target of this file system") as error:
        fault_at(place, "lustre-umount", "labfs-MDT0009")
    assert "labfs-MDT0003" in error.value.remedy and "labfs-OST0000" in error.value.remedy
    with pytest.raises(BadInputError, match="cannot be reached") as error:
        fault_at(place, "lustre-umount", servers=None)
    assert "--servers" in error.value.remedy and error.value.where == HOST
    with pytest.raises(BadInputError, match="cannot be used with the fault lustre-client-cut"):
        fault_at(place, "lustre-client-cut")
    with pytest.raises(EnvironmentLacksError, match="does not answer"):
        fault_at(place, "lustre-umount", servers="sh -c 'echo refused >&2; exit 7' {host}")
    disks = (machine.state / "disks").read_text()
    for mounts in (f"{disks}tmpfs {MDT1} tmpfs rw 0 0\n", re.sub(r"(?m)^\S+", "/dev/loop7", disks)):
        (machine.state / "mounts").write_text(mounts)
        with pytest.raises(BadInputError, match="cannot be unmounted safely"):
            fault_at(place, "lustre-umount")
    (machine.state / "mounts").write_text("")
    with pytest.raises(BadInputError, match="is not mounted on its server"):
        fault_at(place, "lustre-umount")
    names = (f"labfs-{kind}{number:04}" for kind in ("MDT", "OST") for number in range(4))
    (machine.state / "addresses").write_text("".join(f"{name} <none>\n" for name in names))
    with pytest.raises(BadInputError, match="client and Lustre servers share no network"):
        fault_at(place, "lustre-client-cut", target="", servers=None)
    with pytest.raises(EnvironmentLacksError, match="the server of labfs-MDT0001 is unknown"):
        fault_at(place, "lustre-umount")
    assert machine.log == []


def test_a_drill_reports_evictions_connection_states_and_the_recovery_of_the_server(
    machine: LustreMachine, place: Path, tmp_path: Path
) -> None:
    drill = Drill(place, 2, 20.0, Timing(1.0, 6.0, 1.0), sessions=False, servers=Servers(SERVERS))
    outcome = play(drill, fault_at(place, "lustre-umount-force"), tmp_path / "store", lambda _text: None)
    states = [one.text for one in outcome.line.moments if one.source == "connection to labfs-MDT0001"]
    assert states == ["DISCONN", "CONNECTING", "EVICTED", "RECOVER", "FULL"]
    (recovery,), (lost,) = outcome.line.targets, outcome.interruptions
    assert (recovery.target, recovery.evicted) == ("labfs-MDT0001", 1)
    assert (lost.target, lost.evicted, outcome.lost) == ("labfs-MDT0001", True, 0)
