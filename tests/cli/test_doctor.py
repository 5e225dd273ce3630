from __future__ import annotations

import json

import pytest

from strakes.cli import doctor
from strakes.cli.doctor import MachineCheck
from strakes.cli.main import run


def test_this_machine_can_run_strakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0 and "strakes can work here." in capsys.readouterr().out


def test_the_json_output_has_a_remedy_for_every_check_that_is_not_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is True
    assert {"engine", "launcher mpi", "launcher slurm"} <= {check["name"] for check in document["checks"]}
    assert all(check["remedy"] for check in document["checks"] if check["state"] != "ok")


def test_without_an_engine_doctor_exits_with_status_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STRAKES_ENGINE", "/nonexistent/strakes-engine")
    assert run(["doctor"]) == 3 and "strakes cannot work here: engine missing." in capsys.readouterr().out


def test_a_missing_optional_package_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: [MachineCheck("ceph", "missing", "not found", "apt install ceph")])
    assert run(["doctor"]) == 0


def test_missing_requirements_come_first_and_equal_reasons_are_merged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = [MachineCheck(f"backend {name}", "missing", "not built", "Build it.") for name in ("hdf5", "pnetcdf")]
    checks = [MachineCheck("kernel", "ok", "Linux"), *absent, MachineCheck("engine", "missing", "gone", required=True)]
    monkeypatch.setattr(doctor, "examine", lambda: checks)
    assert run(["doctor"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["missing", "absent", "ok"]
    assert lines[2].endswith("backend hdf5, backend pnetcdf: not built. Build it")
