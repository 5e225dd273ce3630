"""Warnings: when they are raised, and that each states its figures and its remedy."""

from __future__ import annotations

import inspect
import re

import pytest

from strakes.analysis import evidence
from strakes.analysis.remedies import REMEDIES
from strakes.findings.begun import Begun
from strakes.findings.portrait import RunWarning
from strakes.statistics.interval import Interval
from strakes.targets.description import Interruption

MIB = 1024**2


RAISED = {
    "cached_before": evidence.cached_before(300 * MIB, 1000 * MIB, ["c1"]),
    "servers_not_well": evidence.servers_not_well([("before", ["10.0.0.1 is not healthy: it does not say why."])]),
    "hybrid_io": evidence.hybrid_io({"write": 2 * MIB, "read": 8 * MIB}, ["c1"]),
    "cache_below": evidence.cache_below("/images/disk.img", ["c1"]),
    "memory_file_system": evidence.memory_file_system("tmpfs"),
    "few_runs": evidence.few_runs(2, ["c1", "c2"]),
    "load_before": evidence.load_before(1.5, 2),
    "answered_before": evidence.answered_before(50.0 * MIB, 1000.0 * MIB, "Device vdb", ["c1"]),
    "cache_unseen": evidence.cache_unseen("wekafs", ["c1"]),
    "clock_jump": evidence.clock_jump(wall_s=-7.0, monotonic_s=5.0),
    "stonewalled": evidence.stonewalled(250.0, 1000.0, "operations", 2.0, ["c1"]),
    "direct_refused": evidence.direct_refused("tmpfs", "EINVAL"),
    "setting_differs": evidence.setting_differs("stripe count", "99", "4", ["c1"]),
    "budget_skipped": evidence.budget_skipped(12, 80, 60.0),
    "server_unlike": evidence.server_unlike("oss1", Interval(0.31, 0.35, 0.99)),
    "targets_unlike": evidence.targets_unlike(["ost1 is full: 1 GiB of 100 GiB are free.", "ost2 is down."]),
    "nodes_unlike": evidence.nodes_unlike(["n3 has 8 GiB of memory, the others 16 GiB", "n4 could not be compared"]),
    "servers_disturbed": evidence.servers_disturbed(["mdt0: its counters were cleared"]),
    "service_interrupted": evidence.service_interrupted([Interruption("mdt1", 0, 13, evicted=True)], 2),
    "begun_apart": evidence.begun_apart(3, 90, Begun(0.0051, 3, "n4", 0.12, True, 3e-5), ["c1"]),
    "held_back": evidence.held_back("200 MiB/s", 0.6, ["c1"]),
    "gave_way": evidence.gave_way(2, 7, False),
    "left_out": evidence.left_out(3, ["200 MiB/s", "400 MiB/s"], "400 MiB/s"),
}
FIGURES = {
    "cached_before": ["300 MiB", "1000 MiB", "30 %"],
    "servers_not_well": ["Before the measurement", "10.0.0.1 is not healthy"],
    "hybrid_io": ["writes of 2 MiB", "reads of 8 MiB"],
    "cache_below": ["/images/disk.img"],
    "memory_file_system": ["tmpfs", "memory"],
    "few_runs": ["2 runs", "needs three"],
    "load_before": ["1.5", "2 processors", "75 %"],
    "answered_before": ["vdb", "50 MiB", "1000 MiB"],
    "cache_unseen": ["wekafs", "cache of its client"],
    "clock_jump": ["back", "12.0 s"],
    "stonewalled": ["250 operations", "of 1,000", "25 %", "2.00 s"],
    "direct_refused": ["tmpfs", "EINVAL"],
    "setting_differs": ["stripe count", "99", "4"],
    "budget_skipped": ["12 of 80", "60.0 s"],
    "server_unlike": ["oss1", "0.31 - 0.35"],
    "targets_unlike": ["ost1 is full", "ost2"],
    "nodes_unlike": ["n3 has 8 GiB", "n4"],
    "servers_disturbed": ["mdt0"],
    "service_interrupted": ["mdt1", "13.0 s", "evicted", "2 runs"],
    "begun_apart": ["3 of 90 phases", "5.10 ms", "12 %", "rank 3 on n4", "fewer processors"],
    "held_back": ["200 MiB/s"],
    "gave_way": ["2 runs", "7 ran at reduced load"],
    "left_out": ["400 MiB/s", "other limits"],
}


def test_every_check_has_an_example() -> None:
    checks = {
        name
        for name, check in inspect.getmembers(evidence, inspect.isfunction)
        if check.__module__ == evidence.__name__
    }
    assert {name for name in checks if not name.startswith("_")} == set(RAISED) == set(FIGURES)


@pytest.mark.parametrize("check", RAISED)
def test_a_warning_states_its_figures_and_its_remedy(check: str) -> None:
    (warning,) = RAISED[check]
    for figure in FIGURES[check]:
        assert figure in warning.text
    assert warning.remedy == REMEDIES[warning.code]
    assert warning.text.endswith(".") and warning.remedy.endswith(".")


def test_every_code_of_the_catalogue_can_be_raised() -> None:
    assert {warning.code for (warning,) in RAISED.values()} == set(REMEDIES)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in REMEDIES)


def test_a_warning_names_the_affected_cells() -> None:
    assert RAISED["few_runs"][0].cells == ("c1", "c2")
    assert RAISED["memory_file_system"][0].cells == ()


@pytest.mark.parametrize(
    "silent",
    [
        evidence.cached_before(5 * MIB, 100 * MIB),
        evidence.cached_before(0, 0),
        evidence.cache_below(""),
        evidence.memory_file_system("xfs"),
        evidence.load_before(0.5, 2),
        evidence.load_before(5.0, 2, busy=0.1),
        evidence.answered_before(900.0, 1000.0, "Device vdb"),
        evidence.clock_jump(5.2, 5.0),
        evidence.stonewalled(1000.0, 1000.0, "operations", 2.0),
        evidence.stonewalled(10.0, 0.0, "operations", 2.0),
        evidence.setting_differs("stripe count", "4", "4"),
        evidence.begun_apart(0, 90, Begun(0.0002, 3, "n4", 0.01, False, 3e-5)),
        evidence.budget_skipped(0, 80, 60.0),
    ],
)
def test_normal_conditions_raise_no_warning(silent: list[RunWarning]) -> None:
    assert silent == []
