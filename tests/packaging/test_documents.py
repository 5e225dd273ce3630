"""Paths and links in the documents lead to files that exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "developers").glob("*.md"))
_PATH = re.compile(r"`((?:src|engine|tests|schemas|docs|packaging|examples)/[\w./-]+|schemas|examples|engine)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_developers_pages_name_only_paths_that_exist(page: Path) -> None:
    named = [name for name in _PATH.findall(page.read_text()) if "your_" not in name]
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_links_of_documents_lead_to_files_that_exist(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_site_keeps_links_between_documents_and_names_other_files() -> None:
    spec = importlib.util.spec_from_file_location("site_hook", ROOT / "packaging" / "site.py")
    assert spec is not None and spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    page = SimpleNamespace(file=SimpleNamespace(src_uri="guide/interop.md"))
    text = "[a](lab.md) [`b`](../../schemas/export.json) [c](https://example.org/x) [d](../README.md#top)"
    assert hook.on_page_markdown(text, page=page) == "[a](lab.md) `b` [c](https://example.org/x) [d](../README.md#top)"
    table = "<table>\n<tr>\n<th>kind</th>\n</tr>\n<tr>\n<td>x</td>\n</tr></table>"
    assert '<td data-label="kind">x</td>' in hook.on_page_content(table)
