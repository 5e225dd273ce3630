from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.base.schemas import load_schema

ROOT = Path(__file__).parents[2]


def installed(place: Path) -> Path:
    shutil.copytree(ROOT / "src" / "strakes", place / "strakes", ignore=shutil.ignore_patterns("__pycache__", "bin"))
    return place / "strakes"


def title_there(place: Path) -> subprocess.CompletedProcess[str]:
    script = "from strakes.base.schemas import load_schema; print(load_schema('plan')['title'])"
    return subprocess.run(
        [sys.executable, "-S", "-c", script], cwd=place, env={"PYTHONPATH": str(place)}, capture_output=True, text=True
    )


def test_an_installed_package_has_its_schemas(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "schemas", installed(tmp_path) / "schemas")
    done = title_there(tmp_path)
    assert (done.stdout, done.stderr) == ("strakes plan, version 1\n", "")


def test_a_package_without_schemas_says_so(tmp_path: Path) -> None:
    installed(tmp_path)
    assert "the directory schemas is missing" in title_there(tmp_path).stderr


def test_an_invalid_schema_is_named() -> None:
    with pytest.raises(EnvironmentLacksError, match="'nothing'"):
        load_schema("nothing")
