"""Changes of knobs and their journal, on a simulated system that keeps its values in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from control.world import World, in_child, knobs
from mounts import other_user
from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError
from strakes.base.processes import commands_of, mark_of, process_start
from strakes.control import knob_change as change
from strakes.control.knob import find
from strakes.control.knob_bindings import Bindings
from strakes.control.knob_journal import JournalState, KnobJournal, directory, open_journals
from strakes.control.knob_place import KnobPlace
from strakes.control.knob_restore import restore, restore_abandoned
from strakes.targets.ceph_tool import Access
from strakes.targets.command import CommandCutOffError, CommandTimeout, Completed
from strakes.targets.gluster import GlusterTarget
from strakes.targets.mountinfo import parse_mountinfo


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(change, "catalogue", knobs)
    return World(tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def the_open_one(root: Path) -> JournalState:
    (state,), errors = open_journals(root)
    assert not errors
    return state


def abandon(world: World, root: Path, **values: int | str) -> None:
    def body() -> None:
        with change.changed(world.target(), values, store=root):
            os.kill(os.getpid(), 9)

    assert in_child(body, world) == -9


def test_a_change_lasts_as_long_as_the_body(world: World, root: Path) -> None:
    with change.changed(world.target(), {"number": 16, "option": "fast"}, store=root) as effective:
        assert world.values == {"number": "16", "option": "fast"}
        assert effective["number"].values == {"number": "16"} and not effective.remarks
        assert the_open_one(root).life() == "alive"
    assert world.values == {"number": "8", "option": None}
    assert {one.outcome for one in effective.restored} == {"restored"} and open_journals(root) == ((), ())


def test_a_change_by_others_is_kept_and_reported(world: World, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with change.changed(world.target(), {"number": 16, "option": "fast"}, store=root) as effective:
        world.write("number", "33")
    assert world.values == {"number": "33", "option": None}
    other = next(one for one in effective.restored if one.knob == "number")
    assert (other.outcome, other.before, other.value, other.good) == ("changed by others", "8", "33", False)
    assert "strakes: number: left at 33, not put back to 8" in capfd.readouterr().err


def test_a_refused_value_undoes_the_changes_before_it(world: World, root: Path) -> None:
    with (
        pytest.raises(BadInputError, match="no setting 'nothing'"),
        change.changed(world.target(), {"number": 16, "nothing": 1}, store=root),
    ):
        pytest.fail("never")
    assert world.values["number"] == "8"
    world.refuses = True
    with pytest.raises(BadInputError, match="EINVAL: not now"):
        change.set_values(world.target(), {"number": 16}, store=root)
    assert world.values["number"] == "8" and open_journals(root) == ((), ())
    world.refuses = False  # The tool fails after the system has adjusted the value.
    world.on_step = Mock(side_effect=(None, MeasurementError("no answer"), None, None))
    with pytest.raises(MeasurementError, match="no answer"):
        change.set_values(world.target(), {"number": 500}, store=root)
    assert world.values["number"] == "8" and open_journals(root) == ((), ())
    world.on_step = Mock(side_effect=CommandTimeout("no answer within 10 s"))  # It may still change the value later.
    with pytest.raises(CommandTimeout) as cut_off:
        change.set_values(world.target(), {"option": "fast"}, store=root)
    assert cut_off.value.__notes__[0].startswith("settings are still changed: option may be fast (before: default)")
    assert [one.outcome for one in restore(root, ask=world.ask)] == ["unchanged"]
    # The tool that restores the value would take it for an option, or cannot get it at all.
    for value in ("--out-file=/etc/passwd", "1\n2", "x" * 201, "9" * 39):
        world.write("option", value)
        with pytest.raises(MeasurementError, match="is not understood"):
            change.set_values(world.target(), {"option": "fast"}, store=root)
        assert world.values["option"] == value and open_journals(root) == ((), ())


def test_a_setting_is_changed_and_restored_only_in_its_own_cluster(world: World, root: Path) -> None:
    world.other = "off"
    with pytest.raises(BadInputError, match="cannot be changed while its value is default") as refused:
        change.set_values(world.target(), {"option": "fast"}, store=root)
    assert "world config rm all option may also set other to on" in refused.value.why and not world.values["option"]
    world.other = "on"
    change.set_values(world.target(), {"option": "fast"}, store=root)
    for world.cluster, outcome in (("b", "not put back"), ("a", "restored")):
        # Each command has its own runner, so it queries the cluster again.
        (one,) = restore(root, ask=lambda argv, _=0.0: world.ask(argv))
        assert one.outcome == outcome and ("should be a, but is b" in one.why) == (world.cluster == "b")
    assert world.values["option"] is None and open_journals(root) == ((), ())


def test_a_gluster_volume_of_the_same_name_in_another_cluster_is_not_changed() -> None:
    asked = []

    def ask(argv: Sequence[str], timeout_s: float = 0) -> Completed:
        asked.append(argv)
        own = "mounted" if "--remote-host=10.0.0.1" in argv else "other"
        volumes = f"<volInfo><volumes><volume><id>{own}</id></volume></volumes></volInfo>"
        return Completed(tuple(argv), 0, f"<cliOutput><opRet>0</opRet>{volumes}</cliOutput>", "")

    (mount,) = parse_mountinfo("48 27 0:43 / /mnt rw - fuse.glusterfs 10.0.0.1:/vol/a:b rw,user_id=0")
    (place,) = Bindings(GlusterTarget(Path("/mnt"), mount, runner=ask)).places(find("performance.io-thread-count"))
    with pytest.raises(EnvironmentLacksError, match="should be mounted, but is other"):
        place.write("33", ask)
    assert not any("set" in argv for argv in asked) and place.read_words[-1] == "vol"
    texts = iter(("<a><volume><id>mounted</id></volume></a>", "<a/>"))
    with pytest.raises(MeasurementError, match="not of the volume mounted"):
        place.read(lambda argv, _=0.0: Completed(tuple(argv), 0, next(texts), ""))


def test_ceph_settings_keep_their_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ceph.conf").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CEPH_CONF", "ceph.conf")
    monkeypatch.setenv("CEPH_ARGS", "--id me --key SECRET --keyring here")
    assert Access().lasting_options == ("--conf", str(tmp_path / "ceph.conf"), "--id", "me")
    assert Access(("--conf", "/own")).lasting_options == ("--conf", "/own", "--id", "me")


def test_a_value_is_restored_although_its_journal_was_moved(world: World, root: Path) -> None:
    with change.changed(world.target(), {"number": 16}, store=root) as effective:
        directory(root).rename(root / "moved")
    assert [one.outcome for one in effective.restored] == ["restored"] and world.values["number"] == "8"


def test_a_knob_changed_by_a_living_process_is_neither_changed_nor_restored(world: World, root: Path) -> None:
    with change.changed(world.target(), {"number": 16}, store=root):
        for value in (16, 32):
            with pytest.raises(BadInputError, match=f"process {os.getpid()}"):
                change.set_values(world.target(), {"number": value}, store=root)
        (left,) = restore(root, ask=world.ask)
        assert (left.outcome, world.values["number"]) == ("in use", "16")
        change.set_values(world.target(), {"option": "fast"}, store=root)
    assert world.values == {"number": "8", "option": "fast"}
    claimed = KnobJournal.claim(root, the_open_one(root))  # as another command that restores the setting
    (left,) = restore(root, ask=world.ask)
    assert claimed and left.outcome == "in use" and f"kill -CONT {os.getpid()}" in left.why


def test_the_next_command_restores_the_values_of_a_killed_one(world: World, root: Path) -> None:
    abandon(world, root, number=16, option="fast")
    with the_open_one(root).path.open("a") as journal:  # An attempt before the clock was set back.
        journal.write('{"is": "tried", "unix_s": 1e11}\n')
    assert world.values == {"number": "16", "option": "fast"}
    said: list[str] = []
    restore_abandoned(root, said.append, world.ask)
    assert world.values == {"number": "8", "option": None}
    assert "ended without putting back" in said[0] and "number: put back to 8" in said[2]


def test_a_silent_system_is_not_asked_again_at_once_and_can_be_restored_later(world: World, root: Path) -> None:
    abandon(world, root, number=16, option="fast")
    asked = []

    def silent(argv: object, timeout_s: float = 0) -> Completed:
        asked.append(argv)
        raise CommandTimeout("no answer within 10 s", where="world get")

    said: list[str] = []
    restore_abandoned(root, said.append, silent)
    assert len(asked) == 1 and "not tried" in said[-1]
    restore_abandoned(root, said.append, silent)
    assert len(asked) == 1 and "strakes knobs restore" in said[-1]
    assert [one.outcome for one in restore(root, ask=silent)] == ["not put back", "not put back"]
    assert [one.outcome for one in restore(root, ask=world.ask)] == ["restored", "restored"]


@pytest.mark.parametrize("dies", [False, True])
def test_a_value_that_cannot_be_restored_raises_an_error_with_a_remedy(dies: bool, world: World, root: Path) -> None:
    def refuse() -> None:
        world.refuses = True
        if dies:
            raise MeasurementError("the servers do not answer")

    with (
        pytest.raises(MeasurementError, match="strakes knobs restore") as raised,
        change.changed(world.target(), {"number": 16}, store=root),
    ):
        refuse()
    note = "settings are still changed: number is 16 (before: 8). Put them back with: strakes knobs restore"
    assert getattr(raised.value, "__notes__", []) == [note] * dies
    world.refuses = False
    restore(root, ask=world.ask)
    assert world.values["number"] == "8"


def test_restore_waits_for_a_command_that_outlived_its_process(tmp_path: Path) -> None:
    writing = ("sh", "-c", f"sleep 0.5; echo {{value}} > {tmp_path}/x")
    place = KnobPlace("x", "x", read_words=("cat", f"{tmp_path}/x"), write_words=writing)
    (tmp_path / "x").write_text("8\n")
    (tmp_path / "store").mkdir()
    journal = KnobJournal.begin(tmp_path / "store", "/", ("test",))
    journal.will(place, "8", "16")
    journal.release()
    mark = mark_of(os.getpid(), process_start(os.getpid()) or 0)
    orphan = subprocess.Popen(["sh", "-c", f"sleep 0.5; echo 16 > {tmp_path}/x"], env=os.environ | mark)
    (done,) = restore(tmp_path / "store")
    assert done.outcome == "restored" and (tmp_path / "x").read_text() == "8\n"
    orphan.wait()


def test_a_change_of_a_killed_command_is_undone_also_if_the_server_makes_it_later(world: World, root: Path) -> None:
    def killed(argv: Sequence[str], timeout_s: float = 0) -> Completed:
        return Completed(tuple(argv), -9, "", "") if "set" in argv else world.ask(argv)

    target = world.target()
    target.run = killed
    with pytest.raises(CommandCutOffError, match="killed by SIGKILL") as raised:
        change.set_values(target, {"option": "fast"}, store=root)
    assert "option may be fast" in getattr(raised.value, "__notes__", [""])[0]
    world.write("option", "fast")
    assert [one.outcome for one in restore(root, ask=world.ask)] == ["restored"] and world.values["option"] is None
    target.run = lambda argv, _=0.0: Completed(tuple(argv), 0, "", "") if "set" in argv else world.ask(argv)
    with pytest.raises(OSError, match="full"):
        change.set_values(world.target(), {"option": "fast"}, Mock(side_effect=OSError("full")), root)
    assert open_journals(root) == ((), ())
    for now in ("fast", None):  # The command has ended well, but the server makes the change later.
        change.set_values(target, {"option": "fast"}, store=root)
        world.write("option", now)
        assert [one.outcome for one in restore(root, ask=world.ask)] == ["restored"] and world.values["option"] is None


def test_a_damaged_journal_is_named_and_the_others_are_restored(world: World, root: Path) -> None:
    abandon(world, root, number=16)
    damaged = directory(root) / "000000-damaged.jsonl"
    damaged.write_text('{"is":"journal","format":1}\n{"is":"will"}\n')
    said: list[str] = []
    restore_abandoned(root, said.append, world.ask)
    assert world.values["number"] == "8" and str(damaged) in said[0]


def test_a_change_of_another_host_is_restored_there_and_one_from_before_a_reboot_here(world: World, root: Path) -> None:
    abandon(world, root, number=16)
    path = the_open_one(root).path
    before_reboot = path.read_text().replace('"boot":"', '"boot":"0', 1)
    path.write_text(before_reboot.replace('"host":"', '"host":"another-', 1))
    (left,) = restore(root, ask=world.ask)
    assert left.outcome == "in use" and ": restore it on its host" in left.why and world.values["number"] == "16"
    path.write_text(before_reboot)
    # The process id now belongs to another process, the one of this test.
    (done,) = restore(root, ask=world.ask)
    assert done.outcome == "restored" and world.values["number"] == "8"


def test_no_value_is_changed_if_the_store_cannot_be_written(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError, match="STRAKES_STORE"):
        change.set_values(world.target(), {"number": 16}, store=tmp_path / "file")
    assert world.values["number"] == "8"


def test_missing_privileges_are_reported_before_anything_is_written(tmp_path: Path) -> None:
    from strakes.control.knob import catalogue
    from strakes.targets.calls import mount_of
    from strakes.targets.local import LocalTarget

    catalogue()  # loads modules that the other user cannot read
    with other_user(), pytest.raises(EnvironmentLacksError, match="needs root"):
        change.set_values(LocalTarget(Path("/"), mount_of(Path("/"))), {"vm.swappiness": 10}, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_open_journals_are_in_order_even_if_the_clock_goes_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for hour in (3, 2, 1):  # the clock is set back each time
        monkeypatch.setattr(time, "time", lambda hour=hour: 3600.0 * hour)
        journal = KnobJournal.begin(root, "/x", ("test",))
        journal.will(KnobPlace(f"x{hour}", f"x{hour}", f"/x{hour}"), "1", "2")
        journal.release()
        made.append(journal.path.stem)
    assert [state.id for state in open_journals(root)[0]] == made


_KILLED = "from strakes.targets.command import run; print(flush=True); run(['sleep', '3'])"


def test_a_command_that_outlives_its_process_is_recognised_by_its_mark() -> None:
    with subprocess.Popen([sys.executable, "-c", _KILLED], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None and worker.stdout.readline()
        started = process_start(worker.pid)
        assert started is not None
        while not (left := commands_of(worker.pid, started)):
            time.sleep(0.01)
        worker.kill()
    assert commands_of(worker.pid, started) == left and commands_of(worker.pid, started + 1) == ()
    for number in left:
        os.kill(number, signal.SIGKILL)
    while commands_of(worker.pid, started):
        time.sleep(0.01)
