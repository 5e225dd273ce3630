"""Measuring what is to be advised against its rivals again: fresh runs, as many as were fixed beforehand."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

from strakes.analysis.build import rule_of
from strakes.analysis.collect import collect
from strakes.analysis.statements import confirming, proposals
from strakes.findings.cell import Cell
from strakes.findings.results import Results
from strakes.statistics.interval import median, smallest_runs
from strakes.studies.compose import ratio_logs
from strakes.studies.study import Advice, Contest
from strakes.survey.session import LIMIT_FACTOR, Session, shortest_limit_s, usual_s, visit_cell
from strakes.units import counted

# As many rounds as time allows, but no more; how many is fixed before the first, whatever they show.
_MOST_ROUNDS = 30
# Visits take longer than usual now and then.
_SPARE = 1.1
# How sure it should be that a setting which is as much better as it seems is confirmed.
_POWER = 0.8
# The standard error of a median of normal values, times the root of their number; and their standard deviation, in
# median distances from it.
_OF_A_MEDIAN = 1.2533
_OF_A_DISTANCE = 1.4826


def confirm(session: Session, cells: list[Cell], facts: Mapping[str, Any]) -> None:
    """Measure what is to be advised, its rival and the level below again, on fresh interleaved runs."""
    request = session.request
    results = collect(cells, session.visits, rule_of(request.options()), facts)
    advice = [proposal for _, proposal in proposals(request.studies, results)]
    usual = {key: usual_s(session, key) for proposal in advice for key in _keys(proposal)}
    rounds = planned_rounds(advice, results, usual, session.left_s() / _SPARE)
    by_key = {cell.key: cell for cell in cells}
    first_block = 1 + max((visit.block for visit in session.visits), default=0)
    most = max(rounds.values(), default=0)
    for block in range(first_block, first_block + most):
        keys = sorted(key for key, wanted in rounds.items() if block - first_block < wanted)
        # A neighbour with a rhythm of his own must not meet the same cell in every round.
        for key in random.Random(f"{request.seed}/{block}").sample(keys, len(keys)):
            session.progress.update(
                f"confirming: {key}",
                session.elapsed_s() / request.budget_s,
                f"{counted(len(rounds), 'cell')}, round {block - first_block + 1} of {most}",
            )
            limit_s = max(shortest_limit_s(request), LIMIT_FACTOR * usual[key])
            visit_cell(session, by_key[key], "confirm", block, limit_s)


def planned_rounds(
    advice: Sequence[Advice], results: Results, usual: Mapping[str, float], left_s: float
) -> dict[str, int]:
    """Return how many fresh runs each cell gets, by what the blocks showed: as many settings as possible are confirmed.

    ``usual``: how long a visit of each cell takes, in seconds. What needs the fewest runs comes first; time that is
    left makes all of them surer.
    """
    confidence = confirming(results.confidence, len(advice))
    fewest = smallest_runs(confidence)
    needed = {proposal: max(fewest, _needed(proposal, results, confidence)) for proposal in advice}
    chosen: dict[Advice, int] = {}

    def lasts_s(rounds: Mapping[Advice, int]) -> float:
        return sum(usual[key] * number for key, number in _by_cell(rounds).items())

    def cost_s(proposal: Advice) -> float:
        return lasts_s({proposal: min(needed[proposal], _MOST_ROUNDS)})

    for enough in (True, False):
        for proposal in sorted(set(advice) - chosen.keys(), key=cost_s):
            wanted = needed[proposal] if enough else fewest
            if wanted <= _MOST_ROUNDS and lasts_s({**chosen, proposal: wanted}) <= left_s:
                chosen[proposal] = wanted
    while chosen:
        more = {proposal: min(_MOST_ROUNDS, number + 1) for proposal, number in chosen.items()}
        if more == chosen or lasts_s(more) > left_s:
            break
        chosen = more
    return _by_cell(chosen)


def _needed(advice: Advice, results: Results, confidence: float) -> int:
    """Return how many fresh runs will probably confirm it, if it is as good as the blocks showed."""
    return max(_needed_by(contest, results, confidence) for contest in advice.contests())


def _needed_by(contest: Contest, results: Results, confidence: float) -> int:
    logs = ratio_logs(results.get(contest.chosen), results.get(contest.rival))
    if not logs:
        return _MOST_ROUNDS + 1
    middle = median(logs)
    beyond = middle - math.log(contest.threshold)
    if beyond <= 0:
        return _MOST_ROUNDS + 1
    scatter = _OF_A_DISTANCE * median([abs(value - middle) for value in logs])
    normal = NormalDist()
    errors = normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(_POWER)
    return math.ceil(min(_MOST_ROUNDS + 1, (errors * _OF_A_MEDIAN * scatter / beyond) ** 2))


def _by_cell(rounds: Mapping[Advice, int]) -> dict[str, int]:
    by_cell: dict[str, int] = {}
    for advice, number in rounds.items():
        for key in _keys(advice):
            by_cell[key] = max(number, by_cell.get(key, 0))
    return by_cell


def _keys(advice: Advice) -> set[str]:
    """Return the cells that take part."""
    ids = {identifier for contest in advice.contests() for identifier in (contest.chosen, contest.rival)}
    return {identifier.rsplit(":", 1)[0] for identifier in ids}
