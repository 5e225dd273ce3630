"""How long a forecast takes: ``python -m bench.prediction.speed``. Time of the processor, of the whole command.

Fixed before it was measured: two runs of 100 cells each, from stored ones of the tests with their cells repeated under
further settings, so that each repetition has figures of its own; the aim is 5 s. *survey*: what a survey measures, with
few figures of several sizes. *metadata-ops*: eleven operations in every cell, all at four sizes.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_RUNS = Path(__file__).parent.parent.parent / "tests" / "store" / "runs"
_CELLS = 100
_AIM_S = 5
_STORED = {"survey": "survey.json.gz", "metadata-ops": "metadata-ops-against.json.gz"}
RESULTS = Path(__file__).with_suffix(".json")


def make_run(stored: Mapping[str, Any], store: Path, cells: int = _CELLS) -> str:
    """Write a run with so many cells. Returns its id."""
    name = str(stored["manifest"]["id"])
    directory = store / "runs" / name
    directory.mkdir(parents=True)
    rows: dict[str, list[Mapping[str, Any]]] = {"cells": [], "visits": [], "events": stored["events"]}
    while missing := cells - len(rows["cells"]):
        more, copy = stored["cells"][:missing], len(rows["cells"])
        keys = {cell["key"]: f"{copy}/{cell['key']}" for cell in more}
        rows["cells"] += [
            {
                **cell,
                "key": keys[cell["key"]],
                "settings": {**cell["settings"], "copy": copy},
                "measures": [{**each, "settings": {**each["settings"], "copy": copy}} for each in cell["measures"]],
            }
            for cell in more
        ]
        rows["visits"] += [
            {**visit, "cell": keys[visit["cell"]], "visit": len(rows["visits"]) + number}
            for number, visit in enumerate(stored["visits"])
            if visit["cell"] in keys
        ]
    (directory / "run.json").write_text(json.dumps(stored["manifest"]), encoding="utf-8")
    for kind, each in rows.items():
        (directory / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each), encoding="utf-8")
    return name


def time_forecast(run: str, store: Path) -> tuple[float, int]:
    """Return the seconds of the processor that the command took, and how many figures it forecast."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["strakes", "predict", run, "--at", "clients=64", "--json", "-"]
    # One thread: what further ones do would count, too.
    environment = {**os.environ, "STRAKES_STORE": str(store), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = json.loads(done.stdout)["figures"]
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, sum(figure["forecast"] is not None for figure in figures)


def render(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the section of the page."""
    lines = [
        "## How long a forecast takes\n",
        f"The processor time of `strakes predict` for stored runs of {_CELLS} cells, including its start and the",
        "reading of the run (`python -m bench.prediction.speed`). The aim was 5 s. A survey has few figures that are",
        "measured at several sizes. `metadata-ops` has eleven operations in every cell, all at four sizes.\n",
        "| run | figures forecast | seconds |",
        "|---|---|---|",
        *(f"| {each['run']} | {each['figures']} | {each['seconds']:.1f} |" for each in results),
        *(f"\nThe aim is missed for {each['run']}." for each in results if each["seconds"] > _AIM_S),
    ]
    return "\n".join([*lines, ""])


def read_results() -> list[dict[str, Any]]:
    """Return what was measured."""
    kept: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return kept


def main() -> None:
    """Measure both runs and keep what came out."""
    results = []
    for kind, name in _STORED.items():
        with tempfile.TemporaryDirectory() as store, gzip.open(_RUNS / name, "rt", encoding="utf-8") as file:
            run = make_run(json.load(file), Path(store))
            seconds, figures = time_forecast(run, Path(store))
        results.append({"run": kind, "figures": figures, "seconds": round(seconds, 2)})
        print(results[-1])
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
