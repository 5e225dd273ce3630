from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.base.processes import process_start
from strakes.lab.manager import undo
from strakes.lab.state import JOURNAL, LabJournal


def test_process_ids_recorded_before_a_reboot_are_ignored(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "66"])
    (tmp_path / "ceph").mkdir()
    journal = LabJournal.create(tmp_path / "ceph", "ceph", {})
    journal.note(role="mon.a", pid=process.pid, started=process_start(process.pid))
    journal.close()
    head, *rest = (tmp_path / "ceph" / JOURNAL).read_text().splitlines()
    earlier = json.dumps({**json.loads(head), "boot": "another"})
    (tmp_path / "ceph" / JOURNAL).write_text("\n".join([earlier, *rest, ""]))
    assert undo(tmp_path / "ceph")
    assert process.poll() is None and not (tmp_path / "ceph").exists()
    process.kill()
    process.wait()


def test_a_directory_not_made_by_strakes_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ceph").mkdir()
    (tmp_path / "ceph/thesis.tex").touch()
    with pytest.raises(BadInputError, match="not made by strakes"):
        undo(tmp_path / "ceph")
    assert (tmp_path / "ceph/thesis.tex").exists()


@pytest.mark.parametrize("journal", [None, "", '{"kind": "ce'])
def test_a_lab_killed_at_its_start_is_removed(tmp_path: Path, journal: str | None) -> None:
    (tmp_path / "ceph").mkdir()
    if journal is not None:
        (tmp_path / "ceph" / JOURNAL).write_text(journal)
    undo(tmp_path / "ceph")
    assert not (tmp_path / "ceph").exists()
