"""The journal under faults of the file system, the store, and other writers."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from pathlib import Path

import pytest

from knobs.test_journal import _HEAD, begin, place, write
from strakes.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.knobs.journal import KnobJournal, directory, locked, open_journals, read_journal

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def is_free(path: Path) -> bool:
    """Return whether no process holds a lock on the file."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_the_lock_of_the_store_is_held_inside_the_block_only(tmp_path: Path) -> None:
    with locked(tmp_path):
        assert not is_free(tmp_path / "knobs" / "lock")
    assert is_free(tmp_path / "knobs" / "lock")


def test_creating_a_journal_waits_for_the_lock_of_the_store(tmp_path: Path) -> None:
    begun: list[KnobJournal] = []
    with locked(tmp_path):
        beginning = threading.Thread(target=lambda: begun.append(begin(tmp_path)))
        beginning.start()
        beginning.join(0.5)
        assert not begun and beginning.is_alive()
    beginning.join()
    begun[0].release()


def test_a_process_in_another_container_is_alive_while_it_holds_the_lock(tmp_path: Path) -> None:
    journal = begin(tmp_path)
    head = json.loads(journal.path.read_text())
    head["owner"]["namespace"] = "another"
    journal.path.write_text(json.dumps(head) + "\n")  # overwrites the file in place, so the lock stays
    before = open_files()
    assert read_journal(journal.path).life() == "alive"
    assert open_files() == before
    journal.release()
    state = read_journal(journal.path)
    assert state.life() == "dead"
    state.path.unlink()
    assert state.life() == "dead"
    head["owner"]["boot"] = "another"
    journal.path.write_text(json.dumps(head) + "\n")
    assert read_journal(journal.path).life() in ("dead", "elsewhere")


def test_closing_a_journal_releases_its_lock_and_syncs_both_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable: list[int] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        durable.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    before = open_files()
    journal = begin(tmp_path)
    opened, closed = (directory(tmp_path, which).stat().st_ino for which in ("open", "closed"))
    assert opened in durable
    durable.clear()
    journal.close("restored")
    assert {opened, closed} <= set(durable)
    assert open_files() == before and is_free(directory(tmp_path, "closed") / journal.path.name)


def test_a_closed_journal_in_the_open_directory_is_ignored(tmp_path: Path) -> None:
    directory(tmp_path, "open").mkdir(parents=True)
    write(directory(tmp_path, "open") / "000001-x.jsonl", _HEAD, {"is": "closed", "how": "restored"})
    assert open_journals(tmp_path) == ((), ())


def test_a_store_without_journals_is_empty_and_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    assert open_journals(tmp_path / "none") == ((), ())
    (tmp_path / "knobs").mkdir()
    (tmp_path / "knobs" / "open").touch()
    with pytest.raises(StrakesError):
        open_journals(tmp_path)


def test_unreadable_journals_raise_specific_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_journal(tmp_path / "none.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    with pytest.raises(StrakesError):
        read_journal(tmp_path / "loop.jsonl")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(BadInputError) as refused:
        read_journal(tmp_path / "empty.jsonl")
    assert refused.value.why == "it has no whole line"


@needs_root
def test_a_journal_of_another_user_is_not_read_and_blocks_no_change(tmp_path: Path) -> None:
    directory(tmp_path, "open").mkdir(parents=True)
    theirs = write(directory(tmp_path, "open") / "000001-x.jsonl", _HEAD)
    os.chown(theirs, NOBODY, NOBODY)
    with pytest.raises(BadInputError, match="another user"):
        read_journal(theirs)
    journal = begin(tmp_path)
    assert journal.will(place(), "1", "2") == 1
    journal.release()


def test_a_failed_rename_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = begin(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(StrakesError):
        journal.close("restored")
    journal.release()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EAGAIN])
def test_a_lock_refused_with_another_error_number_counts_as_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    begin(tmp_path).release()
    (state,), _ = open_journals(tmp_path)

    def refuse(_: int, how: int) -> None:
        if how & fcntl.LOCK_NB:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = open_files()
    assert KnobJournal.claim(tmp_path, state) is None
    assert open_files() == before


def test_a_file_system_without_locks_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(EnvironmentLacksError, match="does not support locks"):
        begin(tmp_path)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "x")])
def test_an_interrupted_creation_leaks_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(KnobJournal, "_append", fail)
    before = open_files()
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else StrakesError):
        begin(tmp_path)
    assert open_files() == before
