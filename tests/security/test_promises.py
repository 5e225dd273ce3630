"""Every promise of docs/security.md names test files, and these exist."""

from __future__ import annotations

import re

from conftest import ROOT

_TEST = re.compile(r"`((?:engine/)?tests/[\w/]+\.(?:py|cpp))`")


def test_every_promise_names_a_test_and_every_named_test_exists() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    rows = [line for line in text.partition("## Promises")[2].partition("\n## ")[0].splitlines() if line[:1] == "|"]
    promises = rows[2:]
    assert len(promises) >= 20 and [row for row in promises if not _TEST.search(row.split("|")[-2])] == []
    assert [name for name in _TEST.findall(text) if not (ROOT / name).is_file()] == []
