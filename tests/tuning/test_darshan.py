from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.units import GIB, KIB, MIB
from strakes.tuning.advise_app import app_from_text, to_toml
from strakes.tuning.advise_darshan import FileRecord, LogFacts, _facts, app_of, read_log, read_logs

SAMPLES = Path(__file__).parent / "samples"


def written(file: int, rank: int, size: int, call: int = MIB, *, collective: bool = False) -> FileRecord:
    return FileRecord(file, rank, 0, size, {}, {call: max(1, size // call)}, collective)


def read(file: int, rank: int, size: int, call: int = MIB) -> FileRecord:
    return FileRecord(file, rank, size, 0, {call: max(1, size // call)}, {})


def facts(
    *posix: FileRecord, ranks: int = 4, modules: tuple[str, ...] = ("POSIX",), mpiio: tuple[FileRecord, ...] = ()
) -> LogFacts:
    return LogFacts("simulation", ranks, 60.0, modules, {"POSIX": posix, "MPI-IO": mpiio})


def test_one_file_per_rank_is_recognised() -> None:
    app, remarks = app_of(facts(*(written(rank, rank, 64 * MIB) for rank in range(4))))
    (phase,) = app.phases
    assert (app.interface, app.ranks, phase.files, phase.data_bytes, phase.record_bytes) == (
        "posix",
        4,
        "per-process",
        64 * MIB,
        (MIB,),
    )
    assert any("ranks_per_node" in remark for remark in remarks)


def test_a_collective_shared_file_is_described_by_its_mpiio_calls() -> None:
    above = written(1, -1, 4 * GIB, GIB, collective=True)
    below = [written(1, rank, 2 * GIB, 4 * MIB) for rank in (0, 2)]
    app, remarks = app_of(facts(*below, modules=("POSIX", "MPI-IO"), mpiio=(above,)))
    (phase,) = app.phases
    expected = ("mpiio", "shared", True, GIB, (GIB,))
    assert (app.interface, phase.files, phase.collective, phase.data_bytes, phase.record_bytes) == expected
    assert any("keeps only sums" in remark for remark in remarks)


def test_output_gathered_by_rank_0_is_not_taken_for_a_file_per_rank() -> None:
    app, _ = app_of(facts(written(1, 0, 256 * MIB)))
    assert [(phase.files, phase.data_bytes) for phase in app.phases] == [("gathered", 64 * MIB)]


def test_reads_and_writes_get_their_shares_and_small_ones_are_left_out_with_a_remark() -> None:
    records = [
        *(written(rank, rank, 75 * MIB) for rank in range(4)),
        *(read(9, rank, 25 * MIB, 64 * KIB) for rank in range(4)),
    ]
    app, _ = app_of(facts(*records))
    assert [(phase.operation, phase.files, phase.share) for phase in app.phases] == [
        ("write", "per-process", 0.75),
        ("read", "shared", 0.25),
    ]
    app, remarks = app_of(facts(*records[:4], read(9, 0, MIB)))
    assert [phase.operation for phase in app.phases] == ["write"] and any("left out" in remark for remark in remarks)


@pytest.mark.parametrize(
    ("modules", "interface"), [(("POSIX", "H5F", "MPI-IO"), "hdf5"), (("PNETCDF_FILE", "MPI-IO"), "pnetcdf")]
)
def test_libraries_are_recognised_by_their_modules(modules: tuple[str, ...], interface: str) -> None:
    assert app_of(facts(modules=modules, mpiio=(written(1, -1, GIB),)))[0].interface == interface


def test_a_log_without_data_is_refused_and_its_modules_are_named() -> None:
    with pytest.raises(BadInputError, match="STDIO"):
        app_of(facts(modules=("STDIO",)))


_RECORDS = st.builds(
    lambda file, rank, size, call, write: (written if write else read)(file, rank, size, call),
    st.integers(0, 5),
    st.integers(-1, 7),
    st.integers(1, 1 << 40),
    st.sampled_from([100, KIB, MIB, GIB]),
    st.booleans(),
)


@given(st.lists(_RECORDS, min_size=1, max_size=12), st.integers(1, 8))
def test_every_log_gives_a_valid_description(records: list[FileRecord], ranks: int) -> None:
    app, remarks = app_of(facts(*records, ranks=ranks))
    assert app_from_text(to_toml(app, remarks), "app.toml") == app


def test_data_sieving_is_named_with_both_amounts() -> None:
    above, below = read(1, -1, 30 * GIB, 100), read(1, 0, 3000 * GIB)
    _, remarks = app_of(facts(below, modules=("POSIX", "MPI-IO"), mpiio=(above,)))
    assert any("asked MPI-IO for 30 GiB, and 2.93 TiB were moved: data sieving" in remark for remark in remarks)
    # To write small pieces of a buffer, MPI-IO first reads the whole buffer.
    above, reads = written(1, -1, 10 * GIB), read(1, 0, GIB)
    _, remarks = app_of(facts(written(1, 0, 10 * GIB), reads, modules=("POSIX", "MPI-IO"), mpiio=(above,)))
    assert any("asked MPI-IO for 10 GiB, and 11 GiB were moved: data sieving" in remark for remark in remarks)


def test_files_that_only_posix_used_are_described_beside_those_of_mpiio() -> None:
    above, below, other = written(1, -1, GIB), written(1, 0, GIB, 4 * MIB), read(2, -1, 3 * GIB)
    app, remarks = app_of(facts(below, other, modules=("POSIX", "MPI-IO"), mpiio=(above,)))
    expected = [("write", 0.25, (MIB,)), ("read", 0.75, (MIB,))]
    assert [(phase.operation, phase.share, phase.record_bytes) for phase in app.phases] == expected
    assert any("3 GiB in files without MPI-IO went through POSIX" in remark for remark in remarks)
    assert not any("sieving" in remark for remark in remarks)


def test_stdio_counts_as_data_and_as_time_in_io() -> None:
    pytest.importorskip("darshan")
    log = read_log(SAMPLES / "stdio-mostly.darshan")
    assert log.moved_bytes > 10 * GIB and 12 < log.io_s <= log.run_s
    app, remarks = app_of(log)
    assert app.phases[0].data_bytes == 10 * GIB
    assert any("10 GiB went through STDIO" in remark for remark in remarks)


def test_a_damaged_log_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    pytest.importorskip("darshan")
    whole = (SAMPLES / "stdio-mostly.darshan").read_bytes()
    for share in (3, 10, 30, 60, 90):
        (tmp_path / f"{share}.darshan").write_bytes(whole[: len(whole) * share // 100])
    deep = tmp_path.joinpath(*"d" * 1200)  # deeper than the stack of Python
    subprocess.run(["mkdir", "-p", deep], check=True)
    (deep / "whole.darshan").write_bytes(whole)
    logs, errors = read_logs(tmp_path)
    subprocess.run(["rm", "-r", tmp_path / "d"], check=True)  # pytest removes directories recursively.
    assert [log["log"] for log in logs] == [f"{deep}/whole.darshan"]
    assert [error.what for error in errors] == ["the Darshan log is damaged"] * 5


def test_logs_after_the_time_limit_of_a_directory_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.tuning.advise_darshan._MOST_DIRECTORY_S", 0.0)
    for name in ("a", "b"):
        (tmp_path / f"{name}.darshan").touch()
    logs, (error,) = read_logs(tmp_path)
    assert not logs and error.what == "this Darshan log and those after it are not read" and "a.darshan" in error.where


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08\0\0\0\0\0\0\0" + b"\xff" * 9, b"BZh9no block", b"\x1f\x8b"])
def test_a_damaged_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("darshan")
    path = tmp_path / "damaged.darshan"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match="the Darshan log is damaged"):
        read_log(path)


@pytest.mark.parametrize("ranks", [-1, 0, 2**62])
def test_an_impossible_number_of_ranks_is_refused(monkeypatch: pytest.MonkeyPatch, ranks: int) -> None:
    report = SimpleNamespace(metadata={"job": {"nprocs": ranks}}, modules={})
    monkeypatch.setitem(sys.modules, "darshan", SimpleNamespace(DarshanReport=lambda *_, **__: report))
    with pytest.raises(BadInputError, match="number of ranks"):
        _facts("log")


def test_a_missing_file_a_text_file_and_a_directory_without_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="the Darshan log does not exist"):
        read_log(tmp_path / "none.darshan")
    with pytest.raises(BadInputError, match="no Darshan log"):
        read_logs(tmp_path)
    (tmp_path / "text.darshan").write_text("# darshan log version: 3.41\n")
    with pytest.raises((BadInputError, EnvironmentLacksError), match=r"darshan-parser|cannot read Darshan logs"):
        read_log(tmp_path / "text.darshan")


def test_the_sample_logs_of_pydarshan_are_described() -> None:
    darshan = pytest.importorskip("darshan")
    place = Path(darshan.__file__).parent / "tests" / "input"
    if not place.is_dir():
        pytest.skip("this PyDarshan comes without its logs")
    app, _ = app_of(read_log(place / "sample.darshan"))
    (phase,) = app.phases
    expected = ("vpicio_uni", "mpiio", 2048, "shared", True)
    assert (app.title, app.interface, app.ranks, phase.files, phase.collective) == expected
    app, _ = app_of(read_log(place / "sample-goodost.darshan"))
    assert [(app.ranks, phase.files, phase.data_bytes // MIB) for phase in app.phases] == [(48, "per-process", 1024)]


def timed(file: int, rank: int, time_s: float) -> FileRecord:
    return FileRecord(file, rank, 0, MIB, {}, {MIB: 1}, time_s=time_s)


def test_time_in_io_is_the_slowest_rank_plus_the_shared_files() -> None:
    assert facts(timed(1, 0, 3.0), timed(2, 0, 1.0), timed(3, 1, 2.0), timed(4, -1, 5.0)).io_s == 9.0
    assert facts(timed(1, -1, 500.0)).io_s == 60.0  # capped at the duration of the run
    assert (
        facts(timed(1, 0, 1.0), mpiio=(timed(1, -1, 7.0),)).io_s == 7.0
    )  # the time inside MPI-IO includes waiting for other ranks


def test_a_partial_log_is_reported_with_a_remedy() -> None:
    _, remarks = app_of(replace(facts(written(1, 0, MIB)), partial=("POSIX",)))
    assert any("partial" in remark and "DARSHAN_MODMEM" in remark for remark in remarks)
