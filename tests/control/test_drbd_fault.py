"""Faults of a DRBD device, on a file that changes as /proc/drbd does."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import wait_for
from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.control import fault_drbd
from strakes.control.drill_undo import RunCommand
from strakes.control.fault import Ask
from strakes.control.fault_drbd import DiscardPeer, DisconnectPeer
from strakes.control.knob import catalogue
from strakes.control.knob_bindings import knobs_of
from strakes.failover.timeline import Moment
from strakes.targets.command import Completed
from strakes.targets.mountinfo import Mount
from strakes.targets.registry import target_of_mount

EQUAL = "cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate"
AWAY = "cs:StandAlone ro:Primary/Unknown ds:UpToDate/Outdated"
SYNC = "cs:SyncSource ro:Primary/Secondary ds:UpToDate/Inconsistent"


class Device:
    """The lines of one device in a file like /proc/drbd, and the commands that it was given."""

    def __init__(self, states: Path) -> None:
        self.states, self.commands = states, list[tuple[str, ...]]()
        self.shows(EQUAL)

    def shows(self, state: str, behind_kib: int = 0) -> None:
        counters = f"    ns:9 nr:0 dw:9 dr:9 al:1 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:{behind_kib}"
        other = " 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----\n    ns:0 oos:77\n"
        new = self.states.with_suffix(".new")
        new.write_text(f"version: 8.4.11\n{other}12: {state} C r-----\n{counters}\n")
        new.replace(self.states)

    def run(self, argv: Sequence[str], timeout_s: float = 0) -> Completed:
        assert timeout_s >= 0
        self.commands.append(tuple(argv))
        return Completed(tuple(argv), 0, "", "")


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setattr(
        fault_drbd, "mount_of", lambda _path: Mount(2, 147, 12, "/", "/srv", (), "ext4", "/dev/drbd12", ())
    )
    return Device(tmp_path / "drbd")


def test_a_peer_that_was_away_is_synchronised_and_the_time_and_amount_are_told(device: Device, tmp_path: Path) -> None:
    fault = DisconnectPeer(Ask(tmp_path), device.run, device.states)
    moments: list[Moment] = []
    stop = threading.Event()
    watcher = threading.Thread(target=fault.watch, args=(moments.append, stop))
    watcher.start()
    fault.strike()
    device.shows(AWAY, 2048)
    wait_for(lambda: len(moments) == 1)
    device.shows(SYNC, 1024)
    wait_for(lambda: len(moments) == 2)
    assert fault.lacking() == "drbd12 is not synchronised (SyncSource): 1 MiB differ"
    device.shows(EQUAL)
    wait_for(lambda: len(moments) == 3)
    stop.set()
    watcher.join()
    (told,) = fault.recoveries()
    assert (told.target, told.status) == ("drbd12", "2 MiB synchronised") and told.duration_s is not None
    assert isinstance(fault.undo, RunCommand) and fault.undo.argv[2].startswith("drbdadm connect minor-12 || ")
    assert device.commands == [("drbdadm", "disconnect", "minor-12")]


def test_the_peers_copy_is_discarded_without_a_command_to_undo_it(device: Device, tmp_path: Path) -> None:
    fault = DiscardPeer(Ask(tmp_path), device.run, device.states)
    fault.strike()
    assert fault.undo is None and device.commands == [("drbdadm", "invalidate-remote", "minor-12")]
    device.shows(SYNC, 1 << 20)
    assert fault.lacking() == "drbd12 is not synchronised (SyncSource): 1 GiB differ"
    assert fault.recoveries()[0].status == "not synchronised"


def test_only_a_primary_with_equal_copies_may_lose_its_peer(device: Device, tmp_path: Path) -> None:
    fault = DisconnectPeer(Ask(tmp_path), device.run, device.states)
    for state in (
        AWAY,
        SYNC,
        *(EQUAL.replace("Primary/Secondary", f"{own}/Primary") for own in ("Primary", "Secondary")),
    ):
        device.shows(state)
        with pytest.raises(BadInputError, match="not in sync, or this node is not the only primary"):
            DisconnectPeer(Ask(tmp_path), device.run, device.states)
        assert fault.changed().startswith("/proc/drbd: ")
    device.states.unlink()
    with pytest.raises(EnvironmentLacksError, match="cannot be read") as refused:
        DisconnectPeer(Ask(tmp_path), device.run, device.states)
    assert "DRBD 8.4" in refused.value.remedy


def test_the_mount_of_another_user_chooses_no_device_and_no_setting(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = Mount(2, 0, 43, "/", "/srv", (), "fuse.glusterfs", "/dev/drbd12", ("rw", "user_id=9"))
    monkeypatch.setattr(fault_drbd, "mount_of", lambda _path: mount)
    with pytest.raises(BadInputError, match="not on a DRBD device"):
        DisconnectPeer(Ask(tmp_path), device.run, device.states)
    knobs = knobs_of(target_of_mount(tmp_path, mount), catalogue())
    assert knobs and all("*" in knob.file_systems for knob in knobs)
