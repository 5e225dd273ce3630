"""The answers as text and as a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from strakes.base.foreign_text import for_terminal
from strakes.report.summary import wrap
from strakes.tuning.accept_judge import VERDICTS, Answer

_WIDTH = 96


def to_document(title: str, run: str, answers: Sequence[Answer]) -> dict[str, object]:
    """Return the answers as JSON values; rates in B/s or per second, times in seconds."""
    return {
        "schema": 1,
        "title": title,
        "run": run,
        "counts": counts(answers),
        "answers": [asdict(answer) for answer in answers],
    }


def counts(answers: Sequence[Answer]) -> dict[str, int]:
    """Return the number of answers with each verdict."""
    return {verdict: sum(answer.verdict == verdict for answer in answers) for verdict in VERDICTS}


def render(title: str, run: str, answers: Sequence[Answer]) -> str:
    """Return a block of text for each need: verdict, requirement, result, and the limits of the result."""
    lines = [for_terminal(title), *([f"run {run}"] if run else []), ""]
    for answer in answers:
        lines.append(f"{answer.verdict:<8} {for_terminal(answer.need.name)}: {answer.wanted}")
        lines += [
            f"         {line}"
            for line in wrap(f"{'forecast' if answer.forecast else 'measured'}: {answer.found}", _WIDTH - 9)
        ]
        lines += [f"         {line}" for line in wrap(answer.limits, _WIDTH - 9)]
    summary = ", ".join(f"{number} {verdict}" for verdict, number in counts(answers).items() if number)
    return "\n".join([*lines, "", summary])
