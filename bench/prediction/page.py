"""Write the page docs/prediction.md."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from bench.prediction import cephfs
from bench.prediction.data import Measured, series, tasks_of
from bench.prediction.judge import WHOLE, Result, forecast, summarise
from strakes.predict.population import fitted

_INTRODUCTION = """# How good forecasts are

This page is made by `python -m bench.prediction DATA --page docs/prediction.md`; do not edit it. [The
guide](guide/predict.md) explains how to make forecasts. DATA holds measurements that others published; they are not
part of strakes.

A *factor of error* of 1.25 means 25 % too high or 20 % too low. *Inside* is the share of published values within the
80 % interval; 74 to 86 % are intended. Every system is forecast by a population that was fitted without any system of
its owner, and its interval comes from the residuals of the others.
"""

_SYSTEMS = """\
IO500: the largest submission of a system from its smallest, or from two sizes. CubeFS (two clusters, in its
documentation): 8 clients, or 64 processes of each client, from one, two or three smaller sizes. Other tables: the most
clients, or processes of each client, in published tables and result files (`bench/prediction/tables.csv` has the
address of each). In the fit, all figures of a system weigh at most as much as one IO500 system with all phases. Here
each forecast counts once, so large tables count more.
"""
_CEPHFS = """\
It was measured with 1 and 2 clients on 1 and 2 metadata servers, each limited to 12 % of a processor, then with 4
and 8 clients on 3. The forecasts are made again from the small levels that were kept: the large ones were known when
this model was made, but nothing was fitted to them.
"""
_ABLATION = """\
The model without one part at a time, fitted anew: the factor of error of left-out systems (data, sizes known), and
the mean absolute logarithm of all (smaller is better).
"""
_REMOVED = """
Removed, because they did not pay on left-out owners: families of curves (closed queueing networks, parts with a fixed
capacity, the universal scalability law, each with and without a lock) and their weights; exponents by kind of figure
and in ranks of one client (mean 0.460, and 0.490 if the exponent wanders; the whole model of that time had 0.458);
exponents by kind of file system (IO500 1.42 to 1.40, CubeFS 1.53 to 1.66); heavy tails (Student's t); counters of
clients' processors. With the other tables in the population, and differences in exponents that do not wander: an
exponent that falls to a fitted one instead of 0 (mean 0.533, with 0 0.532); separate laws for clients and for
processes of a client (CubeFS from one size, mean 0.56 to 0.78); asymptotic bounds of one client and of the servers,
both unknown (mean 0.542; other tables from one size 1.74 to 1.54, but fewer figures of the real CephFS within 20 %);
an exponent that falls linearly with the logarithm of ranks (mean 0.522, but saturated rates are forecast to fall). All
of these were tried on the same systems, so the results of the whole model are slightly better than they will be on new
data.
"""
_MODEL = """## The model

The logarithm of a rate grows with the logarithm of the ranks. The exponent falls slowly from 1 to 0; file systems
differ in it by a random amount that changes slowly with the ranks (Ornstein-Uhlenbeck process). Its size is fitted to
many systems (empirical Bayes, `src/strakes/predict/population.toml`), and the sizes that were measured show it for one
system. The rate grows no more steeply than in the last step measured, nor than linear. Counters and data sheets cap it.
A time is the number of ranks (or of files, if it changes) divided by a rate: Little's law.

The data do not show how systems grow with targets and with files: those exponents are set by hand, with a wide
interval. No forecast sees locks or limits that had no effect yet at the sizes that were measured. The scatter contains
what the law misses on real systems, so intervals are too wide for systems that follow a smooth law exactly.
"""


def make_page(data: Path, variants: Mapping[str, Sequence[Result]]) -> str:
    """Return the page. ``variants``: results of the whole model, and of models without one part."""
    results = variants[WHOLE]
    return "\n".join(
        [
            _INTRODUCTION,
            *_systems(results),
            *_series(series(data / "series.csv")),
            *_cephfs(),
            *_ablation(variants),
            _MODEL,
        ]
    )


def _systems(results: Sequence[Result]) -> Iterator[str]:
    yield "## Systems that were left out\n"
    yield _SYSTEMS
    rules = list(dict.fromkeys(rule for each in results for rule in each.rules))
    yield f"| data | sizes known | forecasts | strakes | {' | '.join(rules)} | inside |"
    yield "|" + "---|" * (len(rules) + 5)
    for source in ("IO500", "CubeFS", "other tables"):
        for sizes in (1, 2, 3):
            some = [each for each in results if each.task.figure.source == source and each.sizes == sizes]
            if some:
                told = summarise(some, results)
                others = " | ".join(f"{told.rules[rule]:.2f}" if rule in told.rules else "-" for rule in rules)
                yield (
                    f"| {source} | {sizes} | {told.count} | **{told.factor:.2f}** | {others} | "
                    f"{100 * told.inside:.0f} % |"
                )
    last = [each for each in results if each.task.figure.source == "CubeFS" and each.sizes == 3]
    low, high = _interval(last)
    fits = math.exp(median(forecast(each.task, fitted()).error for each in last))
    yield (
        f"\nThe 90 % interval of the factor for CubeFS from three sizes is {low:.2f} to {high:.2f} (bootstrap of the "
        f"tables). With CubeFS in the population it is {fits:.2f}.\n"
    )


def _interval(results: Sequence[Result]) -> tuple[float, float]:
    """Return the 90 % bootstrap interval of the median error factor. Results from one table are resampled together."""
    tables: dict[tuple[str, str], list[float]] = defaultdict(list)
    for each in results:
        tables[each.task.figure.system, each.task.figure.name.partition(",")[0]].append(each.error)
    errors = list(tables.values())
    drawn = np.random.default_rng(1).integers(0, len(errors), size=(1000, len(errors)))
    factors = [math.exp(median(error for place in row for error in errors[place])) for row in drawn.tolist()]
    low, high = np.quantile(factors, [0.05, 0.95]).tolist()
    return low, high


def _series(figures: Sequence[Measured]) -> Iterator[str]:
    yield "## Published series\n"
    yield "The outermost value is forecast from all others. Nothing was fitted to these series.\n"
    yield "| series | sizes known | factor of error | constant | linear | inside |"
    yield "|---|---|---|---|---|---|"
    results = [forecast(task, fitted()) for figure in figures for task in tasks_of(figure)]
    for each in results:
        constant, linear = (math.exp(each.rules[rule]) for rule in ("constant", "linear in ranks"))
        yield (
            f"| {each.task.figure.name} | {len(each.task.known)} | {math.exp(each.error):.2f} | {constant:.2f} | "
            f"{linear:.2f} | {'yes' if each.covers else 'no'} |"
        )
    several = [each for each in results if len(each.task.known) > 1]
    factor, constant = (
        math.exp(median(values))
        for values in ([each.error for each in several], [each.rules["constant"] for each in several])
    )
    yield (
        f"\nThe median factor of the {len(several)} series with at least two values is {factor:.2f} (constant "
        f"{constant:.2f}). {sum(each.covers for each in several)} of them are inside their intervals, and "
        f"{sum(each.covers for each in results)} of all {len(results)} series.\n"
    )


def _cephfs() -> Iterator[str]:
    scores = cephfs.forecast_again()
    yield "## A real CephFS with limited metadata servers\n"
    yield _CEPHFS
    close, inside = (sum(values) for values in zip(*((cephfs.is_close(s), s.covered) for s in scores), strict=True))
    yield (
        f"{close} of {len(scores)} figures are within 20 %, {inside} inside their intervals. The measurements have "
        f"errors of 6 to 20 %: a perfect law would have {cephfs.expected_close():.1f} within 20 %, on average.\n"
    )


def _ablation(variants: Mapping[str, Sequence[Result]]) -> Iterator[str]:
    yield "## What each part of the model is for\n"
    yield _ABLATION
    groups = [
        ("IO500", 1),
        ("IO500", 2),
        *((source, size) for source in ("CubeFS", "other tables") for size in (1, 2, 3)),
    ]
    yield "| model | " + " | ".join(f"{source}, {sizes}" for source, sizes in groups) + " | all, mean |"
    yield "|" + "---|" * (len(groups) + 2)
    for name, results in variants.items():
        factors = []
        for source, sizes in groups:
            some = [each for each in results if each.task.figure.source == source and each.sizes == sizes]
            factors.append(f"{summarise(some, results).factor:.2f}")
        yield f"| {name} | {' | '.join(factors)} | {summarise(results, results).mean:.3f} |"
    yield _REMOVED
