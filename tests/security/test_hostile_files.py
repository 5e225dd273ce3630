"""Crafted files are read in a moment or refused with an error."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from security.test_hostile_clusters import moment
from strakes.base.errors import StrakesError
from strakes.base.toml_file import parse_toml, read_toml
from strakes.base.units import parse_bytes
from strakes.control.knob_journal import read_journal
from strakes.failover.setup import _read_texts
from strakes.interop.command_io500 import read_configuration
from strakes.interop.command_ior import _script as read_script
from strakes.interop.formats import read_file
from strakes.model.plan_read import plan_from_toml
from strakes.runs.published import PublishedRun
from strakes.runs.store_files import read_json, read_json_lines
from strakes.watch.recorded import is_recording, readings
from strakes.watch.replay import Columns, read_series

Reader = Callable[[Path], object]

# Unix times before 1980 are refused.
_NOW_S = 1_600_000_000


def read_published(path: Path) -> object:
    return PublishedRun(path).manifest


def read_plan_toml(path: Path) -> object:
    return read_toml(path, "the plan", "phase")


def read_lines(path: Path) -> object:
    return list(read_json_lines(path))


def read_recording(path: Path) -> object:
    return list(readings([path]))


def read_table(path: Path) -> object:
    return read_series(path, Columns("time", "value"))


READERS: tuple[Reader, ...] = (
    read_file,
    read_plan_toml,
    read_published,
    read_json,
    read_lines,
    read_journal,
    read_configuration,
)
STREAMS: tuple[Reader, ...] = (is_recording, read_recording, read_table)

_LONG_KEY = ".".join("a" * 30_000)
_MANY_DOTS = "a." * 201
# Reader, content of the file, and what the error says.
CRAFTED: tuple[tuple[Reader, str | bytes, str], ...] = (
    (read_table, "time,value\n1," + "x" * 200_000, ""),
    (read_table, 'time,value\n"' + 'x\n","' * 300_000, "a row has more than"),
    (read_script, "\n" * 400_000 + "IOR START\na" + " " * 500_000 + "b\nRUN\nRUN\n", "2 tests"),
    (lambda path: parse_bytes(path.read_text()), "1" + " " * 900_000 + "!", ""),
    *(
        (read_table, f"time,value\n{_NOW_S - 1},2\n{row}\n", "file:3")
        for row in (f"{_NOW_S},1e308", f"{_NOW_S},-1e308", "1e308,2")
    ),
    (read_recording, "### nan\n### 2\n", ""),
    (read_recording, "### 1e999\n", ""),
    (read_recording, "### -99999999999\n", "not a time"),
    *((read_recording, stamps * 10_002, "not in order of time") for stamps in ("### 1\n", "### 2\n### 1\n")),
    *(
        (read_plan_toml, text, "")
        for text in (
            *("a = " + "[" * 100_000, "a = " + "{b=" * 100_000, "a = " + "9" * 5000, "[" + " " * 900_000),
            *(f"{_LONG_KEY} = 1", f"[{_LONG_KEY}]", f"[[{_LONG_KEY}]]", f"x = {{ {_LONG_KEY} = 1 }}"),
            *('"\\' * 400_000, "'a\"" * 250_000, '"""' + '""a' * 250_000),
        )
    ),
    *(
        (read_plan_toml, text, "dots")
        for text in (
            f'["x,".{_MANY_DOTS}a]\n',
            ("a." * 50 + '"\u2028".') * 4 + "a = 1",
            f'x = {{ y = """ " """, {_MANY_DOTS}b = 1 }}',
        )
    ),
    (lambda path: plan_from_toml(path, 1), "phase = [" + "{}," * 1001 + "]\n", "more than 64"),
    (lambda path: plan_from_toml(path, 1), '[[phase]]\nkind = "x"\n' * 1001, "more than 64"),
    *(
        (read_published, content, "")
        for content in (
            *(b"", b"[" * 1_000_000, b'{"a":' * 200_000, b'{"schema": ' + b"9" * 5000 + b"}", b"\xff\xfe" * 1000),
            *(gzip.compress(b"[" * 200_000), gzip.compress(b"{}")[:-9], b"\x1f\x8b" + os.urandom(1000)),
            b'{"schema":1,"manifest":{},"findings":{},"visits":[' + b"1," * 500_000 + b"1]}",
        )
    ),
    *(
        (reader, content + b"\n{}\n", "damaged")
        for reader in (read_json, read_lines, read_journal)
        for content in (b"[" * 100_000, b'{"a":' * 100_000)
    ),
    (read_json, '{"a": [' + "[]," * 5_000_000 + "[]]}", "5,000,000 values"),
    (read_lines, "{}\n" + '{"a": [' + "[]," * 5_000_000 + "[]]}\n{}\n", "line 2"),
    (read_file, '\n{"access": "bwMiB", "x": [' + "[]," * 1_000_000 + "[]]}", "2000000 values"),
    *((reader, gzip.compress(bytes(1 << 20)) * 64, "too long") for reader in STREAMS),
    (read_file, "".join(f"n{i % 60}: IOR-4.0.0: x\n" for i in range(40_000)), "too many lines of 60 programs"),
    (read_published, gzip.compress(b"[") + gzip.compress(b"{}," * 100_000) * 110 + gzip.compress(b"{}]"), "objects"),
)


# Texts on which a regular expression that backtracks is very slow.
SLOW_RESULTS = (
    "\n" * 200_000,
    " " * 1_000_000,
    " \n\t" * 100_000,
    "IOR-4.0.0: MPI Coordinated Test\n" + "\n" * 16_000,
    f"IOR-4.0.0: x\nCommand line : ior {'x' * 1_000_000}\nMax Write: 1.00 MiB/sec (1.00 MB/sec)\n",
    "IOR-4.0.0:\nOptions:\n a " + " " * 200_000 + "x",
    "Max Write: 0.00 MiB/sec\n" + "a" * 100_000 + "\n",
    "[" * 200_000,
    '{"fio version": ' + "[" * 200_000,
    '{"access": "bwMiB" ' + "{" * 50_000,
    '{"fio version": "fio-3.33", "jobs": [{"n": ' + "9" * 5000 + "}]}",
    "rank,items,File creation\n0,1," + "9" * 200_000,
    "operation,phase name,entries/s\n" + "x" * 200_000 + ",1,2\n",
    "mdtest-4.1 was launched\n" + "File creation" + " " * 200_000,
    "mdtest-4.1 was launched\n" + "SUMMARY: (of 3 iterations)\n  File stat: 1 1 1 1\n" * 9_000,
    "mdtest-4.1 was launched\nstarted at " + "9" * 300_000 + "\n",
)
SLOW_LINES = (
    "   8 0 sda " + "1" * 300 + "x",
    "   8 0 sda " + "1 " * 200_000 + "x",
    "- job_id: " + " " * 500_000 + "x\n" * 2,
    "a" + " " * 500_000 + "b",
    "mdt.a.md_stats=\nopen" + " " * 200_000,
    f"mdt.a.md_stats=\nsnapshot_time 1.5 secs.nsecs\nopen {'9' * 200_018} samples [reqs]\n",
    "mdt.a.md_stats=\nopen" + " \t" * 200_000 + "1 samples",
    "  open: { samples: 1, unit: reqs" + "sum:" * 200_000,
    "1" + ".a" * 200_000,
)


def refuse(reader: Reader, path: Path) -> StrakesError:
    with moment(), pytest.raises(StrakesError) as refused:
        reader(path)
    return refused.value


@pytest.mark.parametrize(("reader", "content", "says"), CRAFTED, ids=range(len(CRAFTED)))
def test_a_crafted_file_is_refused_in_a_moment(tmp_path: Path, reader: Reader, content: str | bytes, says: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    error = refuse(reader, path)
    assert says in f"{error.what} {error.where} {error.why}"


@pytest.mark.parametrize("text", SLOW_RESULTS, ids=range(len(SLOW_RESULTS)))
def test_a_result_that_is_made_to_be_slow_is_read_or_refused_in_a_moment(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result"
    path.write_text(text)
    with moment(), suppress(StrakesError):
        read_file(path)


def test_a_result_that_takes_more_than_its_limits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.interop.formats._MOST_S", 0.05)
    (tmp_path / "result").write_text("x 1 MiB/s\n" * 1_000_000)
    assert "takes too long" in refuse(read_file, tmp_path / "result").what
    monkeypatch.undo()
    (tmp_path / "result").write_text("x 1 MiB/s\n" * 4_000_000)  # glibc takes no free memory for more than 32 MiB
    monkeypatch.setattr("strakes.base.interrupts._MOST_BYTES", 8 << 20)
    assert "8 MiB of memory" in refuse(read_file, tmp_path / "result").why


@pytest.mark.parametrize("line", SLOW_LINES, ids=range(len(SLOW_LINES)))
def test_a_recording_that_is_made_to_be_slow_is_read_in_a_moment(tmp_path: Path, line: str) -> None:
    path = tmp_path / "recording"
    path.write_text(f"### 1\nmdt.a-MDT0000.job_stats=\njob_stats:\n{line}\n")
    with moment():
        assert len(list(readings([path]))) == 1


@pytest.mark.parametrize("reader", [*READERS, *STREAMS])
def test_a_file_that_is_not_regular_is_refused_without_waiting(tmp_path: Path, reader: Reader) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), Path("/dev/tty"), tmp_path):
        assert str(path) in refuse(reader, path).where


@pytest.mark.parametrize("reader", READERS)
def test_a_kernel_file_that_blocks_is_refused(reader: Reader) -> None:
    if os.geteuid() != 0 or not os.access("/proc/kmsg", os.R_OK):
        pytest.skip("only root reads the log of the kernel")
    assert "/proc/kmsg" in refuse(reader, Path("/proc/kmsg")).where


_IOR = "IOR-4.1.0: MPI Coordinated Test of Parallel I/O\nMax Write: 1.00 MiB/sec (1.00 MB/sec)\n"


@pytest.mark.parametrize(
    ("reader", "limit", "most", "head", "line", "why"),
    [
        (read_recording, "watch.recorded._MOST_READING_BYTES", 1000 * 66, "### 1\n", "a\n", "too much"),
        (read_table, "watch.replay.MOST_ROWS", 1000, "time,value\n", f"{_NOW_S},2\n", "too large"),
        (read_file, "interop.formats._MOST_LINES", 1001, "Max Write: 1 MiB/sec (1 MB/sec)\n", "ab\n", "too large"),
        (read_file, "interop.formats._MOST_RESULTS", 1000, "", "Max Write: 1.00 MiB/sec (1.00 MB/sec)\n", "too large"),
        (read_file, "interop.formats._MOST_CHARACTERS", 1005, f"{_IOR}Command line : ior -", "F", "too large"),
    ],
)
def test_a_file_with_too_many_lines_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reader: Reader,
    limit: str,
    most: int,
    head: str,
    line: str,
    why: str,
) -> None:
    monkeypatch.setattr(f"strakes.{limit}", most)
    path = tmp_path / "file"
    path.write_text(head + line * 1000)
    reader(path)
    path.write_text(head + line * 1001)
    assert why in str(refuse(reader, path))


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_too_large_is_refused(tmp_path: Path, reader: Reader) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 34)
    assert "too large" in refuse(reader, path).what


def test_dots_in_texts_and_comments_are_not_keys() -> None:
    dots = "a." * 100
    text = f'# {dots}\nx = \'{dots}\'\ny = """{dots}\n""" # {dots}\nz = [\n{"0.5, " * 100}\n]\n'
    assert parse_toml(text, "plan.toml", "the plan").values["z"] == [0.5] * 100


def test_a_line_is_found_in_a_moment_in_a_text_of_brackets() -> None:
    file = parse_toml('x = """\n[' + " " * 100_000 + "\n[" + "a " * 100_000 + '\n"""\ny = 1\n', "plan.toml", "the plan")
    with moment():
        assert file.line(("y",)) == 5


@pytest.mark.parametrize(
    ("text", "count", "why"), [(b" ", 64 << 20, "the unpacked file is larger than 4 MiB"), (b"{},", 1 << 20, "objects")]
)
def test_a_published_run_that_unpacks_without_end_is_refused(
    text: bytes, count: int, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.runs.published._MOST_BYTES", 4 << 20)
    path = tmp_path / "run.json.gz"
    path.write_bytes(gzip.compress(text * count))
    assert path.stat().st_size < 1 << 20 and why in refuse(read_published, path).why


def test_a_pair_whose_files_are_pipes_is_refused_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "etc/corosync").mkdir(parents=True)
    os.mkfifo(tmp_path / "etc/corosync/corosync.conf")
    assert "corosync.conf" in refuse(lambda path: _read_texts(path, planned=False), tmp_path).where
