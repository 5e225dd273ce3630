"""Export of IO500's phases in the format of its result_summary.txt, and as JSON.

A phase that was measured several times has its median, and its interval in a comment line below the score.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strakes.errors import BadInputError
from strakes.findings.cell import Cell
from strakes.findings.latency import latencies_of_all
from strakes.findings.results import Measured
from strakes.interop.commands.io500 import VALID_STONEWALL_S
from strakes.interop.exports.rows import results_of
from strakes.plan import Plan
from strakes.store import Run
from strakes.units import GIB
from strakes.version import __version__

# The phases with a score, in IO500's order. ior-rnd4k-easy-read has no score.
BANDWIDTHS = ("ior-easy-write", "ior-hard-write", "ior-easy-read", "ior-hard-read")
RATES = (
    "mdtest-easy-write",
    "mdtest-hard-write",
    "find",
    "mdtest-easy-stat",
    "mdtest-hard-stat",
    "mdtest-easy-delete",
    "mdtest-hard-read",
    "mdtest-hard-delete",
)
# IO500's spelling of phases, if it differs.
_THEIRS = {"ior-rnd4k-easy-read": "ior-rnd4K-easy-read"}


@dataclass(frozen=True)
class PhaseResult:
    """One line of the summary. ``value`` in GiB/s or kIOPS; ``elapsed_s``: median; ``faults``: why it is INVALID.

    ``latencies``: percentiles of all calls in all runs, in seconds.
    """

    name: str
    unit: str
    value: float
    elapsed_s: float
    low: float | None
    high: float | None
    runs: int
    latencies: Mapping[str, float]
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Score:
    """IO500's geometric means, or None for missing phases. ``faults``: why the run is INVALID."""

    bandwidth: float | None
    rate: float | None
    total: float | None
    faults: tuple[str, ...]


def io500_results(run: Run) -> tuple[tuple[PhaseResult, ...], Score]:
    """Return the phases of a run and their score. Raises BadInputError for a run without phases of IO500."""
    results = results_of(run)
    cell = next((cell for cell in run.cells if _is_io500(cell)), None)
    if cell is None:
        remedy = "Make one: strakes run io500 config.ini"
        raise BadInputError("this run has no phases of IO500", where=run.id, remedy=remedy)
    lines = []
    for measure in cell.measures:
        measured = results.get(cell.measure_id(measure.phase))
        if measured.estimate is not None:
            lines.append(_line(measure.phase, measured, cell.plan))
    return tuple(lines), _score(lines)


def _is_io500(cell: Cell) -> bool:
    known = {*BANDWIDTHS, *RATES, *_THEIRS}
    return bool(cell.measures) and all(measure.phase in known for measure in cell.measures)


def _line(phase: str, measured: Measured, plan: Plan) -> PhaseResult:
    estimate = measured.estimate
    assert estimate is not None
    unit, scale = ("GiB/s", float(GIB)) if measured.unit == "B/s" else ("kIOPS", 1000.0)
    samples = [one.sample for one in measured.observations]
    return PhaseResult(
        name=_THEIRS.get(phase, phase),
        unit=unit,
        value=estimate.median / scale,
        elapsed_s=statistics.median(sample.elapsed_s for sample in samples),
        low=estimate.low / scale if estimate.low is not None else None,
        high=estimate.high / scale if estimate.high is not None else None,
        runs=len(samples),
        latencies=latencies.percentiles if (latencies := latencies_of_all(samples)) else {},
        faults=_faults(phase, [sample.stopped_by for sample in samples], plan),
    )


def _faults(phase: str, stopped_by: Sequence[str], plan: Plan) -> tuple[str, ...]:
    """Return why IO500 would call a phase INVALID: a short stonewall, or an end before the stonewall."""
    if not phase.endswith("-write"):
        return ()
    stop = next(one.stop for one, _ in plan.each() if one.name == phase and hasattr(one, "stop"))
    seconds = stop.seconds or 0.0
    faults = []
    if seconds < VALID_STONEWALL_S:
        faults.append(f"its stonewall is {seconds:g} s instead of {VALID_STONEWALL_S} s")
    if any(ending != "seconds" for ending in stopped_by):
        faults.append("it ended before the stonewall")
    return tuple(faults)


def _score(lines: Sequence[PhaseResult]) -> Score:
    values = {line.name: line.value for line in lines}
    faults = [f"{line.name}: {fault}" for line in lines for fault in line.faults]
    missing = [name for name in (*BANDWIDTHS, *RATES) if not values.get(name)]
    faults += [f"{name}: not measured" for name in missing]
    bandwidth = (
        statistics.geometric_mean([values[name] for name in BANDWIDTHS]) if not {*BANDWIDTHS} & {*missing} else None
    )
    rate = statistics.geometric_mean([values[name] for name in RATES]) if not {*RATES} & {*missing} else None
    total = (bandwidth * rate) ** 0.5 if bandwidth is not None and rate is not None else None
    return Score(bandwidth, rate, total, tuple(faults))


def to_io500_summary(run: Run) -> str:
    """Return the text of a result_summary.txt. Raises BadInputError for a run without phases of IO500."""
    lines, score = io500_results(run)
    invalid = " [INVALID]"
    text = [f"IO500 phases by strakes {__version__} (not a submission to the IO500 list)"]
    text += [
        f"[RESULT] {line.name:>20} {line.value:15.6f} {line.unit} : time {line.elapsed_s:.3f} seconds"
        f"{invalid if line.faults else ''}"
        for line in lines
    ]
    bandwidth, rate, total = (
        value if value is not None else 0.0 for value in (score.bandwidth, score.rate, score.total)
    )
    text.append(
        f"[SCORE ] Bandwidth {bandwidth:.6f} GiB/s : IOPS {rate:.6f} kiops : TOTAL {total:.6f}"
        f"{invalid if score.faults else ''}"
    )
    text += [
        f"; {line.name}: {line.low:.6f} to {line.high:.6f} {line.unit} in {line.runs} runs"
        for line in lines
        if line.low is not None and line.high is not None
    ]
    text += [f"; INVALID: {fault}" for fault in score.faults]
    return "\n".join(text) + "\n"


def to_io500_json(run: Run) -> dict[str, object]:
    """Return the summary as JSON values. Raises BadInputError for a run without phases of IO500."""
    lines, score = io500_results(run)
    return {
        "schema": 1,
        "run": run.id,
        "phases": [
            {
                **{key: getattr(line, key) for key in ("name", "unit", "value", "elapsed_s", "low", "high", "runs")},
                "latencies": {f"{name}_s": seconds for name, seconds in line.latencies.items()},
                "invalid": list(line.faults),
            }
            for line in lines
        ],
        "score": {"bandwidth": score.bandwidth, "iops": score.rate, "total": score.total},
        "invalid": list(score.faults),
    }
