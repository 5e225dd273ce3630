"""Guarantees of the journal to later readers: numbering, liveness of owners, durability, permissions and size."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from knobs.test_journal import _HEAD, begin, place, write
from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.knobs import journal as module
from strakes.knobs.journal import KnobJournal, closed_journals, directory, locked, open_journals, read_journal, sweep


def test_journals_and_changes_are_numbered_from_one_without_a_gap(tmp_path: Path) -> None:
    journals = [begin(tmp_path) for _ in range(3)]
    assert [journal.id[:7] for journal in journals] == ["000001-", "000002-", "000003-"]
    for journal in journals:
        journal.release()
    states, _ = open_journals(tmp_path)
    claimed = KnobJournal.claim(tmp_path, states[0])
    assert claimed is not None
    assert [claimed.will(place(), "1", "2"), claimed.will(place(), "2", "3")] == [1, 2]
    claimed.release()


def test_an_effective_value_of_none_counts_as_known(tmp_path: Path) -> None:
    journal = begin(tmp_path)
    journal.did(journal.will(place(), "1", "2"), None)
    journal.will(place("depth"), "1", "2")
    journal.release()
    assert [entry.known for entry in read_journal(journal.path).entries] == [True, False]


def test_a_living_process_is_alive_even_without_the_lock(tmp_path: Path) -> None:
    journal = begin(tmp_path)
    journal.release()
    assert read_journal(journal.path).life() == "alive"


def test_a_process_of_another_host_is_elsewhere(tmp_path: Path) -> None:
    state = read_journal(write(tmp_path / "1.jsonl", _HEAD))
    assert state.life() == "elsewhere"


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
    for step in (lambda: journal.will(place(), "1", "2"), lambda: journal.did(1, "2"), journal.tried, journal.hold):
        step()
        assert durable[-1] == journal.path.stat().st_size
    assert len(durable) == 4
    journal.release()


def test_other_files_in_the_directory_are_ignored(tmp_path: Path) -> None:
    begin(tmp_path).release()
    for name in ("notes.txt", ".hidden.jsonl"):
        (directory(tmp_path, "open") / name).write_text("no journal\n")
    states, errors = open_journals(tmp_path)
    assert len(states) == 1 and errors == ()


def test_files_removed_concurrently_by_another_process_cause_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_CLOSED_FILES", 1)
    begin(tmp_path).close("restored")
    torn = directory(tmp_path, "open") / ".new-000009-x"
    torn.touch()
    unlink = Path.unlink

    def late(path: Path, missing_ok: bool = False) -> None:
        unlink(path)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", late)
    sweep(tmp_path)
    begin(tmp_path).close("restored")
    assert not torn.exists() and [state.id[:6] for state in closed_journals(tmp_path)] == ["000002"]


def test_the_lock_and_the_journal_are_accessible_by_their_user_only(tmp_path: Path) -> None:
    journal = begin(tmp_path)
    for path in (tmp_path / "knobs" / "lock", journal.path):
        assert path.stat().st_mode & 0o7777 == 0o600
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
    with pytest.raises(EnvironmentLacksError) as refused, locked(tmp_path):
        pass
    assert refused.value.why == os.strerror(errno.ENOLCK)


@pytest.mark.parametrize(("more", "words"), [(0, "damaged"), (1, "too large")])
def test_a_journal_larger_than_64_mib_is_refused(tmp_path: Path, more: int, words: str) -> None:
    path = tmp_path / "1.jsonl"
    path.touch()
    os.truncate(path, (64 << 20) + more)  # a sparse file
    with pytest.raises(BadInputError, match=words):
        read_journal(path)
