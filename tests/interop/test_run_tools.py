"""``strakes run ior`` and ``strakes run mdtest``: translation of the tools' command lines to plans."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.base.errors import BadInputError
from strakes.base.units import KIB, MIB
from strakes.cli.main import run as strakes
from strakes.interop import command_ior
from strakes.interop.command_options import Translation, tool_of
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan_read import validate_plan_document

# Command lines from manuals, tutorials and test suites of the tools, IO500, and acceptance tests of sites.
IOR_LINES = (
    "-w -r -o filename",
    "-t 1m -b 16m -s 16",
    "-t 1m -b 16m -s 16 -F",
    "-t 1m -b 16m -s 16 -F -C",
    "-t 1m -b 16m -s 16 -F -C -e",
    "-a POSIX -b 4K -t 4K",
    "-w -a POSIX -F -C -e -g -k -b 4m -t 4m -s 1638 -o f -v",
    "-v -w -r -i=10 -o f -t=1M -b=1M -s=128",
    "-C -Q 1 -g -G 271 -k -e -o f -O stoneWallingStatusFile=s -O stoneWallingWearOut=1 -t 2m -b 2m -F -w -D 1 -a POSIX",
    "-C -Q 1 -g -G 27 -k -e -o f -t 47008 -b 47008 -s 1 -r -R -a POSIX",
    "-a POSIX -w -z -C -Q 1 -F -k -e -i1 -m -t 100k -b 200k",
    "-a POSIX -r -z -Z -Q 3 -X 13 -F -k -e -i1 -m -t 100k -b 200k",
    "-a POSIX -r -k -e -i1 -m -t 100k -b 200k -s 10 -z -z",
    "-a MMAP -r -z -F -k -e -i1 -m -t 100k -b 200k",
    "--posix.odirect -b 32M -t 1M -s 16 -i 3 -g -F -k -v -w -r -D 0 -o f -O summaryFormat=json",
    "-w -k -o file -D 10",
    "-W -R -b 1m -t 256k",
    "-O api=POSIX,blockSize=16m,transferSize=1m,filePerProc=1,readFile=0,writeFile=1",
)
MDTEST_LINES = (
    "-d . -n 100 -i 2",
    "-d . -b 2 -z 3 -I 10",
    "-F -n 1000 -u -d . -w 3901 -e 3901 -i 3 -P --saveRankPerformanceDetails=out/rank.csv",
    "-n 1000 -z 2 -b 3 -u -d . -i 2",
    "-F -C -n 100 -W 1 -u -d . -x status",
    "-n 1000000 -u -L -F -N 1 -d . -x stonewall -C -W 1 -a POSIX",
    "-n 1000000 -t -w 3901 -e 3901 -N 1 -F -d . -x stonewall -E -X -a POSIX",
    "-C -T -r -F -I 1 -z 1 -b 1 -L -u",
    "-C -T -I 1 -z 1 -b 1 -u",
    "-a POSIX -n 10 -D -v -v",
    "-n10 -F -k",
)


def translate(tool: str, line: str, ranks: int | None = 4, seed: int = 1) -> Translation:
    return tool_of(tool).translate(line.split(), ranks, seed)


def transfers(line: str, ranks: int = 4) -> list[TransferPhase]:
    return [phase for phase in translate("ior", line, ranks).plan.phases if isinstance(phase, TransferPhase)]


def metadata(line: str, ranks: int = 4) -> list[MetadataPhase]:
    return [phase for phase in translate("mdtest", line, ranks).plan.phases if isinstance(phase, MetadataPhase)]


@pytest.mark.parametrize(
    ("tool", "line"), [*(("ior", line) for line in IOR_LINES), *(("mdtest", line) for line in MDTEST_LINES)]
)
def test_command_lines_of_manuals_and_job_scripts_are_accepted_unchanged(tool: str, line: str) -> None:
    command = translate(tool, line)
    validate_plan_document(command.plan.to_json())
    assert command.measured and set(command.measured) <= {phase.name for phase in command.plan.phases}


def test_wear_out_and_random_stats_work_as_in_the_tools() -> None:
    assert [phase.stop.rule for phase in transfers("-w -r -D 2 -O stoneWallingWearOut=1")] == ["wear-out"] * 2
    assert {phase.stop.rule for phase in transfers("-w -D 2 -O stoneWallingWearOut=0")} == {"stonewall"}
    assert {phase.stop.rule for phase in transfers("-w -D 2")} == {"stonewall"}
    by_library = translate("ior", "-a MPIIO -w -D 2 -O stoneWallingWearOut=1")
    assert any("tasks end at the deadline" in note for note in by_library.notes)
    assert {phase.stop.rule for phase in metadata("-n 10 -F -W 2")} == {"wear-out"}
    orders = {phase.name: phase.order for phase in metadata("-n 10 -R --random-seed 3")}
    assert {name for name, order in orders.items() if order == "random"} == {"directory-stat", "file-stat"}


def test_ior_without_options_has_iors_defaults() -> None:
    write, read = transfers("")
    assert (write.operation, read.operation) == ("write", "read")
    assert (write.layout, write.transfer_bytes, write.block_bytes, write.segments) == ("shared-file", 256 * KIB, MIB, 1)
    assert write.sync == "close" and write.time_open and not write.direct


def test_segments_of_a_shared_file_hold_one_block_of_every_task_in_turn() -> None:
    assert {phase.access for phase in transfers("-b 2m -t 1m -s 3")} == {"strided"}
    assert {phase.access for phase in transfers("-b 2m -t 1m -s 3 -F")} == {"segmented"}
    assert {phase.access for phase in transfers("-b 2m -t 1m -z")} == {"random"}


def test_the_memory_option_of_ior_takes_a_size_or_a_percentage(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(command_ior, "memory_sizes", lambda: {"MemAvailable": memory // 2})
    assert translate("ior", "-M 64m").plan.memory_hog_bytes == 64 * MIB
    assert translate("ior", "-M 20%").plan.memory_hog_bytes == memory * 20 // 100
    # Other programs use half of the memory, so 80 % are not available.
    limited = translate("ior", "-M 80%")
    assert limited.plan.memory_hog_bytes == memory // 2 // 100 * 75 and "-M 80%: " in limited.notes[0]
    with pytest.raises(BadInputError) as refused:
        translate("ior", f"-M {memory}")
    assert "-M (memoryPerNode)" in refused.value.remedy


def test_data_are_stamped_only_if_they_will_be_verified() -> None:
    assert transfers("-w -r")[0].pattern == "once" and transfers("-w -R")[0].pattern == "stamped"
    assert transfers("-w -W")[0].pattern == "stamped"


def test_option_c_shifts_reads_to_the_next_node_and_verification_one_node_further() -> None:
    plan = tool_of("ior").translate(["-w", "-W", "-r", "-C", "-Q", "2"], 16, 1, 2).plan
    write, check, read = (phase for phase in plan.phases if isinstance(phase, TransferPhase))
    assert (write.rank_shift, check.rank_shift, read.rank_shift) == (0, 6, 4)
    assert check.verify and not read.verify
    # On a single node IOR ignores -C, so each rank reads its own data.
    assert transfers("-C", ranks=8)[1].rank_shift == 0 and transfers("-Z", ranks=2)[1].rank_shift == 1


def test_direct_fsync_stonewall_and_keep_are_translated() -> None:
    command = translate("ior", "-w -e -D 7 -k --posix.odirect -t 4k -b 64k")
    (write,) = command.plan.phases
    assert isinstance(write, TransferPhase)
    assert (write.sync, write.direct, write.stop.rule, write.stop.seconds) == ("fsync", True, "stonewall", 7.0)
    assert command.keep and not translate("ior", "-w").keep
    assert transfers("-w -Y -e")[0].sync == transfers("-w -O fsyncPerWrite=1")[0].sync == "fsync-each"
    assert [phase.fsync for phase in metadata("-n 10 -F -y -w 8")] == [True, False, False, False]


def test_a_read_alone_writes_its_data_first_without_reporting_the_write() -> None:
    command = translate("ior", "-r -F")
    assert [phase.name for phase in command.plan.phases] == ["write", "read"]
    assert command.measured == ("read",) and any("without reporting" in note for note in command.notes)


def test_mdtest_phases_follow_its_flags() -> None:
    directories = ("directory-creation", "directory-stat", "directory-rename", "directory-removal")
    files = ("file-creation", "file-stat", "file-read", "file-removal")
    assert translate("mdtest", "-n 10").measured == directories + files
    assert translate("mdtest", "-n 10 -F -T").measured == ("file-stat",)
    assert [phase.operation for phase in metadata("-n 10 -F -T")] == ["file-create", "file-stat"]
    assert translate("mdtest", "-n 10 -D -U").measured == ("directory-rename",)
    assert "directory-rename" not in translate("mdtest", "-n 10 -D -C -T -r").measured
    assert "directory-rename" not in translate("mdtest", "-n 1 -D").measured
    operations = {phase.operation for phase in metadata("-n 10 -F -w 8 -e 8")}
    assert operations == {"file-create", "file-stat", "file-read", "file-remove"}


def test_mdtest_uses_full_paths_and_opens_files_for_reading_and_writing() -> None:
    assert {phase.paths for phase in metadata("-n 10")} == {"mdtest"}
    modes = {phase.operation: phase.open_mode for phase in metadata("-n 10 -F")}
    opened = {"file-create": "read-write", "file-open-close": "read-write"}
    assert modes == opened | {"file-stat": "least", "file-remove": "least"}
    assert metadata("-n 10 -F -k")[0].open_mode == "least"


def test_with_a_stride_every_phase_uses_items_of_another_task() -> None:
    assert [phase.rank_shift for phase in metadata("-n 10 -F -N 1", ranks=8)] == [0, 1, 2, 3]
    assert [phase.rank_shift for phase in metadata("-n 10 -F -N 1", ranks=2)] == [0, 1, 0, 1]


def test_items_are_counted_as_in_mdtest() -> None:
    assert {phase.items for phase in metadata("-b 2 -z 3 -I 10")} == {150}
    assert {phase.items for phase in metadata("-b 2 -z 3 -I 10 -L")} == {80}
    assert {phase.items for phase in metadata("-n 1000 -z 2 -b 3")} == {988}
    assert {phase.items for phase in metadata("-n 10 -z 0 -b 0")} == {10}


def test_options_given_twice_get_a_note() -> None:
    for line, said in (("-z -z", "-z twice"), ("-O randomOffset=2", "-z twice"), ("-C -C", "-C twice")):
        assert any(note.startswith(said) for note in translate("ior", line).notes), line
    assert any(note.startswith("-C twice") for note in translate("ior", "-O reorderTasks=2").notes)
    # These options work as in mdtest, so they need no note.
    assert translate("mdtest", "-n 1000 -z 2 -b 3 -C -E -L").notes == ()


def test_an_ior_script_with_one_test_is_run_and_one_with_several_is_refused_with_their_commands(tmp_path: Path) -> None:
    script = tmp_path / "tests.ior"
    script.write_text("# nightly\nIOR START\n  api=POSIX\n  blockSize = 4m\n transferSize=1m\n RUN\nIOR STOP\n")
    assert transfers(f"-f {script}")[0].block_bytes == 4 * MIB
    script.write_text(script.read_text().replace("IOR STOP", "  blockSize=8m\n  RUN\nIOR STOP"))
    with pytest.raises(BadInputError, match="the script has 2 tests") as refused:
        translate("ior", f"-f {script}")
    assert "strakes run ior -O api=POSIX,blockSize=4m,transferSize=1m;" in refused.value.remedy
    script.write_text("-b 4m\n")
    with pytest.raises(BadInputError, match="not a script of IOR"):
        translate("ior", f"-f {script}")


def test_each_difference_is_noted_once() -> None:
    notes = translate("ior", "-i 3 -i 3 -g -O summaryFormat=JSON -O summaryFile=x", ranks=None).notes
    assert len(set(notes)) == len(notes) and any(note.startswith("-i 3: strakes repeats until") for note in notes)
    assert any("one rank" in note for note in notes)
    assert any(note.startswith("-O summaryformat JSON: strakes stores every sample") for note in notes)
    assert translate("ior", "-t 1m -b 4m -s 2").notes == ()


@pytest.mark.parametrize(
    ("tool", "line", "named", "nearest"),
    [
        ("ior", "-L", "-L", "-l"),
        ("ior", "--posix.direct", "--posix.direct", "--posix.odirect"),
        ("ior", "-O blocksiz=1m", "blocksiz", "blocksize"),
        ("ior", "-O lustreStripeCount=4", "lustreStripeCount", "lfs setstripe"),
        ("ior", "-O frobnicate=4", "frobnicate", "One of:"),
        ("ior", "-E -w", "-E", "-r alone"),
        ("ior", "-wrl i", "-l", "compressible_percent"),
        ("mdtest", "-n 1 -S", "-S", "ior without -F"),
        ("mdtest", "-n 1 -M", "-M", "--help"),
        ("mdtest", "-n 1 --dataPacketType=timestamp -Y", "-Y", "-y instead"),
        ("mdtest", "-n 1 --savePerOpData=x", "--savePerOpData", "--savePerOpDataCSV"),
        ("ior", "-t 1m -n 4", "'4'", "such as -n 4 and --budget 60s, go before the word ior"),
        ("ior", "--budget 5s", "--budget", "before the word ior"),
    ],
)
def test_an_unknown_or_unsupported_option_is_refused_with_the_nearest_one(
    tool: str, line: str, named: str, nearest: str
) -> None:
    with pytest.raises(BadInputError) as refused:
        translate(tool, line)
    assert named in refused.value.what
    if nearest != "-l":  # IOR's -l exists but is not supported, so the error must not suggest it
        assert nearest in refused.value.remedy


@pytest.mark.parametrize(
    ("tool", "line", "what"),
    [
        ("ior", "-b 1m -t 3m", "multiple"),
        ("ior", "-t 0", "multiple"),
        ("ior", "-s x", "-s x"),
        ("ior", "-b 1q", "-b 1q"),
        ("ior", "-b", "needs a value"),
        ("ior", "-a S3", "-a S3"),
        ("ior", "--posix.odirect -t 100 -b 100", "512"),
        ("ior", "-o a@b", "several files"),
        ("ior", "-F -o a@@b", "-o is empty"),
        ("ior", "-O checkRead", "not KEY=VALUE"),
        ("ior", "-O api=", "no such interface"),
        ("mdtest", "-n 10 -z 1 -b 0", "-b 0"),
        ("ior", "-w -o /no/such/place/f", "no such directory"),
        ("mdtest", "", "no item"),
        ("mdtest", "-n 10 -F -D", "nothing to do"),
        ("mdtest", "-n 10 -w 10 -e 20", "-e must equal -w"),
        ("mdtest", "-n 10 -I 2", "together"),
        ("mdtest", "-n 5 -b 10 -z 3", "no item"),
        ("mdtest", "-n 10 -z 30 -b 10", "the tree is too large"),
        ("mdtest", "-n 10 -D -E", "measures nothing"),
        ("mdtest", "-n 10 -d /tmp@", "-d is empty"),
        ("mdtest", "-n 10 -d /tmp@/no/such/place", "no such directory"),
        ("mdtest", "-n 10 -a MPIIO", "-a MPIIO"),
    ],
)
def test_invalid_values_are_refused_before_any_change(tool: str, line: str, what: str) -> None:
    with pytest.raises(BadInputError) as refused:
        translate(tool, line)
    assert what in f"{refused.value}"


def test_several_starts_by_a_launcher_are_refused_with_the_right_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_SIZE", "16")
    with pytest.raises(BadInputError, match="strakes run -n 16 ior"):
        translate("ior", "-w")


WORDS = (
    *("-b", "-t", "-s", "-w", "-r", "-F", "-z", "-C", "-N", "-D", "-O", "-o", "-wr", "-i3", "--"),
    *("4", "1m", "256k", "a=b", "x"),
)


@given(words=st.lists(st.sampled_from(WORDS), max_size=8), tool=st.sampled_from(["ior", "mdtest"]))
def test_arbitrary_words_give_a_valid_plan_or_a_refusal_that_names_a_word(words: list[str], tool: str) -> None:
    try:
        command = tool_of(tool).translate(words, 3, 1)
    except BadInputError as error:
        refusal = error.where
    else:
        refusal = ""
        validate_plan_document(command.plan.to_json())
    assert refusal or command.measured


@pytest.mark.parametrize(("tool", "wanted"), [("ior", "abtsFcwrWRegidDokzCQZO"), ("mdtest", "bzInNiduFDCTErweWxyLv")])
def test_all_common_options_are_supported(tool: str, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(wanted) <= set(tool_of(tool).options) and strakes(["run", tool, "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  -{letter}" in shown for letter in wanted)


def test_the_help_of_io500_lists_supported_and_refused_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert strakes(["run", "io500", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "io500 CONFIG.ini" in shown and "[ior-hard]" in shown
    effective, refused = shown.split("Refused")
    assert "stonewall-time" in effective and "uniquedir" in effective
    assert "external-script" in refused and "external-script" not in effective


def test_an_ior_command_line_runs_with_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"-a POSIX -w -r -F -t 64k -b 256k -Z -o {tmp_path}/file"
    assert strakes(["run", "-n", "2", "--budget", "3s", "-q", "--json", "-", "ior", *line.split()]) == 0
    output = capsys.readouterr()
    document = json.loads(output.out)
    cells = {cell["id"]: cell for cell in document["cells"]}
    assert set(cells) == {"plan:write", "plan:read"} and all(cell["runs"] >= 5 for cell in cells.values())
    # On a busy machine, such short runs may be autocorrelated. Then a warning replaces the interval.
    said = {warning["code"] for warning in document["warnings"]}
    assert "dependent-runs" in said or all(cell["low"] is not None for cell in cells.values())
    assert cells["plan:read"]["settings"] == {"ranks": 2, "phase": "read", "operation": "read"}
    assert output.err.count("-Z: one random distance") == 1 and list(tmp_path.iterdir()) == []


def test_an_mdtest_command_line_runs_and_leaves_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"-n 20 -b 2 -z 1 -u -N 1 -w 100 -e 100 -d {tmp_path}"
    assert strakes(["run", "--ranks=2", "--budget", "1s", "-q", "--json", "-", "mdtest", *line.split()]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [cell["id"] for cell in cells][-1] == "plan:file-removal" and len(cells) == 8
    assert list(tmp_path.iterdir()) == []


def test_options_after_the_name_of_a_tool_belong_to_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Options of strakes come before the name of the tool.
    assert strakes(["run", "-n", "1", "mdtest", "-n", "0", "-d", str(tmp_path)]) == 2
    assert "no item to work on" in capsys.readouterr().err
    assert strakes(["run", "--html", "ior", str(tmp_path / "absent.toml"), str(tmp_path)]) == 2
    assert "absent.toml" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["ior -o {}/absent/dir/file", "mdtest -n 1 -d {}/absent/dir/new", "ior -o {}/file/f"])
def test_a_missing_directory_is_refused_and_not_replaced_by_its_parent(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert strakes(["run", *line.format(tmp_path).split()]) == 2 and "directory" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert tool_of("mdtest").translate(["-n", "1", "-d", str(tmp_path / "new")], 1, 1).directory == tmp_path


def test_a_plan_needs_a_directory_and_takes_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'ranks = 1\n[[phase]]\nkind = "metadata"\nname = "make"\noperation = "file-create"\ndirectory = '
        '"unique"\nitems = 5\n'
    )
    assert strakes(["run", str(plan)]) == 2 and "Missing argument 'DIR'" in capsys.readouterr().err
    assert strakes(["run", str(plan), str(tmp_path), "more"]) == 2
    assert strakes(["run", str(plan), str(tmp_path), "-n", "2", "--budget", "1s", "-q", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"][0]["settings"]["ranks"] == 2
