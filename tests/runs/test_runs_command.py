from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from strakes.cli.main import run
from strakes.runs.store import Store


@pytest.fixture
def ids(measured: Path) -> list[str]:
    store = Store()
    ids = []
    for kind, name in (("survey", "survey"), ("study", "transfer-size"), ("study", "open-close")):
        with store.create(kind, name, measured, {}, {"mount": {"file_system": "xfs"}}) as writer:
            if name != "open-close":
                writer.finish("complete")
        ids.append(writer.id)
    return ids


def test_runs_are_listed_with_their_kind_target_and_status(
    ids: list[str], measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["runs"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip() and "─" not in line]
    assert lines[0].split() == ["id", "when", "what", "target", "file", "system", "status"]
    for line, identifier, what, status in zip(
        lines[1:],
        ids,
        ("survey", "study transfer-size", "study open-close"),
        ("complete", "complete", "interrupted"),
        strict=True,
    ):
        for text in (identifier, what, str(measured), "xfs", status):
            assert text in line


def test_json_is_a_list_oldest_first(ids: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in listed] == ids and listed[1]["name"] == "transfer-size"
    assert Path(listed[0]["path"]).is_dir()


def test_an_empty_store_says_how_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs"]) == 0 and "strakes survey DIR" in capsys.readouterr().out
    assert run(["runs", "--json"]) == 0 and json.loads(capsys.readouterr().out) == []


def on_terminal(*words: str, columns: int) -> str:
    ours, its = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as shown:
        command = [sys.executable, "-m", "strakes", *words]
        subprocess.run(
            command, stdout=its, stderr=its, env={**os.environ, "COLUMNS": str(columns)}, timeout=60, check=False
        )
        os.close(its)
        text = b""
        try:
            while part := shown.read(65536):
                text += part
        except OSError:  # EIO: the other end is closed and everything is read
            pass
    return text.decode()


def test_a_narrow_terminal_cuts_nothing_of_a_run(ids: list[str], measured: Path) -> None:
    shown = on_terminal("runs", columns=60)
    assert "…" not in shown
    for text in (*ids, "study transfer-size", str(measured), "complete", "interrupted"):
        assert text in shown


def test_an_error_is_wrapped_between_words(measured: Path) -> None:
    lines = on_terminal("survey", str(measured), "--ranks", "many", columns=40).splitlines()
    assert max(map(len, lines)) <= 40
    assert "expected a whole number in the range 1<=x<=65536" in " ".join(" ".join(lines).split())
