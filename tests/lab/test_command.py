from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import StrakesRunner
from strakes.cli.main import run
from strakes.lab.local import TmpfsLab
from strakes.lab.packages import Package


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["up", "lustre"], "no such kind of lab: lustre"),
        (["up", "ceph", "--slow-osd", "fast"], "expected ID=IOPS"),
        (["up", "ceph", "--slow-mds", "1=101"], "in the range 5<=x<=100, not '101'"),
        (["up", "ceph", "--slow-osd", "0=1"], "in the range x>=10, not '1'"),
        (["up", "ceph", "--slow-osd", f"{'9' * 5000}=10"], "9999"),
        (["up", "ceph", "--osds", "0"], "--osds"),
        (["up", "xfs", "--size", "1MiB"], "--size must be at least 320 MiB"),
        (["up", "xfs", "--name", "../x"], "not a valid name"),
        (["mount", "ceph"], "ceph is not up"),
        (["down", "ceph", "--all"], "not both"),
    ],
)
def test_bad_input_exits_with_2_and_an_explanation(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lab", *words]) == 2
    captured = capsys.readouterr()
    assert complaint in captured.err and not captured.out


def test_status_and_down_succeed_without_labs(strakes: StrakesRunner) -> None:
    assert json.loads(strakes("lab", "status", "--json").stdout) == []
    assert "No lab is up" in strakes("lab", "status").stdout
    for words in (["--all"], []):
        done = strakes("lab", "down", *words)
        assert done.returncode == 0 and not done.stderr


def test_a_lab_that_does_not_exist_is_refused_with_the_names_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("strakes.lab.manager.all_directories", lambda: (Path("ceph"), Path("disk")))
    assert run(["lab", "down", "dsik"]) == 2 and "Did you mean disk?" in capsys.readouterr().err


def test_missing_packages_exit_with_3_and_leave_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(TmpfsLab, "packages", (Package("strakes-no-such-package", "strakes-no-such-program"),))
    monkeypatch.setattr(TmpfsLab, "needs_root", False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "labs"))
    assert run(["lab", "up", "tmpfs"]) == 3
    text = capsys.readouterr().err
    assert "apt-get install --no-install-recommends strakes-no-such-package" in text and "--install" in text
    assert not (tmp_path / "labs").exists()
