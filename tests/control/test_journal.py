"""The journal of knob changes: content, exclusive writers, and the removal of old files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.control.knob_journal import KnobJournal, directory, open_journals, read_journal, sweep
from strakes.control.knob_place import KnobPlace

_OWNER = {"host": "h", "boot": "b", "namespace": "n", "pid": 1, "started": 2}
_HEAD = {"is": "journal", "format": 1, "owner": _OWNER, "target": "/x", "command": ["strakes"], "created_unix_s": 1.5}


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
    assert (state.held, state.tried_unix_s) == (False, 0.0)
    journal.note("did", number=1, effective="2")
    journal.note("did", number=2, effective=None)
    journal.note("settled", number=2, outcome="restored", found=None)
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
    with pytest.raises(BadInputError, match="being changed") as refused:
        second.will(place(), "2", "3")
    assert refused.value.remedy == "Wait until it ends."
    first.note("held")
    second.will(place(), "2", "3")  # a held journal allows further changes of the place
    first.release()
    second.release()


def test_a_change_left_by_a_process_that_has_released_it_must_be_restored_first(tmp_path: Path) -> None:
    first, second = begin(tmp_path), begin(tmp_path)
    first.will(place(), "1", "2")
    first.release()
    with pytest.raises(BadInputError) as refused:
        second.will(place(), "2", "3")
    assert "strakes knobs restore" in refused.value.remedy and "has ended" in refused.value.why
    second.release()


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
    settled.note("settled", number=1, outcome="restored", found="1")
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
    [[], [5], [{**_HEAD, "owner": []}], [{**_HEAD, "format": 2}], [_HEAD, {"is": "did", "number": 1}], [{"is": "x"}]],
)
def test_a_damaged_journal_is_named(tmp_path: Path, rows: list[object]) -> None:
    (tmp_path / "knobs").mkdir(parents=True)
    path = write(tmp_path / "knobs" / "x.jsonl", *rows)
    states, (error,) = open_journals(tmp_path)
    assert states == () and error.where == str(path)
