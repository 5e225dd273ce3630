"""The command ``strakes advise``."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import ROOT, StrakesRunner

APP = ROOT / "examples" / "apps" / "restart-dump.toml"


def test_without_a_measurement_it_names_the_command_that_makes_one(strakes: StrakesRunner) -> None:
    done = strakes("advise", "--app", APP)
    assert done.returncode == 2 and "strakes survey DIR --budget 2m" in done.stderr


def test_a_study_becomes_advice_with_reasons_evidence_and_unknowns(strakes: StrakesRunner, tmp_path: Path) -> None:
    measured = strakes("study", "transfer-size", tmp_path, "--budget", "4s", "--quiet")
    assert measured.returncode == 0, measured.stderr
    done = strakes("advise", "--app", APP)
    assert done.returncode == 0, done.stderr
    for words in ("transfer size:", "processes per node: ", "#SBATCH --nodes=256"):
        assert words in done.stdout
    document = json.loads(strakes("advise", "--app", APP, "--from", "latest", "--json", "-").stdout)
    assert {outcome["phase"] for outcome in (*document["choices"], *document["unknowns"])} == {"dump", "restart"}
    assert all(choice["evidence"] and choice["reason"] for choice in document["choices"])


def test_an_invalid_description_is_refused_with_its_line(strakes: StrakesRunner, tmp_path: Path) -> None:
    wrong = tmp_path / "app.toml"
    wrong.write_text(APP.read_text().replace("ranks = 8192", "ranks = 8"))
    done = strakes("advise", "--app", wrong)
    assert done.returncode == 2 and f"{wrong}, line " in done.stderr and "next:" in done.stderr


def test_missing_or_conflicting_options_are_refused(strakes: StrakesRunner, tmp_path: Path) -> None:
    assert strakes("advise").returncode == 2
    assert strakes("advise", "--app", APP, "--darshan", tmp_path / "x").returncode == 2
    assert strakes("advise", "--darshan", tmp_path / "x", "--from", "latest").returncode == 2
