"""Questions that compare an application's usual way of I/O with alternatives, for S1's two proofs."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.findings.answers import Question
from strakes.findings.results import Measured
from strakes.studies.compose import ask


def ask_way(study: str, title: str, before: Sequence[Measured], others: Sequence[Measured]) -> list[Question]:
    """Ask which way is fastest, and how much faster each alternative is than the usual way."""
    questions = [
        question
        for after in others
        for usual in before
        for question in ask(
            study,
            f"{after.id.split('/', 1)[1]}-speed-up",
            f"{title}: speed-up",
            [(str(usual.settings["way"]), [usual]), (str(after.settings["way"]), [after])],
            advises=False,
        )
    ]
    every = [(str(cell.settings["way"]), [cell]) for cell in (*before, *others)]
    return [*ask(study, f"best-{title}", title, every), *questions]
