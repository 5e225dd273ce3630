"""From a stored run to its portrait. Pure: reads the run, touches neither target nor store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from strakes.analysis.amounts import amounts_of, bursts, told_of_bursts
from strakes.analysis.collect import collect, unlike_correlations, with_dependence
from strakes.analysis.first_work import since_pilot
from strakes.analysis.held_back import gave_way
from strakes.analysis.levels import levels_of
from strakes.analysis.medians import by_turns, medians_of, slow_runs
from strakes.analysis.own_levels import own_shifts
from strakes.analysis.scope import scope_of
from strakes.analysis.servers import server_counts, told_of_servers
from strakes.analysis.statements import state
from strakes.analysis.warnings import dropped_cells, run_warnings
from strakes.findings.begun import begun_together
from strakes.findings.portrait import Headline, Portrait, RunWarning, SkippedCell
from strakes.findings.results import Measured, Results
from strakes.foreign_text import for_shell
from strakes.statistics.stopping import StoppingRule
from strakes.store import Run
from strakes.store.records import AmountsChosen, CellSettled, CellSkipped, NeighbourFelt, PopulationRemoved
from strakes.store.run import told_as_damage
from strakes.studies.imported import imported_scope, imported_warnings
from strakes.studies.lasting import LastingRates
from strakes.studies.registry import study_named
from strakes.studies.study import Study
from strakes.units import counted

# Ratios of runs that fall into two groups are made as wide as those of runs with this correlation.
_LIKE_TURNS = 0.2


def rule_of(options: Mapping[str, Any]) -> StoppingRule:
    """Return the stopping rule that a run was made under."""
    return StoppingRule(
        confidence=float(options["confidence"]), relative_half_width=float(options["relative_half_width"])
    )


def results_of(run: Run) -> Results:
    """Everything measured in the run, with the facts of its file system. Raises BadInputError for a damaged run."""
    with told_as_damage(run):
        return _results_of(run)


def _results_of(run: Run) -> Results:
    facts = dict(run.facts)
    for removal in run.events_of(PopulationRemoved)[:1]:
        facts["clean_up"] = {"files": removal.files, "elapsed_s": removal.elapsed_s}
    results = collect(run.cells, run.visits, rule_of(run.manifest["options"]), facts)
    settled = {event.cell for event in run.events_of(CellSettled)}
    return replace(results, measured=tuple(_settled(cell, settled) for cell in results.measured))


def _settled(cell: Measured, settled: Collection[str]) -> Measured:
    """Say of a cell that it was ended because no further run would have changed a finding."""
    if (
        cell.estimate is None
        or cell.estimate.stopped_because != "budget-spent"
        or not any(cell.id.startswith(f"{key}:") for key in settled)
    ):
        return cell
    return replace(cell, estimate=replace(cell.estimate, stopped_because="findings-settled"))


def study_portrait(run: Run) -> Portrait:
    """Everything a run of studies shows: estimates, figures, findings, advice with its confirmation, warnings."""
    options = run.manifest["options"]
    results = results_of(run)
    facts = results.facts
    studies = [study_named(name) for name in options["studies"]]
    imported = options.get("imported")
    levels = levels_of(results)
    shifts = (*since_pilot(run.visits, results, levels), *levels.shifts, *own_shifts(results, levels))
    levels = replace(levels, shifts=shifts)
    first_s = min((seen.at_s for figure in results.measured for seen in figure.observations), default=0.0)
    moments: dict[str, list[float]] = {}
    for shift in levels.shifts:
        for cell in shift.cells:
            moments.setdefault(cell, []).append(first_s + shift.after_s)
    for turns in levels.turns:
        if turns.between is not None:
            for cell in turns.cells:
                moments.setdefault(cell, []).extend(first_s + moment for moment in turns.between)
    turned = {cell for turns in levels.turns for cell in turns.cells}
    unlike = unlike_correlations(results.measured, moments, turned)
    if moments or unlike:
        results = with_dependence(results, rule_of(options), moments, unlike)
    results = _of_two_levels(results, turned)
    warnings = imported_warnings(imported) if imported else run_warnings(run, results, levels)
    cells = tuple(
        replace(
            figure.estimate,
            warnings=tuple(dict.fromkeys(warning.code for warning in warnings if figure.id in warning.cells)),
            levels=medians_of(figure, levels, first_s),
            by_turns=by_turns(figure.id, levels),
        )
        for figure in results.measured
        if figure.estimate is not None
    )
    ranks = [
        int(figure.settings["ranks"]) for figure in results.measured if "ranks" in figure.settings and figure.estimate
    ]
    slow = {
        cell: (len(slow_runs(figure, turns.factor)), len(figure.observations))
        for turns in levels.turns
        if turns.between is None
        for cell in turns.cells
        if (figure := results.get(cell)).observations
    }
    stated = state(studies, results, levels.changed, moments, slow)
    portrait = Portrait(
        run=_run_facts(run),
        target=facts,
        environment=run.environment,
        scope=imported_scope(imported)
        if imported
        else (
            f"{scope_of(run.cells, ranks, run.environment)}; {amounts_of(results)}"
            f"{told_of_servers(run.visits, remote=bool(facts.get('remote')))}{_left_out(run)}; "
            f"{stated.told_with(results.confidence)}"
        ),
        headlines=_headlines(studies, results),
        cells=cells,
        findings=stated.findings,
        recommendations=stated.recommendations,
        figures=tuple(
            figure
            for study in studies
            for figure in study.figures(results.of_study(study.name))
            if any(series.points for series in figure.series)
        ),
        warnings=tuple(_merged(warnings)),
        skipped=tuple(_skipped(run)),
        reproduce=(for_shell(options["command"]), f"strakes report {run.id}"),
        servers=server_counts(run.cells, run.visits),
    )
    return portrait if imported else told_of_bursts(portrait, bursts(results))


def _headlines(studies: Sequence[Study], results: Results) -> tuple[Headline, ...]:
    """Return the first figures; of work that was measured in phases that last only these."""
    lasting = [line for study in studies if study.name == LastingRates.name for line in _of(study, results)]
    told = {_work(results.get(line.cell)) for line in lasting}
    others = [line for study in studies if study.name != LastingRates.name for line in _of(study, results)]
    return (*lasting, *(line for line in others if _work(results.get(line.cell)) not in told))


def _of(study: Study, results: Results) -> Sequence[Headline]:
    return study.headlines(results.of_study(study.name))


def _work(cell: Measured) -> tuple[object, object]:
    return cell.settings.get("operation"), cell.settings.get("io")


def _left_out(run: Run) -> str:
    """Return in words how many cells wait for a larger budget; nothing where all there are were measured."""
    waiting = sum(event.left_out for event in run.events_of(AmountsChosen))
    measured = len(run.cells) - len(dropped_cells(run))
    planned = len(run.cells) + waiting
    return (
        ""
        if measured == planned
        else f"; {measured} of {counted(planned, 'cell')} measured, the others need a larger --budget"
    )


def _of_two_levels(results: Results, cells: Collection[str]) -> Results:
    """Return the results with wider ratios where two levels take turns: the interpolation between runs assumes one."""
    return replace(
        results,
        measured=tuple(
            replace(cell, correlation=max(cell.correlation, _LIKE_TURNS)) if cell.id in cells else cell
            for cell in results.measured
        ),
    )


def _run_facts(run: Run) -> Mapping[str, Any]:
    spent_s = sum(visit.elapsed_s for visit in run.visits)
    measured = sum(1 for visit in run.visits if visit.is_measurement)
    settled = run.events_of(CellSettled)
    less = (
        {"cells_settled_early": len(settled), "time_saved_s": sum(event.saved_s for event in settled)}
        if settled
        else {}
    )
    felt = _felt_by_others(run)
    keys = ("id", "kind", "name", "created", "status", "command")
    return {
        **{key: run.manifest[key] for key in keys if key in run.manifest},
        "options": run.manifest["options"],
        **less,
        **({"neighbour": felt} if felt else {}),
        **(
            {"begun_together": begun}
            if (begun := begun_together(sample for visit in run.visits for sample in visit.samples))
            else {}
        ),
        "visits": len(run.visits),
        "measured_visits": measured,
        "measuring_s": spent_s,
        "blocks": max((visit.block for visit in run.visits), default=0),
    }


def _felt_by_others(run: Run) -> Mapping[str, Any]:
    """Return what the probe of --neighbour felt before the measurement and meanwhile, and how often that gave way.

    Empty without one.
    """
    parts = run.events_of(NeighbourFelt)
    if not parts:
        return {}
    yielded, slowed = gave_way(run.visits)
    # Of a run that was resumed the part that others felt most.
    most = max(parts, key=lambda part: part.during.get("p99_s", 0.0))
    about = {"limit_s": most.limit_s, "before": most.before, "during": most.during}
    return {**about, "yielded_visits": yielded, "slowed_visits": slowed, "stopped": parts[-1].stopped}


def _skipped(run: Run) -> list[SkippedCell]:
    cells = {cell.key: cell for cell in run.cells}
    dropped = [(cells[key], reason) for key, reason in dropped_cells(run).items()]
    return [
        *(SkippedCell(event.study, event.settings, event.reason) for event in run.events_of(CellSkipped)),
        *(SkippedCell(cell.study, cell.settings, reason) for cell, reason in dropped),
    ]


def _merged(warnings: Sequence[RunWarning]) -> list[RunWarning]:
    """Each text once: the same warning of several cells is one warning that names them all."""
    merged: dict[tuple[str, str, str], RunWarning] = {}
    for warning in warnings:
        key = (warning.code, warning.text, warning.remedy)
        before = merged.get(key)
        merged[key] = (
            warning if before is None else replace(warning, cells=tuple(dict.fromkeys((*before.cells, *warning.cells))))
        )
    return list(merged.values())
