"""How long a forecast takes: ``python -m bench.prediction.speed``. Time on the clock and of the processors.

Fixed before it was measured: two runs of 100 cells each, from stored ones of the tests with their cells repeated under
further settings, so that each repetition has figures of its own; the aim is 5 s for who waits for the whole command.
Each repetition is faster or slower than the stored run by a factor of its own (20 %), and each of its samples by 2 %:
nothing that is computed for one figure is right for another. *survey*: what a survey measures, with few figures of
several sizes. *metadata-ops*: eleven operations in every cell, all at four sizes. Measure on an idle machine.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_RUNS = Path(__file__).parent.parent.parent / "tests" / "store" / "runs"
_CELLS = 100
_AIM_S = 5
# The machine does nothing else below this load.
_IDLE = 0.5
_OF_COPY, _OF_SAMPLE = 0.2, 0.02
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
        generator = random.Random(copy)
        slower = math.exp(generator.gauss(0, _OF_COPY))
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
            {
                **visit,
                "cell": keys[visit["cell"]],
                "visit": len(rows["visits"]) + number,
                "samples": [
                    _slowed(sample, slower * math.exp(generator.gauss(0, _OF_SAMPLE))) for sample in visit["samples"]
                ],
            }
            for number, visit in enumerate(stored["visits"])
            if visit["cell"] in keys
        ]
    (directory / "run.json").write_text(json.dumps(stored["manifest"]), encoding="utf-8")
    for kind, each in rows.items():
        (directory / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each), encoding="utf-8")
    return name


def _slowed(sample: Mapping[str, Any], factor: float) -> dict[str, Any]:
    rates = {name: sample[name] / factor for name in ("bytes_per_s", "operations_per_s") if name in sample}
    return {**sample, **rates, "elapsed_s": sample["elapsed_s"] * factor}


def time_forecast(run: str, store: Path) -> tuple[float, float, int]:
    """Return the seconds that the command took, on the clock and of processors, and how many figures it forecast."""
    words = ["strakes", "predict", run, "--at", "clients=64", "--json", "-"]
    before, begun_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {**os.environ, "STRAKES_STORE": str(store)}
    done = subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    clock_s, after = time.monotonic() - begun_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = json.loads(done.stdout)["figures"]
    processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return clock_s, processor_s, sum(figure["forecast"] is not None for figure in figures)


def render(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the section of the page."""
    busy = any(each["load"] > _IDLE for each in results)
    lines = [
        "## How long a forecast takes\n",
        f"How long `strakes predict --json` takes for stored runs of {_CELLS} cells, with its start and the reading of",
        "the run (`python -m bench.prediction.speed`), on a machine with two processors. The aim",
        "was 5 s on the clock. A survey has few figures that are measured at several sizes. `metadata-ops` has eleven",
        "operations in every cell, all at four sizes. Many figures are shared among the processors.\n",
        "| run | figures forecast | seconds on the clock | seconds of processors |",
        "|---|---|---|---|",
        *(
            f"| {each['run']} | {each['figures']} | {each['clock_s']:.1f} | {each['processor_s']:.1f} |"
            for each in results
        ),
        *(f"\nThe aim is missed for {each['run']}." for each in results if each["clock_s"] > _AIM_S),
        *(["\nOther work ran on the same processors: on the clock it took longer than it does alone."] if busy else []),
    ]
    return "\n".join([*lines, ""])


def read_results() -> list[dict[str, Any]]:
    """Return what was measured."""
    kept: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return kept


def main() -> None:
    """Measure both runs and keep what came out."""
    results = []
    load = os.getloadavg()[0]
    for kind, name in _STORED.items():
        with tempfile.TemporaryDirectory() as store, gzip.open(_RUNS / name, "rt", encoding="utf-8") as file:
            run = make_run(json.load(file), Path(store))
            clock_s, processor_s, figures = time_forecast(run, Path(store))
        times = {"clock_s": round(clock_s, 2), "processor_s": round(processor_s, 2), "load": round(load, 2)}
        results.append({"run": kind, "figures": figures, **times})
        print(results[-1])
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
