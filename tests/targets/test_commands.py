"""``strakes clean`` and ``strakes target``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mounts import tmpfs_mounted
from strakes.cli.main import run
from strakes.targets.workspace import Workspace
from targets.test_clean import make
from targets.test_workspace import RUN

Captured = pytest.CaptureFixture[str]


def test_clean_leaves_a_living_run_and_says_how_to_force(tmp_path: Path, capsys: Captured) -> None:
    with Workspace.create(tmp_path, RUN) as workspace:
        assert run(["clean", str(tmp_path)]) == 0
        out = capsys.readouterr().out
        assert "--force" in out and str(os.getpid()) in out
        assert workspace.path.exists()


def test_clean_ends_with_status_1_when_something_stays(tmp_path: Path, capsys: Captured) -> None:
    place = make(tmp_path)
    (place / "inner").mkdir()
    with tmpfs_mounted(place=place / "inner"):
        assert run(["clean", str(tmp_path)]) == 1
    assert f"could not be removed: {place}/inner: something else is mounted there" in capsys.readouterr().out


def test_clean_as_json_has_every_list(tmp_path: Path, capsys: Captured) -> None:
    place = make(tmp_path)
    (tmp_path / "strakes-notes").mkdir()
    assert run(["clean", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["removed"] == [str(place)]
    assert document["ignored"] == [{"path": str(tmp_path / "strakes-notes"), "why": "it has no marker"}]
    assert (document["dry_run"], document["left"], document["skipped_live"]) == (False, [], [])


@pytest.mark.parametrize("command", ["clean", "target"])
def test_a_missing_directory_gives_status_2_and_an_error(command: str, tmp_path: Path, capsys: Captured) -> None:
    assert run([command, str(tmp_path / "missing")]) == 2
    errors = capsys.readouterr().err
    assert "no such directory" in errors and "next: " in errors


def test_target_prints_facts_and_controls(tmpfs: Path, capsys: Captured) -> None:
    before = os.listdir(tmpfs)
    assert run(["target", str(tmpfs)]) == 0
    out = capsys.readouterr().out
    assert "file system    tmpfs" in out and "16 MiB free of 16 MiB" in out
    assert "strakes can change\n  no layouts of files; for settings see: strakes knobs list DIR" in out
    assert os.listdir(tmpfs) == before
