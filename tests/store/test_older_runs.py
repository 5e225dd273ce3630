"""Stored runs of every kind are read, and exported ones show what the store shows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from strakes.portraits.build import build_portrait
from strakes.report.findings import to_document, validate
from strakes.store import Run
from strakes.store.published import PublishedRun

RUNS = sorted(Path(__file__).with_name("runs").glob("*.json.gz"))


def document_of(run: Run) -> Any:
    return json.loads(json.dumps(to_document(build_portrait(run)), allow_nan=False))


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def unpack(path: Path, runs: Path, name: str = "") -> Path:
    """Store the run of a file below ``runs``, by its own id or another one; returns its directory."""
    exported = json.loads(gzip.decompress(path.read_bytes()))
    stored = runs / (name or exported["manifest"]["id"])
    stored.mkdir(parents=True)
    (stored / "run.json").write_text(json.dumps({**exported["manifest"], "id": stored.name}))
    (stored / "environment.json").write_text(json.dumps(exported["findings"]["environment"]))
    for kind in ("cells", "visits", "events"):
        (stored / f"{kind}.jsonl").write_text(lines(exported[kind]))
    return stored


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_an_exported_run_shows_what_the_stored_one_shows(path: Path, tmp_path: Path) -> None:
    document = document_of(PublishedRun(path))
    validate(document)
    assert rounded(document) == rounded(document_of(Run(unpack(path, tmp_path))))
    medians = {
        cell["id"]: cell["median"] for cell in json.loads(gzip.decompress(path.read_bytes()))["findings"]["cells"]
    }
    assert rounded({cell["id"]: cell["median"] for cell in document["cells"]}) == rounded(medians)


def rounded(document: object) -> object:
    """Return a document with 9 digits of each number: the order in which numpy adds depends on where memory lies."""
    return json.loads(json.dumps(document), parse_float=lambda text: f"{float(text):.9g}")


def test_all_kinds_of_runs_are_among_them() -> None:
    manifests = [PublishedRun(path).manifest for path in RUNS]
    assert {manifest["kind"] for manifest in manifests} == {"survey", "study", "run", "tune", "import"}
    assert {manifest["status"] for manifest in manifests} == {"complete", "failed"}
