from __future__ import annotations

import stat
from pathlib import Path

import pytest

from strakes.cli.main import run as run_command
from strakes.lab.state import JOURNAL, LabJournal, ProcessRecord, labs_root, read_state, working_in


def journal_in(directory: Path) -> LabJournal:
    return LabJournal.create(directory, "ceph", {"osds": 3})


@pytest.mark.parametrize("torn", [b"", b'{"last_step": "te', bytes(100) + b"\n"], ids=["whole", "killed", "power cut"])
def test_a_journal_is_read_back_as_written(tmp_path: Path, torn: bytes) -> None:
    journal = journal_in(tmp_path)
    journal.note(last_step="monitors")
    journal.note(role="mon.a", pid=10, started=20)
    journal.note(role="mon.a", pid=11, started=21)
    journal.note(role="node.a", pid=12, started=22)
    (tmp_path / "a.pid").write_text("13 23 boot\n")
    journal.note(last_step="client")
    state = read_state(tmp_path)
    assert state is not None and (state.kind, state.name) == ("ceph", tmp_path.name) and state.options == {"osds": 3}
    assert state.processes == (ProcessRecord("mon.a", 11, 21), ProcessRecord("node.a", 13, 23))
    assert (state.last_step, state.ready_after_s, state.this_boot) == ("client", None, True)
    journal.note(ready_after_s=1.25, facts={"ceph_conf": "/k"})
    journal.close()
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(torn)
    state = read_state(tmp_path)
    assert state is not None and (state.ready_after_s, state.facts) == (1.25, {"ceph_conf": "/k"})


def test_other_users_can_neither_lock_the_directory_of_a_lab_nor_read_its_mark(tmp_path: Path) -> None:
    with working_in(tmp_path / "lab", make=True):
        journal_in(tmp_path / "lab").close()
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "lab", tmp_path / "lab" / JOURNAL)]
        assert modes == [0o711, 0o600]


def test_a_directory_cannot_have_two_journals(tmp_path: Path) -> None:
    journal_in(tmp_path).close()
    with pytest.raises(FileExistsError):
        journal_in(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        *(b'{"last_step": "te', b"\0\0", b"7", b"[[1]]", b'{"role": 1}', b'{"boot": 3}', b"[" * 99999, b'{"id": "*"}'),
        *(b'{"ready_after_s": 1, "facts": {"ceph_conf": 3}}', b'{"kind": "ha", "ready_after_s": 1}'),
        b'{"kind": "hosts", "ready_after_s": 1, "facts": {"commands": {"a": 1}}}',
    ],
)
def test_a_damaged_journal_is_named_with_its_line_and_other_labs_stay_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], damage: bytes
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("bad", "good"):
        (labs_root() / name).mkdir(parents=True)
        journal_in(labs_root() / name).close()
    path = labs_root() / "bad" / JOURNAL
    path.write_bytes(path.read_bytes() + damage + b'\n{"last_step": "monitors"}\n')
    for words in ("status", "status bad", "down bad", "up ceph --name bad"):
        assert run_command(["lab", *words.split()]) == 2
        output = capsys.readouterr()
        assert f"{path}, line 2" in output.err and "Remove this line" in output.err
        assert "internal error" not in output.err and ("good: stale" in output.out) == (words == "status")
    assert run_command(["lab", "down", "--all"]) == 2 and [place.name for place in labs_root().iterdir()] == ["bad"]
