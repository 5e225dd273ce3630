"""Command lines of the launchers, and options that are refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.cli.options import Launching
from strakes.runs.choice import processes
from strakes.runs.launch import Launch
from strakes.runs.slurm import SlurmEngine, allocation
from strakes.runs.template import TemplateEngine, filled

JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "3", "SLURM_JOB_CPUS_PER_NODE": "4(x3)"}


@pytest.fixture
def in_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in JOB.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SLURM_NTASKS", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tool(tmp_path, "srun", "")
    libraries = ("libmpi.so.40", "libopen-pal.so.40")
    tool(tmp_path, "ldd", ";".join(f"echo '{name} => /usr/lib/{name}'" for name in libraries))
    return tmp_path


def tool(directory: Path, name: str, body: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{body}\n")
    (directory / name).chmod(0o755)


def test_srun_gets_the_process_manager_interface_of_the_engines_mpi(in_a_job: Path) -> None:
    engine = SlurmEngine(Launch("slurm", 6, ranks_per_node=2), Path("/engine"))
    words = engine.command()
    options = ["--input=0", "--kill-on-bad-exit=1", "--ntasks=6", "--ntasks-per-node=2", "--mpi=pmix"]
    assert words[1:] == [*options, "env", "--chdir=/", "/engine", "--expect-ranks", "6"]
    for task in ("9" * 5000, "3-5", "0"):
        engine._hear(f"srun: error: n{task[0]}: tasks {task}: Killed")
    assert engine._lost(None) == {"host": "n3", "rank": 3}


@pytest.mark.parametrize(
    ("speaks", "told", "right"), [("libopen-pal.so.40", "pmi2", "pmix"), ("libmpi_abi.so.1", "pmix", "pmi2")]
)
def test_an_engine_for_another_interface_is_refused_with_the_right_flag(
    in_a_job: Path, speaks: str, told: str, right: str
) -> None:
    tool(in_a_job, "ldd", f"echo '{speaks} => /usr/lib/{speaks}'")
    with pytest.raises(BadInputError) as caught:
        SlurmEngine(Launch("slurm", 6, options=(f"--mpi={told}",)), Path("/engine")).command()
    assert f"set to the PMI interface {told}" in caught.value.what and f"Use --mpi={right}" in caught.value.remedy


def test_outside_an_allocation_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(BadInputError) as caught:
        allocation({})
    assert "salloc" in caught.value.remedy and "sbatch" in caught.value.remedy


def test_an_allocation_determines_the_number_of_ranks(in_a_job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes(Launch("slurm", ranks_per_node=5)) == 15
    assert processes(Launch("slurm", hosts=("a", "b"), ranks_per_node=5)) == 10
    assert (processes(Launch("slurm")), processes(Launch("slurm", ranks=2))) == (12, 2)
    for tasks in ("65537", "10000000000", "0"):
        monkeypatch.setenv("SLURM_NTASKS", tasks)
        with pytest.raises(BadInputError):
            processes(Launch("slurm"))


def test_a_command_template_is_filled_in() -> None:
    launch = Launch("command", 4, ("a", "b"), 2, command="run -N {nodes} -n {ranks} -w {hosts} {engine}")
    assert filled(launch, ["/e", "x"]) == ["run", "-N", "2", "-n", "4", "-w", "a,b", "/e", "x"]


@pytest.mark.parametrize(
    ("template", "hosts", "complaint"),
    [
        ("jsrun -n {ranks}", (), "lacks {engine}"),
        ("jsrun -n {ranks.x} {engine}", (), "unknown placeholder {ranks.x}"),
        ("jsrun -n {ranks} x{engine} {engine}", (), "{engine} is not a word by itself"),
        ("jsrun -n {ranks} {engine}", ("a",), "lacks {hosts}"),
        ("jsrun -r {ranks_per_node} {engine}", (), "--ranks-per-node"),
        ("jsrun '{engine}", (), "No closing quotation"),
    ],
)
def test_an_unusable_template_is_refused(template: str, hosts: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(BadInputError) as caught:
        TemplateEngine(Launch("command", 4, hosts, command=template), Path("/engine")).command()
    assert complaint in caught.value.why


def test_a_launcher_command_overrides_the_local_launcher() -> None:
    assert Launching(launcher="local", launcher_command="jsrun {engine}").launch.launcher == "command"
    assert Launching(launcher="slurm", launcher_options="-p m --mpi=x").launch.options == ("-p", "m", "--mpi=x")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (Launching(launcher="local", hosts=("a",)), "--hosts"),
        (Launching(launcher="slurm", mpiexec=Path("x")), "--mpiexec"),
        (Launching(launcher="local", ranks=4097), "4097 ranks"),
        (Launching(launcher="mpi", launcher_command="x {engine}"), "--launcher-command"),
        (Launching(launcher="command", launcher_command="x {engine}", launcher_options="-v"), "--launcher-options"),
        (Launching(launcher="command"), "--launcher command"),
        (Launching(launcher="mpi", launcher_options="'"), "--launcher-options"),
    ],
)
def test_options_that_contradict_each_other_are_refused(given: Launching, name: str) -> None:
    with pytest.raises(BadInputError) as caught:
        _ = given.launch
    assert name in caught.value.what
