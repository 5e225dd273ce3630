"""Build the content of the report on a stored run. All functions are pure: they access no file system and no store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from strakes.base.foreign_text import for_shell
from strakes.base.language import gettext
from strakes.model.portrait import Headline, Portrait, RunWarning, SkippedCell
from strakes.model.results import Measured, Results
from strakes.model.sample import begun_together
from strakes.runs.records import AmountsChosen, CellSkipped, LoadSeen, NeighbourFelt, PopulationRemoved
from strakes.runs.run import Run, told_as_damage
from strakes.stats.interval import median
from strakes.studies.imported import imported_scope, imported_warnings
from strakes.studies.registry import study_named
from strakes.survey.analysis_amounts import amounts_of
from strakes.survey.analysis_answers import answers_of, bursts, is_slowed_by_removals, judged, questions_of
from strakes.survey.analysis_collect import collect, fresh_rates, longer_work
from strakes.survey.analysis_held_back import gave_way
from strakes.survey.analysis_scope import scope_of
from strakes.survey.analysis_servers import server_counts
from strakes.survey.analysis_warnings import dropped_cells, run_warnings

_CREATES = (
    "cannot be measured here: on ext4 without a journal, creates are slow for up to five minutes after removals, and a "
    "survey removes its files; jobs should wait five minutes between removing and creating many files"
)


def results_of(run: Run) -> Results:
    """Return the results of a run with the facts on its file system. Raises BadInputError for a damaged run."""
    with told_as_damage(run):
        return _results_of(run)


def _results_of(run: Run) -> Results:
    facts = dict(run.facts)
    if looks := run.events_of(LoadSeen):
        # Take the median, to ignore load that lasted only for a small part of the run.
        facts["others_busy"] = median([look.share for look in looks])
        facts["others_running"] = median([look.running for look in looks])
    for removal in run.events_of(PopulationRemoved)[:1]:
        facts["clean_up"] = {"files": removal.files, "elapsed_s": removal.elapsed_s}
    results = collect(run.cells, run.visits, float(run.manifest["options"]["confidence"]), facts)
    longer = longer_work(run.cells, run.visits, results)
    return replace(results, facts={**facts, "longer": longer}) if longer else results


def study_portrait(run: Run) -> Portrait:
    """Return the content of the report on a run of studies: estimates, figures, findings, answers and warnings."""
    options = run.manifest["options"]
    results = results_of(run)
    facts = results.facts
    studies = [study_named(name) for name in options["studies"]]
    imported = options.get("imported")
    warnings = imported_warnings(imported) if imported else run_warnings(run, results)
    fresh = fresh_rates(run.visits, results)
    cells = tuple(
        replace(
            figure.estimate,
            warnings=tuple(dict.fromkeys(warning.code for warning in warnings if figure.id in warning.cells)),
            fresh=fresh.get(figure.id),
        )
        for figure in results.measured
        if figure.estimate is not None
    )
    ranks = [
        int(figure.settings["ranks"]) for figure in results.measured if "ranks" in figure.settings and figure.estimate
    ]
    of_each = [(study, results.of_study(study.name)) for study in studies]
    answers = answers_of(questions_of(studies, results), results)
    headlines = [line for study, own in of_each for line in study.headlines(own)]
    if any(study.name == "overview" for study in studies):
        from strakes.studies.overview import with_advised

        headlines = with_advised(headlines, results, answers)
    headlines = [_with_remark(line, results.get(line.cell), facts) for line in headlines]
    return Portrait(
        run=_run_facts(run),
        target=facts,
        environment=run.environment,
        scope=imported_scope(imported)
        if imported
        else f"{scope_of(run.cells, ranks, run.environment)}; {amounts_of(results)}{_left_out(run)}",
        headlines=tuple(headlines),
        cells=cells,
        findings=tuple(
            finding for study, own in of_each for finding in (*study.findings(own), *judged(study.claims(own), own))
        ),
        answers=answers,
        figures=tuple(
            figure
            for study, own in of_each
            for figure in study.figures(own)
            if any(series.points for series in figure.series)
        ),
        warnings=tuple(_merged(warnings)),
        skipped=tuple(_skipped(run, results)),
        reproduce=(for_shell(options["command"]), f"strakes report {run.id}"),
        servers=server_counts(run.cells, run.visits),
    )


def _with_remark(line: Headline, cell: Measured, facts: Mapping[str, Any]) -> Headline:
    if is_slowed_by_removals(cell, facts):
        return replace(line, label=gettext("{title}, just after removals", title=line.label))
    if cell.settings.get("operation") in bursts(facts):
        return replace(line, label=gettext("{title}, in a burst", title=line.label))
    return line


def _left_out(run: Run) -> str:
    waiting = sum(event.left_out for event in run.events_of(AmountsChosen))
    measured = len(run.cells) - len(dropped_cells(run))
    planned = len(run.cells) + waiting
    if measured == planned:
        return ""
    message = "{measured} of {planned} cells measured, the others need a larger --budget"
    return f"; {gettext(message, measured=measured, planned=planned)}"


def _run_facts(run: Run) -> Mapping[str, Any]:
    felt = _felt_by_others(run)
    keys = ("id", "kind", "name", "created", "status", "command")
    return {
        **{key: run.manifest[key] for key in keys if key in run.manifest},
        "options": run.manifest["options"],
        **({"neighbour": felt} if felt else {}),
        **begun_together(sample for visit in run.visits for sample in visit.samples),
        "visits": len(run.visits),
        "measured_visits": sum(visit.is_measurement for visit in run.visits),
        "measuring_s": sum(visit.elapsed_s for visit in run.visits),
        "blocks": max((visit.block for visit in run.visits), default=0),
    }


def _felt_by_others(run: Run) -> Mapping[str, Any]:
    parts = run.events_of(NeighbourFelt)
    if not parts:
        return {}
    yielded, slowed = gave_way(run.visits)
    most = max(parts, key=lambda part: part.during.get("p99_s", 0.0))
    about = {"limit_s": most.limit_s, "before": most.before, "during": most.during}
    return {**about, "yielded_visits": yielded, "slowed_visits": slowed, "stopped": parts[-1].stopped}


def _skipped(run: Run, results: Results) -> list[SkippedCell]:
    cells = {cell.key: cell for cell in run.cells}
    dropped = [(cells[key], reason) for key, reason in dropped_cells(run).items()]
    slowed = any(is_slowed_by_removals(cell, results.facts) for cell in results.measured)
    return [
        *(SkippedCell(event.study, event.settings, event.reason) for event in run.events_of(CellSkipped)),
        *(SkippedCell(cell.study, cell.settings, reason) for cell, reason in dropped),
        *([SkippedCell("overview", {}, _CREATES)] if slowed else []),
    ]


def _merged(warnings: Sequence[RunWarning]) -> list[RunWarning]:
    merged: dict[tuple[str, str, str], RunWarning] = {}
    for warning in warnings:
        key = (warning.code, warning.text, warning.remedy)
        before = merged.get(key)
        merged[key] = (
            warning if before is None else replace(warning, cells=tuple(dict.fromkeys((*before.cells, *warning.cells))))
        )
    return list(merged.values())
