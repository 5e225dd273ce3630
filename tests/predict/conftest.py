"""Fixture that stores a run of a survey of small files under any name and with changed facts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from strakes.runs.run import Run
from strakes.runs.store import Store

RUNS = Path(__file__).parent.parent / "runs" / "stored"


@pytest.fixture
def store_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    monkeypatch.setenv("STRAKES_STORE", str(tmp_path))

    def store(name: str, status: str = "complete", nodes: int = 0, **facts: object) -> Run:
        """Store a run of 1 to 4 ranks on up to ``nodes`` nodes (0: on the recorded node) and return it."""
        with gzip.open(RUNS / "small-files.json.gz", "rt") as file:
            stored = json.load(file)
        stored["manifest"].update(id=name, status=status)
        for row in stored["events"]:
            if row["event"] == "facts":
                row["facts"].update(facts)
        for visit in stored["visits"] if nodes else ():
            for sample in visit["samples"]:
                ranks = len(sample["ranks"])
                sample["nodes"] = [{"host": f"n{node}", "first_rank": node} for node in range(min(nodes, ranks))]
        directory = tmp_path / "runs" / name
        directory.mkdir(parents=True)
        (directory / "run.json").write_text(json.dumps(stored["manifest"]))
        (directory / "environment.json").write_text("{}")
        for part in ("cells", "visits", "events"):
            (directory / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in stored[part]))
        return Store().open(name)

    return store
