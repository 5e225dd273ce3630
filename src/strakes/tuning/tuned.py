"""The portrait of a search: confirmation as cells, gain as a finding, main effects and interactions as figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from strakes.base.units import counted, format_bytes
from strakes.model.answers import Answer, Comparison
from strakes.model.portrait import CellEstimate, Figure, Finding, Headline, Point, Portrait, RunWarning, Series, Setting
from strakes.report.numbers import level_of
from strakes.runs.run import Run
from strakes.stats.grades import INTERVAL_CONFIDENCE, Choice, grade
from strakes.stats.interval import median, median_interval
from strakes.survey.analysis_warnings import load_before
from strakes.tuning.outcome import TuningOutcome, outcome_of
from strakes.tuning.request import KIND
from strakes.tuning.trial import not_tried_of
from strakes.tuning.tune_plans import phase_name
from strakes.tuning.tune_words import named

_MOST_PAIRS = 2  # pairs of settings with a figure; doubled, most figures show no interaction
_LEAST_PAIR_SHARE = 0.02


def tuned_portrait(run: Run) -> Portrait:
    """Return the portrait of a search. Raises BadInputError if the search ended before its first trial."""
    outcome = outcome_of(run)
    confirmed = _confirmed(outcome)
    levels = _levels(outcome)
    joint = _joint(outcome)
    gain = _gain(outcome, confirmed)
    cells = [*confirmed, *levels, *(cell for _, group in joint for cell in group)]
    environment = run.environment
    return Portrait(
        run={
            key: run.manifest[key]
            for key in ("id", "kind", "name", "created", "status", "command", "options")
            if key in run.manifest
        }
        | {"visits": len(run.visits)},
        target=outcome.run.facts,
        environment=environment,
        scope=_scope(outcome),
        headlines=tuple(Headline(f"{cell.settings['phase']}: {cell.settings['which']}", cell.id) for cell in confirmed),
        cells=tuple(cells),
        findings=(
            gain,
            *_what_mattered(outcome, levels),
            *_limits(outcome, confirmed or levels),
        ),
        answers=_answers(confirmed),
        figures=tuple(_figures(confirmed, levels, joint)),
        warnings=(*load_before(environment), *_warnings(outcome)),
        skipped=(),
        reproduce=(str(run.manifest["options"]["command"]), f"strakes report {run.id}"),
    )


def _scope(outcome: TuningOutcome) -> str:
    ranks, data = outcome.scale.ranks, outcome.scale.data_bytes
    host = outcome.run.environment.get("host", "this node")
    return (
        f"{counted(ranks, 'rank')} on node {host}, {format_bytes(data)} each, represent {outcome.app.title}: "
        f"{counted(outcome.app.ranks, 'rank')} on "
        f"{counted(outcome.app.nodes, 'node')}; this says nothing about more clients or more data"
    )


def _confirmed(outcome: TuningOutcome) -> list[CellEstimate]:
    """Return the estimates of default and best by phase, from the fresh runs."""
    cells = []
    points = {"default": outcome.search.space.default, "best": outcome.search.best}
    for phase in outcome.app.phases:
        name = phase_name(phase)
        for which, point in points.items():
            fresh = [visit.sample(name) for visit in outcome.visits_of(point) if not visit.is_measurement]
            values = [sample.bytes_per_s for sample in fresh if sample is not None]
            if values:
                settings = {"phase": name, "which": which, **outcome.search.space.settings(point)}
                cells.append(_estimate(f"{KIND}/{which}:{name}", settings, values, "B/s", outcome))
    return cells


def _estimate(
    identifier: str, settings: Mapping[str, Setting], values: Sequence[float], unit: str, outcome: TuningOutcome
) -> CellEstimate:
    confidence = outcome.search.rules.confidence
    interval = median_interval(values, confidence)
    return CellEstimate(
        identifier,
        KIND,
        settings,
        median(values),
        interval.low if interval else None,
        interval.high if interval else None,
        confidence,
        len(values),
        unit,
        tuple(values),
    )


def _levels(outcome: TuningOutcome) -> list[CellEstimate]:
    """Return the main effects: how many times as fast as the default level each level is, by the model."""
    confidence = outcome.search.rules.confidence
    varied = {factor.name for factor in outcome.search.space.factors if len(factor.levels) > 1}
    return [
        _by_model(
            f"effect/{effect.factor}/{effect.level}",
            {"setting": named(effect.factor), "level": level_of(effect.factor, effect.level)},
            effect.ratio,
            confidence,
            max(1, effect.runs),
            (effect.low, effect.high),
        )
        for effect in outcome.effects.levels
        if effect.factor in varied
    ]


def _by_model(
    key: str,
    settings: Mapping[str, Setting],
    value: float,
    confidence: float,
    runs: int,
    ends: tuple[float | None, float | None] = (None, None),
) -> CellEstimate:
    """Return a cell with a value of the model instead of a measurement."""
    return CellEstimate(f"{KIND}/{key}", KIND, settings, value, *ends, confidence, runs, "", (value,))


def _joint(outcome: TuningOutcome) -> list[tuple[tuple[str, str], list[CellEstimate]]]:
    """Return the model's median for each combination of levels, for the pairs of settings that interact most.

    Medians are over all other settings, relative to the default.
    """
    search = outcome.search
    names = [factor.name for factor in search.space.factors]
    base = outcome.effects.means[search.space.default]
    tables = []
    for pair in outcome.effects.pairs[:_MOST_PAIRS]:
        if pair.share < _LEAST_PAIR_SHARE:
            continue
        a, b = (names.index(name) for name in pair.factors)
        groups: dict[tuple[Setting, Setting], list[float]] = {}
        for point, value in outcome.effects.means.items():
            groups.setdefault((point[a], point[b]), []).append(value / base)
        cells = [
            _by_model(
                f"pair/{names[a]}/{first}/{names[b]}/{second}",
                {named(names[a]): level_of(names[a], first), named(names[b]): level_of(names[b], second)},
                median(values),
                search.rules.confidence,
                len(values),
            )
            for (first, second), values in sorted(groups.items(), key=lambda group: _order(outcome, a, b, group[0]))
        ]
        tables.append(((names[a], names[b]), cells))
    return tables


def _order(outcome: TuningOutcome, a: int, b: int, levels: tuple[Setting, Setting]) -> tuple[int, int]:
    factors = outcome.search.space.factors
    return factors[a].levels.index(levels[0]), factors[b].levels.index(levels[1])


def _figures(
    confirmed: Sequence[CellEstimate],
    levels: Sequence[CellEstimate],
    joint: Sequence[tuple[tuple[str, str], list[CellEstimate]]],
) -> Iterator[Figure]:
    if confirmed:
        title, question = "Default against best in fresh alternating runs", "How much faster is the application's I/O?"
        lines = _lines(confirmed, "phase", ("which",))
        yield Figure(KIND, title, question, "setting", "", "category", "bandwidth", "B/s", lines)
    question = (
        "How many times as fast is each level as the default, other settings being equal? By the model of all runs."
    )
    lines = _lines(levels, "setting", ("setting", "level"))
    yield Figure(KIND, "Main effects", question, "level", "", "category", "times the default level", "", lines)
    for factors, cells in joint:
        a, b = map(named, factors)
        question = f"Does the best {a} depend on {b}? By the model: medians over all other settings."
        lines = _lines(cells, b, (a,), f"{b} ")
        yield Figure(KIND, f"{a} and {b} together", question, a, "", "category", "times the default", "", lines)


def _lines(cells: Sequence[CellEstimate], key: str, at: Sequence[str], before: str = "") -> tuple[Series, ...]:
    """Return a series for each level of the setting ``key``, with points at the levels of the settings ``at``.

    ``before``: prefix of the names.
    """
    levels = dict.fromkeys(cell.settings[key] for cell in cells)
    points = [(cell.settings[key], " ".join(str(cell.settings[name]) for name in at), cell.id) for cell in cells]
    return tuple(
        Series(f"{before}{level}", tuple(Point(x, cell) for own, x, cell in points if own == level)) for level in levels
    )


def _gain(outcome: TuningOutcome, confirmed: Sequence[CellEstimate]) -> Finding:
    evidence = tuple(cell.id for cell in confirmed)
    interval = outcome.gain_interval("best over default, fresh runs in turn")
    finding = Finding(f"{KIND}-gain", KIND, outcome.statement, "measured", evidence, interval)
    if outcome.verdict == "unfinished":
        return replace(finding, verdict="inconclusive", needs="finish the search with --resume")
    return finding


def _what_mattered(outcome: TuningOutcome, levels: Sequence[CellEstimate]) -> list[Finding]:
    ids = tuple(cell.id for cell in levels)
    matter = {part.factors[0]: part.share for part in outcome.effects.parts}
    yes = ", ".join(f"{named(name)} ({matter[name]:.0%})" for name in outcome.effects.matter) or "none of them"
    no = ", ".join(named(name) for name in matter if name not in outcome.effects.matter) or "none"
    text = f"Settings that mattered, with their share of the variance: {yes}; not shown to matter: {no}."
    return [Finding(f"{KIND}-mattered", KIND, text, "measured", ids)]


def _limits(outcome: TuningOutcome, cells: Sequence[CellEstimate]) -> list[Finding]:
    findings, evidence = [], tuple(cell.id for cell in cells)
    for which, limits in outcome.limits.items():
        name = which.removeprefix("the ")
        for number, limit in enumerate(limits):
            identifier = f"{KIND}-limit-{name}-{number}"
            if limit.what == "unknown":
                text = f"The limit of {which} is unknown: {limit.evidence}."
                needs = "counters of the servers and their devices"
                findings.append(Finding(identifier, KIND, text, "unknown", evidence, needs=needs))
            else:
                text = f"Limit of {which}: {limit.what}: {limit.evidence}."
                findings.append(Finding(identifier, KIND, text, "measured", evidence))
    return findings


def _answers(confirmed: Sequence[CellEstimate]) -> tuple[Answer, ...]:
    """Return an answer for each phase of the application: is the best setting faster than the default in fresh runs?"""
    by_phase: dict[str, list[CellEstimate]] = {}
    for cell in confirmed:
        by_phase.setdefault(str(cell.settings["phase"]), []).append(cell)
    pairs = {phase: cells for phase, cells in by_phase.items() if len(cells) == len(("default", "best"))}
    # Fresh runs alternate, so runs with the same number are a block.
    choices = [
        Choice(tuple({n: math.log(v) for n, v in enumerate(cell.values) if v > 0} for cell in cells))
        for cells in pairs.values()
    ]
    answers = []
    for (phase, cells), found in zip(pairs.items(), grade(choices), strict=True):
        if found is None:
            continue
        chosen, other, versus = cells[found.chosen], cells[found.versus.level], found.versus
        which, option = (str(cell.settings["which"]) for cell in (chosen, other))
        against = Comparison(option, other.id, versus.ratio, versus.low, versus.high, versus.grade)
        answers.append(
            Answer(
                id=f"{KIND}-{phase}",
                study=KIND,
                title=phase,
                grade=found.grade,
                chosen=which,
                measure=chosen.id,
                against=against,
                others=(against,),
                confidence=INTERVAL_CONFIDENCE,
                blocks=min(chosen.runs, other.runs),
                within=found.within,
                alike="as fast as the default",
            )
        )
    return tuple(answers)


def _warnings(outcome: TuningOutcome) -> tuple[RunWarning, ...]:
    warnings = []
    not_tried = not_tried_of(outcome.run)
    if not_tried:
        remedy = "strakes target DIR and strakes doctor show the available settings."
        warnings.append(RunWarning("not-tried", "; ".join(not_tried), remedy))
    if outcome.app.interface != "posix":
        text = (
            f"POSIX calls of the engine stand in for {outcome.app.interface}: the figures leave out what its "
            "library does"
        )
        warnings.append(RunWarning("interface-stands-in", text, "Confirm the settings with the application itself."))
    return tuple(warnings)
