"""Two stores: two users of one machine, or two clients of one server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from knobs.test_changes import abandon, root, world
from knobs.world import World, in_child
from mounts import tmpfs_mounted
from strakes.cli.knobs import journal_command, restore_command
from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.knobs import change, hold
from strakes.knobs.journal import KnobJournal, directory, open_journals
from strakes.knobs.knob_place import KnobPlace
from strakes.knobs.restore import restore, restore_abandoned
from strakes.targets.command import DEFAULT_TIMEOUT_S, Completed, Runner, run

__all__ = ["root", "world"]


def records(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if path.name != ".lock"]


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
        assert len(records(own_records)) == 1 and len(world.keys) == 1
        with pytest.raises(BadInputError), change.changed(world.target(), {"option": "slow"}, store=other):
            pass
        assert world.values == {"number": "64", "option": "fast"}
    assert world.values == {"number": "8", "option": None}
    assert not records(own_records) and not world.keys


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
    assert records(own_records)
    restore(root, ask=world.ask)
    assert not records(own_records)


def test_the_record_of_a_store_that_was_removed_holds_nobody_up(world: World, root: Path, other: Path) -> None:
    abandon(world, root, number=64)
    shutil.rmtree(root)
    change.set_values(world.target(), {"number": 32}, store=other)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff" * 100, b"[" * 60000, b'{"store": 5}'])
def test_a_record_that_is_none_refuses_and_is_named(
    world: World, root: Path, own_records: Path, content: bytes
) -> None:
    with change.changed(world.target(), {"number": 64}, store=root):
        (record,) = records(own_records)
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
    (first / "journal").touch()
    with pytest.raises(BadInputError, match="another store") as refused:
        hold.take(place, "128", second, second / "journal", run)
    assert "before: 2560" in refused.value.why
    hold.give_back(place, second, run)
    with pytest.raises(BadInputError):
        hold.take(place, "128", second, second / "journal", run)
    hold.give_back(place, first, run)
    hold.take(place, "128", second, second / "journal", run)


def test_two_hosts_of_one_name_with_stores_of_one_path_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that were cloned are all called localhost; the one does not see whether the other's journal is there."""
    place = KnobPlace("size", "size", file=str(tmp_path / "size"))
    store = tmp_path / "store"
    (store / "knobs").mkdir(parents=True)
    (store / "knobs" / "journal").touch()
    hold.take(place, "2560", store, store / "knobs" / "journal", run)
    store.rename(tmp_path / "store on the other machine")
    monkeypatch.setattr("strakes.knobs.hold.boot_id", lambda: "another boot")
    with pytest.raises(BadInputError, match="another store") as refused:
        hold.take(place, "128", store, store / "knobs" / "journal", run)
    assert "before: 2560" in refused.value.why
    hold.give_back(place, store, run)
    with pytest.raises(BadInputError):
        hold.take(place, "128", store, store / "knobs" / "journal", run)
    shutil.rmtree(store)
    (tmp_path / "store on the other machine").rename(store)
    hold.give_back(place, store, run)
    hold.take(place, "2560", tmp_path / "third", store / "knobs" / "journal", run)


def test_a_record_is_not_judged_by_files_of_other_mounts(tmp_path: Path) -> None:
    """A store of a container, on a mount that nobody else has, is no store that is gone."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place = KnobPlace("size", "size", file=str(tmp_path / "size"))
    words = (
        "from pathlib import Path; from strakes.knobs import hold; from strakes.knobs.knob_place import KnobPlace; "
        "from strakes.targets.command import run; import sys; store = Path(sys.argv[1]) / 'own' / 'store'; "
        "hold.take(KnobPlace('size', 'size', file=sys.argv[1] + '/size'), '2560', store, store / 'journal', run); "
        "(store / 'journal').touch()"
    )
    (tmp_path / "own").mkdir()
    script = 'mount -t tmpfs own "$1/own" && exec "$2" -I -c "$3" "$1"'
    unshare = [
        "unshare",
        "--mount",
        "--propagation",
        "slave",
        "sh",
        "-c",
        script,
        "sh",
        str(tmp_path),
        sys.executable,
        words,
    ]
    subprocess.run(unshare, check=True)
    other = tmp_path / "other"
    with pytest.raises(BadInputError, match="another store"):
        hold.take(place, "128", other, other / "journal", run)


def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """Be another client of the same cluster."""
    monkeypatch.setattr("strakes.knobs.hold.socket.gethostname", lambda: name)
    monkeypatch.setattr("strakes.knobs.hold.boot_id", lambda: f"boot of {name}")
    monkeypatch.setenv("STRAKES_RUN", str(tmp_path / f"run of {name}"))


def test_of_two_clients_of_one_cluster_one_changes_an_option(
    world: World, root: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change.set_values(world.target(), {"option": "fast"}, store=root)
    with monkeypatch.context() as away:
        elsewhere(away, tmp_path, "second")
        # Also where its store has the same name, as home directories have.
        for store in (other, root):
            with pytest.raises(BadInputError, match="another store") as refused:
                hold.take(option_place(), "fast", store, store / "journal", world.ask)
            assert (
                "before: None" in refused.value.why
                and "config-key rm strakes/knobs/all/option/" in refused.value.remedy
            )
    restore(root, ask=world.ask)
    assert world.values == {"number": "8", "option": None} and not world.keys
    with monkeypatch.context() as away:
        elsewhere(away, tmp_path, "second")
        change.set_values(world.target(), {"option": "slow"}, store=other)
    assert world.values["option"] == "slow"
    assert len(world.keys) == 1


def option_place() -> KnobPlace:
    read, unset = ("world", "config", "dump"), ("world", "config", "rm", "all", "option")
    return KnobPlace("option", "option", read_words=read, unset_words=unset, answer="ceph config dump")


class Meeting:
    """Two stores that change one option; the second comes at a step of the first."""

    def __init__(self, world: World, place: Path, step: int) -> None:
        self.took: list[str] = []
        self.calls = 0
        self._world, self._step = world, step
        self.first, self.second = place / "first", place / "second"

    def take(self, store: Path, ask: Runner) -> None:
        store.mkdir(exist_ok=True)
        (store / "journal").touch()
        try:
            hold.take(option_place(), None, store, store / "journal", ask)
        except BadInputError:
            return
        self.took.append(store.name)

    def ask_interrupted(self, argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        if self.calls == self._step:
            self.take(self.second, self._world.ask)
        self.calls += 1
        return self._world.ask(argv, timeout_s)


def test_of_two_that_come_at_once_not_both_change_it(world: World, tmp_path: Path) -> None:
    for step in range(100):
        meeting = Meeting(world, tmp_path, step)
        meeting.take(meeting.first, meeting.ask_interrupted)
        assert len(meeting.took) <= 1, f"both, when the second comes at step {step}"
        for store in (meeting.first, meeting.second):
            hold.give_back(option_place(), store, world.ask)
        assert not world.keys
        if meeting.calls <= step:  # the second one never came
            break
    assert meeting.took == ["first"] and step >= 3


@pytest.mark.parametrize("content", ["", "[]", "[" * 60000, '{"store": 5}', "\x1b[2J"])
def test_a_record_in_the_cluster_that_is_none_refuses_and_is_named(world: World, root: Path, content: str) -> None:
    with change.changed(world.target(), {"option": "fast"}, store=root):
        (key,) = world.keys
    world._write_keys({key[:-1] + "x": content})
    with pytest.raises(BadInputError, match="another store") as refused:
        change.set_values(world.target(), {"option": "slow"}, store=root)
    assert key[:-1] in refused.value.remedy
    assert world.values["option"] is None and list(world.keys) == [key[:-1] + "x"]


def test_a_cluster_that_keeps_no_record_leaves_it_to_the_machine(world: World, root: Path, own_records: Path) -> None:
    def ask(argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        if "config-key" in argv:
            return Completed(tuple(argv), 13, "", "Error EACCES: access denied")
        return world.ask(argv, timeout_s)

    hold.take(option_place(), None, root, root / "journal", ask)
    assert len(records(own_records)) == 1
    hold.give_back(option_place(), root, ask)
    assert not records(own_records)


class Volume:
    """Options of a Gluster volume, by the words of its tool."""

    def __init__(self) -> None:
        self.options: dict[str, str] = {"performance.cache-size": "32MB"}

    def ask(self, argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        match tuple(argv)[2:]:
            case ("--xml", "volume", "info", "data"):
                rows = "".join(f"<option><name>{k}</name><value>{v}</value></option>" for k, v in self.options.items())
                return Completed(tuple(argv), 0, f"<cliOutput><volume>{rows}</volume></cliOutput>", "")
            case ("volume", "set", "data", key, value):
                # Such options cannot be removed (GlusterFS 10).
                assert key.startswith("user.") and re.fullmatch(r"[\w-]+", value)
                self.options[key] = value
            case _:
                raise AssertionError(argv)
        return Completed(tuple(argv), 0, "", "")


def test_of_two_clients_of_one_gluster_volume_one_changes_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = ("gluster", "--mode=script", "--xml", "volume", "info", "data")
    unset = ("gluster", "--mode=script", "volume", "reset", "data", "performance.cache-size")
    place = KnobPlace("x", "x", read_words=read, unset_words=unset, answer="gluster volume info")
    volume, store = Volume(), tmp_path / "store"
    hold.take(place, "32MB", store, store / "journal", volume.ask)
    with monkeypatch.context() as away:
        elsewhere(away, tmp_path, "second")
        with pytest.raises(BadInputError, match="another store") as refused:
            hold.take(place, "128MB", store, store / "journal", volume.ask)
        assert "before: 32MB" in refused.value.why
        hold.give_back(place, store, volume.ask)
    assert len(volume.options) == 2 and "-" not in volume.options.values()
    hold.give_back(place, store, volume.ask)
    assert list(volume.options.values()) == ["32MB", "-"]
    with monkeypatch.context() as away:
        elsewhere(away, tmp_path, "second")
        hold.take(place, "32MB", store, store / "journal", volume.ask)
    with pytest.raises(BadInputError, match="another store"):
        hold.take(place, "128MB", store, store / "journal", volume.ask)


def test_a_record_is_whole_or_not_there_whenever_its_maker_is_killed(
    world: World, root: Path, own_records: Path, other: Path
) -> None:
    place = KnobPlace("number", "number", read_words=("world", "get", "number"))
    other.mkdir()
    (other / "journal").touch()
    for step in range(1, 12):
        status = in_child(lambda: hold.take(place, "8", root, root / "journal", world.ask), world, step)
        kept = [path.read_text() for path in own_records.glob("[!.]*")]
        assert all(json.loads(text)["before"] == "8" for text in kept)
        # Its store is gone: the next one takes the place, and nobody else then.
        hold.take(place, "8", other, other / "journal", world.ask)
        with pytest.raises(BadInputError):
            hold.take(place, "8", root, root / "journal", world.ask)
        hold.give_back(place, other, world.ask)
        if status == 0:
            break
    assert step > 1


@pytest.mark.parametrize("gone", ["removed", "moved away", "removed and made again"])
def test_the_original_value_comes_back_though_the_store_that_changed_it_is_gone(
    world: World, root: Path, gone: str
) -> None:
    change.set_values(world.target(), {"number": 64, "option": "fast"}, store=root)
    if gone == "moved away":
        root.rename(root.with_name("moved"))
    else:
        shutil.rmtree(root)
    if gone == "removed and made again":  # within the same second its first journal has the same name
        root.mkdir()
        KnobJournal.begin(root, "/x", ["strakes"]).release()
    change.set_values(world.target(), {"number": 32, "option": "slow"}, store=root)
    assert world.values == {"number": "32", "option": "slow"}
    restore(root, ask=world.ask)
    assert world.values == {"number": "8", "option": None}


def test_a_record_whose_journal_is_lost_is_put_back_by_any_store(
    world: World, root: Path, other: Path, own_records: Path
) -> None:
    change.set_values(world.target(), {"number": 64}, store=root)
    assert restore(other, ask=world.ask) == ()  # its journal is there
    shutil.rmtree(root)
    (restored,) = restore(other, ask=world.ask)
    assert (restored.outcome, restored.before, world.values["number"]) == ("restored", "8", "8")
    assert not records(own_records)


def test_a_record_of_another_user_is_not_run_in_our_name(
    world: World, root: Path, own_records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change.set_values(world.target(), {"number": 64}, store=root)
    shutil.rmtree(root)
    with monkeypatch.context() as another:
        another.setattr("strakes.knobs.hold.os.geteuid", lambda: 4711)
        assert restore(root, ask=world.ask) == ()
    assert records(own_records) and world.values["number"] == "64"


@pytest.mark.parametrize("damage", ["empty", "half a line", "deep", "without its changes"])
def test_a_damaged_journal_is_named_and_the_record_puts_the_value_back(
    world: World, root: Path, own_records: Path, damage: str
) -> None:
    change.set_values(world.target(), {"number": 64}, store=root)
    (journal,) = directory(root, "open").glob("*.jsonl")
    head = journal.read_bytes().splitlines(keepends=True)[0]
    journal.write_bytes(
        {
            "empty": b"",
            "half a line": head[: len(head) // 2],
            "deep": b"[" * 60000 + b"\n",
            "without its changes": head,
        }[damage]
    )
    if damage != "without its changes":  # what has a head may be one that was killed before it changed anything
        with pytest.raises(BadInputError, match="damaged") as refused:
            change.set_values(world.target(), {"number": 32}, store=root)
        assert refused.value.where == str(journal) and world.values["number"] == "64"
    (restored,) = restore(root, ask=world.ask)
    assert restored.outcome == "restored" and str(journal) in restored.why
    assert world.values["number"] == "8" and not records(own_records)
    assert bool(open_journals(root)[1]) == (damage != "without its changes")


def test_a_journal_that_lost_its_changes_is_no_reason_to_take_a_new_original(world: World, root: Path) -> None:
    change.set_values(world.target(), {"number": 64}, store=root)
    (journal,) = directory(root, "open").glob("*.jsonl")
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    change.set_values(world.target(), {"number": 32}, store=root)
    restore(root, ask=world.ask)
    assert world.values["number"] == "8"


def test_restore_says_with_its_status_that_a_journal_is_damaged(
    world: World, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAKES_STORE", str(root))
    directory(root, "open").mkdir(parents=True)
    path = directory(root, "open") / "000001-x.jsonl"
    path.touch()
    result = CliRunner().invoke(restore_command, [], standalone_mode=False)
    assert result.return_value == 1 and str(path) in result.output and "nothing to put back" not in result.output
    path.unlink()
    result = CliRunner().invoke(restore_command, [], standalone_mode=False)
    assert result.return_value == 0 and "nothing to put back" in result.output


@pytest.mark.parametrize("damage", ["garbage", "[]", "{}", "[" * 60000])
def test_a_damaged_record_goes_with_its_setting_or_is_named(
    world: World, root: Path, own_records: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setenv("STRAKES_STORE", str(root))
    change.set_values(world.target(), {"number": 64}, store=root)
    (record,) = records(own_records)
    whole = record.read_text()
    record.write_text(damage)
    said = CliRunner().invoke(journal_command, [], standalone_mode=False).output
    assert str(record) in said and "damaged" in said
    restore(root, ask=world.ask)
    assert world.values["number"] == "8" and not records(own_records)
    # Without the journal nobody knows the original value: that is said, and the record stays.
    record.write_text(damage)
    result = CliRunner().invoke(restore_command, [], standalone_mode=False)
    assert result.return_value == 1 and str(record) in result.output and "nothing to put back" not in result.output
    heard: list[str] = []
    restore_abandoned(root, heard.append)
    assert any(str(record) in line for line in heard)
    record.write_text(whole)
    assert not hold.damaged_records()


def test_a_change_is_put_back_under_another_name_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAKES_RUN", str(tmp_path / "run"))
    place = KnobPlace("size", "size", file=str(tmp_path / "size"))
    store, other = tmp_path / "store", tmp_path / "other"
    with monkeypatch.context() as named:
        named.setattr("strakes.knobs.hold.socket.gethostname", lambda: "as it was called")
        hold.take(place, "2560", store, store / "journal", run)
    hold.give_back(place, store, run)
    hold.take(place, "2560", other, other / "journal", run)


def test_a_setting_whose_value_cannot_be_recorded_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place = KnobPlace("size", "size", file=str(tmp_path / "size"))
    with tmpfs_mounted("4k,nr_inodes=1") as full:
        monkeypatch.setenv("STRAKES_RUN", str(full))
        with pytest.raises(EnvironmentLacksError, match="was not changed") as lacks:
            hold.take(place, "2560", tmp_path, tmp_path / "journal", run)
    assert lacks.value.why == "No space left on device" and str(full) in lacks.value.where
