"""Every example plan runs, measures all of its phases, and reads back the data that it wrote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT, one_in
from mounts import tmpfs_mounted
from runs.test_mpi import needs_mpi
from strakes.base.errors import EnvironmentLacksError
from strakes.cli.main import run
from strakes.model.plan_read import plan_from_toml
from strakes.model.sample import sample_named
from strakes.runs.engine import LocalEngine
from strakes.runs.mpi import find_mpiexec
from strakes.runs.mpi_family import find_mpi_engine
from strakes.runs.store import Store

# Descriptions of clusters and lists of needs are not plans; the tests of failover and accept cover them.
EXAMPLES = sorted(
    path for path in (ROOT / "examples").glob("*.toml") if not {"[cluster]", "[[need]]"} & set(path.read_text().split())
)
# Example plans for libraries that need MPI processes, and the mpiexec for each.
LIBRARIES = {"mpiio": "mpiexec", "hdf5": "mpiexec.openmpi", "pnetcdf": "mpiexec.openmpi"}
BY_THREADS = [path for path in EXAMPLES if path.stem not in LIBRARIES]


@pytest.fixture(scope="module")
def target() -> Iterator[Path]:
    with tmpfs_mounted("1g") as place:
        yield place


def check_example(path: Path, target: Path, out: Path, *launcher: str) -> None:
    assert run(["run", str(path), str(target), "--budget", "1s", "--seed", "7", "--json", str(out), *launcher]) == 0
    plan = plan_from_toml(path, seed=7)[1]
    phases = [phase for phase, _ in plan.each()]
    document = json.loads(out.read_text())
    assert [cell["id"].partition(":")[2] for cell in document["cells"]] == [phase.name for phase in phases]
    samples = Store().open("latest").visits[0].samples
    for phase in phases:
        sample = sample_named(samples, phase.name)
        assert sample is not None
        if getattr(phase, "verify", False) and phase.kind != "small-files":
            assert sample.effective["verified_bytes"] == sample.bytes > 0
    assert not any(target.iterdir())


@pytest.mark.parametrize("path", one_in(2, BY_THREADS), ids=lambda path: path.stem)
def test_an_example_runs_and_every_phase_is_measured(path: Path, target: Path, tmp_path: Path) -> None:
    check_example(path, target, tmp_path / "out.json")


# Example plans in which ranks depend on each other.
TOGETHER = ("mixed", "restart-dump", "startup-load")


@needs_mpi
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[] if path.stem in TOGETHER else [pytest.mark.long]) for path in BY_THREADS],
    ids=lambda path: path.stem,
)
@pytest.mark.more
def test_an_example_runs_the_same_with_processes(path: Path, target: Path, tmp_path: Path) -> None:
    check_example(path, target, tmp_path / "out.json", "--launcher", "mpi", "-n", "4")


@needs_mpi
@pytest.mark.parametrize(("name", "mpiexec"), LIBRARIES.items(), ids=LIBRARIES)
def test_an_example_of_a_library_runs_with_processes(name: str, mpiexec: str, target: Path, tmp_path: Path) -> None:
    program = find_mpiexec() if mpiexec == "mpiexec" else shutil.which(mpiexec)
    if program is None or (name != "mpiio" and name not in backends_by(Path(program))):
        pytest.skip(f"there is no engine with {name}")
    launcher = ("--launcher", "mpi", "-n", "4", "--mpiexec", str(program))
    check_example(ROOT / "examples" / f"{name}.toml", target, tmp_path / "out.json", *launcher)
    if name == "mpiio":
        findings = json.loads((tmp_path / "out.json").read_text())["findings"]
        assert any("cb_buffer_size 4194304" in one["statement"] for one in findings)


def backends_by(mpiexec: Path) -> tuple[str, ...]:
    try:
        with LocalEngine(find_mpi_engine(mpiexec)) as engine:
            return engine.start().backends
    except EnvironmentLacksError:
        return ()


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_example_of_a_library_is_skipped_with_a_reason_if_ranks_are_threads(
    name: str, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", str(ROOT / "examples" / f"{name}.toml"), str(target), "--budget", "1s"]) == 3
    errors = capsys.readouterr().err
    assert f"{name}: it needs ranks that are processes" in errors and "--launcher mpi" in errors
    assert "every cell is skipped" in errors and not any(target.iterdir())
