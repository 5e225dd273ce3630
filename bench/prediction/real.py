"""The yardstick on a real CephFS: sealed forecasts, then measured (``bench.prediction.real --limit 15 --keep DIR``).

Fixed before the first forecast was scored. Each limit is a lab of its own, whose metadata servers may use that share
of one processor. A try with 12 % showed that the processors of a node were taken for those of each of its sessions,
which was mended before the yardstick was fixed. Measured are 1 and 2 clients on 1 and 2 metadata servers (2 clients
on 2, as each has one directory); sealed are forecasts for 4 and 8 clients on 3 servers; then a lab with 3 servers is
measured, and ``strakes predict score`` judges. Clients are sessions of libcephfs. Which figures count: all six
operations of the study namespace-scaling with directories placed by hand, 12 of each limit, none left out; what is
UNKNOWN or was not measured counts as missed. A directory of each client is on one server, so that 4 and 8 clients do
not load 3 servers evenly.

Limits that count: 25, 15 and 8 %, in this order; with model 6 it is one, 12 %. A try of the machinery has to use
another. Aims: in three quarters of
the figures within 20 %, and inside the 80 % interval. With each model of forecasts a limit is measured once, and what
came out is kept, be it that strakes refused to measure: that is missed. Before the first result of model 1, limit 15
was begun twice and 8 and 25 once, with budgets that were too short for 8 clients: their forecasts were sealed, nobody
looked at them, and none could be scored. Model 2 was made with the results of model 1 in view and tried on a limit of
20 %; phases are 0.5 s long with it, 0.3 s before.

From model 6 on the small levels are kept beside the scores: ``--again`` forecasts from them with the model of today.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from strakes.predict.asked import Asked, Stated
from strakes.predict.figure_levels import FigureLevels
from strakes.predict.forecast_document import MODEL
from strakes.predict.forecasts import forecast_figures
from strakes.predict.scale import MeasuredLevel, Scale

LIMITS = (25, 15, 12, 8)
RESULTS = Path(__file__).with_suffix(".json")
LARGE, _SERVERS = (4, 8), 3
CLOSE = 0.2
_OPERATIONS = 6
_LAB = "forecast"
_PHASE = "500ms"


class Lab:
    """A CephFS with limited metadata servers, and a store of its own runs."""

    def __init__(self, directory: Path, name: str) -> None:
        self._store = directory / "store"
        self._environment = {**os.environ, "STRAKES_STORE": str(self._store)}
        self._name = name

    def call(self, *words: str) -> str:
        """Return what strakes prints. Raises CalledProcessError."""
        command = ["strakes", *words]
        return subprocess.run(command, env=self._environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    def sealed(self) -> dict[int, str]:
        """Return the ids of sealed forecasts by the number of clients that was asked for."""
        documents = (self._store / "forecasts").glob("*.json")
        return {
            json.loads(path.read_text(encoding="utf-8"))["asked"]["clients"]: path.stem
            for path in documents
            if not path.name.endswith(".score.json")
        }

    def document(self, forecast: str) -> dict[str, Any]:
        """Return a sealed forecast."""
        text = (self._store / "forecasts" / f"{forecast}.json").read_text(encoding="utf-8")
        return dict(json.loads(text))

    def score(self, forecast: str, run: str) -> list[Any]:
        """Return how good a sealed forecast was, figure by figure; nothing where nothing was measured."""
        try:
            scores = json.loads(self.call("predict", "score", forecast, run, "--json", "-"))["scores"]
        except subprocess.CalledProcessError:
            return []
        # Results of earlier models are kept with these names.
        return [{**each, "low": each["measurement"][0], "high": each["measurement"][1]} for each in scores]

    def measure(self, servers: int, limit: int, ranks: Mapping[int, str]) -> list[str]:
        """Return the runs of the study with so many ranks each, "" where it failed; ``ranks``: with their budgets."""
        up = ("--name", self._name, "--mds", str(servers), "--mds-cpu", str(limit))
        mount = self.call("lab", "up", "ceph", *up).strip()
        try:
            return [self._study(mount, number, budget) for number, budget in ranks.items()]
        finally:
            self.call("lab", "down", self._name)

    def _study(self, mount: str, ranks: int, budget: str) -> str:
        words = ("--libcephfs", "-n", str(ranks), "--phase", _PHASE, "--budget", budget, "--quiet", "--json", "-")
        before = idle_s()
        try:
            found = json.loads(self.call("study", "namespace-scaling", mount, *words))
        except subprocess.CalledProcessError as error:
            print(f"{ranks} clients: not measured, exit status {error.returncode}", flush=True)
            return ""
        print(f"{ranks} clients measured; processors left over: {idle_s() - before:.0f} s together", flush=True)
        return str(found["run"]["id"])


def idle_s() -> float:
    """Return for how long the processors have been idle, or had nothing but work that gives way to all other."""
    fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
    return (int(fields[2]) + int(fields[4])) / os.sysconf("SC_CLK_TCK")


def forecast_and_measure(limit: int, directory: Path, name: str = _LAB) -> dict[str, Any]:
    """Measure small, seal, measure large, score; all runs and seals stay in ``directory``.

    Returns the scores by number of clients.
    """
    lab = Lab(directory, name)
    small = lab.measure(2, limit, {1: "60s", 2: "150s"})
    for clients in LARGE:
        lab.call("predict", *filter(None, small), "--at", f"clients={clients},mdts={_SERVERS}", "--seal")
    sealed = lab.sealed()
    large = lab.measure(_SERVERS, limit, dict.fromkeys(LARGE, "300s"))
    scores = {str(clients): lab.score(sealed[clients], run) for clients, run in zip(LARGE, large, strict=True)}
    documents = {clients: lab.document(sealed[clients]) for clients in LARGE}
    simple = {str(clients): simple_rule(document, clients) for clients, document in documents.items()}
    # The same for all numbers of clients that were asked for.
    small_levels = keep_levels(documents[LARGE[0]])
    return {"model": MODEL, "limit": limit, "scores": scores, "simple": simple, "small": small_levels}


def simple_rule(document: Mapping[str, Any], clients: int) -> dict[str, float]:
    """Return by figure what 2 clients did on one server, as often as servers would share evenly what the busiest has.

    Rules that need no model have to be beaten; ``document``: a sealed forecast, for what was measured.
    """
    servers = clients / math.ceil(clients / _SERVERS)
    return {
        figure["figure"]: servers * math.exp(level["log_value"])
        for figure in document["figures"]
        for level in figure["measured"]
        if (level["scale"]["clients"], level["scale"]["mdts"]) == (2, 1)
    }


def keep_levels(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a sealed forecast was made from, figure by figure."""
    return [{name: figure[name] for name in ("figure", "unit", "measured")} for figure in document["figures"]]


def forecast_again(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Forecast from the levels that were kept, with the model of today: no blind result, as it was all known."""
    kept_of = [result for result in results if "small" in result and result["model"] < MODEL]
    of = " and ".join(sorted({str(result["model"]) for result in kept_of}))
    count = within = inside = 0
    for result in kept_of:
        names = [kept["figure"] for kept in result["small"]]
        figures = [_figure_of(kept) for kept in result["small"]]
        for clients, scores in result["scores"].items():
            forecasts = forecast_figures(figures, Asked({"clients": int(clients), "mdts": _SERVERS}), Stated())
            today = {name: each.forecast for name, each in zip(names, forecasts, strict=True)}
            for score in scores:
                count += 1
                if (forecast := today[score["figure"]]) is not None and forecast.measurement is not None:
                    low, high = forecast.measurement
                    within += is_close({"forecast": forecast.median, "measured": score["measured"]})
                    inside += low <= score["measured"] <= high
    return {"model": MODEL, "afterwards": {"of": of, "figures": count, "within": within, "inside": inside}}


def _figure_of(kept: Mapping[str, Any]) -> FigureLevels:
    levels = [
        MeasuredLevel(**{**level, "scale": Scale(**level["scale"])})
        for level in ({key: value for key, value in each.items() if key != "left_out"} for each in kept["measured"])
    ]
    return FigureLevels("namespace-scaling", kept["figure"], kept["unit"], {}, tuple(levels), rank_is_client=True)


def render(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the section of the page; empty before anything was measured."""
    if not results:
        return ""
    lines = [
        "## A real CephFS with limited metadata servers\n",
        "It was measured with 1 and 2 clients on 1 and 2 metadata servers. Forecasts for 4 and 8 clients on 3 were",
        "sealed before these were measured (`bench/prediction/real.py`). All ran on one machine with two processors.",
        "A *limit* of 15 means that each metadata server may use 15 % of a processor.",
        f"{_OPERATIONS} figures count for each size; one without a forecast or a measurement counts as missed. Model 1",
        "did not know about caches of clients or how busy the servers were; model 2 was made when the results of model",
        "1 were known. These runs are gone, so that models after the fourth could not be tried on them. From model 6",
        "on the small levels are kept with the scores (`bench/prediction/real.json`), for the models to come.",
        f"Not tried on this file system: {_untried(results)}.\n",
    ]
    blind = [result for result in results if "afterwards" not in result]
    for model in sorted({result["model"] for result in blind}):
        lines += _render_model(model, [result for result in blind if result["model"] == model])
    lines += [
        "Model {model}, which was made later, has {within} of the {figures} figures of model {of} within 20 %, and "
        "{inside}\ninside its intervals. It was not tested blind.\n".format(**result, **result["afterwards"])
        for result in results
        if "afterwards" in result
    ]
    return "\n".join(lines)


def _untried(results: Sequence[Mapping[str, Any]]) -> str:
    tried = {result["model"] for result in results}
    return ", ".join(f"model {model}" for model in range(1, MODEL + 1) if model not in tried) or "none"


def _render_model(model: int, results: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        f"### Model {model}\n",
        "| limit | clients | figures | within 20 % | inside the 80 % interval | median factor of error |",
        "|---|---|---|---|---|---|",
    ]
    every: list[Mapping[str, Any]] = []
    for result in results:
        for clients, scores in result["scores"].items():
            every += scores
            within, inside = sum(map(is_close, scores)), sum(each["covered"] for each in scores)
            factors = sorted(each["factor"] for each in scores)
            middle = f"{factors[len(factors) // 2]:.2f}" if factors else "-"
            lines.append(f"| {result['limit']} | {clients} | {_OPERATIONS} | {within} | {inside} | {middle} |")
    number = _OPERATIONS * sum(len(result["scores"]) for result in results)
    within, inside = sum(map(is_close, every)), sum(each["covered"] for each in every)
    shares = f"{within / number:.0%} are within 20 %, {inside / number:.0%} inside their intervals"
    lines.append(f"\nOf {number} figures {shares} (aims: 75 %).\n")
    if all("simple" in result for result in results):
        same = sum(
            abs(result["simple"][clients][each["figure"]] / each["measured"] - 1) <= CLOSE
            for result in results
            for clients, scores in result["scores"].items()
            for each in scores
        )
        lines.append(
            "For comparison: the rate of 2 clients on one server, multiplied by the ratio of all work to that of the "
            f"busiest server, is within 20 % in {same / number:.0%}.\n"
        )
    lines += [f"Limit {result['limit']}: {result['remark']}\n" for result in results if result.get("remark")]
    for result in results:
        for clients, scores in result["scores"].items():
            lines += [f"Limit {result['limit']}, {clients} clients:\n", *render_figures(scores)]
    return lines


def render_figures(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table of sealed forecasts beside what was measured."""
    lines = ["| figure | forecast | 80 % interval | measured |", "|---|---|---|---|"]
    for each in scores:
        interval = f"{each['low']:.4g} to {each['high']:.4g}" + ("" if each["covered"] else " (outside)")
        name = each["figure"].partition(" (")[0]
        lines.append(f"| {name} | {each['forecast']:.4g} | {interval} | {each['measured']:.4g} |")
    return [*lines, ""]


def is_close(score: Mapping[str, Any]) -> bool:
    """Tell whether a forecast is within 20 % of what was measured."""
    return abs(float(score["forecast"]) / float(score["measured"]) - 1) <= CLOSE


def read_results() -> list[dict[str, Any]]:
    """Return what was kept."""
    kept: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return kept


def main() -> None:
    """Forecast and measure with one limit, and keep what came out if the limit counts."""
    parser = argparse.ArgumentParser(prog="python -m bench.prediction.real", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--limit", type=int, help="Percent of a processor for each metadata server.")
    which.add_argument("--again", action="store_true", help="Forecast again from the levels that were kept.")
    parser.add_argument("--keep", type=Path, help="Directory for the runs and sealed forecasts; needed with --limit.")
    parser.add_argument("--name", default=_LAB, help="Name of the lab.")
    arguments = parser.parse_args()
    kept = read_results()
    if arguments.again:
        again = forecast_again(kept)
        if not again["afterwards"]["of"]:
            parser.error("no levels were kept of an earlier model")
        others = [result for result in kept if "afterwards" not in result or result["model"] != MODEL]
        RESULTS.write_text(json.dumps([*others, again], indent=1) + "\n", encoding="utf-8")
        return
    if arguments.keep is None:
        parser.error("--limit needs --keep")
    if any((result["model"], result.get("limit")) == (MODEL, arguments.limit) for result in kept):
        parser.error("this limit was measured before with this model")
    result = forecast_and_measure(arguments.limit, arguments.keep, arguments.name)
    print(render([result]))
    if arguments.limit in LIMITS:
        RESULTS.write_text(json.dumps([*kept, result], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
