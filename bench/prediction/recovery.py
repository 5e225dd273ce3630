"""The yardstick on recovery time: a real CephFS whose metadata server fails, with more and more clients.

Fixed before any of these forecasts was made. On the lab as it comes (two metadata servers, one standby) the study
recovery measures 1, 10 and 20 clients; `strakes predict --at clients=N --seal` seals 50 and 60; then it measures these,
on the same lab. Clients are sessions of libcephfs, which create a file a second. Figures that count: how long the
first, the median and the last client wait, 6 together; what is UNKNOWN or was not measured is missed. Aims: in three
quarters of the figures within 20 %, and inside the 80 % interval. Measured once with each model of forecasts.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.prediction.real import CLOSE, Lab, is_close, render_figures
from strakes.predict.forecast_document import MODEL

RESULTS = Path(__file__).with_suffix(".json")
SMALL, LARGE = 20, (50, 60)
_FIGURES = 6
_LAB = "recovery"


def forecast_and_measure(directory: Path, name: str = _LAB) -> dict[str, Any]:
    """Measure few clients, seal, measure many, score; runs and seals stay in ``directory``."""
    lab = Lab(directory, name)
    mount = lab.call("lab", "up", "ceph", "--name", name).strip()
    try:
        small = _study(lab, mount, SMALL, "4m")
        for clients in LARGE:
            lab.call("predict", small, "--at", f"clients={clients}", "--seal")
        sealed = lab.sealed()
        large = _study(lab, mount, max(LARGE), "6m")
    finally:
        lab.call("lab", "down", name)
    figures = lab.document(sealed[LARGE[0]])["figures"]
    constant = {each["figure"]: math.exp(each["measured"][-1]["log_value"]) for each in figures}
    scores = {str(clients): lab.score(sealed[clients], large) for clients in LARGE}
    return {"model": MODEL, "constant": constant, "scores": scores}


def _study(lab: Lab, mount: str, clients: int, budget: str) -> str:
    words = ("study", "recovery", mount, "-n", str(clients), "--budget", budget, "--yes-this-interrupts-service")
    try:
        return str(json.loads(lab.call(*words, "--quiet", "--json", "-"))["run"]["id"])
    except subprocess.CalledProcessError as error:
        print(f"{clients} clients: not measured, exit status {error.returncode}", flush=True)
        return ""


def render(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the section of the page; empty before anything was measured."""
    lines = [
        "## Recovery time of a real CephFS\n",
        f"The metadata server failed while 1, 10 and {SMALL} clients used it. Forecasts for {LARGE[0]} and {LARGE[1]}",
        "clients were sealed before these were measured on the same lab (`bench/prediction/recovery.py`).",
        f"{_FIGURES} figures count; one without a forecast or a measurement counts as missed.\n",
    ]
    for result in results:
        every = [score for scores in result["scores"].values() for score in scores]
        within, inside = sum(map(is_close, every)), sum(each["covered"] for each in every)
        lines.append(
            f"Model {result['model']}: of {_FIGURES} figures {within} are within 20 %, {inside} inside their intervals "
            "(aims: 75 %).\n"
        )
        if every and "constant" in result:
            same = sum(abs(result["constant"][each["figure"]] / each["measured"] - 1) <= CLOSE for each in every)
            lines.append(
                f"For comparison: in {same} figures the wait of {SMALL} clients is within 20 % of that of more.\n"
            )
        lines += [result["remark"] + "\n"] if result.get("remark") else []
        for clients, scores in result["scores"].items():
            lines += [f"{clients} clients:\n", *render_figures(scores)] if scores else []
    return "\n".join(lines) if results else ""


def read_results() -> list[dict[str, Any]]:
    """Return what was kept."""
    kept: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return kept


def main() -> None:
    """Forecast and measure, and keep what came out."""
    parser = argparse.ArgumentParser(prog="python -m bench.prediction.recovery", description=__doc__)
    parser.add_argument("--keep", type=Path, required=True, help="Directory for the runs and sealed forecasts.")
    parser.add_argument("--name", default=_LAB, help="Name of the lab.")
    arguments = parser.parse_args()
    kept = read_results()
    if any(result["model"] == MODEL for result in kept):
        parser.error("this was measured before with this model")
    result = forecast_and_measure(arguments.keep, arguments.name)
    print(render([result]))
    RESULTS.write_text(json.dumps([*kept, result], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
