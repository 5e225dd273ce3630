"""Two stores: two users of one machine, or two clients of one server."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from knobs.test_changes import abandon, root, world
from knobs.world import World
from strakes.errors import BadInputError
from strakes.knobs import change, hold
from strakes.knobs.journal import open_journals
from strakes.knobs.knob_place import KnobPlace
from strakes.knobs.restore import restore
from strakes.targets.command import run

__all__ = ["root", "world"]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return tmp_path / "other store"


def test_of_two_stores_one_changes_a_place_and_the_original_value_comes_back(
    world: World, root: Path, other: Path
) -> None:
    change.set_values(world.target(), {"number": 64}, store=root)
    with pytest.raises(BadInputError, match="another store") as refused:
        change.set_values(world.target(), {"number": 32}, store=other)
    assert str(root) in refused.value.why and "before: 8" in refused.value.why
    assert world.values["number"] == "64" and open_journals(other) == ((), ())
    restore(root, ask=world.ask)
    change.set_values(world.target(), {"number": 32}, store=other)
    restore(other, ask=world.ask)
    assert world.values["number"] == "8"


def test_while_a_place_is_changed_by_a_living_run_another_store_is_refused(
    world: World, root: Path, other: Path, own_records: Path
) -> None:
    with change.changed(world.target(), {"number": 64, "option": "fast"}, store=root):
        assert len(list(own_records.iterdir())) == 2
        with pytest.raises(BadInputError), change.changed(world.target(), {"option": "slow"}, store=other):
            pass
        assert world.values == {"number": "64", "option": "fast"}
    assert world.values == {"number": "8", "option": None}
    assert not list(own_records.iterdir())


def test_what_a_killed_process_changed_is_held_until_its_store_puts_it_back(
    world: World, root: Path, other: Path
) -> None:
    abandon(world, root, number=64)
    with pytest.raises(BadInputError):
        change.set_values(world.target(), {"number": 32}, store=other)
    restore(root, ask=world.ask)
    change.set_values(world.target(), {"number": 32}, store=other)


def test_changes_piled_on_each_other_in_one_store_are_held_until_the_last_is_undone(
    world: World, root: Path, other: Path, own_records: Path
) -> None:
    change.set_values(world.target(), {"number": 64}, store=root)
    with change.changed(world.target(), {"number": 32}, store=root):
        pass
    assert list(own_records.iterdir())
    restore(root, ask=world.ask)
    assert not list(own_records.iterdir())


def test_the_record_of_a_store_that_was_removed_holds_nobody_up(world: World, root: Path, other: Path) -> None:
    abandon(world, root, number=64)
    shutil.rmtree(root)
    change.set_values(world.target(), {"number": 32}, store=other)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff" * 100, b"[" * 60000, b'{"store": 5}'])
def test_a_record_that_is_none_refuses_and_is_named(
    world: World, root: Path, own_records: Path, content: bytes
) -> None:
    with change.changed(world.target(), {"number": 64}, store=root):
        (record,) = own_records.iterdir()
        name = record.name
    (own_records / name).write_bytes(content)
    if content:
        with pytest.raises(BadInputError, match="another store") as refused:
            change.set_values(world.target(), {"number": 32}, store=root)
        assert name in refused.value.remedy
        assert world.values["number"] == "8"


def test_a_record_on_a_server_is_seen_by_its_other_clients(tmp_path: Path) -> None:
    """The server is this machine, as a root of its own."""
    if os.geteuid() != 0:
        pytest.skip("a server's root directory needs root")
    here = tmp_path / "server"
    here.mkdir()
    template = f"{sys.executable} -I {Path(__file__).with_name('server.py')} {here} {{host}}"
    place = KnobPlace("lustre.size", "size", read_words=("get", "size"), host="oss1", servers=template)
    first, second = tmp_path / "first", tmp_path / "second"
    hold.take(place, "2560", first, first / "journal", run)
    hold.take(place, "2560", first, first / "journal", run)
    (first / "journal").parent.mkdir()
    (first / "journal").touch()
    with pytest.raises(BadInputError, match="another store") as refused:
        hold.take(place, "128", second, second / "journal", run)
    assert "before: 2560" in refused.value.why
    hold.give_back(place, second, run)
    with pytest.raises(BadInputError):
        hold.take(place, "128", second, second / "journal", run)
    hold.give_back(place, first, run)
    hold.take(place, "128", second, second / "journal", run)
