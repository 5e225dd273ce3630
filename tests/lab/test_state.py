from __future__ import annotations

from pathlib import Path

import pytest

from strakes.lab.state import JOURNAL, LabJournal, ProcessRecord, read_state


def journal_in(directory: Path) -> LabJournal:
    return LabJournal.create(directory, "ceph", {"osds": 3})


def test_a_journal_is_read_back_as_written(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.note(last_step="monitors")
    journal.note(role="mon.a", pid=10, started=20)
    journal.note(role="mon.a", pid=11, started=21)
    journal.note(last_step="client")
    state = read_state(tmp_path)
    assert state is not None
    assert (state.kind, state.name, state.options) == ("ceph", tmp_path.name, {"osds": 3})
    assert state.processes == (ProcessRecord("mon.a", 11, 21),)
    assert (state.last_step, state.ready_after_s, state.this_boot) == ("client", None, True)
    journal.note(ready_after_s=1.25, facts={"keyring": "/k"})
    journal.close()
    state = read_state(tmp_path)
    assert state is not None and (state.ready_after_s, state.facts) == (1.25, {"keyring": "/k"})


@pytest.mark.parametrize("torn", [b'{"last_step": "te', bytes(100) + b"\n"], ids=["killed", "power cut"])
def test_a_torn_last_line_is_ignored(tmp_path: Path, torn: bytes) -> None:
    journal = journal_in(tmp_path)
    journal.note(last_step="monitors")
    journal.close()
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(torn)
    state = read_state(tmp_path)
    assert state is not None and state.last_step == "monitors"


def test_a_missing_journal_or_a_torn_head_means_no_lab(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    (tmp_path / JOURNAL).write_text('{"kind": "ceph"')
    assert read_state(tmp_path) is None


def test_a_directory_cannot_have_two_journals(tmp_path: Path) -> None:
    journal_in(tmp_path).close()
    with pytest.raises(FileExistsError):
        journal_in(tmp_path)
