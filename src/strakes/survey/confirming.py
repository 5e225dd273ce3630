"""Measuring what is to be advised against its rivals again: fresh runs, as many as were fixed beforehand."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from strakes.analysis.build import rule_of
from strakes.analysis.collect import collect
from strakes.analysis.statements import proposals, shared_out
from strakes.findings.cell import Cell
from strakes.statistics.interval import smallest_runs
from strakes.studies.study import Advice
from strakes.survey.session import LIMIT_FACTOR, Session, shortest_limit_s, usual_s, visit_cell

# As many rounds as time allows, but no more; how many is fixed before the first, whatever they show.
_MOST_ROUNDS = 16
# Visits take longer than usual now and then.
_SPARE = 1.1


def confirm(session: Session, cells: list[Cell], facts: Mapping[str, Any]) -> None:
    """Measure what is to be advised, its rival and the level below again, on fresh interleaved runs."""
    request = session.request
    results = collect(cells, session.visits, rule_of(request.options()), facts)
    contests = [advice for _, advice in proposals(request.studies, results)]
    fewest = smallest_runs(shared_out(request.confidence, len(contests)))
    keys, rounds = _keys(contests), 0
    while contests:
        keys = _keys(contests)
        rounds = min(_MOST_ROUNDS, int(session.left_s() / (_SPARE * sum(usual_s(session, key) for key in keys))))
        if rounds >= fewest:
            break
        contests.pop()
    by_key = {cell.key: cell for cell in cells}
    first_block = 1 + max((visit.block for visit in session.visits), default=0)
    for block in range(first_block, first_block + (rounds if contests else 0)):
        # A neighbour with a rhythm of his own must not meet the same cell in every round.
        for key in random.Random(f"{request.seed}/{block}").sample(keys, len(keys)):
            session.progress.update(
                f"confirming: {key}",
                session.elapsed_s() / request.budget_s,
                f"{len(contests)} recommendations, round {block - first_block + 1} of {rounds}",
            )
            limit_s = max(shortest_limit_s(request), LIMIT_FACTOR * usual_s(session, key))
            visit_cell(session, by_key[key], "confirm", block, limit_s)


def _keys(contests: list[Advice]) -> list[str]:
    """Return the cells that take part."""
    ids = {
        identifier
        for advice in contests
        for contest in advice.contests()
        for identifier in (contest.chosen, contest.rival)
    }
    return sorted({identifier.rsplit(":", 1)[0] for identifier in ids})
