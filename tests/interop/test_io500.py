"""``strakes run io500 CONFIG.ini``: translation of IO500 configurations to plans, and the summary in IO500's format."""

from __future__ import annotations

import csv
import json
import re
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strakes.base.errors import BadInputError
from strakes.base.units import MIB
from strakes.cli.main import run as strakes
from strakes.interop.command_io500 import translate
from strakes.interop.command_options import Translation, fit_amounts
from strakes.interop.export_io500_summary import BANDWIDTHS, RATES
from strakes.model.phases import MetadataPhase, TransferPhase

ORDER = [
    *("ior-easy-write", "mdtest-easy-write", "ior-hard-write", "mdtest-hard-write", "find", "ior-easy-read"),
    *("mdtest-easy-stat", "ior-hard-read", "mdtest-hard-stat", "mdtest-easy-delete", "mdtest-hard-read"),
    "mdtest-hard-delete",
]


def translation(tmp_path: Path, text: str, ranks: int = 4) -> Translation:
    data = tmp_path / "data"
    data.mkdir(exist_ok=True)
    ini = tmp_path / "config.ini"
    ini.write_text(text.replace("DATADIR", str(data)))
    return translate([str(ini)], ranks, 1)


MINIMAL = "[global]\ndatadir = DATADIR\n"


def test_the_minimal_configuration_is_the_standard_run(tmp_path: Path) -> None:
    translated = translation(tmp_path, MINIMAL)
    phases = {phase.name: phase for phase in translated.plan.phases}
    assert list(phases) == ORDER and translated.measured == tuple(ORDER)
    for name in ORDER:
        phase = phases[name]
        assert isinstance(phase, TransferPhase | MetadataPhase)
        assert phase.stop.rule == ("wear-out" if name.endswith("-write") else "amount")
    easy, hard = phases["ior-easy-write"], phases["ior-hard-write"]
    assert isinstance(easy, TransferPhase) and isinstance(hard, TransferPhase)
    assert (easy.layout, easy.sync) == ("file-per-process", "fsync")
    assert (easy.transfer_bytes, easy.block_bytes) == (2 * MIB, 9920000 * MIB)
    assert (hard.layout, hard.access) == ("shared-file", "strided")
    assert (hard.transfer_bytes, hard.segments) == (47008, 10_000_000)
    assert easy.stop.seconds == hard.stop.seconds == 300
    read = phases["ior-hard-read"]
    assert isinstance(read, TransferPhase) and read.rank_shift == 0 and read.verify
    small, find = phases["mdtest-hard-write"], phases["find"]
    assert isinstance(small, MetadataPhase) and (small.directory, small.file_bytes) == ("shared", 3901)
    assert isinstance(find, MetadataPhase) and (find.find_name, find.find_bytes, find.find_all) == ("01", 3901, True)


# A configuration with comments, empty values, mixed case, and all keys that have no effect in strakes.
EVERYTHING = (Path(__file__).parent / "configurations" / "everything.ini").read_text()


def test_a_configuration_with_every_section_is_accepted_with_notes_on_keys_without_effect(tmp_path: Path) -> None:
    translated = translation(tmp_path, EVERYTHING)
    phases = {phase.name: phase for phase in translated.plan.phases}
    assert list(phases) == [*ORDER, "ior-rnd4k-easy-read"]
    easy, random = phases["ior-easy-write"], phases["ior-rnd4k-easy-read"]
    assert isinstance(easy, TransferPhase) and isinstance(random, TransferPhase)
    assert (easy.layout, easy.block_bytes, easy.stop.seconds) == ("shared-file", 64 * MIB, 30)
    # IOR ignores uniqueDir if tasks share a file.
    assert not easy.own_directory
    assert (random.access, random.transfer_bytes, random.block_bytes) == ("random", 4096, 64 * MIB)
    assert any("stonewall of 30 s" in note and "INVALID" in note for note in translated.notes)
    assert any("[find-easy] belongs to the extended mode" in note for note in translated.notes)
    assert any("resultdir" in note for note in translated.notes)


def test_an_option_in_api_applies_to_the_phases_that_run(tmp_path: Path) -> None:
    text = "[ior-hard]\nrun = FALSE\n[ior-easy]\nnoRun = FALSE\n"
    text += "".join(f"[{test}]\nnoRun = TRUE\n" for test in ("mdtest-easy", "mdtest-hard", "find"))
    translated = translation(tmp_path, MINIMAL.replace("[global]", "[global]\nAPI = POSIX --posix.odirect") + text)
    phases = [phase for phase in translated.plan.phases if isinstance(phase, TransferPhase)]
    assert [(phase.name, phase.direct) for phase in phases] == [("ior-easy-write", True), ("ior-easy-read", True)]


def test_data_is_read_on_the_next_node(tmp_path: Path) -> None:
    translation(tmp_path, MINIMAL)
    plan = translate([str(tmp_path / "config.ini")], 8, 1, 2).plan
    shifts = {phase.name: getattr(phase, "rank_shift", 0) for phase in plan.phases}
    assert (shifts["ior-easy-read"], shifts["ior-hard-read"], shifts["mdtest-easy-stat"]) == (2, 2, 1)


@pytest.mark.parametrize(
    ("text", "line", "what", "remedy"),
    [
        ("[ior-esay]\n", 3, "unknown section [ior-esay]", "ior-easy"),
        ("[ior-easy]\ntransferSise = 1m\n", 4, "unknown key [ior-easy] transfersise", "transfersize"),
        ("[ior-easy]\ntransferSize = 1q\n", 4, "transfersize", ""),
        ("[ior-easy]\nblockSize = 3m\n", 4, "not a multiple", "multiple of transferSize"),
        ("[ior-easy]\nfilePerProc = MAYBE\n", 4, "'maybe' is not supported", "true"),
        ("[ior-hard]\nsegmentCount = -1\n", 4, "not a number of 1 to 1073741824", ""),
        ("[ior-hard]\nAPI = POSIX --posix.odirect\n", 4, "not possible with calls of 47008", "multiples of 512"),
        ("[ior-easy]\nAPI = POSIX --posix.lustre\n", 4, "not supported", "POSIX --posix.odirect"),
        ("[mdtest-easy]\nAPI = POSIX --posix.odirect\n", 4, "O_DIRECT is not supported for files", ""),
        ("[ior-hard]\nAPI = MPIIO\n", 4, "not supported", "Give POSIX."),
        ("[mdtest-hard]\nfiles-per-dir = 10\n", 4, "not supported", "INVALID"),
        ("[find]\nexternal-script = ./find.sh\n", 4, "not supported", "of its own"),
        ("[debug]\nstonewall-time = 0\n", 4, "not a number of 1 to 86400", ""),
        ("[debug]\nnothing here\n", 4, "neither [SECTION] nor KEY = VALUE", ""),
    ],
)
def test_unsupported_settings_are_refused_with_their_line_before_any_change(
    tmp_path: Path, text: str, line: int, what: str, remedy: str
) -> None:
    with pytest.raises(BadInputError) as refused:
        translation(tmp_path, MINIMAL + text)
    assert what in refused.value.what and refused.value.where.endswith(f"config.ini:{line}")
    assert remedy in (refused.value.remedy or "") and not any((tmp_path / "data").iterdir())


def test_disabled_phases_are_left_out_unless_others_need_their_files(tmp_path: Path) -> None:
    off = "".join(f"[{name}]\nrun = FALSE\n" for name in ORDER if name not in ("ior-hard-write", "mdtest-easy-stat"))
    translated = translation(tmp_path, MINIMAL + off)
    assert translated.measured == ("ior-hard-write", "mdtest-easy-stat")
    names = [phase.name for phase in translated.plan.phases]
    assert names == ["mdtest-easy-write", "ior-hard-write", "mdtest-easy-stat"]
    assert any("mdtest-easy-write is run because" in note for note in translated.notes)
    whole_test = translation(tmp_path, MINIMAL + "[ior-easy]\nrun = FALSE\n[find]\nrun = FALSE\n")
    assert not {"ior-easy-write", "ior-easy-read", "find"} & {phase.name for phase in whole_test.plan.phases}


@settings(deadline=None, max_examples=40)
@given(st.integers(MIB, 10**15), st.integers(64, 10**9), st.integers(1, 9), st.sampled_from(["4k", "64k", "3m"]))
def test_amounts_beyond_the_free_space_are_reduced_to_fit(
    most_bytes: int, most_items: int, ranks: int, transfer: str
) -> None:
    with TemporaryDirectory() as place:
        ini = (
            f"{MINIMAL}[ior-easy]\ntransferSize = {transfer}\nblockSize = 9920001m\n[ior-rnd4K-easy-read]\nrun = TRUE\n"
        )
        plan = translation(Path(place), ini, ranks).plan
    fitted = fit_amounts(plan, most_bytes, most_items)
    smallest = ranks * (3 * MIB + 47008 + 3901)
    assert fitted.bytes_on_target() <= max(most_bytes, smallest)
    assert fitted.inodes_on_target() <= max(most_items, 4 * ranks + 8)
    assert [phase.name for phase in fitted.phases] == [*ORDER, "ior-rnd4k-easy-read"]
    moved = {one.name: one.segments * one.block_bytes for one in fitted.phases if isinstance(one, TransferPhase)}
    assert 0 < moved["ior-rnd4k-easy-read"] <= moved["ior-easy-write"] == moved["ior-easy-read"]
    assert 0 < moved["ior-hard-write"] == moved["ior-hard-read"] and fit_amounts(fitted, 10**18, 10**12) == fitted


SMALL = """[global]
datadir = DATADIR
[debug]
stonewall-time = 1
[ior-easy]
transferSize = 64k
blockSize = 1m
[mdtest-easy]
n = 40
[ior-hard]
segmentCount = 20
[mdtest-hard]
n = 30
[ior-rnd4K-easy-read]
run = TRUE
"""
_RESULT = re.compile(r"^\[RESULT\] +(\S+) +([0-9.]+) (GiB/s|kIOPS) : time ([0-9.]+) seconds( \[INVALID\])?$")


@pytest.mark.parametrize("launcher", [[], ["--launcher", "mpi"]])
def test_a_small_run_does_the_configured_amounts_and_its_summary_has_the_format_of_io500(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], launcher: list[str]
) -> None:
    (tmp_path / "data").mkdir()
    ini = tmp_path / "config.ini"
    ini.write_text(SMALL.replace("DATADIR", str(tmp_path / "data")))
    assert strakes(["run", "--quiet", "--budget", "1s", *launcher, "--ranks", "2", "io500", str(ini)]) == 0
    capsys.readouterr()
    assert not any((tmp_path / "data").iterdir())

    assert strakes(["export", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    samples = {sample["name"]: sample for sample in document["visits"][0]["samples"]}
    assert list(samples) == [*ORDER, "ior-rnd4k-easy-read"]
    assert {name: (samples[name].get("bytes", 0), samples[name]["operations"]) for name in ORDER} == {
        "ior-easy-write": (2 * MIB, 32),
        "mdtest-easy-write": (0, 80),
        "ior-hard-write": (40 * 47008, 40),
        "mdtest-hard-write": (60 * 3901, 60),
        # find lists 140 files and 3 directories of mdtest, and 3 files of IOR.
        "find": (0, 80 + 60 + 2 + 1 + 2 + 1),
        "ior-easy-read": (2 * MIB, 32),
        "mdtest-easy-stat": (0, 80),
        "ior-hard-read": (40 * 47008, 40),
        "mdtest-hard-stat": (0, 60),
        "mdtest-easy-delete": (0, 80),
        "mdtest-hard-read": (60 * 3901, 60),
        "mdtest-hard-delete": (0, 60),
    }
    assert samples["find"]["listed"]["matches"] == sum(
        "01" in f"f{rank}.{item:02}" for rank in (0, 1) for item in range(30)
    )

    assert strakes(["export", "--format", "io500"]) == 0
    summary = capsys.readouterr().out
    results = {match[1]: match for line in summary.splitlines() if (match := _RESULT.match(line))}
    assert list(results) == [*ORDER, "ior-rnd4K-easy-read"]
    assert {name for name, match in results.items() if match[5]} == {name for name in ORDER if name.endswith("-write")}
    assert re.search(
        r"^\[SCORE \] Bandwidth [0-9.]+ GiB/s : IOPS [0-9.]+ kiops : TOTAL [0-9.]+ \[INVALID\]$", summary, re.M
    )

    means = [statistics.geometric_mean([float(results[name][2]) for name in names]) for names in (BANDWIDTHS, RATES)]
    scores = [float(value) for value in re.findall(r"(?:Bandwidth|IOPS|TOTAL) ([0-9.]+)", summary)]
    assert scores == pytest.approx([*means, (means[0] * means[1]) ** 0.5], rel=1e-3)
    assert strakes(["export", "--format", "csv"]) == 0
    for row in csv.DictReader(capsys.readouterr().out.splitlines()):
        percentiles = [float(row[f"{name}_s"]) for name in ("p50", "p90", "p99", "p999")]
        assert percentiles == sorted(percentiles) and 0 < percentiles[0] <= float(row["slowest_s"]) * 1.01
    assert "stonewall is 1 s" in summary
