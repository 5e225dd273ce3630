"""Messages about a missing launcher name a command that gets it. No message recommends a missing launcher."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.runs import mpi_family
from strakes.runs.engine import find_engine
from strakes.runs.mpi import find_mpiexec


def test_the_message_names_a_command_of_this_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda *_words, **_options: None)
    with pytest.raises(EnvironmentLacksError) as caught:
        find_mpiexec()
    command = re.search(r"run (\S+) .*'mpich>=5' && rm -f (\S+) && (\S+) doctor", caught.value.remedy)
    assert command is not None and os.access(command[1], os.X_OK) and os.access(command[3], os.X_OK)
    assert Path(command[2]) == Path(sys.prefix) / "strakes.stamp" and "dev setup" not in caught.value.remedy


def test_the_message_of_a_wheel_names_the_source_and_not_another_installation(tmp_path: Path) -> None:
    installed = Path(shutil.copy(mpi_family.__file__, tmp_path))
    told = str(runpy.run_path(str(installed))["GET_MPI"])
    assert "from its source instead of a wheel" in told and "docs/guide/mpi.md" in told and "pip" not in told


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Simulate a machine without MPI and Slurm: a PATH without both, and no MPI engine. Return the engine."""
    engine = tmp_path / "strakes-engine"
    engine.symlink_to(find_engine())
    monkeypatch.setenv("STRAKES_ENGINE", str(engine))
    monkeypatch.delenv("STRAKES_ENGINE_MPI", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return engine


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["doctor"], "This machine lacks what --launcher mpi needs"),
        (["survey", ".", "--hosts", "a,b"], "This machine lacks what --launcher mpi needs"),
        (["survey", ".", "--launcher", "slurm"], "srun is missing"),
        (
            ["run", str(Path(__file__).parents[2] / "examples" / "mpiio.toml"), "."],
            "This machine lacks what --launcher",
        ),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_no_command_advises_what_this_machine_lacks(bare: Path, tmp_path: Path, words: list[str], told: str) -> None:
    environment = {**os.environ, "STRAKES_STORE": str(tmp_path / "store"), "COLUMNS": "4000"}
    where = tmp_path / "here"
    where.mkdir()
    ended = subprocess.run(
        [sys.executable, "-m", "strakes", *words],
        env=environment,
        cwd=where,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert told in ended.stdout + ended.stderr
