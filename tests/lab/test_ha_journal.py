"""The journal service of the lab's pair keeps acknowledged records, even on a full disk."""

from __future__ import annotations

import resource
from pathlib import Path

from strakes.lab.ha_pair import read_journal
from strakes.lab.ha_programs import AcknowledgedJournal


def test_a_partly_written_record_is_not_acknowledged_and_does_not_damage_the_next(tmp_path: Path) -> None:
    journal = AcknowledgedJournal(str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    acknowledged = []
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        for number in range(10):
            try:
                journal.append("c0", str(number))
                acknowledged.append(number)
            except OSError:
                continue
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert 0 < len(acknowledged) < 10
    journal.append("c0", "99")
    kept = [record.number for record in read_journal((tmp_path / "journal").read_text()) if record.client == "c0"]
    assert kept == [*acknowledged, 99]
