"""Plans in TOML: sizes with units, and MPI-IO hints."""

from __future__ import annotations

from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.cli.main import run as run_command
from strakes.model.phases import SizeShare, TransferPhase
from strakes.model.plan_read import plan_from_toml

PLAN = """
ranks = 2
[[phase]]
kind = "transfer"
name = "dump"
operation = "write"
backend = "mpiio"
layout = "shared-file"
access = "segmented"
transfer_bytes = "64KiB"
block_bytes = "1MiB"
segments = 1
"""


def phase_with(hints: str, folder: Path) -> TransferPhase:
    file = folder / "plan.toml"
    file.write_text(f"{PLAN}hints = {hints}\n")
    (phase,) = plan_from_toml(file, seed=0)[1].phases
    assert isinstance(phase, TransferPhase)
    return phase


def test_sizes_of_requests_are_written_with_units(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    mixed = PLAN.replace('"dump"', '"both"').replace('"write"', '"mixed"').replace('"mpiio"', '"posix"')
    write = PLAN.replace('"mpiio"', '"posix"').replace("ranks = 2", "")
    sizes = 'read_percent = 70\nread_sizes = [{ bytes = "4KiB", percent = 60 }, { bytes = "64KiB", percent = 40 }]\n'
    file.write_text(f"ranks = 2\n{write}{mixed.replace('ranks = 2', '')}{sizes}")
    phase = plan_from_toml(file, seed=0)[1].phases[1]
    assert isinstance(phase, TransferPhase)
    assert phase.read_sizes == (SizeShare(4096, 60), SizeShare(65536, 40)) and phase.write_sizes == ()


def test_hints_are_text_and_numbers_are_converted(tmp_path: Path) -> None:
    phase = phase_with('{ cb_nodes = 4, cb_buffer_size = "16777216", some_bytes = "1MiB" }', tmp_path)
    assert phase.hints == (("cb_buffer_size", "16777216"), ("cb_nodes", "4"), ("some_bytes", "1MiB"))


@pytest.mark.parametrize("hints", [r'{ a = "b\u0000" }', r'{ "a\u0000" = "b" }', '"hints"'])
def test_a_zero_byte_in_hints_and_a_file_of_hints_are_refused(tmp_path: Path, hints: str) -> None:
    (tmp_path / "hints").write_text("cb_nodes 4\n")
    with pytest.raises(BadInputError):
        phase_with(hints, tmp_path)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["accept", "examples/needs-s3.toml", "."], "needs-s3.toml"),
        (["advise", "--app", "restart-dump.toml"], "apps/restart-dump.toml"),
        (["run", "restart-dump.toml", "."], "restart-dump.toml"),
    ],
)
def test_a_missing_file_that_is_an_example_is_named_with_its_command(
    words: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(words) == 2
    assert f"strakes examples {name} -o {Path(name).name}" in " ".join(capsys.readouterr().err.split())
