"""Export of IO500's phases in the format of its result_summary.txt.

A phase that was measured several times has its median, and its interval in a comment line below the score.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from strakes.errors import BadInputError
from strakes.findings.results import Measured
from strakes.interop.commands.io500 import PHASES, RANDOM, VALID_STONEWALL_S
from strakes.interop.exports.rows import results_of
from strakes.plan import Plan
from strakes.store import Run
from strakes.units import GIB
from strakes.version import __version__

BANDWIDTHS = tuple(name for name in PHASES if name.startswith("ior-"))
RATES = tuple(name for name in PHASES if name not in BANDWIDTHS)
# IO500's spelling of phases, if it differs.
_THEIRS = {RANDOM: "ior-rnd4K-easy-read"}


@dataclass(frozen=True)
class _Line:
    """One line of the summary. ``value`` in GiB/s or kIOPS; ``elapsed_s``: median; ``faults``: why it is INVALID."""

    name: str
    unit: str
    value: float
    low: float | None
    high: float | None
    runs: int
    elapsed_s: float
    faults: Sequence[str]

    def text(self) -> str:
        """Return the line of the phase."""
        name = _THEIRS.get(self.name, self.name)
        time = f"time {self.elapsed_s:.3f} seconds{_invalid(self.faults)}"
        return f"[RESULT] {name:>20} {self.value:15.6f} {self.unit} : {time}"


def to_io500_summary(run: Run) -> str:
    """Return the text of a result_summary.txt. Raises BadInputError for a run without phases of IO500."""
    known = {*PHASES, RANDOM}
    cell = next((one for one in run.cells if one.measures and {part.phase for part in one.measures} <= known), None)
    if cell is None:
        remedy = "Make one: strakes run io500 config.ini"
        raise BadInputError("this run has no phases of IO500", where=run.id, remedy=remedy)
    results = results_of(run)
    phases = [(measure.phase, results.get(cell.measure_id(measure.phase))) for measure in cell.measures]
    lines = [_line(name, measured, cell.plan) for name, measured in phases if measured.estimate is not None]
    values = {line.name: line.value for line in lines if line.value}
    faults = [f"{line.name}: {fault}" for line in lines for fault in line.faults]
    faults += [f"{name}: not measured" for name in (*BANDWIDTHS, *RATES) if name not in values]
    # IO500's geometric means, or 0 for a missing phase.
    bandwidth, rate = (
        statistics.geometric_mean([values[name] for name in names]) if values.keys() >= set(names) else 0.0
        for names in (BANDWIDTHS, RATES)
    )
    total = (bandwidth * rate) ** 0.5
    text = [
        f"IO500 phases by strakes {__version__} (not a submission to the IO500 list)",
        *(line.text() for line in lines),
        f"[SCORE ] Bandwidth {bandwidth:.6f} GiB/s : IOPS {rate:.6f} kiops : TOTAL {total:.6f}{_invalid(faults)}",
        *(
            f"; {line.name}: {line.low:.6f} to {line.high:.6f} {line.unit} in {line.runs} runs"
            for line in lines
            if line.low is not None and line.high is not None
        ),
        *(f"; INVALID: {fault}" for fault in faults),
    ]
    return "\n".join(text) + "\n"


def _invalid(faults: Sequence[str]) -> str:
    return " [INVALID]" if faults else ""


def _line(phase: str, measured: Measured, plan: Plan) -> _Line:
    estimate = measured.estimate
    assert estimate is not None
    unit, scale = ("GiB/s", float(GIB)) if measured.unit == "B/s" else ("kIOPS", 1000.0)
    samples = [one.sample for one in measured.observations]
    low, high = (None if bound is None else bound / scale for bound in (estimate.low, estimate.high))
    elapsed_s = statistics.median(sample.elapsed_s for sample in samples)
    faults = _faults(phase, [sample.stopped_by for sample in samples], plan)
    return _Line(phase, unit, estimate.median / scale, low, high, len(samples), elapsed_s, faults)


def _faults(phase: str, stopped_by: Sequence[str], plan: Plan) -> list[str]:
    """Return why IO500 would call a phase INVALID: a short stonewall, or an end before the stonewall."""
    if not phase.endswith("-write"):
        return []
    stop = next(one.stop for one, _ in plan.each() if one.name == phase and hasattr(one, "stop"))
    seconds = stop.seconds or 0.0
    short = seconds < VALID_STONEWALL_S
    faults = [f"its stonewall is {seconds:g} s instead of {VALID_STONEWALL_S} s"] if short else []
    return faults + (["it ended before the stonewall"] if any(ending != "seconds" for ending in stopped_by) else [])
