"""Measuring what is to be advised against its runner-up again, on fresh runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strakes.portrait.build import rule_of
from strakes.portrait.collect import cell_record, collect
from strakes.studies.base import Advice, Cell
from strakes.studies.compose import better_ratio
from strakes.studies.results import Results
from strakes.survey.session import LIMIT_FACTOR, Session, shortest_limit_s, usual_s, visit_cell

# More fresh runs than this do not settle a contest that is still open.
_MOST_CONFIRM_ROUNDS = 12


def confirm(session: Session, cells: list[Cell], facts: Mapping[str, Any]) -> None:
    """Measures what is to be advised against its runner-up again, on fresh interleaved runs."""
    rule = rule_of(session.request.options())
    records = [cell_record(cell) for cell in cells]
    results = collect(records, session.visits, rule, facts)
    contests = [advice for study in session.request.studies for advice in study.advice(results.of_study(study.name))]
    by_key = {cell.key: cell for cell in cells}
    first_block = 1 + max((visit["block"] for visit in session.visits), default=0)
    for block in range(first_block, first_block + _MOST_CONFIRM_ROUNDS):
        results = collect(records, session.visits, rule, facts)
        open_contests = [one for one in contests if not _settled(one, results)]
        keys = sorted({identifier.rsplit(":", 1)[0] for one in open_contests for identifier in (one.chosen, one.against)})
        if block % 2:
            keys.reverse()
        expected_s = sum(usual_s(session, key) for key in keys)
        if not keys or expected_s > session.left_s():
            return
        for key in keys:
            session.progress.update(
                f"confirming: {key}", session.elapsed_s() / session.request.budget_s, f"{len(open_contests)} recommendations open"
            )
            limit_s = max(shortest_limit_s(session.request), LIMIT_FACTOR * usual_s(session, key))
            visit_cell(session, by_key[key], "confirm", block, limit_s)


def _settled(advice: Advice, results: Results) -> bool:
    """The fresh runs alone already show the advice, or refute it."""
    ratio = better_ratio(results.get(advice.chosen), results.get(advice.against), results.confidence, purpose="confirm")
    if ratio is None or ratio.interval is None:
        return False
    return ratio.interval.low >= advice.threshold or ratio.interval.high < advice.threshold
