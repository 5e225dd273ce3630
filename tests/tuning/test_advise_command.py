from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import ROOT
from strakes.cli.main import run

APP = str(ROOT / "examples" / "apps" / "restart-dump.toml")


def test_without_a_measurement_advise_names_the_command_that_makes_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", "--app", APP]) == 2
    assert "strakes survey DIR --budget 2m" in capsys.readouterr().err


def test_a_study_becomes_advice_with_reasons_evidence_and_unknowns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["study", "transfer-size", str(tmp_path), "--budget", "4s", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["advise", "--app", APP]) == 0
    said = capsys.readouterr().out
    for words in ("transfer size:", "processes per node: ", "#SBATCH --nodes=256"):
        assert words in said
    assert run(["advise", "--app", APP, "--from", "latest", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {outcome["phase"] for outcome in (*document["choices"], *document["unknowns"])} == {"dump", "restart"}
    assert all(choice["evidence"] and choice["reason"] for choice in document["choices"])


def test_missing_or_conflicting_options_are_refused(tmp_path: Path) -> None:
    for words in ([], ["--app", APP, "--darshan", f"{tmp_path}/x"], ["--darshan", f"{tmp_path}/x", "--from", "latest"]):
        assert run(["advise", *words]) == 2
