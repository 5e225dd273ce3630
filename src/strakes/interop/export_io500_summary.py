"""Export of IO500's phases in the format of its result_summary.txt.

If a phase was measured several times, the summary has the median. A comment below the score has the interval.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from strakes.base.errors import BadInputError
from strakes.base.units import GIB
from strakes.base.version import __version__
from strakes.interop.command_io500 import PHASES, RANDOM, VALID_STONEWALL_S
from strakes.interop.export_rows import results_of
from strakes.model.phases import AMOUNT
from strakes.model.plan import Plan
from strakes.runs.run import Run

BANDWIDTHS = tuple(name for name in PHASES if name.startswith("ior-"))
RATES = tuple(name for name in PHASES if name not in BANDWIDTHS)
# Name of a phase in strakes -> name in the summary, for names that differ.
_THEIRS = {RANDOM: "ior-rnd4K-easy-read"}
_INVALID = " [INVALID]"


def to_io500_summary(run: Run) -> str:
    """Return the text of a result_summary.txt. Raises BadInputError for a run without phases of IO500."""
    known = {*PHASES, RANDOM}
    cells = (one for one in run.cells if one.measures and not one.imported)
    cell = next((one for one in cells if {part.phase for part in one.measures} <= known), None)
    if cell is None:
        remedy = "Make such a run: strakes run io500 config.ini"
        raise BadInputError("this run contains no IO500 phases that strakes ran", where=run.id, remedy=remedy)
    results = results_of(run)
    values: dict[str, float] = {}
    lines, intervals, invalid = [], [], []
    for name in (measure.phase for measure in cell.measures):
        measured = results.get(cell.measure_id(name))
        estimate, samples = measured.estimate, [one.sample for one in measured.observations]
        if estimate is None:
            continue
        unit, scale = ("GiB/s", float(GIB)) if measured.unit == "B/s" else ("kIOPS", 1000.0)
        values[name], elapsed_s = estimate.median / scale, statistics.median(one.elapsed_s for one in samples)
        faults = _faults(name, [sample.stopped_by for sample in samples], cell.plan)
        invalid += [f"{name}: {fault}" for fault in faults]
        shown = f"{_THEIRS.get(name, name):>20} {values[name]:15.6f} {unit}"
        lines.append(f"[RESULT] {shown} : time {elapsed_s:.3f} seconds{_INVALID if faults else ''}")
        if estimate.low is not None and estimate.high is not None:
            interval = f"{estimate.low / scale:.6f} to {estimate.high / scale:.6f} {unit}"
            intervals.append(f"; {name}: {interval} in {len(samples)} runs")
    invalid += [f"{name}: not measured" for name in PHASES if not values.get(name)]
    # IO500's scores are geometric means. A missing phase makes them 0.
    bandwidth, rate = (
        statistics.geometric_mean([values[name] for name in names]) if all(map(values.get, names)) else 0.0
        for names in (BANDWIDTHS, RATES)
    )
    score = f"Bandwidth {bandwidth:.6f} GiB/s : IOPS {rate:.6f} kiops : TOTAL {(bandwidth * rate) ** 0.5:.6f}"
    head = f"IO500 phases by strakes {__version__} (not a submission to the IO500 list)"
    text = [head, *lines, f"[SCORE ] {score}{_INVALID if invalid else ''}", *intervals]
    return "\n".join([*text, *(f"; INVALID: {fault}" for fault in invalid), ""])


def _faults(phase: str, stopped_by: Sequence[str], plan: Plan) -> list[str]:
    """Return why IO500 would call a phase INVALID: its stonewall is too short, or it ends before the stonewall."""
    if not phase.endswith("-write"):
        return []
    stop = next((one.stop for one, _ in plan.each() if one.name == phase and hasattr(one, "stop")), AMOUNT)
    seconds = stop.seconds or 0.0
    short = seconds < VALID_STONEWALL_S
    faults = [f"its stonewall is {seconds:g} s instead of {VALID_STONEWALL_S} s"] if short else []
    return faults + (["it ended before the stonewall"] if any(ending != "seconds" for ending in stopped_by) else [])
