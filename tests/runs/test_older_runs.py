"""Stored runs of every kind can be read, and an exported run gives the same document as the stored one."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from report.document import validate
from strakes.base.finite import finite
from strakes.runs.published import PublishedRun
from strakes.runs.run import Run
from strakes.tuning.portraits import build_portrait

RUNS = sorted(Path(__file__).with_name("stored").glob("*.json.gz"))


def document_of(run: Run) -> Any:
    return json.loads(json.dumps(finite(asdict(build_portrait(run))), allow_nan=False))


def unpack(path: Path, runs: Path, name: str = "") -> Path:
    """Unpack an exported run into the directory ``runs`` as ``name`` or under its own id; return its directory."""
    exported = json.loads(gzip.decompress(path.read_bytes()))
    stored = runs / (name or exported["manifest"]["id"])
    stored.mkdir(parents=True)
    (stored / "run.json").write_text(json.dumps({**exported["manifest"], "id": stored.name}))
    (stored / "environment.json").write_text(json.dumps(exported["findings"]["environment"]))
    for kind in ("cells", "visits", "events"):
        (stored / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in exported[kind]))
    return stored


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_an_exported_run_has_the_same_document_as_the_stored_one(path: Path, tmp_path: Path) -> None:
    document = document_of(PublishedRun(path))
    validate(document)
    assert rounded(document) == rounded(document_of(Run(unpack(path, tmp_path))))
    known = json.loads(gzip.decompress(path.read_bytes()))["findings"]["cells"]
    medians = {cell["id"]: cell["median"] for cell in known}
    assert rounded({cell["id"]: cell["median"] for cell in document["cells"]}) == rounded(medians)


def rounded(document: object) -> object:
    return json.loads(json.dumps(document), parse_float=lambda text: f"{float(text):.9g}")


def test_the_examples_include_all_kinds_of_runs() -> None:
    manifests = [PublishedRun(path).manifest for path in RUNS]
    assert {manifest["kind"] for manifest in manifests} == {"survey", "study", "run", "tune", "import"}
    assert {manifest["status"] for manifest in manifests} == {"complete", "failed"}
