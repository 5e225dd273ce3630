"""Runs that earlier versions stored, of every kind, are read as ever: their findings are what they were then."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from strakes.portraits.build import build_portrait
from strakes.report.findings import to_document
from strakes.store import Run
from strakes.store.published import PublishedRun

RUNS = sorted(Path(__file__).with_name("runs").glob("*.json.gz"))


def document_of(run: Run) -> Any:
    return json.loads(json.dumps(to_document(build_portrait(run)), allow_nan=False))


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_stored_run_gives_the_findings_it_gave(path: Path, tmp_path: Path) -> None:
    exported = json.loads(gzip.decompress(path.read_bytes()))
    assert document_of(PublishedRun(path)) == exported["findings"]
    stored = tmp_path / exported["manifest"]["id"]
    stored.mkdir()
    (stored / "run.json").write_text(json.dumps(exported["manifest"]))
    (stored / "environment.json").write_text(json.dumps(exported["findings"]["environment"]))
    for name in ("cells", "visits", "events"):
        (stored / f"{name}.jsonl").write_text(lines(exported[name]))
    assert document_of(Run(stored)) == exported["findings"]


def test_all_kinds_of_runs_are_among_them() -> None:
    manifests = [PublishedRun(path).manifest for path in RUNS]
    assert {manifest["kind"] for manifest in manifests} == {"survey", "study", "run", "tune", "import"}
    assert {manifest["status"] for manifest in manifests} == {"complete", "failed"}
