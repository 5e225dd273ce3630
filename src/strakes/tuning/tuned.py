"""Build the report of a search: the confirmed gain, and charts of the main effects of the settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from strakes.base.foreign_text import for_shell
from strakes.base.units import counted, format_bytes
from strakes.model.answers import Answer, Comparison
from strakes.model.portrait import CellEstimate, Figure, Finding, Headline, Point, Portrait, RunWarning, Series
from strakes.model.results import Measured, Observation, Results
from strakes.model.setting_text import level_of
from strakes.runs.records import SpaceSearched
from strakes.runs.run import Run
from strakes.stats.grades import INTERVAL_CONFIDENCE, Choice, grade
from strakes.stats.interval import median, median_interval
from strakes.survey.analysis_warnings import load_before, memory_warnings, unread_servers
from strakes.tuning.outcome import TuningOutcome, outcome_of
from strakes.tuning.request import KIND
from strakes.tuning.tune_offers import DIRECT, INTERFACE, URING_DIRECT
from strakes.tuning.tune_plans import phase_name
from strakes.tuning.tune_words import named, typed


def tuned_portrait(run: Run) -> Portrait:
    """Return the report of a search. Raises BadInputError if the search ended before its first trial."""
    outcome = outcome_of(run)
    measured, levels = _confirmed(outcome), _levels(outcome)
    memory = memory_warnings(Results(tuple(measured), outcome.search.confidence, run.facts))
    confirmed = [
        replace(one.estimate, warnings=tuple(dict.fromkeys(each.code for each in memory if one.id in each.cells)))
        for one in measured
        if one.estimate is not None
    ]
    keys = ("id", "kind", "name", "created", "status", "command", "options")
    facts = {key: run.manifest[key] for key in keys if key in run.manifest}
    return Portrait(
        run=facts | {"visits": len(run.visits)},
        target=outcome.run.facts,
        environment=run.environment,
        scope=_scope(outcome),
        headlines=tuple(Headline(f"{cell.settings['phase']}: {cell.settings['which']}", cell.id) for cell in confirmed),
        cells=(*confirmed, *levels),
        findings=(_gain(outcome, confirmed), _what_mattered(outcome, levels)),
        answers=_answers(confirmed, typed(outcome.changes)),
        figures=tuple(_figures(confirmed, levels)),
        warnings=(*load_before(run.environment), *memory, *unread_servers(run), *_warnings(outcome)),
        skipped=(),
        reproduce=(for_shell(str(run.manifest["options"]["command"])), f"strakes report {run.id}"),
    )


def _scope(outcome: TuningOutcome) -> str:
    ranks, data = outcome.scale.ranks, outcome.scale.data_bytes
    host = outcome.run.environment.get("host", "this node")
    return (
        f"{counted(ranks, 'rank')} on node {host}, {format_bytes(data)} each, represent {outcome.app.title}: "
        f"{counted(outcome.app.ranks, 'rank')} on "
        f"{counted(outcome.app.nodes, 'node')}; this says nothing about more clients or more data"
    )


def _confirmed(outcome: TuningOutcome) -> list[Measured]:
    cells = []
    confidence = outcome.search.confidence
    for phase in outcome.app.phases:
        name = phase_name(phase)
        for which, point in (("default", outcome.search.space.default), ("best", outcome.search.best)):
            seen = tuple(
                Observation(one.block, "measure", sample.bytes_per_s, sample, one.servers, one.started_unix_s or 0.0)
                for one in outcome.visits_of(point)
                if not one.is_measurement and (sample := one.sample(name)) is not None
            )
            if not seen:
                continue
            values, levels = tuple(one.value for one in seen), outcome.search.space.settings(point)
            settings = {"phase": name, "which": which, **levels}
            interval = median_interval(values, confidence)
            low, high = (interval.low, interval.high) if interval else (None, None)
            head = f"{KIND}/{which}:{name}", KIND, settings
            estimate = CellEstimate(*head, median(values), low, high, confidence, len(values), "B/s", values)
            direct = levels.get(INTERFACE) in (DIRECT, URING_DIRECT)
            did = {"operation": phase.operation, "io": "direct" if direct else "buffered"}
            cells.append(Measured(*head[:2], settings | did, "B/s", seen, estimate))
    return cells


def _levels(outcome: TuningOutcome) -> list[CellEstimate]:
    confidence = outcome.search.confidence
    varied = {factor.name for factor in outcome.search.space.factors if len(factor.levels) > 1}
    cells = []
    for effect in (each for each in outcome.effects.levels if each.factor in varied):
        identifier = f"{KIND}/effect/{effect.factor}/{effect.level}"
        settings = {"setting": named(effect.factor), "level": level_of(effect.factor, effect.level)}
        estimate = effect.ratio, effect.low, effect.high, confidence, max(1, effect.runs)
        cells.append(CellEstimate(identifier, KIND, settings, *estimate, "", (effect.ratio,)))
    return cells


def _figures(confirmed: Sequence[CellEstimate], levels: Sequence[CellEstimate]) -> Iterator[Figure]:
    if confirmed:
        title, question = "Default against best in fresh alternating runs", "How much faster is the application's I/O?"
        lines = _lines(confirmed, "phase", ("which",))
        yield Figure(KIND, title, question, "setting", "", "category", "bandwidth", "B/s", lines)
    question = "How many times as fast as the default is each level, all else being equal? By the model of the search."
    lines = _lines(levels, "setting", ("setting", "level"))
    yield Figure(KIND, "Main effects", question, "level", "", "category", "times the default level", "", lines)


def _lines(cells: Sequence[CellEstimate], key: str, at: Sequence[str]) -> tuple[Series, ...]:
    series: dict[str, list[Point]] = {}
    for cell in cells:
        place = " ".join(str(cell.settings[name]) for name in at)
        series.setdefault(str(cell.settings[key]), []).append(Point(place, cell.id))
    return tuple(Series(name, tuple(points)) for name, points in series.items())


def _gain(outcome: TuningOutcome, confirmed: Sequence[CellEstimate]) -> Finding:
    evidence = tuple(cell.id for cell in confirmed)
    interval = outcome.gain_interval("best divided by default, new alternating runs")
    finding = Finding(f"{KIND}-gain", KIND, outcome.statement, "measured", evidence, interval)
    if outcome.verdict == "unfinished":
        return replace(finding, verdict="inconclusive", needs="finish the search with --resume")
    return finding


def _what_mattered(outcome: TuningOutcome, levels: Sequence[CellEstimate]) -> Finding:
    matter = outcome.effects.parts
    yes = ", ".join(f"{named(name)} ({matter[name]:.0%})" for name in outcome.effects.matter) or "none of them"
    no = ", ".join(named(name) for name in matter if name not in outcome.effects.matter) or "none"
    text = f"Settings that mattered, with their share of the variance: {yes}; not shown to matter: {no}."
    return Finding(f"{KIND}-mattered", KIND, text, "measured", tuple(cell.id for cell in levels))


def _answers(confirmed: Sequence[CellEstimate], changes: str) -> tuple[Answer, ...]:
    by_phase: dict[str, list[CellEstimate]] = {}
    for cell in confirmed:
        by_phase.setdefault(str(cell.settings["phase"]), []).append(cell)
    pairs = {phase: cells for phase, cells in by_phase.items() if len(cells) == len(("default", "best"))}
    choices = [
        Choice(tuple({n: math.log(v) for n, v in enumerate(cell.values) if v > 0} for cell in cells))
        for cells in pairs.values()
    ]
    answers = []
    for (phase, cells), found in zip(pairs.items(), grade(choices), strict=True):
        if found is None:
            continue
        chosen, other, versus = cells[found.chosen], cells[found.versus.level], found.versus
        which, option = (changes if cell.settings["which"] == "best" else "the default" for cell in (chosen, other))
        against = Comparison(option, other.id, versus.ratio, versus.low, versus.high, versus.grade)
        head = f"{KIND}-{phase}", KIND, phase, found.grade, which, chosen.id, against, (against,)
        rest = INTERVAL_CONFIDENCE, min(chosen.runs, other.runs)
        answers.append(Answer(*head, *rest, within=found.within, alike="as fast as the default"))
    return tuple(answers)


def _warnings(outcome: TuningOutcome) -> tuple[RunWarning, ...]:
    warnings = []
    if not_tried := [text for event in outcome.run.events_of(SpaceSearched) for text in event.not_tried]:
        remedy = "See the available settings: strakes target DIR and strakes doctor"
        warnings.append(RunWarning("not-tried", "; ".join(not_tried), remedy))
    if (interface := outcome.app.interface) != "posix":
        text = f"POSIX calls of the engine replace {interface}: the values leave out the work of its library"
        warnings.append(RunWarning("interface-stands-in", text, "Confirm the settings with the application itself."))
    return tuple(warnings)
