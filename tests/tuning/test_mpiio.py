"""A real MPI-IO accepts and applies the printed hints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from strakes.base.units import MIB
from strakes.tuning.advise_app import App, AppPhase
from strakes.tuning.advise_choose import Choice, Chosen
from strakes.tuning.advise_paste import pastes

_PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    MPI_File file; MPI_Info info; int count, k, set, rank; char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file)) return 1;
    MPI_File_get_info(file, &info);
    MPI_Info_get_nkeys(info, &count);
    for (k = 0; k < count && rank == 0; ++k) {
        MPI_Info_get_nthkey(info, k, key);
        MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &set);
        printf("%s %s\\n", key, value);
    }
    MPI_File_close(&file);
    return MPI_Finalize();
}
"""


def test_romio_accepts_and_applies_the_hints(tmp_path: Path) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    compiler, launcher = shutil.which("mpicc", path=path), shutil.which("mpiexec", path=path)
    if compiler is None or launcher is None:
        pytest.skip("no MPI is installed")
    (tmp_path / "hints.c").write_text(_PROGRAM)
    built = subprocess.run([compiler, "hints.c", "-o", "hints"], cwd=tmp_path, capture_output=True, text=True)
    if built.returncode != 0:
        pytest.skip(f"this MPI compiles nothing: {built.stderr[-200:]}")
    phase = AppPhase("dump", "write", "shared", 64 * MIB, (MIB,), collective=True)
    values = (("transfer size", MIB), ("processes per node", 2), ("stripe count", 3), ("stripe size", MIB))
    choices = tuple(Choice("dump", what, value, str(value), "", ()) for what, value in values)  # type: ignore[arg-type]
    chosen = Chosen(choices, ())
    app = App("a", "mpiio", 4, 4, (phase,))
    text = next(paste.text for paste in pastes(app, chosen, "xfs") if "ROMIO" in paste.title)
    (tmp_path / "romio").write_text(text)
    done = subprocess.run(
        [launcher, "-n", "4", tmp_path / "hints", tmp_path / "file"],
        env={**os.environ, "ROMIO_HINTS": str(tmp_path / "romio")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "romio_filesystem_type" not in done.stdout:
        pytest.skip(f"this MPI has no ROMIO: {done.stderr[-200:]}")
    effective = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    wanted = dict(line.split(" ") for line in text.splitlines())
    assert {name: effective.get(name) for name in wanted} == wanted
    assert wanted["cb_nodes"] == "2" and wanted["striping_factor"] == "3"
