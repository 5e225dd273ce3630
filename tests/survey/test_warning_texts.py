"""Texts of warnings: each is raised somewhere, ends as a sentence, and has a remedy."""

from __future__ import annotations

import inspect
import re
import string
from typing import Any

import pytest

from strakes.survey import analysis_amounts as amounts
from strakes.survey import analysis_warnings as warnings
from strakes.survey.analysis_warning_texts import REMEDIES, TEXTS, warning


def test_every_warning_that_is_raised_has_a_text_and_no_text_or_remedy_is_unused() -> None:
    assert {warning(kind, **_any_values(kind)).code for kind in TEXTS} == set(REMEDIES)
    sources = "".join(map(inspect.getsource, (amounts, warnings)))
    assert all(f'"{kind}"' in sources for kind in TEXTS)
    assert set(re.findall(r'warning\(\s*"([a-z-]+)"', sources)) <= set(TEXTS)


@pytest.mark.parametrize("kind", TEXTS)
def test_a_warning_has_its_values_its_cells_and_a_remedy(kind: str) -> None:
    values = _any_values(kind)
    found = warning(kind, cells=["a:write"], **values)
    assert found.text.format(**values) == found.text
    assert found.text.endswith(".") and found.remedy.endswith(".")
    assert found.remedy == REMEDIES[found.code].format(**values) and found.cells == ("a:write",)


def _any_values(kind: str) -> dict[str, Any]:
    fields = string.Formatter().parse(f"{TEXTS[kind]} {{each}}")
    return {name: 1.0 if form else "a text." for _, name, form, _ in fields if name}


@pytest.mark.parametrize(
    ("environment", "busy", "is_told"),
    [
        ({"load_average": [1.5], "cpus": 2}, None, True),
        ({"load_average": [], "cpus": 2}, 0.9, False),
        ({"load_average": [0.5], "cpus": 2}, None, False),
        ({"load_average": [5.0], "cpus": 2}, 0.1, False),
        ({"load_average": [0.1], "cpus": 2}, 0.9, True),
        ({}, None, False),
    ],
)
def test_a_load_of_a_quarter_of_the_processors_raises_a_warning(
    environment: dict[str, object], busy: float | None, is_told: bool
) -> None:
    assert [one.code for one in warnings.load_before(environment, busy)] == ["background-load"] * is_told
