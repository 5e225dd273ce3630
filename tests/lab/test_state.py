from __future__ import annotations

from pathlib import Path

import pytest

from strakes.errors import BadInputError
from strakes.lab.state import JOURNAL, LabJournal, ProcessRecord, read_state


def journal_in(directory: Path) -> LabJournal:
    journal, _ = LabJournal.create(directory, "ceph", "one", {"osds": 3})
    return journal


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.step("monitors")
    journal.process(ProcessRecord("mon.a", 10, 20))
    journal.process(ProcessRecord("mkfs", 11, 21))
    journal.ended("mkfs")
    journal.step("client")
    state = read_state(tmp_path)
    assert state is not None
    assert (state.kind, state.name, state.options) == ("ceph", "one", {"osds": 3})
    assert state.processes == (ProcessRecord("mon.a", 10, 20),)
    assert (state.last_step, state.ready_after_s, state.this_boot) == ("client", None, True)
    journal.ready(1.25, {"keyring": "/k"})
    journal.close()
    state = read_state(tmp_path)
    assert state is not None and (state.ready_after_s, state.facts) == (1.25, {"keyring": "/k"})


def test_a_torn_last_line_was_never_a_step(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.step("monitors")
    journal.close()
    with (tmp_path / JOURNAL).open("a") as file:
        file.write('{"is": "step", "te')
    state = read_state(tmp_path)
    assert state is not None and state.last_step == "monitors"


def test_zeros_that_a_power_cut_left_are_passed_over(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.step("monitors")
    journal.close()
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(bytes(100) + b"\n")
    state = read_state(tmp_path)
    assert state is not None and state.last_step == "monitors"


def test_nothing_or_a_torn_head_is_no_lab(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    (tmp_path / JOURNAL).write_text('{"is": "lab"')
    assert read_state(tmp_path) is None


def test_a_journal_of_another_version_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text('{"is": "lab", "format": 99}\n')
    with pytest.raises(BadInputError, match="another version"):
        read_state(tmp_path)


def test_two_journals_are_never_made_in_one_directory(tmp_path: Path) -> None:
    journal_in(tmp_path).close()
    with pytest.raises(FileExistsError):
        journal_in(tmp_path)
