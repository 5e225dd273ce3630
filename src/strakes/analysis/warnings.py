"""Which warnings a run earns: feeds what its samples say to the checks in ``analysis.evidence``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from strakes.analysis import evidence
from strakes.analysis.amounts import amount_warnings
from strakes.analysis.held_back import gave_way, held_back, under_one_limit
from strakes.analysis.hybrid_io import hybrid_io
from strakes.analysis.interruptions import as_known_last
from strakes.analysis.servers import slow_servers
from strakes.findings.begun import all_begun, begun
from strakes.findings.portrait import RunWarning
from strakes.findings.record import to_record
from strakes.findings.results import Measured, Observation, Results
from strakes.findings.sample import Sample
from strakes.launch.impact import UNLIMITED
from strakes.statistics.interval import median
from strakes.store import Run
from strakes.store.records import (
    CellDropped,
    InterruptionsEnded,
    LayoutGiven,
    NeighbourFelt,
    NodesChanged,
    OthersSeen,
    TargetDescribed,
    TroubleSeen,
    Visit,
)
from strakes.studies.registry import study_named
from strakes.targets.description import Layout

_SURE_OF_SERVERS = 0.98


def run_warnings(run: Run, results: Results) -> list[RunWarning]:
    """All warnings of a run, the weightiest first."""
    environment, options = run.environment, run.manifest["options"]
    warnings = [
        *evidence.memory_file_system(str(results.facts.get("file_system", ""))),
        *_direct_refused(results),
        *_limits(run, results),
        *_cache(results),
        *amount_warnings(results),
        *evidence.cache_below(str((results.facts.get("block_device") or {}).get("backing_file", "")), _reads(results)),
        *_few_runs(results),
        *_stonewalled(results),
        *_hints(results),
        *_clock(run.visits),
        *_dropped(run, float(options["budget_s"])),
        *_target(run),
        *hybrid_io(run),
        *_nodes(run, results),
        *_begun(run, results),
    ]
    if "load_average" in environment and "cpus" in environment:
        warnings += evidence.load_before(
            float(environment["load_average"][0]), int(environment["cpus"]), results.facts.get("others_busy")
        )
    return warnings


def _measured(results: Results) -> list[Measured]:
    return [cell for cell in results.measured if cell.estimate is not None and not cell.is_side]


def _regular(cell: Measured) -> list[Observation]:
    return [seen for seen in cell.observations if seen.purpose == "measure"]


def _limits(run: Run, results: Results) -> list[RunWarning]:
    """Return warnings of figures that only show a limit, and of runs under other limits."""
    visits = run.visits
    stopped = any(event.stopped for event in run.events_of(NeighbourFelt))
    shown = under_one_limit(visits)
    limit = shown[0].impact if shown else UNLIMITED
    held = {cell.id: held_back(cell) for cell in _measured(results)}
    touched = [cell for cell, share in held.items() if share]
    others = [visit.impact for visit in visits if visit.ended_well and visit.impact != limit]
    return [
        *evidence.held_back(str(limit), max(held.values(), default=0.0), touched),
        *evidence.gave_way(*gave_way(visits), stopped),
        *evidence.left_out(len(others), [str(other) for other in dict.fromkeys(others)], str(limit)),
    ]


def _direct_refused(results: Results) -> list[RunWarning]:
    if results.facts.get("direct_io", True) is not False:
        return []
    return evidence.direct_refused(
        str(results.facts.get("file_system", "the file system")), "tried with an aligned write and read"
    )


def _cache(results: Results) -> list[RunWarning]:
    """Pages that were there before a read, and buffered reads that overtake O_DIRECT ones of the same settings."""
    warnings: list[RunWarning] = []
    uncounted: list[Measured] = []
    device = str((results.facts.get("block_device") or {}).get("name", ""))
    # A device that counted nothing at all is not the one that works here: a volume, or a disk of another name.
    if not any(device in _devices(seen) for figure in _measured(results) for seen in figure.observations):
        device = ""
    for cell in _measured(results):
        if cell.settings.get("operation") not in ("read", "train"):
            continue
        caches = [(seen.sample.cache, seen.sample.bytes) for seen in _regular(cell)]
        resident = median([float(cache.resident_before_bytes) for cache, _ in caches])
        # Where every rank reads the whole file, what was in memory is held against the file, not against all that was
        # read.
        held = [amount if cache.file_bytes is None else min(amount, cache.file_bytes) for cache, amount in caches]
        read = median([float(amount) for amount in held])
        in_memory = evidence.cached_before(int(resident), int(read), (cell.id,))
        counted = _counted(cell, results, device)
        warnings += in_memory
        if counted is not None and not in_memory:
            amounts, who = counted
            read = median([read for _, read in amounts])
            warnings += evidence.answered_before(median([count for count, _ in amounts]), read, who, (cell.id,))
        if counted is None and cell.settings.get("io") != "direct":
            uncounted.append(cell)
    cells = [figure.id for figure in uncounted]
    return [*warnings, *evidence.cache_unseen(str(results.facts.get("file_system", "")), cells)]


def _devices(seen: Observation) -> Mapping[str, Mapping[str, float]]:
    devices: Mapping[str, Mapping[str, float]] = seen.sample.counters.get("devices", {})
    return devices


def _counted(figure: Measured, results: Results, device: str) -> tuple[list[tuple[float, float]], str] | None:
    """Return, for each read, the bytes that the device or the servers counted, and the bytes read.

    None without counters.
    """
    if device:
        # One without an entry moved nothing.
        own = [(_devices(seen).get(device, {}).get("read_bytes", 0), seen.sample.bytes) for seen in _regular(figure)]
        return [(float(count), float(read)) for count, read in own], f"Device {device}"
    # Servers are looked at before and after a visit: they count all that was read in it.
    cell = figure.id.rsplit(":", 1)[0]
    reads = [
        seen
        for other in _measured(results)
        if other.id.rsplit(":", 1)[0] == cell and "read" in str(other.settings.get("operation", ""))
        for seen in _regular(other)
    ]
    amounts = []
    for seen in _regular(figure):
        told = [
            float(counters["data.read_bytes"]) for counters in seen.servers.values() if "data.read_bytes" in counters
        ]
        if told:
            read = {other.sample.name: other.sample.bytes for other in reads if other.at_s == seen.at_s}
            amounts.append((sum(told), float(sum(read.values()))))
    return (amounts, f"Servers ({', '.join(sorted(_regular(figure)[0].servers))})") if amounts else None


def _reads(results: Results) -> list[str]:
    return [cell.id for cell in _measured(results) if cell.settings.get("operation") == "read"]


def _few_runs(results: Results) -> list[RunWarning]:
    few: dict[int, list[str]] = {}
    for figure in _measured(results):
        if figure.estimate is not None and figure.estimate.low is None:
            few.setdefault(figure.estimate.runs, []).append(figure.id)
    return [warning for runs, cells in sorted(few.items()) for warning in evidence.few_runs(runs, cells)]


def _stonewalled(results: Results) -> list[RunWarning]:
    warnings = []
    for cell in _measured(results):
        stopped = [seen for seen in _regular(cell) if seen.sample.stopped_by == "seconds"]
        if stopped:
            elapsed_s = median([seen.sample.elapsed_s for seen in stopped])
            done = round(median([float(seen.sample.operations) for seen in stopped]))
            warnings += evidence.stonewalled(done, float(stopped[0].asked), "operations", elapsed_s, (cell.id,))
    return warnings


def _hints(results: Results) -> list[RunWarning]:
    """Return warnings of libraries that ignored a setting."""
    warnings: list[RunWarning] = []
    for cell in _measured(results):
        told = [seen.sample.effective for seen in _regular(cell)]
        others = {name: pair for effective in told for name, pair in effective.get("hints_not_in_effect", {}).items()}
        for name, (asked, has) in others.items():
            warnings += evidence.setting_differs(f"hint {name}", asked, has or "nothing", (cell.id,))
    return warnings


def _clock(visits: Sequence[Visit]) -> list[RunWarning]:
    """Wall clock against monotonic clock over each visit."""
    for visit in visits:
        if visit.ended_unix_s is not None and visit.started_unix_s is not None:
            warnings = evidence.clock_jump(visit.ended_unix_s - visit.started_unix_s, visit.elapsed_s)
            if warnings:
                return warnings
    return []


def _target(run: Run) -> list[RunWarning]:
    """Targets unlike the others, layouts that were not given, servers that changed while they counted."""
    warnings: list[RunWarning] = []
    for event in run.events:
        if isinstance(event, TargetDescribed):
            warnings += evidence.targets_unlike(event.unlike)
        elif isinstance(event, LayoutGiven) and event.differences:
            given = _values(event.given) if event.given else event.differences[0]
            warnings += evidence.setting_differs("layout of new files", _values(event.wanted), given)
    # A drill is there to have servers start anew.
    drills = {cell.key for cell in run.cells if study_named(cell.study).interrupts_service}
    lines = [line for visit in run.visits if visit.cell not in drills for line in visit.servers_disturbed]
    lost = [interruption for visit in run.visits for interruption in visit.interruptions]
    # Only checks that were made.
    lost = as_known_last(lost, [each for event in run.events_of(InterruptionsEnded) for each in event.interruptions])
    again = sum(1 for visit in run.visits if visit.ended == "interrupted")
    slow = slow_servers([visit for visit in run.visits if visit.cell not in drills], _SURE_OF_SERVERS)
    return [
        *warnings,
        *(warning for server, ratio in slow.items() for warning in evidence.server_unlike(server, ratio)),
        *evidence.servers_disturbed(list(dict.fromkeys(lines))),
        *evidence.service_interrupted(lost, again),
        *_others(run),
        *evidence.servers_not_well([(event.when, event.sentences) for event in run.events_of(TroubleSeen)]),
    ]


def _others(run: Run) -> list[RunWarning]:
    """Return who else measured with strakes in the same directory."""
    who = list(dict.fromkeys(name for event in run.events_of(OthersSeen) for name in event.who))
    text = f"Another measurement worked in the same directory at the same time: {'; '.join(who)}."
    remedy = "These figures show a shared system. For others, measure one after the other."
    return [RunWarning("other-measurement", text, remedy)] if who else []


def _nodes(run: Run, results: Results) -> list[RunWarning]:
    """Where several were measured together."""
    facts = results.facts.get("nodes") or {}
    lines = [f"{difference['host']}: {difference['what']}" for difference in facts.get("differences", ())]
    if "not_compared" in facts:
        lines.append(f"The nodes were not compared ({facts['not_compared']})")
    lines += [f"Resumed on other nodes: {', '.join(event.nodes)}" for event in run.events_of(NodesChanged)]
    return evidence.nodes_unlike(list(dict.fromkeys(lines)))


def _begun(run: Run, results: Results) -> list[RunWarning]:
    """Return warnings of phases whose ranks began apart, separately for phases with fewer processors than ranks."""
    warnings: list[RunWarning] = []
    for crowded in (False, True):
        phases = [
            phase
            for phase in all_begun(sample for visit in run.visits for sample in visit.samples)
            if phase.crowded == crowded
        ]
        apart = [phase for phase in phases if phase.is_apart]
        if apart:
            touched = [
                cell.id
                for cell in _measured(results)
                if any(_is_apart(seen.sample, crowded) for seen in _regular(cell))
            ]
            warnings += evidence.begun_apart(
                len(apart), len(phases), max(apart, key=lambda phase: phase.apart_s), touched
            )
    return warnings


def _is_apart(sample: Sample, crowded: bool) -> bool:
    phase = begun(sample)
    return phase is not None and phase.is_apart and phase.crowded == crowded


def _values(layout: Layout) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in to_record(layout).items())


def _dropped(run: Run, budget_s: float) -> list[RunWarning]:
    return evidence.budget_skipped(len(dropped_cells(run)), len(run.cells), budget_s)


def dropped_cells(run: Run) -> dict[str, str]:
    """Return the cells that the budget did not allow, each with the reason.

    A resumed run may have come to them later.
    """
    runs = Counter(visit.cell for visit in run.visits if visit.ended_well and visit.is_measurement)
    return {
        event.cell: event.reason
        for event in run.events_of(CellDropped)
        if event.runs is None or runs[event.cell] <= event.runs
    }
