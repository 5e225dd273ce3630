"""The document with the simulated tables, and the shapes they stand on."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from bench.simulate.document import TABLES, coverage_table, filled
from bench.simulate.shapes import Shape, coverage_shapes

from strakes.errors import BadInputError

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "statistics.md"


@pytest.mark.parametrize("shape", coverage_shapes(), ids=lambda shape: shape.name)
def test_half_of_a_shape_lies_below_the_median_it_states(shape: Shape) -> None:
    drawn = shape.draw(np.random.default_rng(1), (200_000,))
    assert np.mean(drawn < shape.median) == pytest.approx(0.5, abs=0.005)


def table_of(document: str, name: str) -> str:
    match = re.search(f"<!-- generated: {name} -->\n(.*?)<!-- end -->", document, re.DOTALL)
    assert match is not None
    return match[1]


def test_every_table_is_in_the_document() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    for name in TABLES:
        assert "| --- |" in table_of(document, name)


def test_the_published_coverage_is_of_ten_thousand_tries_and_nowhere_below_nominal_less_two_percent() -> None:
    table = table_of(DOCUMENT.read_text(encoding="utf-8"), "coverage")
    assert table.startswith("10,000 tries")
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ") and "%" in line]
    shapes = [row[0].removeprefix("| ") for row in rows]
    assert shapes == [shape.name for shape in coverage_shapes()]
    assert min(float(share.removesuffix(" %")) for row in rows for share in row[1:4]) >= 88


def test_the_same_tries_give_the_same_table() -> None:
    assert coverage_table(50) == coverage_table(50)


def test_filling_replaces_tables_and_keeps_the_text_between_them() -> None:
    text = "".join(f"about {name}\n<!-- generated: {name} -->\nTYPED\n<!-- end -->\n" for name in TABLES)
    progress: list[str] = []
    new = filled(text, 2, progress.append)
    assert progress == list(TABLES)
    assert "TYPED" not in new
    assert re.findall(r"^about (.*)$", new, re.MULTILINE) == list(TABLES)
    assert filled(new, 2, progress.append) == new


def test_a_document_without_a_place_for_a_table_is_refused() -> None:
    with pytest.raises(BadInputError, match="no place for the table 'coverage'"):
        filled("nothing", 1, lambda _: None)


def test_the_published_error_rates_of_comparisons_stay_below_nominal() -> None:
    table = table_of(DOCUMENT.read_text(encoding="utf-8"), "comparisons")
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in table.splitlines()
        if " | in turn | " in line or " | apart" in line
    ]
    assert len(rows) == 12
    assert table.startswith("1,000 tries")
    # 1,000 tries of a share of 10 % scatter by 1 %.
    for row in rows:
        assert float(row[2].removesuffix(" %")) <= 12 and float(row[3].removesuffix(" %")) <= 12, row
    steady = next(row for row in rows if row[:2] == ["normal, 3 %", "in turn"])
    assert float(steady[4].removesuffix(" %")) > 95
