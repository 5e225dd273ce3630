"""What ``strakes doctor`` says of a machine."""

from __future__ import annotations

import json

import pytest

from strakes.cli import doctor, machine
from strakes.cli.machine import MachineCheck
from strakes.cli.main import run


def test_this_machine_can_run_strakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    assert "strakes can work here." in capsys.readouterr().out


def test_as_json_every_check_has_a_state_and_what_is_not_there_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is True
    names = {check["name"] for check in document["checks"]}
    assert {"engine", "python package jinja2", "kernel", "cachestat", "io_uring", "open files", "lfs", "srun"} <= names
    assert all(check["remedy"] for check in document["checks"] if check["state"] != "ok")


def test_without_an_engine_it_ends_with_status_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STRAKES_ENGINE", "/nonexistent/strakes-engine")
    assert run(["doctor"]) == 3
    assert "strakes cannot work here: engine missing." in capsys.readouterr().out


def test_what_is_optional_may_be_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: [MachineCheck("ceph", "missing", "not found", "apt install ceph")])
    assert run(["doctor"]) == 0


def test_what_is_missing_comes_first_and_a_reason_is_given_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = [MachineCheck(f"backend {name}", "missing", "not built", "Build it.") for name in ("hdf5", "pnetcdf")]
    checks = [MachineCheck("kernel", "ok", "Linux"), *absent, MachineCheck("engine", "missing", "gone", required=True)]
    monkeypatch.setattr(doctor, "examine", lambda: checks)
    assert run(["doctor"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["missing", "absent", "ok"]
    assert lines[2].endswith("backend hdf5, backend pnetcdf: not built. Build it")


def test_an_empty_path_finds_no_tools_and_says_how_to_get_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert {check.state for check in machine.tools()} == {"missing"}
    assert all(check.remedy for check in machine.tools())
