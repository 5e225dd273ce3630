"""From a stored run to its portrait. Pure: reads the run, touches neither target nor store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from strakes.interop.study import imported_scope, imported_warnings
from strakes.portrait.begun import begun_together
from strakes.portrait.collect import collect
from strakes.portrait.held_back import gave_way
from strakes.portrait.model import Finding, IntervalOf, Portrait, Recommendation, RunWarning, SkippedCell
from strakes.portrait.scope import scope_of
from strakes.portrait.servers import server_counts
from strakes.portrait.warnings import dropped_cells, run_warnings
from strakes.statistics.stopping import StoppingRule
from strakes.store import Run
from strakes.studies.base import Advice, Study
from strakes.studies.compose import better_ratio, describe
from strakes.studies.registry import study_named
from strakes.studies.results import Measured, Results


def rule_of(options: Mapping[str, Any]) -> StoppingRule:
    """The stopping rule that a run was made under."""
    return StoppingRule(confidence=float(options["confidence"]), relative_half_width=float(options["relative_half_width"]))


def results_of(run: Run) -> Results:
    """Everything measured in the run, with the facts of its file system."""
    facts: dict[str, Any] = next((event["facts"] for event in run.events if event["event"] == "facts"), {})
    cleaned = next((event for event in run.events if event["event"] == "clean-up"), None)
    facts = {**facts, **({"clean_up": {key: cleaned[key] for key in ("files", "elapsed_s")}} if cleaned else {})}
    results = collect(run.cells, run.visits, rule_of(run.manifest["options"]), facts)
    settled = {event["cell"] for event in run.events if event["event"] == "settled"}
    return Results(tuple(_settled(one, settled) for one in results.measured), results.confidence, facts)


def _settled(one: Measured, settled: Collection[str]) -> Measured:
    """A cell that was ended because no run of it would have changed a finding says so."""
    if one.estimate is None or one.estimate.stopped_because != "budget-spent" or not any(one.id.startswith(f"{key}:") for key in settled):
        return one
    return replace(one, estimate=replace(one.estimate, stopped_because="findings-settled"))


def build_portrait(run: Run) -> Portrait:
    """Everything the run shows: estimates, figures, findings, advice with its confirmation, warnings."""
    if run.manifest["kind"] == "tune":
        from strakes.tune.portrait import tuned_portrait

        return tuned_portrait(run)
    options = run.manifest["options"]
    results = results_of(run)
    facts = results.facts
    studies = [study_named(name) for name in options["studies"]]
    imported = options.get("imported")
    warnings = imported_warnings(imported) if imported else run_warnings(run, results)
    cells = tuple(
        replace(one.estimate, warnings=tuple(dict.fromkeys(warning.code for warning in warnings if one.id in warning.cells)))
        for one in results.measured
        if one.estimate is not None
    )
    ranks = [int(one.settings["ranks"]) for one in results.measured if "ranks" in one.settings and one.estimate]
    judged = [_judged(study, results.of_study(study.name)) for study in studies]
    return Portrait(
        run=_run_facts(run),
        target=facts,
        environment=run.environment,
        scope=imported_scope(imported) if imported else scope_of(run.cells, ranks, run.environment),
        headlines=tuple(line for study in studies for line in study.headlines(results.of_study(study.name))),
        cells=cells,
        findings=tuple(finding for findings, _ in judged for finding in findings),
        recommendations=tuple(one for _, recommendations in judged for one in recommendations),
        figures=tuple(
            figure
            for study in studies
            for figure in study.figures(results.of_study(study.name))
            if any(series.points for series in figure.series)
        ),
        warnings=tuple(_merged(warnings)),
        skipped=tuple(_skipped(run)),
        reproduce=(options["command"], f"strakes report {run.id}"),
        servers=server_counts(run.cells, run.visits),
    )


def _run_facts(run: Run) -> Mapping[str, Any]:
    spent_s = sum(visit["elapsed_s"] for visit in run.visits)
    measured = sum(1 for visit in run.visits if visit["purpose"] == "measure")
    settled = [event for event in run.events if event["event"] == "settled"]
    less = {"cells_settled_early": len(settled), "time_saved_s": sum(event["saved_s"] for event in settled)} if settled else {}
    felt = _felt_by_others(run)
    keys = ("id", "kind", "name", "created", "status", "command")
    return {
        **{key: run.manifest[key] for key in keys if key in run.manifest},
        "options": run.manifest["options"],
        **less,
        **({"neighbour": felt} if felt else {}),
        **({"begun_together": begun} if (begun := begun_together(run.visits)) else {}),
        "visits": len(run.visits),
        "measured_visits": measured,
        "measuring_s": spent_s,
        "blocks": max((visit["block"] for visit in run.visits), default=0),
    }


def _felt_by_others(run: Run) -> Mapping[str, Any]:
    """What the probe of --neighbour felt before the measurement and meanwhile, and how often that gave way; empty without one."""
    parts = [event for event in run.events if event["event"] == "neighbour"]
    if not parts:
        return {}
    yielded, slowed = gave_way(run.visits)
    # Of a run that was resumed the part that others felt most.
    most = max(parts, key=lambda part: part["during"].get("p99_s", 0.0))
    about = {key: most[key] for key in ("limit_s", "before", "during")}
    return {**about, "yielded_visits": yielded, "slowed_visits": slowed, "stopped": parts[-1]["stopped"]}


def _judged(study: Study, results: Results) -> tuple[list[Finding], list[Recommendation]]:
    """What the study finds and advises. Advice that fresh runs refute is no advice but a finding."""
    findings, recommendations = list(study.findings(results)), []
    for advice in study.advice(results):
        interval, fresh = _proof(advice, results)
        if interval is None:
            continue
        if fresh and interval.high < advice.threshold:
            statement = f"{advice.setting} = {advice.value} looked best in the blocks, but fresh runs refute it."
            findings.append(Finding(f"{advice.chosen}-refuted", study.name, statement, "does-not", advice.evidence, interval))
            continue
        confirmed = fresh and interval.low >= advice.threshold
        reason = advice.reason if confirmed or not fresh else f"{advice.reason}; the fresh runs leave it open"
        recommendations.append(Recommendation(advice.setting, advice.value, reason, advice.evidence, interval, confirmed))
    return findings, recommendations


def _proof(advice: Advice, results: Results) -> tuple[IntervalOf | None, bool]:
    """How the advised setting compares: on fresh runs where there are enough, else in the blocks it was drawn from."""
    chosen, against = results.get(advice.chosen), results.get(advice.against)
    for purpose, runs in (("confirm", "fresh paired runs"), ("measure", "paired runs, not yet repeated")):
        ratio = better_ratio(chosen, against, results.confidence, purpose)
        if ratio is not None and ratio.interval is not None:
            of = f"ratio to {describe(against)}, {ratio.runs} {runs}"
            return IntervalOf(ratio.interval.low, ratio.interval.high, ratio.interval.confidence, of), purpose == "confirm"
    return None, False


def _skipped(run: Run) -> list[SkippedCell]:
    skipped = [SkippedCell(event["study"], event["settings"], event["reason"]) for event in run.events if event["event"] == "skipped"]
    cells = {cell["key"]: cell for cell in run.cells}
    for key, reason in dropped_cells(run).items():
        skipped.append(SkippedCell(cells[key]["study"], cells[key]["settings"], reason))
    return skipped


def _merged(warnings: Sequence[RunWarning]) -> list[RunWarning]:
    """Each text once: the same warning of several cells is one warning that names them all."""
    merged: dict[tuple[str, str, str], RunWarning] = {}
    for warning in warnings:
        key = (warning.code, warning.text, warning.remedy)
        before = merged.get(key)
        merged[key] = warning if before is None else replace(warning, cells=tuple(dict.fromkeys((*before.cells, *warning.cells))))
    return list(merged.values())
