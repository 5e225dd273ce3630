"""Advice matches the best settings of a simulated file system and reports unmeasured choices as unknown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from strakes.base.units import KIB, MIB
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan import Phase
from strakes.model.results import Results
from strakes.studies.registry import study_named
from strakes.survey.analysis_answers import answers_of, questions_of
from strakes.tuning.advise_app import App, AppPhase, read_app
from strakes.tuning.advise_choose import Choice, Chosen, SizeClass, choose
from strakes.tuning.advise_paste import pastes
from studies.world import Rates, context, flat, results_of, visits_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "apps"
STUDIES = ("transfer-size", "processes-per-node", "striping", "access-patterns")
DUMP = AppPhase("dump", "write", "per-process", 128 * MIB, (64 * KIB,))
APP = App("a simulation", "posix", 32, 8, (DUMP,), grouping=8)


def world(rates: Rates, studies: tuple[str, ...] = STUDIES, noise: float = 0.01) -> Results:
    cells = [cell for name in studies for cell in study_named(name).cells(context(cpus=16)) if isinstance(cell, Cell)]
    return results_of(
        cells, visits_of(cells, rates, 12, noise), {"file_system": "lustre", "remote": True, "memory_bytes": 1}
    )


def by_transfer(phase: Phase, ranks: int) -> float:
    """Return 400 MiB/s for transfers of at least 1 MiB and 100 MiB/s for smaller ones; other phases are ``flat``."""
    if isinstance(phase, TransferPhase):
        return (400.0 if phase.transfer_bytes >= MIB else 100.0) * MIB
    return flat(phase, ranks)


def choice_of(what: str, app: App, results: Results) -> Choice:
    (choice,) = [choice for choice in choose(app, results).choices if choice.what == what]
    return choice


def test_a_larger_transfer_is_advised_with_its_gain_if_it_is_faster() -> None:
    choice = choice_of("transfer size", APP, world(by_transfer, ("transfer-size",)))
    assert choice.value == MIB and choice.gain is not None
    assert 3.8 < choice.gain.low <= 4 <= choice.gain.high * 1.02 and "64 KiB" in choice.gain.of
    assert all(cell.startswith("transfer-size/buffered/") for cell in choice.evidence)


@pytest.mark.parametrize(
    ("phase", "value"), [(replace(DUMP, record_bytes=(MIB,)), MIB), (replace(DUMP, data_bytes=64 * KIB), 64 * KIB)]
)
def test_a_transfer_in_use_or_of_all_data_of_a_rank_has_no_gain(phase: AppPhase, value: int) -> None:
    choice = choice_of("transfer size", replace(APP, phases=(phase,)), world(by_transfer, ("transfer-size",)))
    assert choice.value == value and choice.gain is None


def test_if_all_settings_perform_alike_the_cheapest_ones_are_advised() -> None:
    chosen = choose(APP, world(flat))
    values = {choice.what: choice.value for choice in chosen.choices}
    assert all(choice.gain is None or choice.gain.low < 1.05 for choice in chosen.choices)
    assert values["transfer size"] == 64 * KIB and values["processes per node"] == values["stripe count"] == 1


def test_choices_that_noise_hides_are_unknown() -> None:
    chosen = choose(APP, world(flat, noise=1.0))
    unknown = {unknown.what: unknown for unknown in chosen.unknowns}
    assert unknown["transfer size"].why.startswith("not decided (")
    assert unknown["transfer size"].needs.startswith("strakes study transfer-size DIR --budget ")


def test_a_shared_file_is_advised_only_if_measured_to_be_faster() -> None:
    def shared(phase: Phase, ranks: int) -> float:
        fast = isinstance(phase, TransferPhase) and phase.layout == "shared-file"
        return flat(phase, ranks) * (2.0 if fast else 1.0)

    choice = choice_of("files", APP, world(shared, ("access-patterns",)))
    assert choice.value == "shared" and choice.gain is not None and choice.gain.low > 1.9
    same = choice_of("files", APP, world(flat, ("access-patterns",)))
    assert same.value == "per-process" and same.gain is None


def test_unmeasured_choices_are_unknown_and_name_the_study_that_decides_them() -> None:
    chosen = choose(APP, world(flat, ("transfer-size",)))
    assert {unknown.what for unknown in chosen.unknowns} == {"processes per node", "striping", "files"}
    assert all("strakes study" in unknown.needs for unknown in chosen.unknowns)


def test_files_far_from_the_measured_sizes_get_no_stripe_advice() -> None:
    huge = replace(APP, phases=(replace(DUMP, data_bytes=1 << 42),))
    chosen = choose(huge, world(flat))
    assert not any(choice.what.startswith("stripe") for choice in chosen.choices)
    assert any("nearest measured size" in unknown.why for unknown in chosen.unknowns)


def test_the_readers_at_startup_are_reported_as_unknown() -> None:
    chosen = choose(read_app(EXAMPLES / "startup-load.toml"), world(flat))
    assert any(unknown.what == "who reads" and "MPI_Bcast" in unknown.why for unknown in chosen.unknowns)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("file_system", ["lustre", "fuse.ceph-fuse", "xfs"])
def test_every_choice_names_measured_cells_and_settings_follow_from_choices(example: Path, file_system: str) -> None:
    app, results = read_app(example), world(flat)
    chosen = choose(app, results)
    assert chosen.choices
    for choice in chosen.choices:
        assert choice.evidence and all(results.get(cell) for cell in choice.evidence)
    texts = [paste.text for paste in pastes(app, chosen, file_system)]
    striped = any(choice.what == "stripe count" for choice in chosen.choices) or len(chosen.classes) > 1
    assert any("lfs setstripe" in text for text in texts) == (file_system == "lustre" and striped)
    assert [snippet.title for snippet in pastes(app, Chosen((), ()), file_system)] == ["job"]


def test_the_job_says_how_many_ranks_to_merge() -> None:
    def few(phase: Phase, ranks: int) -> float:
        return flat(phase, ranks) if isinstance(phase, MetadataPhase) else min(ranks, 2) * 500.0 * MIB

    chosen = choose(APP, world(few, ("processes-per-node",)))
    (job,) = pastes(APP, chosen, "lustre")
    assert "#SBATCH --nodes=4" in job.text and "merge groups of 4 ranks, so that 2 of a node write" in job.text
    planted = replace(APP, phases=(replace(DUMP, name="dump\nid"),))
    (job,) = pastes(planted, choose(planted, world(few, ("processes-per-node",))), "lustre")
    assert "\n# dump\\nid: merge groups" in job.text
    (unknown, *_) = choose(replace(APP, ranks_per_node=32), world(few, ("processes-per-node",))).unknowns[1:]
    assert unknown.what == "processes per node" and unknown.why.endswith("32, the present value, was not measured")


def test_collective_output_gets_romio_and_cray_hints_and_settings_of_its_library() -> None:
    phase = replace(DUMP, files="shared", collective=True)
    chosen = choose(replace(APP, interface="hdf5", phases=(replace(phase, data_bytes=2 * MIB),)), world(by_transfer))
    app = replace(APP, interface="hdf5", phases=(phase,))
    texts = {paste.title: paste.text for paste in pastes(app, chosen, "lustre")}
    romio = dict(line.split(" ") for line in texts["MPI-IO hints for dump, ROMIO"].splitlines())
    assert romio["romio_cb_write"] == "enable" and int(romio["cb_nodes"]) == 4 * int(
        romio["cb_config_list"].removeprefix("*:")
    )
    assert texts["MPI-IO hints for dump, Cray"].startswith('export MPICH_MPIIO_HINTS="*:')
    assert "cb_config_list" not in texts["MPI-IO hints for dump, Cray"]
    assert "H5FD_MPIO_COLLECTIVE" in texts["HDF5 for dump"]


def test_stripe_counts_of_a_growing_layout_never_shrink() -> None:
    chosen = choose(APP, world(flat))
    counts = [size_class.stripe_count for size_class in chosen.classes]
    assert counts == sorted(counts)
    layout = Chosen((), (), (SizeClass(MIB, 1, ()), SizeClass(64 * MIB, 1, ()), SizeClass(1 << 30, 4, ())))
    (growing, _) = pastes(APP, layout, "lustre")
    assert growing.text == "lfs setstripe -E 64M -c 1 -E -1 -c 4 DIR"


def test_advice_is_never_surer_than_the_answer_of_the_run_to_the_same_question() -> None:
    """Runs of one question may agree by chance; the runs of other questions show the true scatter."""

    def rates(phase: Phase, ranks: int) -> float:
        return flat(phase, ranks) * (1.15 if isinstance(phase, TransferPhase) and phase.transfer_bytes >= MIB else 1)

    studies = [study_named(name) for name in ("overview", "processes-per-node", "access-patterns")]
    cells = [cell for study in studies for cell in study.cells(context()) if isinstance(cell, Cell)]
    app = replace(APP, phases=(DUMP, replace(DUMP, name="restart", operation="read")))
    for seed in range(12):
        results = results_of(cells, visits_of(cells, rates, 5, 0.05, seed=seed), {"file_system": "xfs"})
        answers = {
            frozenset((one.measure, *(other.measure for other in one.others))): one
            for one in answers_of(questions_of(studies, results), results)
        }
        for choice in choose(app, results).choices:
            own = answers.get(frozenset(choice.evidence))
            assert own is None or own.grade != "undecided", (choice, own)
