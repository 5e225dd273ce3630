"""``strakes import``: results of all versions of other tools, complete or damaged, become runs marked as imported."""

from __future__ import annotations

import gzip
import json
import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from report.document import validate
from strakes.base.errors import BadInputError
from strakes.base.units import KIB, MIB
from strakes.cli.main import run as strakes
from strakes.interop.foreign import Foreign, ForeignFigure, gathered
from strakes.interop.formats import FORMATS, read_file
from strakes.interop.importing import keep
from strakes.model.portrait import Portrait
from strakes.model.record import from_record
from strakes.runs.store import Store

SAMPLES = Path(__file__).parent / "samples"
NO_RESULT = ("ior-elsewhere.txt", "elbencho-mixed.txt")
CUT = ("elbencho-result.txt", "io500-result.txt", "io500-summary.txt")
RESULTS = sorted(path.name for path in SAMPLES.iterdir() if path.name not in NO_RESULT)


def foreign(name: str) -> Foreign:
    (test,) = read_file(SAMPLES / name).tests
    return test


def rates(test: Foreign) -> dict[str, list[float]]:
    return {
        figure.name: [round(value / (MIB if figure.metric == "bytes_per_s" else 1), 2) for value in figure.values]
        for figure in test.figures
    }


def values(name: str) -> dict[str, list[float]]:
    return rates(foreign(name))


def read_or_refuse(path: Path) -> tuple[list[float], str]:
    try:
        return [value for test in read_file(path).tests for one in test.figures for value in one.values], ""
    except BadInputError as error:
        return [], str(error)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        *(("ior-4.1.txt", old, new) for old, new in ((r" 1024\.00 ", " 64.00 "), (r"^(write +)\S+", r"\g<1>1.00"))),
        ("mdtest-1.8.txt", r"[\d.]+", "1.000"),
    ],
)
def test_rows_of_two_tests_under_one_heading_are_refused(tmp_path: Path, name: str, old: str, new: str) -> None:
    text = (SAMPLES / name).read_text()
    row = re.findall(r"(?m)^(?:write| *File creation) .*$", text)[0]
    (tmp_path / "mixed").write_text(text.replace(row, f"{row}\n{re.sub(old, new, row)}", 1))
    with pytest.raises(BadInputError, match="the lines of several programs are mixed"):
        read_file(tmp_path / "mixed")


def test_damaged_logs_are_read_and_their_losses_named(tmp_path: Path) -> None:
    whole = (SAMPLES / "ior-4.1.txt").read_text()
    (tmp_path / "zeros").write_bytes(whole.encode() + bytes(4096))
    assert read_file(tmp_path / "zeros").tests == read_file(SAMPLES / "ior-4.1.txt").tests
    (tmp_path / "cut").write_text(whole[: whole.index("Summary of all tests")])
    assert "the summary at the end of IOR's output is missing" in read_file(tmp_path / "cut").tests[0].notes[0]
    table = (SAMPLES / "mdtest-4.1.txt").read_text()
    (tmp_path / "flipped").write_text(table.replace("File creation", "File`creation"))
    assert "the operation is not known" in read_file(tmp_path / "flipped").left_out()


def test_a_packed_result_is_read_and_a_darshan_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "ior.gz").write_bytes(gzip.compress((SAMPLES / "ior-4.1.txt").read_bytes()))
    assert read_file(tmp_path / "ior.gz").tests == read_file(SAMPLES / "ior-4.1.txt").tests
    for content, said in ((b"\x1f\x8bcut", "cannot be unpacked"), (b"3.10\0\0\0\0ud", "a log of Darshan")):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(BadInputError, match=said):
            read_file(tmp_path / "other")


@pytest.mark.parametrize(
    "words",
    [
        "ior -a S3-libs3 --S3-libs3.secret-key=hidden --S3-libs3.host=https://bob:hidden@s3 -o https://b:hidden@h/x?s=hidden",
        '"ior" "-o" "file" "--token" "hidden" "AWS_SECRET_ACCESS_KEY=hidden"',
    ],
)
def test_secrets_of_commands_are_not_stored(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (SAMPLES / "ior-4.1.txt").read_text()
    (command,) = re.findall(r"^Command line +: (.*)$", text, re.MULTILINE)
    (tmp_path / "ior.out").write_text(text.replace(command, words))
    assert strakes(["import", str(tmp_path / "ior.out")]) == 0 and "hidden" not in capsys.readouterr().out
    kept = [path for path in Store().root.rglob("*") if path.is_file()]
    assert kept and all(b"hidden" not in path.read_bytes() for path in kept)


@pytest.mark.parametrize("name", RESULTS)
def test_every_sample_becomes_a_run_reported_as_imported(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert strakes(["import", str(SAMPLES / name)]) == 0
    run = Store().runs()[-1]
    assert len(Store().runs()) == len(read_file(SAMPLES / name).tests) and run.kind == "import"
    assert run.status == "complete" and run.id in capsys.readouterr().out
    assert strakes(["report", run.id, "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate(document)
    portrait = from_record(Portrait, document)
    assert portrait.cells
    assert all((cell.low, cell.high, cell.imported) == (None, None, True) for cell in portrait.cells)
    assert portrait.warnings[0].code == "imported" and "imported from" in portrait.scope
    assert strakes(["export", run.id, "--format", "io500"]) == 2


def test_the_summary_and_the_list_of_runs_mark_imported_runs(capsys: pytest.CaptureFixture[str]) -> None:
    strakes(["import", str(SAMPLES / "ior-4.1.txt")])
    capsys.readouterr()
    strakes(["report"])
    assert "[imported, no interval]" in capsys.readouterr().out
    strakes(["runs"])
    listed = capsys.readouterr().out
    assert "import ior" in listed
    assert "2026-11-21" in listed  # the date of the measurement, not of the import
    assert "/scratch/try/s/f" in listed


VALUES = tomllib.loads((Path(__file__).parent / "values.toml").read_text())
NOTES = {
    "mdtest-comma.txt": "decimal commas",
    "ior-summary-only.txt": "only the mean",
    "ior-2.10.txt": "1 repetition left out, without usable bandwidth",
    "ior-max-only.txt": "only the fastest",
    "ior-3.2-broken.json": "the JSON is damaged",
    "ior-4.0-verbose.json": "the JSON is damaged",
    "mdtest-1.8.txt": "mean of 2 iterations",
    "io500-summary.txt": "INVALID",
    "elbencho-services.txt": "4 tables left out, because each shows one service only",
    "fio-2.2.json": "fio reports error 5 in job old",
    "io500-2018-invalid.txt": "IO500 marks this run as INVALID: ior-hard-write",
}
SETTINGS: dict[str, dict[str, object]] = {
    "ior-4.1.txt": {"layout": "file-per-process", "type": "independent", "segments": 2, "ordering": "no tasks offsets"},
    "ior-4.1.csv": {"block_bytes": 16 * MIB, "transfer_bytes": MIB, "ranks": 2},
    "ior-summary-only.txt": {"block_bytes": 32 * MIB, "transfer_bytes": MIB, "ranks": 48, "api": "MPIIO"},
    "ior-2.10.txt": {"ranks": 4},
    "ior-3.0-verbose.txt": {"ranks": 4, "transfer_bytes": 20 * MIB, "api": "POSIX"},
    "mdtest-1.9.txt": {"ranks": 8, "nodes": 2},
    "mdtest-1.9-early.txt": {"ranks": 4, "nodes": 1},
    "mdtest-3.4.txt": {"ranks": 4, "nodes": 2, "items": 2000},
    "elbencho-1.6.csv": {"direct": True},
    "fio-3.33-write.json": {"block_bytes": 64 * KIB},
}


@pytest.mark.parametrize("name", VALUES)
def test_a_sample_has_these_values(name: str) -> None:
    assert values(name) == VALUES[name]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_sample_has_these_settings(name: str) -> None:
    assert foreign(name).figures[0].settings.items() >= SETTINGS[name].items()


@pytest.mark.parametrize("name", NOTES)
def test_what_was_left_out_of_a_sample_is_noted(name: str) -> None:
    assert NOTES[name] in foreign(name).notes[0]


def test_version_host_path_time_and_stated_score_of_a_result_are_read() -> None:
    ior, elbencho, old = foreign("ior-4.1.txt"), foreign("elbencho-1.6.csv"), foreign("io500-2019.txt")
    assert (ior.version, ior.host, elbencho.version) == ("4.1.0+dev", "n1", "1.6-3") and ior.when is not None
    assert elbencho.when is not None and elbencho.when.isoformat() == "2021-02-03T03:05:06+00:00"
    assert old.when is not None and old.when.astimezone().isoformat().startswith("2019-09-17T22:52:53")
    assert (old.path, foreign("io500-result.txt").path) == ("/scratch/io500/datafiles", "/scratch/try")
    assert old.notes == ()
    for name, score in (("2017", "IO-500 score: 17287037.5"), ("result", "score 14.01"), ("summary", "TOTAL 3.558")):
        assert score in foreign(f"io500-{name}.txt").stated[0]


def test_each_test_of_an_ior_script_is_a_separate_measurement() -> None:
    first, second = (test.figures[0] for test in read_file(SAMPLES / "ior-3.0-script.txt").tests)
    kinds = [(one.settings["api"], one.settings["transfer_bytes"], one.values) for one in (first, second)]
    assert kinds == [("POSIX", 256 * KIB, (500.25 * MIB,)), ("MPIIO", MIB, (250.75 * MIB,))]


@given(name=st.sampled_from(["ior-4.1.json", "ior-4.1.txt", "mdtest-4.1-P.txt", *CUT]), cut=st.integers(0, 4000))
@example("elbencho-result.txt", 998)
@example("io500-result.txt", 612)
@example("io500-summary.txt", 135)
def test_a_truncated_file_gives_complete_figures_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, name: str, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut"
    path.write_text((SAMPLES / name).read_text()[:cut])
    found, refusal = read_or_refuse(path)
    assert str(path) in refusal or {*found} <= {*read_or_refuse(SAMPLES / name)[0]}


def test_mdtest_text_gives_the_means_of_the_phases_that_ran() -> None:
    assert values("mdtest-4.1-P.txt")["file-creation"] == [205782.78]
    # These versions of mdtest print zeros for phases that were not run.
    for name in ("mdtest-1.9.txt", "mdtest-1.9-early.txt"):
        found = values(name)
        assert found["file-creation"] == [7900] and "file-read" not in found and len(found) == 8
    # This file has statistics over ranks in addition to those over iterations.
    assert values("mdtest-ranks.txt")["directory-stat"] == [112000.17]


def test_csv_json_and_text_of_one_elbencho_run_agree() -> None:
    by_csv, by_json, by_text = (values(f"elbencho-{form}") for form in ("sample.csv", "sample.json", "result.txt"))
    # The text output of elbencho has no IOPS for files of one block.
    assert set(by_csv) == set(by_json) == {*by_text, "read-operations", "write-operations"}
    assert by_csv["write"] == by_text["write"] == [389] and by_json["write"][0] == pytest.approx(389, abs=1)
    assert by_csv["write-entries"] == by_json["write-entries"] == by_text["write-entries"] == [104602]
    assert foreign("elbencho-sample.csv").path == "/scratch/try/e"


def test_each_elbencho_table_is_a_measurement_and_mixed_phases_give_writes_and_reads(tmp_path: Path) -> None:
    first, second = read_file(SAMPLES / "elbencho-1.8-sweep.txt").tests
    assert rates(first) == {"mkdirs": [12000], "write": [6], "write-entries": [6100]}
    assert rates(second).items() >= {"write": [18119.81], "rwmix70-write": [30], "rwmix70-read": [70]}.items()
    assert rates(second)["rwmix70-read-operations"] == [70]
    header, row, *_ = (SAMPLES / "elbencho-sample.csv").read_text().splitlines()
    columns, cells = header.split(","), row.split(",", header.count(","))
    for column, cell in (("operation", "RWMIX50"), ("MiB/s [last]", "30"), ("rwmix read MiB/s [last]", "20")):
        cells[columns.index(column)] = cell
    (tmp_path / "mixed.csv").write_text(f"{header}\n{','.join(cells)}\n")
    (test,) = read_file(tmp_path / "mixed.csv").tests
    assert rates(test)["rwmix50-write"] == [30] and rates(test)["rwmix50-read"] == [20]


def test_directions_processes_and_intervals_of_fio_jobs_are_told_apart() -> None:
    assert set(values("fio-3.33-mix.json")) == {"mix-read", "mix-read-operations", "mix-write", "mix-write-operations"}
    # Two processes moved 20 MiB each in 2,000 s. The printed rates are rounded to KiB/s.
    assert foreign("fio-2.1-processes.json").figures[0].values == (2 * 20480 * KIB / 2000,)
    assert values("fio-2.1-processes.json")["random-read-read-operations"] == [7]
    assert values("fio-3.33-intervals.json")["j3-write"] == [8.01]


def test_clients_of_fio_and_their_sum_are_figures_with_their_hosts(tmp_path: Path) -> None:
    clients = foreign("fio-3.7-clients.json")
    rate = [(one.settings.get("host"), one.values[0] / MIB) for one in clients.figures if one.metric == "bytes_per_s"]
    assert (rate, clients.host) == ([("n1", 200), ("n2", 100), (None, 300)], "n1, n2")
    failed = {"fio version": "fio-3.7", "jobs": [{"jobname": "j", "error": 22, "read": {"total_ios": 32}}]}
    (tmp_path / "failed.json").write_text(json.dumps(failed))
    assert "fio reports error 22 in job j" in read_or_refuse(tmp_path / "failed.json")[1]


def test_tests_that_differ_only_in_directory_or_command_are_separate_measurements() -> None:
    tests = read_file(SAMPLES / "ior-stripes.txt").tests
    assert [test.path for test in tests] == [f"/scratch/c{count}/ior.dat" for count in (1, 4, 16)]
    assert [rates(test)["write"] for test in tests] == [[400], [1500], [5200]]
    assert len({test.fingerprint() for test in tests}) == 3
    first, second = read_file(SAMPLES / "mdtest-two.txt").tests
    assert (first.figures[0].settings["ranks"], rates(first)["file-creation"]) == (1, [400])
    assert (second.figures[0].settings["ranks"], rates(second)) == (64, {"file-stat": [320000]})
    assert "/mnt/b" in second.command


@pytest.mark.parametrize("name", CUT)
def test_a_result_whose_number_is_cut_off_is_counted_as_not_read(name: str, tmp_path: Path) -> None:
    text, end = (SAMPLES / name).read_text(), {CUT[0]: "104602      104602", CUT[1]: "103.500", CUT[2]: " 9.500"}[name]
    (tmp_path / "cut").write_text(text[: text.index(end) + len(end) - 1])
    cut = read_file(tmp_path / "cut")
    assert len(cut.tests[0].figures) == 1 and "1 of 2 results was not read" in cut.left_out()


def test_figures_of_elbencho_services_are_named_and_not_taken_for_repetitions(tmp_path: Path) -> None:
    mixed = (SAMPLES / "elbencho-mixed.txt").read_text()
    with pytest.raises(BadInputError, match=r"lines 3-26 \(5 tables of MKDIRS without a heading between them: "):
        read_file(SAMPLES / "elbencho-mixed.txt")
    lines = (SAMPLES / "elbencho-services.txt").read_text().splitlines(keepends=True)
    # In one text the coordinator's table is missing, in the other one its rows are cut off.
    for text in ("".join(lines[2:24]), mixed[: mixed.index(" 16889")]):
        (tmp_path / "services").write_text(text + "\n")
        with pytest.raises(BadInputError) as refused:
            read_file(tmp_path / "services")
        assert "tables of WRITE without a heading between them: they may be tables of services" in refused.value.why


def test_missing_incomplete_and_unscored_phases_of_io500_are_named(tmp_path: Path) -> None:
    text = (SAMPLES / "io500-summary.txt").read_text().partition("[RESULT]        ior-easy-read")[0]
    row = "[      ]  ior-rnd4K-easy-read        0.250000 GiB/s : time 30.157 seconds\n"
    (tmp_path / "killed").write_text(f"{text}{row}[RESULT]  mdtest-easy-stat   3.1\n")
    killed = read_file(tmp_path / "killed")
    assert rates(killed.tests[0])["ior-rnd4k-easy-read"] == [256]
    assert "no score, and no result of ior-hard-write, mdtest-hard-write, ior-" in killed.tests[0].notes[-1]
    assert "line 7 (the row is cut off" in killed.left_out()
    text = "[run]\nprocs = 32\n" + (SAMPLES / "io500-result.txt").read_text().partition("[find]")[0]
    (tmp_path / "result.txt").write_text(text)
    (test,) = read_file(tmp_path / "result.txt").tests
    assert (test.version, test.figures[0].settings, test.stated) == ("io500-sc23", {"ranks": 32}, ())
    assert "no result of ior-hard-write" in test.notes[-1]


def test_decimal_commas_of_io500_are_read_and_noted() -> None:
    assert values("io500-2018-comma.txt") == values("io500-2018-invalid.txt")
    assert "decimal commas" in foreign("io500-2018-comma.txt").notes[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Dear reader,\n\tinterface=posix\n", FORMATS),
        ("access,bw(MiB/s),IOPS\nwrite,nan,nan\n", ["contains no result"]),
        ((SAMPLES / NO_RESULT[0]).read_text(), ["out/ior_summary.json"]),
        ("", ["letter"]),
    ],
)
def test_a_file_without_results_is_refused_and_no_other_is_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: Iterable[str]
) -> None:
    (tmp_path / "letter").write_text(text)
    assert strakes(["import", str(SAMPLES / "ior-4.1.txt"), str(tmp_path / "letter")]) == 2
    errors = capsys.readouterr().err
    assert all(each in errors for each in (*said, "letter")) and Store().runs() == []


@pytest.mark.parametrize("repetitions", [2, 200])
def test_the_number_of_fsyncs_of_an_import_does_not_grow_with_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repetitions: int
) -> None:
    document = json.loads((SAMPLES / "ior-4.1.json").read_text())
    document["tests"][0]["Results"] *= repetitions
    (tmp_path / "results.json").write_text(json.dumps(document))
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    (run,) = keep(tmp_path / "results.json", read_file(tmp_path / "results.json"), Store())
    assert len(run.visits) >= repetitions and len(flushed) < 30


def test_the_values_of_a_figure_keep_their_order(tmp_path: Path) -> None:
    figures = [ForeignFigure("a" if index % 3 else "b", "operations_per_s", (float(index),)) for index in range(1000)]
    merged = {figure.name: figure.values for figure in gathered(figures)}
    assert merged == {"b": tuple(map(float, range(0, 1000, 3))), "a": tuple(float(n) for n in range(1000) if n % 3)}


def test_an_interrupted_import_has_named_the_runs_that_it_stored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("strakes.interop.importing._again", Mock(side_effect=["", KeyboardInterrupt]))
    assert strakes(["import", *[str(SAMPLES / "ior-4.1.txt")] * 2]) == 130
    assert Store().runs()[0].id in capsys.readouterr().out


@given(
    data=st.binary(max_size=400),
    start=st.sampled_from([(SAMPLES / name).read_bytes()[:600] for name in RESULTS] + [b""]),
)
def test_arbitrary_content_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "anything"
    path.write_bytes(start + data)
    found, refusal = read_or_refuse(path)
    assert found or str(path) in refusal


def test_the_same_benchmark_next_month_has_the_same_fingerprint(tmp_path: Path) -> None:
    again = tmp_path / "again.txt"
    text = (SAMPLES / "ior-4.1.txt").read_text()
    again.write_text(text.replace("Sat Nov 21", "Sun Dec 20").replace("326.39", "400.00"))
    assert read_file(again).tests[0].fingerprint() == foreign("ior-4.1.txt").fingerprint()
    again.write_text(text.replace("xfersize            : 1 MiB", "xfersize            : 2 MiB"))
    assert read_file(again).tests[0].fingerprint() != foreign("ior-4.1.txt").fingerprint()


def test_compare_shows_imported_runs_without_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slower = tmp_path / "slower.txt"
    text = (SAMPLES / "ior-4.1.txt").read_text()
    slower.write_text(text.replace("write     2293.16", "write     22.93  ").replace("Sat Nov 21", "Sun Dec 20"))
    assert strakes(["import", str(SAMPLES / "ior-4.1.txt"), str(slower)]) == 0
    first, second = (line.split()[0] for line in capsys.readouterr().out.splitlines()[:2])
    assert strakes(["compare", first, second, "--fail-on", "slower"]) == 0
    output = capsys.readouterr().out
    assert "Imported figures are single points" in output and "INCONCLUSIVE write:write" in output
    assert not any(line.strip().startswith("SLOWER") for line in output.splitlines())
    other = tmp_path / "other.txt"
    other.write_text(text.replace("xfersize            : 1 MiB", "xfersize            : 2 MiB"))
    assert strakes(["import", str(other)]) == 0
    second = capsys.readouterr().out.split()[0]
    assert strakes(["compare", first, second, "--factor", "transfer_bytes"]) == 0


def test_the_command_to_repeat_has_all_directories_and_ranks_of_mdtest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (SAMPLES / "mdtest-3.4.txt").read_text()
    line = next(line for line in text.splitlines() if line.startswith("Command line used"))
    several = tmp_path / "multi_mdtest.txt"
    several.write_text(text.replace(line, "Command line used: /usr/bin/mdtest '-n' '500' '-d' '/lustre/a@/lustre/b'"))
    assert read_file(several).tests[0].path == "/lustre/a@/lustre/b" and strakes(["import", str(several)]) == 0
    run = Store().runs()[-1]
    options = Store().open(run.id).manifest["options"]
    assert options["command"].startswith("mpiexec -n 4 /usr/bin/mdtest ")
    assert options["imported"]["again"].startswith("strakes run -n 4 mdtest ")
    printed = text.replace("Path", "Path                : /lustre/first\nPath", 1)
    several.write_text(printed)
    assert read_file(several).tests[0].path.startswith("/lustre/first@")
    # A run of one rank needs no mpiexec.
    several.write_text(text.replace("4 total task(s)", "1 total task(s)").replace("4 tasks, ", "1 tasks, "))
    assert strakes(["import", str(several)]) == 0
    (one,) = (other.id for other in Store().runs() if other.id != run.id)
    options = Store().open(one).manifest["options"]
    assert "mpiexec" not in options["command"] and "run mdtest" in options["imported"]["again"]
