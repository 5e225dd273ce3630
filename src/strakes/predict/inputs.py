"""Which runs a forecast may be made from together, and what has to be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strakes.errors import BadInputError
from strakes.predict.file_system import file_system_of
from strakes.store import Run


@dataclass(frozen=True)
class Inputs:
    """``runs``: each once. ``cautions``: those that are not complete, as sentences."""

    runs: tuple[Run, ...]
    cautions: tuple[str, ...]


def inputs_of(runs: Sequence[Run]) -> Inputs:
    """Return the runs that are of one file system. Raises BadInputError where they are of several."""
    once = tuple({run.id: run for run in runs}.values())
    described = [run for run in once if file_system_of(run).kind]
    for other in described[1:]:
        first, second = file_system_of(described[0]), file_system_of(other)
        if not first.is_same_as(second):
            raise BadInputError(
                "the runs are of different file systems",
                where=f"{described[0].id}: {first.text}; {other.id}: {second.text}",
                remedy="Give runs of one file system; make a forecast of its own for each.",
            )
    return Inputs(once, tuple(caution for run in once if (caution := _caution(run))))


def _caution(run: Run) -> str:
    if run.manifest["status"] == "complete":
        return ""
    if run.is_being_written():
        return f"The run {run.id} is still running: what it measured so far counts."
    return f"The run {run.id} did not end as planned: what it measured counts."
