"""Guarantees of the journal to later readers, also under faults of the file system, the store and other writers."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from pathlib import Path

import pytest

from control.test_journal import begin, place
from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.control import knob_journal as module
from strakes.control.knob_journal import (
    KnobJournal,
    directory,
    locked,
    read_journal,
)


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


def test_creating_a_journal_waits_for_the_lock_of_the_store(tmp_path: Path) -> None:
    begun: list[KnobJournal] = []
    with locked(tmp_path):
        assert not is_free(tmp_path / "knobs" / "lock")
        beginning = threading.Thread(target=lambda: begun.append(begin(tmp_path)))
        beginning.start()
        beginning.join(0.5)
        assert not begun and beginning.is_alive()
    beginning.join()
    assert is_free(tmp_path / "knobs" / "lock")
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
def test_every_line_is_synced_before_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: bool
) -> None:
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


def test_locks_are_taken_on_files_open_for_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS grants an exclusive lock only on a file that is open for writing, see flock(2)."""
    lock = fcntl.flock

    def as_nfs(descriptor: int, how: int) -> None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", as_nfs)
    journal = begin(tmp_path)
    assert module._is_locked(journal.path)
    journal.release()
    assert not module._is_locked(journal.path)


def test_the_reason_for_missing_locks_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(EnvironmentLacksError, match="does not support locks") as refused, locked(tmp_path):
        pass
    assert refused.value.why == os.strerror(errno.ENOLCK)


@pytest.mark.parametrize(("more", "words"), [(0, "damaged"), (1, "too large")])
def test_a_journal_larger_than_64_mib_is_refused(tmp_path: Path, more: int, words: str) -> None:
    path = tmp_path / "1.jsonl"
    path.touch()
    os.truncate(path, (64 << 20) + more)  # a sparse file
    with pytest.raises(BadInputError, match=words):
        read_journal(path)
