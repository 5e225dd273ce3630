"""Leave out phases whose I/O interface, such as MPI-IO, the engine lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from strakes.model.cell import Cell
from strakes.model.phases import MixedPhase
from strakes.model.plan import Plan
from strakes.model.portrait import SkippedCell

Absent = Mapping[str, Mapping[str, str]]
_CREATIONS = ("write", "file-create", "dir-create", "accumulate")


def without_absent(cells: Sequence[Cell], absent: Absent) -> tuple[list[Cell], list[SkippedCell]]:
    """Remove the phases that the engine cannot run. Return the changed cells, and the removed phases with reasons.

    ``absent``: I/O interfaces that the engine lacks.
    """
    kept: list[Cell] = []
    skipped: list[SkippedCell] = []
    for cell in cells:
        left_out = reasons(cell.plan, absent)
        skipped += [SkippedCell(cell.study, {**cell.settings, "phase": name}, why) for name, why in left_out.items()]
        phases = tuple(phase for phase in cell.plan.phases if phase.name not in left_out)
        names = {phase.name for phase, _ in replace(cell.plan, phases=phases).each()}
        measures = tuple(measure for measure in cell.measures if measure.phase in names)
        if not left_out:
            kept.append(cell)
        elif measures:
            kept.append(replace(cell, plan=replace(cell.plan, phases=phases), measures=measures))
    return kept, skipped


def reasons(plan: Plan, absent: Absent) -> dict[str, str]:
    """Return phase -> reason for phases that lack an interface, or need the files of a skipped phase.

    >>> from strakes.model.phases import StreamPhase, TransferPhase
    >>> write = TransferPhase("dump", "write", "shared-file", "segmented", 4096, 4096, backend="mpiio")
    >>> read = TransferPhase("restart", "read", "shared-file", "segmented", 4096, 4096)
    >>> reasons(Plan(2, (write, read, StreamPhase("copy", "write", 4096, 1))), {"mpiio": {"why": "there is no MPI"}})
    {'dump': 'mpiio: there is no MPI', 'restart': 'the phase dump, whose files it needs, is skipped'}
    """
    reasons_by_phase: dict[str, str] = {}
    lost: dict[tuple[str, str], str] = {}
    for phase in plan.phases:
        bodies = [part.phase for part in phase.parts] if isinstance(phase, MixedPhase) else [phase]
        backend = next((body.backend for body in bodies if body.backend in absent), "")
        sets = {
            (_space(body.kind), body.files): (getattr(body, "mode", "") or body.operation) in _CREATIONS
            for body in bodies
        }
        if backend:
            reasons_by_phase[phase.name] = f"{backend}: {absent[backend]['why']}"
        elif needed := next((lost[one] for one, creates in sets.items() if one in lost and not creates), ""):
            reasons_by_phase[phase.name] = f"the phase {needed}, whose files it needs, is skipped"
        for file_set, creates in sets.items():
            if creates and phase.name in reasons_by_phase:
                lost[file_set] = phase.name
            elif creates:
                lost.pop(file_set, None)
    return reasons_by_phase


def _space(kind: str) -> str:
    return "data" if kind in ("transfer", "stream", "stage") else kind
