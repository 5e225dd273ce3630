"""The journal of knob changes: content, exclusive writers, guarantees under faults, and the removal of old files."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.processes import is_locked
from strakes.control import knob_journal as module
from strakes.control.knob_journal import KnobJournal, directory, locked, open_journals, read_journal, sweep
from strakes.control.knob_place import KnobPlace

_OWNER = {"host": "h", "boot": "b", "namespace": "n", "pid": 1, "started": 2}
_PLACE = {"knob": "k", "name": "k", "file": "/f"}
_WILL = {"is": "will", "number": 1, "place": _PLACE, "before": "1", "wanted": "2"}
_HEAD = {"is": "journal", "format": 1, "owner": _OWNER, "target": "/x", "command": ["strakes"], "created_unix_s": 1.5}
_WORDS = {"read_words": ["x"], "write_words": ["x"]}
_BAD_PLACES: list[dict[str, object]] = [
    {"read_words": ["x"]},
    {"file": "/f", "field": "("},
    {"file": "/f", "field": "x"},
    {**_WORDS, "cluster": "c"},
    {**_WORDS, "answer": "ceph config dump", "unset_words": ["x"]},
]


def place(name: str = "size") -> KnobPlace:
    return KnobPlace(name, name, file=f"/sys/{name}")


def begin(root: Path) -> KnobJournal:
    return KnobJournal.begin(root, "/x", ["strakes", "tune"])


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_entries_are_read_back_as_written(tmp_path: Path) -> None:
    journal = begin(tmp_path)
    assert [journal.will(place("size"), "1", "2"), journal.will(place("depth"), None, "3")] == [1, 2]
    (state,), errors = open_journals(tmp_path)
    assert errors == () and [entry.known for entry in state.entries] == [False, False]
    journal.note("did", number=1, effective="2")
    journal.note("did", number=2, effective=None)
    journal.note("settled", number=2, outcome="restored")
    (state,), _ = open_journals(tmp_path)
    assert [(entry.number, entry.effective) for entry in state.open_entries] == [(1, "2")]
    assert state.entries[1].known and state.entries[1].outcome == "restored" and state.life() == "alive"
    journal.note("tried", unix_s=5.5)
    journal.release()
    (state,), _ = open_journals(tmp_path)
    assert (state.tried_unix_s, state.life()) == (5.5, "dead")


def test_a_place_is_changed_by_one_open_journal_at_a_time(tmp_path: Path) -> None:
    first, second = begin(tmp_path), begin(tmp_path)
    number = first.will(place(), "1", "2")
    assert first.will(place(), "2", "3") == number + 1  # a journal does not conflict with itself
    second.will(place("depth"), "1", "2")
    with pytest.raises(BadInputError, match="already changed by another") as refused:
        second.will(place(), "2", "3")
    assert refused.value.remedy == "Wait until that process ends."
    first.release()
    with pytest.raises(BadInputError) as refused:
        second.will(place(), "2", "3")
    assert "strakes knobs restore" in refused.value.remedy and "has ended" in refused.value.why
    second.note("held")
    with pytest.raises(BadInputError):  # The setting may be about to be restored.
        begin(tmp_path).will(place("depth"), "2", "3")
    second.release()
    begin(tmp_path).will(place("depth"), "2", "3")


def test_a_claimed_journal_continues_its_numbers_and_has_one_writer(tmp_path: Path) -> None:
    first = begin(tmp_path)
    first.will(place(), "1", "2")
    (state,), _ = open_journals(tmp_path)
    assert KnobJournal.claim(tmp_path, state) is None
    first.release()
    with state.path.open("ab") as file:
        file.write(b'{"is": "did", "num')
    claimed = KnobJournal.claim(tmp_path, state)
    assert claimed is not None and claimed.will(place("depth"), "1", "2") == 2
    assert [entry.number for entry in read_journal(state.path).entries] == [1, 2]
    claimed.close()
    assert KnobJournal.claim(tmp_path, state) is None and open_journals(tmp_path) == ((), ())


def test_files_of_killed_processes_without_open_changes_are_removed(tmp_path: Path) -> None:
    settled, living = begin(tmp_path), begin(tmp_path)
    settled.will(place(), "1", "2")
    settled.note("settled", number=1, outcome="restored")
    settled.release()
    (directory(tmp_path) / ".new-000009-x").touch()
    sweep(tmp_path)
    assert sorted(path.name for path in directory(tmp_path).iterdir()) == [living.path.name, "lock"]
    (directory(tmp_path) / ".new-000009-x").touch()
    journal = begin(tmp_path)
    assert not list(directory(tmp_path).glob(".new-*")) and int(journal.path.stem[:6]) == int(living.path.stem[:6]) + 1
    for each in (living, journal):
        each.release()


@pytest.mark.parametrize(
    "rows",
    [
        *([{**_HEAD, key: value}] for key in _HEAD if key != "is" for value in (None, [0], 1e300)),
        *([_HEAD, {**_WILL, key: 5}] for key in ("place", "before", "wanted")),
        *([_HEAD, {**_WILL, "place": {**_PLACE, "file": "", **place}}] for place in _BAD_PLACES),
        *([_HEAD, _WILL, {**_WILL, "place": {**_PLACE, "name": "m"}}], [_HEAD, _WILL, _HEAD], [_HEAD, {"is": "x"}]),
        *([], [5], [_HEAD, {"is": "did", "number": 1}], [{"is": "x"}]),
    ],
)
def test_a_damaged_journal_is_named(tmp_path: Path, rows: list[object]) -> None:
    (tmp_path / "knobs").mkdir(parents=True)
    path = write(tmp_path / "knobs" / "x.jsonl", *rows)
    states, (error,) = open_journals(tmp_path)
    assert states == () and error.where == str(path)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_creating_a_journal_waits_for_the_lock_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[KnobJournal] = []
    with locked(tmp_path):
        monkeypatch.setattr(module, "PATIENCE_S", 0.1)
        with pytest.raises(EnvironmentLacksError, match=f"process {os.getpid()} has"):
            begin(tmp_path)
        monkeypatch.undo()
        assert is_locked(tmp_path / "knobs" / "lock")
        beginning = threading.Thread(target=lambda: begun.append(begin(tmp_path)))
        beginning.start()
        beginning.join(0.5)
        assert not begun and beginning.is_alive()
    beginning.join()
    assert not is_locked(tmp_path / "knobs" / "lock")
    begun[0].release()


def test_a_process_in_another_container_is_alive_while_it_holds_the_lock(tmp_path: Path) -> None:
    journal = begin(tmp_path)
    head = json.loads(journal.path.read_text())
    head["owner"]["namespace"] = "another"
    journal.path.write_text(json.dumps(head) + "\n")  # overwrites the file in place, so the lock stays
    before = open_files()
    assert read_journal(journal.path).life() == "alive" and open_files() == before
    journal.release()
    state = read_journal(journal.path)
    assert state.life() == "dead"
    state.path.unlink()
    assert state.life() == "dead"
    head["owner"]["boot"] = "another"
    journal.path.write_text(json.dumps(head) + "\n")
    assert read_journal(journal.path).life() in ("dead", "elsewhere")


def test_a_journal_is_durable_before_its_first_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    durable: list[int] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        durable.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    before = open_files()
    journal = begin(tmp_path)
    assert {directory(tmp_path).stat().st_ino, journal.path.stat().st_ino} <= set(durable)
    journal.close()
    assert open_files() == before


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "x")])
def test_an_interrupted_creation_leaks_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(KnobJournal, "note", fail)
    before = open_files()
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else StrakesError):
        begin(tmp_path)
    assert open_files() == before


@pytest.mark.parametrize("claimed", [False, True])
def test_a_line_is_synced_before_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: bool) -> None:
    journal: KnobJournal | None = begin(tmp_path)
    assert journal is not None
    if claimed:
        journal.release()
        journal = KnobJournal.claim(tmp_path, read_journal(journal.path))
        assert journal is not None
    durable: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: durable.append(os.fstat(descriptor).st_size))
    journal.will(place(), "1", "2")
    for number in range(3):
        assert len(durable) == number + 1 and durable[-1] == journal.path.stat().st_size
        journal.note("did", number=1, effective="2")
    journal.release()


def test_exclusive_locks_are_taken_on_files_open_for_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = fcntl.flock

    def as_nfs(descriptor: int, how: int) -> None:
        if how & fcntl.LOCK_EX and fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", as_nfs)
    journal = begin(tmp_path)
    assert is_locked(journal.path)
    journal.release()
    assert not is_locked(journal.path)


def test_the_reason_for_missing_locks_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(EnvironmentLacksError, match="has no locks") as refused, locked(tmp_path):
        pass
    assert refused.value.why == os.strerror(errno.ENOLCK)
