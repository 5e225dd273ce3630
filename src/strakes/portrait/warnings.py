"""Which warnings a run earns: feeds what its samples say to the checks in ``statistics.evidence``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from strakes.portrait.begun import all_begun, begun
from strakes.portrait.held_back import gave_way, held_back, limit_in_words, limit_of, under_one_limit
from strakes.portrait.model import RunWarning
from strakes.statistics import evidence
from strakes.statistics.bimodality import two_groups
from strakes.statistics.drift import pooled_trend
from strakes.statistics.interval import Estimate, Interval, median
from strakes.store import Run
from strakes.studies.compose import better_ratio
from strakes.studies.registry import study_named
from strakes.studies.results import Measured, Observation, Results

_STOPPED_BY = {"budget-spent": "the end of the budget", "max-runs": "the most runs allowed"}


def run_warnings(run: Run, results: Results) -> list[RunWarning]:
    """All warnings of a run, the weightiest first."""
    environment, options = run.environment, run.manifest["options"]
    found = [
        *evidence.memory_file_system(str(results.facts.get("file_system", ""))),
        *_direct_refused(results),
        *_limits(run, results),
        *_cache(results),
        *evidence.cache_below(str((results.facts.get("block_device") or {}).get("backing_file", "")), _reads(results)),
        *_intervals(results, float(options["relative_half_width"])),
        *_stonewalled(results),
        *_hints(results),
        *_shape(results),
        *drift(results),
        *_clock(run.visits),
        *_dropped(run, float(options["budget_s"])),
        *_target(run),
        *_nodes(run, results),
        *_begun(run, results),
    ]
    if "load_average" in environment and "cpus" in environment:
        found += evidence.load_before(float(environment["load_average"][0]), int(environment["cpus"]))
    return found


def _measured(results: Results) -> list[Measured]:
    return [one for one in results.measured if one.estimate is not None and not one.is_side]


def _regular(one: Measured) -> list[Observation]:
    return [seen for seen in one.observations if seen.purpose == "measure"]


def _limits(run: Run, results: Results) -> list[RunWarning]:
    """Figures of a limit, and runs that could not stand beside them."""
    visits = run.visits
    stopped = any(event["stopped"] for event in run.events if event["event"] == "neighbour")
    shown = under_one_limit(visits)
    limit = limit_of(shown[0]) if shown else ""
    held = {one.id: held_back(one) for one in _measured(results)}
    touched = [cell for cell, share in held.items() if share]
    others = [limit_of(visit) for visit in visits if visit["ended"] == "ok" and limit_of(visit) != limit]
    return [
        *evidence.held_back(limit_in_words(limit), max(held.values(), default=0.0), touched),
        *evidence.gave_way(*gave_way(visits), stopped),
        *evidence.left_out(len(others), [limit_in_words(other) for other in dict.fromkeys(others)], limit_in_words(limit)),
    ]


def _direct_refused(results: Results) -> list[RunWarning]:
    if results.facts.get("direct_io", True) is not False:
        return []
    return evidence.direct_refused(str(results.facts.get("file_system", "the file system")), "tried with an aligned write and read")


def _cache(results: Results) -> list[RunWarning]:
    """Pages that were there before a read, and buffered reads that overtake O_DIRECT ones of the same settings."""
    found: list[RunWarning] = []
    for one in _measured(results):
        if one.settings.get("operation") != "read":
            continue
        caches = [(seen.sample.get("cache", {}), seen.sample["bytes"]) for seen in _regular(one)]
        resident = median([float(cache.get("resident_before_bytes", 0)) for cache, _ in caches])
        # Where every rank reads the whole file, what was in memory is held against the file, not against all that was read.
        read = median([float(min(amount, cache.get("file_bytes", amount))) for cache, amount in caches])
        found += evidence.cached_before(int(resident), int(read), (one.id,))
        if one.settings.get("io") == "buffered":
            found += _against_direct(one, results)
    return found


def _reads(results: Results) -> list[str]:
    return [one.id for one in _measured(results) if one.settings.get("operation") == "read"]


def _against_direct(buffered: Measured, results: Results) -> list[RunWarning]:
    same = {**buffered.settings, "io": "direct"}
    for direct in results.where(**same):
        ratio = better_ratio(buffered, direct, results.confidence)
        if direct.study == buffered.study and ratio is not None:
            return evidence.faster_than_direct(ratio, (buffered.id,))
    return []


def _intervals(results: Results, wanted: float) -> list[RunWarning]:
    found: list[RunWarning] = []
    few: dict[int, list[str]] = {}
    for one in _measured(results):
        cell = one.estimate
        assert cell is not None
        if cell.low is None or cell.high is None:
            few.setdefault(cell.runs, []).append(one.id)
        elif cell.stopped_because != "findings-settled":
            estimate = Estimate(cell.median, Interval(cell.low, cell.high, cell.confidence), cell.runs)
            found += evidence.interval_not_reached(estimate, wanted, _STOPPED_BY.get(cell.stopped_because, cell.stopped_because), (one.id,))
    for runs, cells in sorted(few.items()):
        found += evidence.few_runs(runs, results.confidence, cells)
    return found


def _stonewalled(results: Results) -> list[RunWarning]:
    found = []
    for one in _measured(results):
        stopped = [seen for seen in _regular(one) if seen.sample.get("stopped_by") == "seconds"]
        if stopped:
            elapsed_s = median([float(seen.sample["elapsed_s"]) for seen in stopped])
            done = round(median([float(seen.sample["operations"]) for seen in stopped]))
            found += evidence.stonewalled(done, float(stopped[0].asked), "operations", elapsed_s, (one.id,))
    return found


def _hints(results: Results) -> list[RunWarning]:
    """Of libraries, which pass over what they do not know."""
    found: list[RunWarning] = []
    for one in _measured(results):
        told = [seen.sample.get("effective", {}) for seen in _regular(one)]
        others = {name: pair for effective in told for name, pair in effective.get("hints_not_in_effect", {}).items()}
        for name, (asked, has) in others.items():
            found += evidence.setting_differs(f"hint {name}", asked, has or "nothing", (one.id,))
    return found


def _shape(results: Results) -> list[RunWarning]:
    found: list[RunWarning] = []
    for one in _measured(results):
        found += evidence.bimodal(two_groups([seen.value for seen in _regular(one)]), one.unit, (one.id,))
    return found


def drift(results: Results) -> list[RunWarning]:
    """One test over all cells; times are turned over so that up always means faster.

    A study that goes on where its last visit ended changes as it should: its own findings say how.
    """
    series = []
    for one in _measured(results):
        values = one.by_block()
        if study_named(one.study).visits_in_sequence:
            continue
        if len(values) >= 2 and all(value > 0 for value in values.values()):
            series.append({block: 1 / value for block, value in values.items()} if one.lower_is_better else values)
    return evidence.drifting(pooled_trend(series)) if series else []


def _clock(visits: Sequence[Mapping[str, Any]]) -> list[RunWarning]:
    """Wall clock against monotonic clock over each visit."""
    for visit in visits:
        if "ended_unix_s" in visit:
            found = evidence.clock_jump(visit["ended_unix_s"] - visit["started_unix_s"], visit["elapsed_s"])
            if found:
                return found
    return []


def _target(run: Run) -> list[RunWarning]:
    """Targets unlike the others, layouts that were not given, servers that changed while they counted."""
    found: list[RunWarning] = []
    for event in run.events:
        if event["event"] == "description":
            found += evidence.targets_unlike(event["unlike"])
        elif event["event"] == "layout" and event["differences"]:
            given = _values(event["given"]) if event["given"] else event["differences"][0]
            found += evidence.setting_differs("layout of new files", _values(event["wanted"]), given)
    # A drill is there to have servers start anew.
    drills = {cell["key"] for cell in run.cells if study_named(cell["study"]).interrupts_service}
    lines = [line for visit in run.visits if visit["cell"] not in drills for line in visit.get("servers_disturbed", ())]
    return [*found, *evidence.servers_disturbed(list(dict.fromkeys(lines)))]


def _nodes(run: Run, results: Results) -> list[RunWarning]:
    """Where several were measured together."""
    facts = results.facts.get("nodes") or {}
    lines = [f"{one['host']}: {one['what']}" for one in facts.get("differences", ())]
    if "not_compared" in facts:
        lines.append(f"The nodes were not compared ({facts['not_compared']})")
    lines += [f"Resumed on other nodes: {', '.join(event['nodes'])}" for event in run.events if event["event"] == "other-nodes"]
    return evidence.nodes_unlike(list(dict.fromkeys(lines)))


def _begun(run: Run, results: Results) -> list[RunWarning]:
    """Phases whose ranks began apart; those that had too few processors for it are told apart from the others."""
    found: list[RunWarning] = []
    for crowded in (False, True):
        phases = [one for one in all_begun(run.visits) if one.crowded == crowded]
        apart = [one for one in phases if one.is_apart]
        if apart:
            touched = [one.id for one in _measured(results) if any(_is_apart(seen.sample, crowded) for seen in _regular(one))]
            found += evidence.begun_apart(len(apart), len(phases), max(apart, key=lambda one: one.apart_s), touched)
    return found


def _is_apart(sample: Mapping[str, Any], crowded: bool) -> bool:
    one = begun(sample)
    return one is not None and one.is_apart and one.crowded == crowded


def _values(record: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in record.items())


def _dropped(run: Run, budget_s: float) -> list[RunWarning]:
    return evidence.budget_skipped(len(dropped_cells(run)), len(run.cells), budget_s)


def dropped_cells(run: Run) -> dict[str, str]:
    """The cells that the budget did not allow, each with the reason; a resumed run may have come to them later."""
    runs = Counter(visit["cell"] for visit in run.visits if visit["ended"] == "ok" and visit["purpose"] == "measure")
    dropped = (event for event in run.events if event["event"] == "dropped")
    return {event["cell"]: event["reason"] for event in dropped if runs[event["cell"]] <= event.get("runs", runs[event["cell"]])}
