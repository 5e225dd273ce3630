"""Choice of the engine for an mpiexec: with fake programs and, where installed, with real ones."""

from __future__ import annotations

import platform
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.runs import mpi_family
from strakes.runs.engine import find_engine
from strakes.runs.launch import Launch
from strakes.runs.messages import Hello
from strakes.runs.mpi import MpiEngine, find_mpiexec, placed
from strakes.runs.mpi_family import family_of_mpiexec, find_mpi_engine, library_of_engine, mpi_engines
from strakes.targets.workspace import Workspace

MPICH, OPEN_MPI = "MPICH Version: 5.0.2", "Open MPI v4.1.4, package: Debian OpenMPI"
SHORT = Plan(4, (MetadataPhase("create", "file-create", "unique", items=20),))


def says(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(0o755)
    return path


def test_ranks_that_their_launcher_left_are_killed(tmp_path: Path) -> None:
    program = tmp_path / "strakes-engine-mpi"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([str(program), "600"]) as rank, subprocess.Popen(["sleep", "600"]) as other:
        try:
            # The second process is no rank: it has the process id of a rank that has ended.
            ranks = {f"{platform.node()} {rank.pid}": 0, f"{platform.node()} {other.pid}": 1, "elsewhere 1": 2}
            hello = Hello("0.1.0", platform.node(), rank.pid, (), (), "", ranks=ranks)
            assert MpiEngine(Launch("mpi", 3))._all_gone(hello)
            assert rank.wait() == -signal.SIGKILL and other.poll() is None
        finally:
            rank.kill()
            other.kill()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory for fake engines, which hide the installed ones and only report their MPI."""
    monkeypatch.delenv("STRAKES_ENGINE_MPI", raising=False)
    monkeypatch.setenv("STRAKES_ENGINE", str(says(tmp_path / "bin" / "strakes-engine", "0.1.0")))
    mpi_family.library_of_engine.cache_clear()
    return tmp_path / "bin"


@pytest.fixture
def both(folder: Path) -> tuple[Path, Path]:
    return says(folder / "strakes-engine-mpi", MPICH), says(folder / "strakes-engine-mpi-site", OPEN_MPI)


@pytest.mark.parametrize(
    ("version", "engine"),
    [
        ("mpiexec (OpenRTE) 4.1.4", 1),
        ("mpirun (Open MPI) 5.0.5", 1),
        ("prterun (PRRTE) 3.0.6", 1),
        ("HYDRA build details: Version: 4.2", 0),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.14", 0),
    ],
)
def test_an_mpiexec_gets_its_engine(tmp_path: Path, both: tuple[Path, Path], version: str, engine: int) -> None:
    mpiexec = says(tmp_path / "other" / "mpiexec", version)
    assert find_mpi_engine(mpiexec) == both[engine]
    assert ("--oversubscribe" in placed(mpiexec, Launch("mpi", 4))) == (engine == 1)


def test_the_engine_for_the_sites_own_mpich_is_preferred(tmp_path: Path, both: tuple[Path, Path]) -> None:
    says(both[1], "MVAPICH Version: 3.0")
    assert find_mpi_engine(says(tmp_path / "hydra" / "mpiexec", "HYDRA build details")) == both[1]


def test_an_mpiexec_without_its_engine_is_refused_before_anything_starts(tmp_path: Path, folder: Path) -> None:
    only = says(folder / "strakes-engine-mpi", MPICH)
    mpiexec = says(tmp_path / "open" / "mpiexec", "mpiexec (OpenRTE) 4.1.4")
    with pytest.raises(EnvironmentLacksError) as caught:
        find_mpi_engine(mpiexec)
    assert (caught.value.exit_status, caught.value.where) == (3, str(mpiexec))
    assert f"mpiexec belongs to Open MPI; the engines are {only} ({MPICH})" in caught.value.why
    assert "docs/guide/mpi.md" in caught.value.remedy


def test_an_engine_that_was_named_must_belong_to_the_mpiexec(
    tmp_path: Path, both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAKES_ENGINE_MPI", str(both[1]))
    with pytest.raises(EnvironmentLacksError) as caught:
        find_mpi_engine(says(tmp_path / "hydra" / "mpiexec", "HYDRA build details"))
    assert OPEN_MPI in caught.value.why and "STRAKES_ENGINE_MPI" in caught.value.remedy


def has_open_mpi() -> bool:
    try:
        return shutil.which("mpiexec.openmpi") is not None and mpi_engines()[1].is_file()
    except EnvironmentLacksError:
        return False


needs_open_mpi = pytest.mark.skipif(not has_open_mpi(), reason="no Open MPI, or no engine built with it")


@needs_open_mpi
def test_the_sites_open_mpi_runs_a_plan_of_four_ranks(workspace: Workspace) -> None:
    mpiexec = find_mpiexec(Path("mpiexec.openmpi"))
    assert find_mpi_engine(mpiexec) == find_engine().with_name("strakes-engine-mpi-site")
    with MpiEngine(Launch("mpi", 4, mpiexec=mpiexec)) as engine:
        hello = engine.start()
        result = engine.run(SHORT, workspace.path, "c1", 60)
    assert ("Open MPI" in hello.mpi, dict(hello.nodes)) == (True, {hello.host: 4})
    assert (result.ended, result.errors, result.cleaned, result.left) == ("ok", (), True, ())
    assert [sample.operations for sample in result.samples] == [80]


@needs_open_mpi
def test_both_engines_say_which_mpi_they_have_without_being_launched() -> None:
    abi, site = mpi_engines()
    assert (
        "Open MPI" in library_of_engine(site) and family_of_mpiexec(find_mpiexec(Path("mpiexec.openmpi"))) == "openmpi"
    )
    assert not abi.is_file() or "Open MPI" not in library_of_engine(abi)
