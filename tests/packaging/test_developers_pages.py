"""The pages on how to add something state correct counts, and names that exist in the files they mention."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from strakes.cli.export import FORMATS as EXPORTS
from strakes.drill.faults.registry import FAULTS
from strakes.interop.formats import FORMATS as IMPORTS
from strakes.knobs.loader import catalogue
from strakes.launch.choice import LAUNCHERS
from strakes.studies.registry import STUDIES
from strakes.targets.registry import TARGETS

ROOT = Path(__file__).resolve().parents[2]
DEVELOPERS = ROOT / "docs" / "developers"
PAGES = sorted(DEVELOPERS.glob("add-*.md"))
COUNTS: dict[str, Callable[[], str]] = {
    "add-a-fault": lambda: f"There are {len(FAULTS)} faults today.",
    "add-a-knob": lambda: f"There are {len(catalogue())} knobs today.",
    "add-a-launcher": lambda: f"There are {len(LAUNCHERS)} launchers today.",
    "add-a-study": lambda: f"There are {len(STUDIES)} studies today.",
    "add-a-target": lambda: f"There are {len(TARGETS)} targets today.",
    "add-an-export": lambda: f"There are {len(EXPORTS)} formats of export and {len(IMPORTS)} of import today.",
}
# `NAME` in `path`, or `NAME` (`path`)
_NAMED = re.compile(r"`(\w+)`(?: in |,? \()`((?:src|tests|engine)/[\w./-]+)`")


@pytest.mark.parametrize("page", COUNTS)
def test_a_page_states_the_right_count(page: str) -> None:
    assert COUNTS[page]() in (DEVELOPERS / f"{page}.md").read_text()


def test_every_page_is_counted_here_or_in_its_room() -> None:
    elsewhere = {"add-a-backend", "add-a-rule"}  # tests/plan/test_backends.py, tests/failover
    assert {page.stem for page in PAGES} == COUNTS.keys() | elsewhere


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_name_on_a_page_is_in_the_file_given_for_it(page: Path) -> None:
    named = [(name, path) for name, path in _NAMED.findall(page.read_text()) if "/your_" not in path]
    assert named or page.stem == "add-a-rule"  # rules are data, so that page names no Python
    assert [(name, path) for name, path in named if not re.search(rf"\b{name}\b", (ROOT / path).read_text())] == []


def test_the_table_of_costs_links_each_page() -> None:
    table = (DEVELOPERS / "README.md").read_text()
    assert [page.name for page in PAGES if f"]({page.name})" not in table] == []
