"""Two stores on one machine: a place changed by one of them is refused to the other."""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from control.test_changes import abandon, root, world
from control.world import World, in_child, knobs
from mounts import tmpfs_mounted
from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.cli.knobs import restore_command
from strakes.control import knob_change as change
from strakes.control import knob_hold as hold
from strakes.control.knob_journal import directory, open_journals
from strakes.control.knob_place import KnobPlace
from strakes.control.knob_restore import lost, restore

__all__ = ["root", "world"]


def records(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if path.name != ".lock"]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return tmp_path / "other store"


def test_a_place_is_changed_by_one_store_at_a_time_and_its_original_value_is_restored(
    world: World, root: Path, other: Path, own_records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change.set_values(world.target(), {"number": 64}, store=root)
    with pytest.raises(BadInputError, match="another store") as refused:
        change.set_values(world.target(), {"number": 32}, store=other)
    assert str(root) in refused.value.why and "the old value is 8" in refused.value.why
    with monkeypatch.context() as user:  # The store of another user, who cannot read the record.
        user.setattr(hold, "open_kept", Mock(side_effect=PermissionError))
        with pytest.raises(BadInputError, match="by another user"):
            change.set_values(world.target(), {"number": 32}, store=other)
    assert world.values["number"] == "64" and open_journals(other) == ((), ())
    restore(root, ask=world.ask)
    change.set_values(world.target(), {"number": 32}, store=other)
    restore(other, ask=world.ask)
    assert world.values["number"] == "8"

    def take_late(*rest: Any) -> None:  # Between the first reading and the record, another store restores 8.
        world.write("number", "8")
        take(*rest)

    world.write("number", "16")
    take = hold.take
    monkeypatch.setattr(hold, "take", take_late)
    with pytest.raises(BadInputError, match="by somebody else"):
        change.set_values(world.target(), {"number": 64}, store=root)
    assert world.values["number"] == "8" and open_journals(root) == ((), ()) and not records(own_records)


def test_a_place_changed_by_a_living_run_is_refused_to_another_store(
    world: World, root: Path, other: Path, own_records: Path
) -> None:
    with change.changed(world.target(), {"number": 64, "option": "fast"}, store=root):
        assert len(records(own_records)) == 2
        with pytest.raises(BadInputError), change.changed(world.target(), {"option": "slow"}, store=other):
            pass
        assert world.values == {"number": "64", "option": "fast"}
    assert world.values == {"number": "8", "option": None} and not records(own_records)


def test_the_record_of_a_killed_process_holds_until_the_setting_has_its_original_value(
    world: World, root: Path, other: Path
) -> None:
    abandon(world, root, number=64)
    shutil.rmtree(root)
    with pytest.raises(BadInputError, match="another store") as refused:
        change.set_values(world.target(), {"number": 32}, store=other)
    assert "the old value is 8" in str(refused.value)
    world.write("number", "8")
    change.set_values(world.target(), {"number": 32}, store=other)


def test_without_its_record_a_change_is_restored_only_while_no_other_store_has_changed_the_setting(
    world: World, root: Path, other: Path, own_records: Path
) -> None:
    abandon(world, root, number=64)
    shutil.rmtree(own_records)  # as a reboot of the machine does
    with change.changed(world.target(), {"number": 64}, store=other):
        (left,) = restore(root, ask=world.ask)
        assert left.outcome == "not put back" and str(other) in left.why and world.values["number"] == "64"
    assert restore(root, ask=world.ask)[0].outcome == "restored" and world.values["number"] == "8"


@pytest.mark.parametrize("held", [False, True])
def test_a_value_of_somebody_else_stays_at_whatever_step_restoring_is_killed(
    world: World, root: Path, own_records: Path, held: bool
) -> None:
    for step in range(1, 60):
        (change_ended if held else abandon)(world, root, number=64, option="fast")
        values = {"number": str(1000 + step), "option": str(step)}
        for name, value in values.items():
            world.write(name, value)
        status = in_child(lambda: restore(root, ask=world.ask), world, step)
        with suppress(BadInputError), change.changed(world.target(), {"number": 32, "option": "slow"}, store=root):
            pass
        restore(root, ask=world.ask)
        assert world.values == values and not records(own_records)
        if status == 0:
            break
    assert 1 < step < 59


class Coupled(World):
    """A system that changes the option with each change of the number."""

    def write(self, name: str, value: str | None) -> None:
        super().write(name, value)
        if name == "number":
            super().write("option", f"for-{value}")


def test_a_setting_that_the_system_changes_along_is_restored_at_whatever_step_the_process_is_killed(
    root: Path, own_records: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    coupled = [replace(knob, moves=("option",) if knob.name == "number" else ()) for knob in knobs()]
    monkeypatch.setattr(change, "catalogue", lambda: coupled)
    world = Coupled(tmp_path)
    world.write("option", "own")

    def body() -> None:
        change.set_values(world.target(), {"option": "a", "number": 64}, store=root)
        restore(root, ask=world.ask)

    for step in range(1, 200):
        status = in_child(body, world, step)
        restore(root, ask=world.ask)
        assert world.values == {"number": "8", "option": "own"} and not lost(root), step
        if status == 0:
            break
    assert 1 < step < 199
    change_ended(world, root, number=64)
    shutil.rmtree(root)  # Only the records on the machine are left.
    assert [one.outcome for one in restore(root, ask=world.ask)] == ["restored"] * 2
    assert world.values == {"number": "8", "option": "own"} and not lost(root)
    change_ended(world, root, number=64)
    assert world.values["option"] == "for-64"
    world.write("option", "theirs")
    done = {one.knob: one.outcome for one in restore(root, ask=world.ask)}
    assert done == {"number": "restored", "number.option": "changed by others"}
    assert world.values == {"number": "8", "option": "theirs"}


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff" * 100, b"[" * 60000, b'{"store": 5}'])
def test_a_damaged_record_refuses_the_change_and_is_named(
    world: World, root: Path, own_records: Path, content: bytes
) -> None:
    with change.changed(world.target(), {"number": 64}, store=root):
        (record,) = records(own_records)
    record.write_bytes(content)
    if content:
        with pytest.raises(BadInputError, match="another store") as refused:
            change.set_values(world.target(), {"number": 32}, store=root)
        assert record.name in refused.value.remedy and world.values["number"] == "8"


def test_a_record_is_complete_or_absent_at_whatever_step_its_writer_is_killed(
    world: World, root: Path, own_records: Path, other: Path
) -> None:
    place = KnobPlace("number", "number", read_words=("world", "get", "number"), write_words=("world",))
    other.mkdir()
    (other / "journal").touch()
    for step in range(1, 12):
        status = in_child(lambda: hold.take(place, "8", root, root / "journal"), world, step)
        kept = [path.read_text() for path in own_records.glob("[!.]*")]
        assert all(json.loads(text)["before"] == "8" for text in kept)
        # The first store has no journal, so the second may take over its record. Then the first may not take it back.
        hold.take(place, "8", other, other / "journal")
        with pytest.raises(BadInputError):
            hold.take(place, "8", root, root / "journal")
        hold.give_back(place, other)
        if status == 0:
            break
    assert step > 1


@pytest.mark.parametrize("name", ["record", "000001-x.jsonl"])
def test_restore_fails_if_a_journal_or_record_is_damaged(
    root: Path, own_records: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("STRAKES_STORE", str(root))
    path = (own_records if name == "record" else directory(root)) / name
    path.parent.mkdir(parents=True)
    path.write_text("{" if name == "record" else "")
    result = CliRunner().invoke(restore_command, [], standalone_mode=False)
    assert result.return_value == 1 and str(path) in result.output and "No settings to put back" not in result.output
    path.unlink()
    result = CliRunner().invoke(restore_command, [], standalone_mode=False)
    assert result.return_value == 0 and "No settings to put back" in result.output


def test_a_value_that_cannot_be_recorded_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place = KnobPlace("size", "size", file=str(tmp_path / "size"))
    with tmpfs_mounted("4k,nr_inodes=1") as full:
        monkeypatch.setenv("STRAKES_RUN", str(full))
        with pytest.raises(EnvironmentLacksError, match="was not changed") as lacks:
            hold.take(place, "2560", tmp_path, tmp_path / "journal")
    assert lacks.value.why == "No space left on device" and str(full) in lacks.value.where


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("moved", [False, True])
def test_a_value_whose_journal_is_lost_is_restored_from_the_record_of_the_machine(
    world: World, root: Path, own_records: Path, killed: bool, moved: bool
) -> None:
    if killed:
        abandon(world, root, number=64, option="fast")
    else:
        change_ended(world, root, number=64, option="fast")
    if moved:
        directory(root).rename(root / "aside")
    else:
        shutil.rmtree(root)
    assert restore(root, target="/elsewhere", ask=world.ask) == () and restore(root.with_name("x"), ask=world.ask) == ()
    assert {record.before for record in lost(root)} == {"8", None}
    with pytest.MonkeyPatch.context() as patch:  # The directory is not taken for empty.
        patch.setattr(Path, "iterdir", Mock(side_effect=OSError(errno.ESTALE, "stale")))
        assert [error.why for error in hold.records(root)[1]] == ["stale"]
    done = restore(root, target=str(world.target().path), ask=world.ask)
    assert [one.outcome for one in done] == ["restored", "restored"]
    assert world.values == {"number": "8", "option": None} and not records(own_records)


def change_ended(world: World, root: Path, **values: int | str) -> None:
    def body() -> None:
        change.set_values(world.target(), values, store=root)

    assert in_child(body, world) == 0


def test_a_lost_change_can_be_kept_and_one_of_a_live_process_stays(world: World, root: Path, own_records: Path) -> None:
    with change.changed(world.target(), {"number": 64}, store=root):
        directory(root).rename(root / "aside")
        assert [one.outcome for one in restore(root, ask=world.ask)] == ["in use"] and world.values["number"] == "64"
        directory(root).rename(root / "empty")
        (root / "aside").rename(directory(root))
    change_ended(world, root, number=32)
    shutil.rmtree(root)
    assert [one.outcome for one in restore(root, keep=True, ask=world.ask)] == ["kept"]
    assert world.values["number"] == "32" and not records(own_records)


def test_an_old_journal_copied_back_does_not_restore_an_older_value(world: World, root: Path, tmp_path: Path) -> None:
    world.write("number", "4")
    change_ended(world, root, number=64)
    shutil.copytree(directory(root), tmp_path / "old")
    restore(root, ask=world.ask)
    world.write("number", "8")
    change_ended(world, root, number=64)
    change_ended(world, root, number=32)
    restore(root, ask=world.ask)
    change_ended(world, root, number=64)
    shutil.rmtree(directory(root))
    (tmp_path / "old").rename(directory(root))
    restore(root, ask=world.ask)
    assert world.values["number"] == "8"


def test_successive_changes_are_undone_one_after_the_other_and_one_that_is_kept_is_forgotten(
    world: World, root: Path, own_records: Path
) -> None:
    change_ended(world, root, number=64)
    with change.changed(world.target(), {"number": 32}, store=root):
        assert world.values["number"] == "32"
    assert world.values["number"] == "64" and records(own_records)
    with change.changed(world.target(), {"number": 32}, store=root):
        restore(root, keep=True, ask=world.ask)
        assert json.loads(records(own_records)[0].read_text())["before"] == "64"
    assert world.values["number"] == "64" and not records(own_records)
    change_ended(world, root, number=16)
    restore(root, ask=world.ask)
    assert world.values["number"] == "64" and not records(own_records)


def test_the_record_of_a_change_whose_journal_is_lost_outlives_a_failed_change(
    world: World, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_ended(world, root, number=64)
    shutil.rmtree(root)
    monkeypatch.setattr(world, "refuses", True)
    with pytest.raises(BadInputError, match="not now"):
        change.set_values(world.target(), {"number": 32}, store=root)
    assert world.values["number"] == "64" and [record.before for record in lost(root)] == ["8"]
