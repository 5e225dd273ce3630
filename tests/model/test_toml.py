"""Plans in TOML: sizes with units, and MPI-IO hints in the plan or in a ROMIO hints file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.cli.main import run as run_command
from strakes.model.phases import SizeShare, TransferPhase
from strakes.model.plan_toml import plan_from_toml

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
    assert phase.read_sizes == (SizeShare(4096, 60), SizeShare(65536, 40))
    assert phase.write_sizes == ()


def test_hints_are_text_and_numbers_are_converted(tmp_path: Path) -> None:
    phase = phase_with('{ cb_nodes = 4, cb_buffer_size = "16777216", some_bytes = "1MiB" }', tmp_path)
    assert phase.hints == (("cb_buffer_size", "16777216"), ("cb_nodes", "4"), ("some_bytes", "1MiB"))


def test_hints_may_be_in_a_file_next_to_the_plan(tmp_path: Path) -> None:
    (tmp_path / "romio-hints").write_text("# of this machine\ncb_nodes 4\n\nromio_cb_write enable # always\n")
    assert phase_with('"romio-hints"', tmp_path).hints == (("cb_nodes", "4"), ("romio_cb_write", "enable"))


@pytest.mark.parametrize("name", ["{}/hints", "../hints", "plans/../../hints", "netrc", "", "hints/netrc"])
def test_a_plan_names_no_file_outside_its_directory_as_hints(tmp_path: Path, name: str) -> None:
    (tmp_path / "hints").write_text("password secret")
    folder = tmp_path / "plans"
    (folder / "hints").mkdir(parents=True)
    for place in (folder, folder / "hints"):
        (place / "netrc").write_text("password secret")
    with pytest.raises(BadInputError, match="this hints file is not allowed"):
        phase_with(f'"{name.format(tmp_path)}"', folder)


def test_hints_are_not_read_through_a_link_or_a_pipe(tmp_path: Path) -> None:
    folder = tmp_path / "plans"
    folder.mkdir()
    (tmp_path / "hints").write_text("password secret")
    (folder / "hints").symlink_to(tmp_path / "hints")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "hints-pipe")
    for name in ("hints", "up/hints", "hints-pipe"):
        with pytest.raises(BadInputError):
            phase_with(f'"{name}"', folder)


@pytest.mark.parametrize("hints", [r'"hints\u0000"', r'{ a = "b\u0000" }', r'{ "a\u0000" = "b" }', '"hints"'])
def test_a_zero_byte_in_a_plan_or_its_hints_is_refused(tmp_path: Path, hints: str) -> None:
    (tmp_path / "hints").write_text("cb_nodes 4\0\n")
    with pytest.raises(BadInputError):
        phase_with(hints, tmp_path)


@pytest.mark.parametrize(
    ("text", "why"), [("cb_nodes = 4\n", "line 1"), ("a 1\nroot:secret\n", "line 2"), (None, "No such file")]
)
def test_an_invalid_hints_file_is_named_and_not_quoted(tmp_path: Path, text: str | None, why: str) -> None:
    if text is not None:
        (tmp_path / "hints").write_text(text)
    with pytest.raises(BadInputError) as caught:
        phase_with('"hints"', tmp_path)
    assert str(tmp_path / "hints") in caught.value.where
    assert why in f"{caught.value.where} {caught.value.why}" and "secret" not in str(caught.value)


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
    told = " ".join(capsys.readouterr().err.split())
    assert f"strakes examples {name} -o {Path(name).name}" in told
