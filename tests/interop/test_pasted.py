"""``strakes import`` reads pasted results: quoted, prefixed, coloured, wrapped, or several in one file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.base.units import MIB
from strakes.cli.main import run as strakes
from strakes.interop.formats import ResultFile, read_file
from strakes.runs.store import Store

SAMPLES = Path(__file__).parent / "samples"
PASTED = ("ior-4.1.txt", "mdtest-4.1-P.txt", "io500-summary.txt", "elbencho-result.txt")


def figures(results: ResultFile) -> list[tuple[str, tuple[float, ...]]]:
    return [(figure.name, figure.values) for test in results.tests for figure in test.figures]


def each_line(prefix: str, suffix: str = "") -> Callable[[str], str]:
    """Return a function that adds a prefix and a suffix to every line; ``#`` in the prefix becomes a line number."""
    return lambda text: "\n".join(
        prefix.replace("#", f"{9 + number}") + line + suffix for number, line in enumerate(text.split("\n"))
    )


def wrapped(columns: int) -> Callable[[str], str]:
    return lambda text: "\n".join(
        part
        for line in text.split("\n")
        for part in textwrap.wrap(line, columns, drop_whitespace=False, break_on_hyphens=False) or [""]
    )


SHAPES: dict[str, Callable[[str], str]] = {
    "srun -l": each_line("0: "),
    "srun -l of many tasks": each_line("   0: "),
    "mpirun --tag-output": each_line("[1,0]<stdout>:"),
    "time of a CI log": each_line("2026-11-27T03:26:#.130Z "),
    "time of ts": each_line("Nov 27 03:26:# "),
    "syslog": each_line("Nov 27 03:26:# n1 bench[4711]: "),
    "kubectl logs": each_line("[pod/ior-job-x7k2p/ior] "),
    "docker compose": each_line("bench_1  | "),
    "line numbers": each_line("  #\t"),
    "grep -n": each_line("#:"),
    "quote of mail": lambda text: each_line("> ")(text).replace("> \n", ">\n"),
    "quote of mail, wrapped": lambda text: each_line("> ")(wrapped(74)(text)),
    "wrapped": wrapped(72),
    "code block": each_line("        "),
    "list of Ansible": each_line('        "', '",'),
    "notebook": each_line('      "', '\\n",'),
    "colours": each_line("\x1b[32m", "\x1b[0m"),
    "spaces of a web page": lambda text: text.replace("  ", "\N{NO-BREAK SPACE} "),
    "empty line below each": lambda text: text.replace("\n", "\n\n"),
    "question": lambda text: f"Hello,\n\n```\n$ mpirun -n 2 ./run\n{text}\n```\nElsewhere we get 12 GB/s.\n",
}


@pytest.mark.parametrize("sample", PASTED)
@pytest.mark.parametrize("shape", SHAPES)
def test_pasted_results_have_the_figures_of_the_original(shape: str, sample: str, tmp_path: Path) -> None:
    path = tmp_path / "pasted"
    path.write_text(SHAPES[shape]((SAMPLES / sample).read_text()))
    assert figures(read_file(path)) == figures(read_file(SAMPLES / sample))


@pytest.mark.parametrize(
    ("sample", "pasted"),
    [
        (PASTED[0], lambda text: text.replace("\n", "\r\n").encode("utf-16")),
        ("fio-3.33-write.json", lambda text: f"{{noformat}}\n{text}\n{{noformat}}\n".encode()),
        # A progress line of fio and a shell prompt were copied as well.
        ("fio-3.33-write.json", lambda text: f"Jobs: 1: [R(5)][r=3566,w=0 IOPS][eta 00m:14s]\n>{text}".encode()),
        # The node map has more digits than int() accepts.
        (PASTED[1], lambda text: text.replace("Path ", f"Nodemap: {'10' * 15600}\nPath ", 1).encode()),
    ],
)
def test_other_encodings_braces_and_long_numbers_are_read(
    sample: str, pasted: Callable[[str], bytes], tmp_path: Path
) -> None:
    (tmp_path / "pasted").write_bytes(pasted((SAMPLES / sample).read_text()))
    assert figures(read_file(tmp_path / "pasted")) == figures(read_file(SAMPLES / sample))
    assert not read_file(tmp_path / "pasted").unread


def test_results_of_several_tools_in_one_file_are_all_read(tmp_path: Path) -> None:
    first, second = read_file(SAMPLES / "ior-and-mdtest.txt").tests
    assert (first.tool, first.figures[0].name, len(first.figures)) == ("ior", "write", 2)
    assert (second.tool, len(second.figures), second.form) == ("mdtest", 9, "mdtest text")
    path = tmp_path / "job.log"
    fio, ior = (SAMPLES / "fio-3.33-write.json").read_text(), (SAMPLES / "ior-stripes.txt").read_text()
    path.write_text(f"{ior}\n{fio}\nstarting md\n{(SAMPLES / 'mdtest-two.txt').read_text()}")
    results = read_file(path)
    assert sorted(test.tool for test in results.tests) == ["fio", "ior", "ior", "ior", "mdtest", "mdtest"]
    assert not results.unread


def test_unread_results_are_counted_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "night.log"
    text = (SAMPLES / "ior-stripes.txt").read_text()
    killed = text.split("access    bw(MiB/s)", maxsplit=1)[0]
    other = "job: (g=0): rw=read, bs=4k\nfio-3.1\n  READ: bw=12MiB/s (13MB/s)\n"
    path.write_text(f"{text}\n{killed}\n{other}")
    assert strakes(["import", str(path)]) == 0
    expected = "2 of 5 results were not read: lines 115-139 (the test has no results); lines 140-143 (fio text)"
    assert expected in capsys.readouterr().err
    assert expected in Store().open(Store().runs()[-1].id).manifest["options"]["imported"]["notes"]


ELBENCHO = """09:32:25 - DEBUG - ssh [n1] stdout: OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
READ        Elapsed time     :      1.536s      2.374s
            Throughput MiB/s :        1880        {0}
---
"""
IOR_TABLE = """access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
write     {0}.67     1024.00    1024.00    0.000567   0.000567   0.000567   0.001700   0
Max Write: {0}.67 MiB/sec (593.15 MB/sec)
"""


@pytest.mark.parametrize(
    "tag", ["n{}: ", "   {}: ", "[1,{}]<stdout>:", "[pod/md-{}x/run] ", "03:26:1{0} n{0} b[4{0}]: "]
)
def test_lines_of_several_programs_are_told_apart_by_their_tags_or_refused(tag: str, tmp_path: Path) -> None:
    text = (SAMPLES / "mdtest-1.9.txt").read_text()
    programs = text, text.replace("7900.000", "64.500").replace("8 total task(s)", "64 total task(s)"), text
    rows = list(zip(*(one.splitlines() for one in programs), strict=True))
    path = tmp_path / "mixed"
    path.write_text("\n".join(tag.format(rank) + line for row in rows for rank, line in enumerate(row)) + "\n")
    assert [value for name, (value,) in figures(read_file(path)) if name == "file-creation"] == [7900, 64.5, 7900]
    # Lines of one program may have the tags of several ranks.
    path.write_text("\n".join(f"{tag.format(row // 12)}{line}" for row, line in enumerate(text.split("\n"))))
    assert figures(read_file(path)) == figures(read_file(SAMPLES / "mdtest-1.9.txt"))
    path.write_text("\n".join(line for row in rows for line in row) + "\n")
    with pytest.raises(BadInputError) as refused:
        read_file(path)
    assert "the lines of several programs are mixed" in refused.value.why


@pytest.mark.parametrize("run", [ELBENCHO, IOR_TABLE, "Max Write: {0}.67 MiB/sec (593.15 MB/sec)\n"])
def test_runs_that_were_copied_without_their_first_lines_are_no_repetitions(run: str, tmp_path: Path) -> None:
    path = tmp_path / "copied"
    path.write_text(run.format(565) + "$ again\n" + run.format(665))
    assert [[int(value / MIB) for _, (value,) in figures(ResultFile((test,)))] for test in read_file(path).tests] == [
        [565],
        [665],
    ]


def test_an_ior_operation_whose_row_is_missing_is_read_from_the_summary(tmp_path: Path) -> None:
    path = tmp_path / "headless"
    head, row, summary = IOR_TABLE.format(565).splitlines()
    path.write_text("\n".join((head, f"190: {row}", summary, "Max Read: 24.03 MiB/sec (25.20 MB/sec)", "")))
    rows, most = read_file(path).tests
    assert figures(ResultFile((rows, most))) == [("write", (565.67 * MIB,)), ("read", (24.03 * MIB,))]
    assert "only the fastest" in most.notes[0] and not rows.notes


def test_repeated_rows_and_parts_of_two_tests_are_named(tmp_path: Path) -> None:
    path, text = tmp_path / "damaged", (SAMPLES / "ior-4.1.txt").read_text()
    row = next(line for line in text.splitlines() if line.startswith("write  "))
    path.write_text(text.replace(row, f"{row}\n{row}"))
    assert figures(read_file(path)) == figures(read_file(SAMPLES / "ior-4.1.txt"))
    assert "(the row repeats an earlier one)" in read_file(path).left_out()
    path.write_text((SAMPLES / "elbencho-1.6.csv").read_text() * 2)
    assert figures(read_file(path)) == figures(read_file(SAMPLES / "elbencho-1.6.csv"))
    assert read_file(path).left_out().count("repeats") == 2
    path.write_text(text.replace("tasks               : 2", "tasks               : 64"))
    with pytest.raises(BadInputError) as refused:
        read_file(path)
    assert "the heading has 64 tasks, the summary 2" in refused.value.why
    end = "            Throughput MiB/s :         937         937\n---\n"
    path.write_text(end + (SAMPLES / "elbencho-result.txt").read_text())
    assert "lines 1-2 (rates" in read_file(path).left_out()


def test_a_csv_between_printed_lines_is_read(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(f"module loaded\n{(SAMPLES / 'ior-4.1.csv').read_text()}{(SAMPLES / 'mdtest-1.9.txt').read_text()}")
    results = read_file(path)
    assert [test.form for test in results.tests] == ["IOR CSV", "mdtest text"] and not results.unread


def test_a_missing_end_and_rates_of_unknown_tools_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_text(f"files/sec = 1812.1\n{(SAMPLES / 'mdtest-1.9.txt').read_text().partition('   File removal')[0]}")
    results = read_file(path)
    assert "operations may be missing" in results.tests[0].notes[-1]
    assert "rates of an unknown tool" in results.left_out()


def test_a_second_result_of_an_io500_phase_is_named(tmp_path: Path) -> None:
    path = tmp_path / "appended.txt"
    row = "[RESULT] BW   phase 1   ior_easy_write   {} GB/s : time 113.25 seconds\n"
    path.write_text("System:  n1\n" + row.format("2.070") + row.format("1.341"))
    assert "line 3 (the value differs from the first result of ior-easy-write)" in read_file(path).left_out()


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("3;fio-2.2.10;job;0;0;1024\n", "only fio's JSON"),
        ("job: (g=0): rw=read\nfio-2.2.10\nStarting 1 process\n", "only fio's JSON"),
        ("Run status group 0 (all jobs):\n   READ: bw=2045MiB/s (2144MB/s)\n", "only fio's JSON"),
        ("access,rank,runtime-with-openclose,runtime,throughput\nwrite,0,1,1,2\n", "in the same run"),
        ("rank,items,rate-File creation,time-File creation\n0,10,5,2\n", "in the same run"),
        ("time,runtime,tp\n0.1,0.2,5\n", "in the same run"),
        ("Label,Phase,RuntimeMS,Rank,MixType\n,WRITE,1000,Total,Write\n", "--csvfile"),
        ("\tIozone: Performance Test of File I/O\n", "does not read IOzone"),
        ("HDF5 Library: Version 1.10.5\n", "IOR with -a HDF5"),
    ],
)
def test_unsupported_results_are_refused_with_the_file_to_import(tmp_path: Path, text: str, remedy: str) -> None:
    (tmp_path / "refused").write_text(text)
    with pytest.raises(BadInputError) as refused:
        read_file(tmp_path / "refused")
    assert remedy in refused.value.remedy


def test_mdtest_output_with_times_only_and_fio_json_that_is_cut_off_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "refused"
    path.write_text((SAMPLES / "mdtest-3.4.txt").read_text().replace("SUMMARY rate", "SUMMARY time"))
    with pytest.raises(BadInputError, match="mdtest -Z prints times without rates"):
        read_file(path)
    path.write_text((SAMPLES / "fio-3.33-write.json").read_text()[:400])
    with pytest.raises(BadInputError, match="fio JSON") as refused:
        read_file(path)
    assert "not valid JSON" in refused.value.why


def test_fio_runs_collected_in_one_document_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "collected.json"
    text = (SAMPLES / "fio-2.2.json").read_text()
    run = json.loads(text[text.index("{") :])
    path.write_text(json.dumps({"data": [run, {**run, "timestamp": 1500000000}]}, indent=1))
    assert [name for name, _ in figures(read_file(path))].count("old-read") == 2


def test_each_fio_run_in_a_file_is_a_measurement(tmp_path: Path) -> None:
    path = tmp_path / "appended.json"
    document = (SAMPLES / "fio-2.2.json").read_text()
    path.write_text(document + document.replace("2048", "4096"))
    assert [test.figures[0].values[0] / MIB for test in read_file(path).tests] == [2, 4]
