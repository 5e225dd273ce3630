"""Names on the pages on how to add something exist in the files given for them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEVELOPERS = ROOT / "docs" / "developers"
PAGES = sorted(DEVELOPERS.glob("add-*.md"))
# `NAME` in `path`, or `NAME` (`path`)
_NAMED = re.compile(r"`(\w+)`(?: in |,? \()`((?:src|tests|engine)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_name_on_a_page_is_in_the_file_given_for_it(page: Path) -> None:
    named = [(name, path) for name, path in _NAMED.findall(page.read_text()) if "/your_" not in path]
    assert named or page.stem == "add-a-rule"  # rules are data, so that page names no Python
    assert [(name, path) for name, path in named if not re.search(rf"\b{name}\b", (ROOT / path).read_text())] == []


def test_the_table_of_costs_links_each_page() -> None:
    table = (DEVELOPERS / "README.md").read_text()
    assert [page.name for page in PAGES if f"]({page.name})" not in table] == []
