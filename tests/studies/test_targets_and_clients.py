"""Studies of targets, clients and numbers of files, on simulated file systems of known behaviour."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strakes.base.units import KIB
from strakes.model.cell import Cell
from strakes.model.portrait import Finding, SkippedCell
from strakes.model.results import Results
from strakes.stats.usl import Law
from strakes.studies.against import Against
from strakes.studies.client_scaling import ClientScaling
from strakes.studies.layouts import Layouts
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.namespace_scaling import NamespaceScaling
from strakes.studies.open_close import OpenClose
from strakes.studies.population import Population
from strakes.studies.scenarios import RestartDump
from strakes.studies.study import Study
from strakes.studies.target_baseline import TargetBaseline
from strakes.studies.writers import Writers
from strakes.survey.analysis_answers import judged
from strakes.targets.command import Completed
from strakes.targets.description import Description, Layout, Striping
from strakes.targets.lustre_lfs import ClientName
from strakes.targets.lustre_servers import client_counters
from strakes.targets.lustre_target import layout_kinds
from strakes.targets.lustre_tool import Answers
from studies.world import PARTS, answered, cells_of, context, results_of, skipped_of, visits_of

RECORDINGS = Path(__file__).parents[1] / "targets" / "lustre" / "recordings"
ServerCounts = Callable[[Cell], Mapping[str, Mapping[str, float]]]


def measured_by_cell(
    study: Study,
    rate: Callable[[Cell, int], float],
    blocks: int = 12,
    noise: float = 0.02,
    servers: ServerCounts = lambda cell: {},
    facts: Mapping[str, Any] | None = None,
    seed: int = 0,
    **changes: Any,
) -> Results:
    cells = cells_of(study, **changes)
    visits = []
    for number, cell in enumerate(cells):
        for visit in visits_of([cell], lambda phase, ranks: 1.0, blocks, noise, seed=1000 * seed + number):
            factor = rate(cell, visit["block"])
            samples = [
                {
                    **one,
                    **{key: one[key] * factor for key in ("bytes_per_s", "operations_per_s")},
                    "elapsed_s": one["elapsed_s"] / factor,
                }
                for one in visit["samples"]
            ]
            visits.append({**visit, "samples": samples, "servers": servers(cell)})
    return results_of(cells, visits, facts)


def found(study: Study, results: Results) -> dict[str, Finding]:
    return {one.id: one for one in (*study.findings(results), *judged(study.claims(results), results))}


def test_slow_targets_are_named_and_no_others() -> None:
    def rate(cell: Cell, block: int) -> float:
        return 1e8 * (0.5 if cell.settings["target"] in ("mds.1", "osd.2") else 1.0)

    findings = found(TargetBaseline(), measured_by_cell(TargetBaseline(), rate))
    slow = {identifier for identifier, one in findings.items() if one.verdict == "does-not"}
    assert slow == {"target-baseline-metadata-mds.1", "target-baseline-data-osd.2"}
    assert "mds.1 is at least 0.8 times" in findings["target-baseline-metadata-mds.1"].statement
    assert all(one.verdict == "holds" for identifier, one in findings.items() if identifier not in slow)


@pytest.mark.parametrize("factors", [{"write": 0.33}, {"write": 0.33, "read": 2.0}])
def test_a_target_that_is_slow_at_one_operation_only_is_named(factors: dict[str, float]) -> None:
    study = TargetBaseline()
    results = measured_by_cell(study, lambda cell, block: 1e8, noise=0.001)
    measured = []
    for one in results.measured:
        factor = factors.get(str(one.settings["operation"]), 1.0) if one.settings["target"] == "osd.1" else 1.0
        observations = tuple(replace(seen, value=seen.value * factor) for seen in one.observations)
        measured.append(replace(one, observations=observations))
    findings = found(study, replace(results, measured=tuple(measured)))
    slow = [identifier for identifier, one in findings.items() if one.verdict == "does-not"]
    assert slow == ["target-baseline-data-osd.1"]
    assert "write 0.33 [" in findings["target-baseline-data-osd.1"].statement


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_equal_targets_raise_no_alarm(noise: float) -> None:
    study = TargetBaseline()
    for seed in range(10):
        findings = found(study, measured_by_cell(study, lambda cell, block: 1e8, noise=noise, seed=seed))
        assert not [one for one in findings.values() if one.verdict == "does-not"]


def test_targets_that_cannot_be_measured_separately_have_a_reason() -> None:
    cells = list(TargetBaseline().cells(context(description=Description("", ""), file_system="ext4")))
    assert all(isinstance(one, SkippedCell) and "ext4" in one.reason for one in cells)
    (only,) = NamespaceScaling().cells(context(description=None))
    assert isinstance(only, SkippedCell) and "two or more" in only.reason


def test_a_single_target_is_not_measured_because_there_is_no_other() -> None:
    alone = replace(PARTS, metadata_targets=PARTS.metadata_targets[:1])
    assert [one.settings for one in skipped_of(TargetBaseline(), description=alone)] == [{"kind": "metadata"}]
    assert {cell.settings["kind"] for cell in cells_of(TargetBaseline(), description=alone)} == {"data"}


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_namespace_scaling_uses_the_requested_number_of_ranks(ranks: int) -> None:
    measured, skipped = cells_of(NamespaceScaling(), most_ranks=ranks), skipped_of(NamespaceScaling(), most_ranks=ranks)
    assert {cell.plan.ranks for cell in measured} == {ranks}
    assert {cell.settings["metadata_targets"] for cell in measured} == set(range(1, min(ranks, 3) + 1))
    assert {cell.settings["metadata_targets"] for cell in skipped} == set(range(ranks + 1, 4))


def scaling(automatic: float) -> Callable[[Cell, int], float]:
    """Return rates that grow linearly with manual placement; automatic placement reaches a share of them."""

    def rate(cell: Cell, block: int) -> float:
        targets = float(cell.settings["metadata_targets"])
        return 1000.0 * targets * (automatic if cell.settings["placement"] == "automatic" else 1.0)

    return rate


@pytest.mark.parametrize(("share", "grade"), [(1.0, "alike"), (0.4, "sure")])
def test_automatic_placement_is_compared_with_placement_by_hand(share: float, grade: str) -> None:
    study = NamespaceScaling()
    answers = answered(study, measured_by_cell(study, scaling(share)))
    placement = answers["placement"]
    assert placement.grade == grade and placement.against.low < 1 / share < placement.against.high
    scales = answers["manual-file-create"]
    assert (scales.chosen, scales.grade, scales.remark) == ("3", "sure", "with linear scaling, the ratio would be 3")
    assert scales.against.option == "1" and scales.against.ratio == pytest.approx(3.0, rel=0.05)


def test_random_placement_by_a_hash_is_part_of_the_scatter() -> None:
    draws = random.Random(5)
    drawn = {block: max(Counter(draws.choices(range(3), k=6)).values()) for block in range(13)}

    def rate(cell: Cell, block: int) -> float:
        return 1000.0 * (2 / drawn[block] if cell.settings["placement"] == "automatic" else 1.0)

    study = NamespaceScaling()
    placement = answered(study, measured_by_cell(study, rate))["placement"]
    assert placement.chosen == "by hand" and placement.against.low < 1.6 < placement.against.high
    assert placement.against.high / placement.against.low > 1.1
    cells = cells_of(study)
    automatic = [cell.place for cell in cells if cell.settings["placement"] == "automatic"]
    assert automatic and all(place.name_in(1) != place.name_in(2) for place in automatic)


def test_the_expected_imbalance_of_few_directories_is_stated_with_the_requests() -> None:
    study = NamespaceScaling()
    counted = {f"mds.{n}": {"md.create": 100.0 + 50 * n} for n in range(3)}
    findings = found(study, measured_by_cell(study, scaling(1.0), servers=lambda cell: counted, most_ranks=6))
    by_hand, automatic = (findings[f"namespace-scaling-served-{way}"].statement for way in ("manual", "automatic"))
    assert "The busiest target served 44% to 44% of a run's requests." in by_hand and "hash" not in by_hand
    assert "places 6 directories, the busiest target is expected to hold 53%" in automatic
    assert "With 215 directories, the loss is below 10%" in automatic


def test_the_split_of_requests_is_from_the_counters_of_the_servers() -> None:
    def servers(cell: Cell) -> Mapping[str, Mapping[str, float]]:
        even = cell.settings["placement"] == "manual"
        return {f"mds.{n}": {"md.create": 100.0 if even or n == 0 else 0.0, "client.md.create": 5.0} for n in range(3)}

    findings = served(servers)
    assert "mds.0 33%, mds.1 33%, mds.2 33%" in findings["namespace-scaling-served-manual"].statement
    assert "mds.0 100%, mds.1 0%" in findings["namespace-scaling-served-automatic"].statement


def served(servers: ServerCounts) -> dict[str, Finding]:
    study = NamespaceScaling()
    return found(study, measured_by_cell(study, scaling(1.0), servers=servers))


def test_without_counters_of_servers_the_split_is_that_of_the_clients_requests() -> None:
    # The counters of a real client for its two metadata targets.
    text = (RECORDINGS / "wave2" / "client_stats.txt").read_text()
    answers = Answers(lambda argv, timeout_s=10: Completed(tuple(argv), 0, text, ""))
    counted = client_counters(answers, ClientName("labfs", "ffff888104cfa800"))
    statement = served(lambda cell: counted)["namespace-scaling-served-automatic"].statement
    assert statement.startswith("Requests that this node sent, automatic placement over 3 metadata targets: ")
    # 4,130 and 8,525 requests.
    assert "labfs-MDT0000 33%, labfs-MDT0001 67% of " in statement


@pytest.mark.parametrize(
    "counted",
    [
        {"client": {"client.md.create": 100.0}, "labfs-MDT0000": {"client.data.read_bytes": 0.0}},
        # Counters of only two of the three targets.
        {"labfs-MDT0000": {"md.create": 300.0}, "labfs-MDT0001": {"md.create": 5.0}},
    ],
)
def test_without_counters_of_all_targets_the_split_is_unknown(counted: dict[str, dict[str, float]]) -> None:
    finding = served(lambda cell: counted)["namespace-scaling-served-manual"]
    assert finding.verdict == "unknown" and "--servers" in finding.needs


SILENT = {"client.md.requests": 300.0}


@pytest.mark.parametrize(
    "asked", [{"md.create": 300.0}, {"md.create": 300.0, "client.md.requests": 300.0}, {"md.requests": 9.0, **SILENT}]
)
def test_a_target_without_counters_of_its_server_gives_no_false_split(asked: dict[str, float]) -> None:
    counted: Mapping[str, Mapping[str, float]] = {
        "labfs-MDT0000": asked,
        "labfs-MDT0001": SILENT,
        "labfs-MDT000a": SILENT,
        "client": {"client.md.open": 9},
    }
    findings = served(lambda cell: counted)
    for way in ("manual", "automatic"):
        finding = findings[f"namespace-scaling-served-{way}"]
        if "client.md.requests" in asked:
            assert finding.statement.startswith("Requests that this node sent")
            assert "labfs-MDT0000 33%, labfs-MDT0001 33%, labfs-MDT000a 33% of" in finding.statement
        else:
            assert finding.verdict == "unknown" and "no counters of labfs-MDT0001, labfs-MDT000a" in finding.statement
            assert "Requests to the other metadata targets: labfs-MDT0000 3,600." in finding.statement


@pytest.mark.parametrize("is_read", [True, False])
def test_runs_in_which_a_server_was_silent_are_left_out_of_the_split(is_read: bool) -> None:
    calls: dict[str, int] = {}

    def servers(cell: Cell) -> Mapping[str, Mapping[str, float]]:
        calls[cell.key] = calls.get(cell.key, 0) + 1
        silent = calls[cell.key] % 4 == 0
        if silent and not is_read:
            return {}  # no time was left for reading counters
        return {f"MDT{n:04x}": {"client.md.requests": 9.0} if n and silent else {"md.create": 100.0} for n in range(3)}

    finding = served(servers)["namespace-scaling-served-manual"]
    assert "MDT0000 33%, MDT0001 33%, MDT0002 33% of 2,700 (counted in 9 of 12 runs" in finding.statement


def test_runs_without_any_reading_name_no_target_as_silent() -> None:
    calls: dict[str, int] = {}

    def servers(cell: Cell) -> Mapping[str, Mapping[str, float]]:
        calls[cell.key] = calls.get(cell.key, 0) + 1
        read = {"MDT0000": {"md.create": 9.0}, **{f"MDT000{n}": {"client.md.requests": 9.0} for n in (1, 2)}}
        return {} if calls[cell.key] % 2 else read

    finding = served(servers)["namespace-scaling-served-manual"]
    assert "no counters of MDT0001, MDT0002. Requests to the other metadata targets: MDT0000 54." in finding.statement


def test_every_rank_gets_a_directory_on_its_target() -> None:
    cells = {cell.key: cell for cell in cells_of(NamespaceScaling(), file_system="lustre")}
    placed = cells["namespace-scaling/manual/3"].place
    assert [placed.entries[f"items.{rank}.tree"].metadata_targets for rank in range(6)] == [(0,), (1,), (2,)] * 2
    automatic = cells["namespace-scaling/automatic/2"].place.placement
    assert automatic is not None and automatic.count == 2 and automatic.inherited


def test_the_bend_of_a_population_is_found_where_it_is() -> None:
    def bends(cell: Cell, block: int) -> float:
        return 10_000.0 if int(cell.key.rpartition("/")[2]) <= 2 else 4_000.0

    study = Population()
    results = measured_by_cell(study, bends, blocks=8, facts={"clean_up": {"files": 100_000, "elapsed_s": 1.0}})
    findings = found(study, results)
    assert "10,0" in findings["population-bend-1"].statement or "9,9" in findings["population-bend-1"].statement
    at = float(findings["population-bend-1"].statement.split()[2].replace(",", ""))
    assert at == pytest.approx(float(results.where()[1].settings["files"]), rel=0.05)
    assert answered(study, results)["end-to-start"].against.ratio == pytest.approx(2.5, rel=0.05)
    assert "times as fast as they were created" in findings["population-clean-up"].statement


def test_the_memory_of_the_servers_is_compared_at_both_ends_of_the_population() -> None:
    def servers(cell: Cell) -> Mapping[str, Mapping[str, float]]:
        memory_bytes = 1e9 + 10 * float(cell.settings["files"])
        return {"mds.0": {"now.memory_bytes": memory_bytes}, "osd.0": {"data.read_bytes": 1.0}}

    study = Population()
    results = measured_by_cell(study, lambda cell, block: 1000.0, blocks=5, servers=servers)
    assert "at the beginning" in found(study, results)["population-servers-memory"].statement


def test_a_steady_population_has_no_bend_and_an_unmeasured_clean_up_is_unknown() -> None:
    study = Population()
    findings = found(study, measured_by_cell(study, lambda cell, block: 1000.0, blocks=8))
    assert "No sudden change" in findings["population-bend"].statement
    assert findings["population-clean-up"].verdict == "unknown"


def test_a_population_grows_to_the_requested_number_or_says_what_fits() -> None:
    assert cells_of(Population(), files=60_000)[-1].settings["files"] == 60_000
    (skipped,) = skipped_of(Population(), files=10_000_000, max_items=100_000)
    assert "there is space for" in skipped.reason


def test_clients_that_queue_are_described_by_the_law() -> None:
    law = Law(1000.0, 0.1, 0.002)
    study = ClientScaling()

    def rate(cell: Cell, block: int) -> float:
        return law.rate(float(cell.settings["clients"]))

    results = measured_by_cell(study, rate, noise=0.01, full=True)
    findings = found(study, results)
    contention = findings["client-scaling-contention"].interval
    assert contention is not None and contention.low <= 0.1 <= contention.high
    assert "peaks at" in findings["client-scaling-peak"].statement
    assert findings["client-scaling-need"].verdict == "inconclusive", "what was extrapolated is never a fact"
    labels = [reference.label for figure in study.figures(results) for reference in figure.references]
    assert "scalability law, fitted" in labels


def test_a_second_file_system_is_compared_block_by_block() -> None:
    def rate(cell: Cell, block: int) -> float:
        # A noisy neighbour halves the rate of every third block; B is 10 % slower throughout.
        return (1.0 if block % 3 else 0.5) * (0.9 if cell.settings["side"] == "B" else 1.0) * 1000.0

    study = Against(OpenClose())
    results = measured_by_cell(study, rate, noise=0.005)
    overall = answered(study, results)["overall"]
    assert (overall.chosen, overall.grade) == ("A", "sure") and overall.against.low < 1 / 0.9 < overall.against.high
    pairs = [answer for answer in answered(study, results).values() if answer.title.startswith("open and close")]
    assert {(answer.chosen, answer.grade) for answer in pairs} == {("A", "sure")}
    figure = study.figures(results)[0]
    assert {line.name[:2] for line in figure.series} == {"A:", "B:"}


def test_two_equal_file_systems_are_the_same() -> None:
    study = Against(MetadataOps())
    results = measured_by_cell(study, lambda cell, block: 1000.0, noise=0.005)
    answers = answered(study, results).values()
    assert {answer.grade for answer in answers if answer.title.endswith("process, own directories")} == {"alike"}
    assert {one.statement[:7] for one in study.findings(results)} == {"A: The ", "B: The "}
    assert {cell.place.target for cell in study.cells(context()) if isinstance(cell, Cell)} == {"", "against"}


@pytest.mark.parametrize(("times", "verdict"), [(1.65, "holds"), (1.1, "does-not")])
def test_the_mean_of_the_six_operations_is_compared_between_two_devices(times: float, verdict: str) -> None:
    def rate(cell: Cell, block: int) -> float:
        return 1000.0 * times if cell.settings["side"] == "A" else 1000.0

    study = Against(MetadataOps())
    results = measured_by_cell(study, rate, full=True)
    mean = answered(study, results)["mean-16"]
    assert (mean.chosen, mean.grade) == ("A", "sure") and mean.against.ratio == pytest.approx(times, rel=0.05)
    (published,) = judged(study.claims(results), results)
    assert (published.verdict, published.grade) == (verdict, "sure")


def test_few_writers_are_recommended_where_they_are_faster() -> None:
    def rate(cell: Cell, block: int) -> float:
        few = cell.settings["writers"] in (2, 4)
        return 1e8 * (2.0 if few and cell.settings["data_bytes"] == 64 * KIB else 1.0)

    study = Writers()
    results = measured_by_cell(study, rate, noise=0.01)
    small = answered(study, results)[f"{64 * KIB}-of-16"]
    assert small.title == "writers, 64 KiB of each of 16 ranks"
    assert (small.chosen, small.grade) == ("2", "sure") and small.against.low > 1.8


def test_a_restart_dump_has_a_speed_up_with_its_interval() -> None:
    def rate(cell: Cell, block: int) -> float:
        few, striped = cell.settings["writers"] == 2, cell.settings.get("stripe_count") == 4
        return 1e8 * (1.5 if few else 1.0) * (2.0 if striped else 1.0)

    study = RestartDump()
    results = measured_by_cell(study, rate, noise=0.01)
    answers = answered(study, results)
    both = answers["2-on-4:dump-speed-up"].against
    assert both.low <= 3.0 <= both.high and both.option == "every rank writes for itself"
    assert answers["best-writing restart dumps"].chosen == "2 writers of this node, stripe count 4"


def test_without_layouts_a_restart_dump_gives_the_reason() -> None:
    (skipped,) = skipped_of(RestartDump(), striping=None, no_striping="no way to set layouts")
    assert skipped.reason == "no way to set layouts"


def test_kinds_of_layouts_are_compared_with_one_stripe_with_the_options_to_use() -> None:
    study = Layouts()
    kinds = {**layout_kinds(4), "pool flash": "-c -1 -p flash"}

    def rate(cell: Cell, block: int) -> float:
        return 2.0 if cell.settings["layout"] == "data on metadata target" else 1.0

    striping = Striping(4, 64 * KIB, kinds)
    faster = answered(study, measured_by_cell(study, rate, striping=striping))["small-write"]
    assert (faster.chosen, faster.grade) == ("data on metadata target (-E 1M -L mdt -E -1 -c 1)", "sure")
    assert 1.8 < faster.against.low < faster.against.high < 2.2
    cells = {cell.settings["layout"]: cell for cell in cells_of(study, striping=striping)}
    assert cells["pool flash"].layout == Layout(stripe_count=-1, pool="flash")
    assert list(cells)[:2] == ["one stripe", "every target"] and len(cells) == 6
    (skipped,) = study.cells(context(striping=None, no_striping="only root may"))
    assert isinstance(skipped, SkippedCell) and "only root may" in skipped.reason


def test_a_run_without_cells_placed_by_hand_has_figures_of_the_other_cells() -> None:
    study = NamespaceScaling()
    results = measured_by_cell(study, scaling(1.0))
    for left_out in (lambda cell: cell.settings["metadata_targets"] == 1, lambda cell: False):
        kept = [
            cell
            for cell in results.measured
            if (cell.settings["placement"] == "automatic" or cell.settings["metadata_targets"] == 1)
            and not left_out(cell)
        ]
        assert len(study.figures(replace(results, measured=tuple(kept)))) == 6
