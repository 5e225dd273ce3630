"""Comparison of a site's results with published systems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from report.example import example_portrait
from strakes.base.errors import BadInputError
from strakes.base.units import GIB
from strakes.cli.main import run as strakes
from strakes.model.portrait import CellEstimate, Headline, Portrait
from strakes.report.other_systems import NAME, System, of_its_size, render_comparison, systems


def site(low: float | None, high: float | None, nodes: int = 1) -> Portrait:
    median, settings = 1.0 * GIB, {"operation": "write", "io": "buffered"}
    cell = CellEstimate("w", "transfer-size", settings, median, low, high, 0.9, 9, "B/s", (median,))
    environment: dict[str, Any] = {"engine": {"nodes": {f"n{index}": {} for index in range(nodes)}}}
    return replace(
        example_portrait(),
        environment=environment,
        cells=(cell,),
        headlines=(Headline("write, 1 MiB requests to fsync", "w"),),
    )


def made(rate_per_node: float, nodes: int) -> System:
    rates = dict.fromkeys(("ior_easy_write", "ior_easy_read", "mdtest_easy_write"), rate_per_node * GIB * nodes)
    return System(f"s{rate_per_node}", "lustre", "2025", nodes, rates)


@pytest.mark.parametrize("nodes", [10, 20])
def test_a_site_is_placed_by_its_interval(nodes: int) -> None:
    others = [made(rate / nodes, 10) for rate in (0.5, 0.95, 3.0)]
    text = render_comparison(site(0.9 * GIB, 1.1 * GIB, nodes), others, "a list of November")
    assert "1 of 3 are slower, 1 faster, 1 within the interval" in text
    assert "a list of November" in text
    assert "measured by others" in text
    assert "ior_easy_read: not measured here" in text


def test_a_site_without_an_interval_is_not_placed() -> None:
    text = render_comparison(site(None, None), [made(1.0, 10)] * 3, "a list")
    assert "not known" in text and "slower" not in text


def test_systems_of_another_size_are_called_the_nearest() -> None:
    others = [made(1.0, 10)] * 4 + [made(1.0, 500)] * 9
    assert {system.nodes for system in of_its_size(others, 1)} == {10}
    assert "these are the nearest" in render_comparison(site(0.9 * GIB, 1.1 * GIB), others, "a list")
    assert "these are the nearest" not in render_comparison(site(0.9 * GIB, 1.1 * GIB, 8), others, "a list")


def test_the_table_has_a_source_and_plausible_rows() -> None:
    rows, source = systems(NAME)
    assert "IO500" in source
    assert len(rows) >= 20
    assert len({(row.name, row.nodes, row.year) for row in rows}) == len(rows)
    assert all(row.nodes >= 1 and min(row.rates.values()) > 0 for row in rows)


def test_a_users_list_is_read_and_an_invalid_one_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "ours.csv"
    header = "system,file_system,year,nodes,ior_easy_write_gib_s,ior_easy_read_gib_s,mdtest_easy_write_kiops"
    table.write_text(f"{header}\nold,lustre,2020,4,2.0,3.0,10\n")
    (system,), source = systems(str(table))
    assert (system.nodes, system.rates["ior_easy_write"], source) == (4, 2.0 * GIB, str(table))
    table.write_text(f"{header}\nold,lustre,2020,none,2.0,3.0,10\n")
    with pytest.raises(BadInputError, match="list of systems"):
        systems(str(table))
    with pytest.raises(BadInputError, match="list of systems"):
        systems(str(tmp_path / "absent.csv"))


def test_a_report_prints_the_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert strakes(["survey", str(tmp_path), "--budget", "1s", "-q"]) == 0
    assert "Other systems" not in capsys.readouterr().out
    assert strakes(["report", "latest", "--compare-with", NAME]) == 0
    shown = capsys.readouterr().out
    assert "Other systems" in shown and "Source: IO500" in shown
