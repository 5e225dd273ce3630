"""What the journal promises to whoever reads it later: its numbers, its names, who lives, and what is on the disk."""

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


def test_what_the_system_made_of_a_change_is_known_even_when_it_is_nothing(tmp_path: Path) -> None:
    journal = begin(tmp_path)
    journal.did(journal.will(place(), "1", "2"), None)
    journal.will(place("depth"), "1", "2")
    journal.release()
    assert [entry.known for entry in read_journal(journal.path).entries] == [True, False]


def test_a_process_that_lives_is_alive_also_when_it_does_not_hold_the_lock(tmp_path: Path) -> None:
    journal = begin(tmp_path)
    journal.release()
    assert read_journal(journal.path).life() == "alive"


def test_a_process_of_another_host_is_elsewhere_whoever_has_the_lock(tmp_path: Path) -> None:
    state = read_journal(write(tmp_path / "1.jsonl", _HEAD))
    assert state.life() == "elsewhere"


@pytest.mark.parametrize("claimed", [False, True])
def test_every_line_is_on_the_disk_before_the_next_step(
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


def test_other_files_among_the_journals_are_none(tmp_path: Path) -> None:
    begin(tmp_path).release()
    for name in ("notes.txt", ".hidden.jsonl"):
        (directory(tmp_path, "open") / name).write_text("no journal\n")
    states, errors = open_journals(tmp_path)
    assert len(states) == 1 and errors == ()


def test_what_somebody_else_puts_away_at_the_same_moment_is_no_failure(
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


def test_only_its_user_may_touch_the_lock_and_the_journal(tmp_path: Path) -> None:
    journal = begin(tmp_path)
    for path in (tmp_path / "knobs" / "lock", journal.path):
        assert path.stat().st_mode & 0o7777 == 0o600
    journal.release()


def test_locks_are_asked_for_as_network_file_systems_want_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS gives a lock for oneself only on a file that is open for writing (flock(2))."""
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


def test_why_there_are_no_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(EnvironmentLacksError) as refused, locked(tmp_path):
        pass
    assert refused.value.why == os.strerror(errno.ENOLCK)


@pytest.mark.parametrize(("more", "words"), [(0, "damaged"), (1, "too large")])
def test_a_journal_has_at_most_64_mib(tmp_path: Path, more: int, words: str) -> None:
    path = tmp_path / "1.jsonl"
    path.touch()
    os.truncate(path, (64 << 20) + more)  # a file of holes
    with pytest.raises(BadInputError, match=words):
        read_journal(path)
