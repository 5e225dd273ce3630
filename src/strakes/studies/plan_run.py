"""Present a user's plan as a study with one cell, for ``strakes run PLAN.toml``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from strakes.base.language import gettext
from strakes.model.cell import Cell, Measure, Metric
from strakes.model.phases import MetadataPhase, ProbePhase, SmallFilesPhase, TrainingPhase
from strakes.model.plan import Plan, WholePhase
from strakes.model.portrait import Figure, Finding, Headline
from strakes.model.results import Measured, Results
from strakes.model.sample import CACHED_SHARE
from strakes.stats.interval import median, smallest_runs
from strakes.studies.compose import interval_in
from strakes.studies.study import Cells, Context, Study

Fit = Callable[[Plan, int, int], Plan]


class PlanRun(Study):
    """Rates of the phases of a user's plan.

    ``plan``: None when stored results are shown. ``measured``: names of the phases to report (None: all). ``fit``:
    function that reduces a plan to the allowed bytes and files.
    """

    name = "plan"
    title = "The plan's phases"
    question = "What rate does each phase of the plan reach?"
    source = ""
    needs_pilot = False

    def __init__(
        self, plan: Plan | None = None, measured: Collection[str] | None = None, fit: Fit | None = None
    ) -> None:
        self._plan = plan
        self._measured = measured
        self._fit = fit

    @property
    def identity(self) -> str:
        return f"{self.name} {self._plan.fingerprint() if self._plan else ''}"

    def cells(self, context: Context) -> Cells:
        if self._plan is None:
            return []
        plan = self._fit(self._plan, context.max_bytes, context.max_items) if self._fit else self._plan
        phases = [pair for pair in plan.each() if self._measured is None or pair[0].name in self._measured]
        measures = tuple(
            Measure(phase.name, metric, {"phase": phase.name, "operation": _operation(phase), "ranks": ranks})
            for phase, ranks in phases
            for metric in _metrics(phase)
        )
        return [Cell(self.name, self.name, {}, plan, measures)]

    def figures(self, results: Results) -> Sequence[Figure]:
        return self.of_phases(results, gettext("phase"), lambda cell: str(cell.settings["phase"]))

    def findings(self, results: Results) -> Sequence[Finding]:
        return [*self._fed(results), *self._hints(results)]

    def _fed(self, results: Results) -> Sequence[Finding]:
        findings = []
        for cell in results.beside("utilisation"):
            estimate = cell.estimate
            assert estimate is not None
            computed = gettext(
                "In phase {phase}, accelerators would have been busy {share} % of the time (accelerator utilisation of "
                "MLPerf Storage; the first step does not count).",
                phase=cell.settings["phase"],
                share=f"{estimate.median:.1f}",
            )
            text = " ".join(filter(None, (computed, _cached(cell))))
            name, of = f"fed-{cell.settings['phase']}", gettext("share of time in which accelerators would be busy")
            needs = gettext("at least {blocks} blocks", blocks=smallest_runs(results.confidence))
            findings.append(self.estimated(name, text, (cell.id,), interval_in(estimate), of, "%", needs))
        return findings

    def _hints(self, results: Results) -> Sequence[Finding]:
        told: dict[str, list[Measured]] = {}
        for cell in results.where():
            hints = cell.observations[-1].sample.effective.get("hints", {}) if cell.observations else {}
            if hints:
                told.setdefault(", ".join(f"{name} {value}" for name, value in hints.items()), []).append(cell)
        return [
            self.finding(
                f"hints-{index}",
                gettext(
                    "Hints in effect in {phases}: {hints}.",
                    phases=", ".join(str(cell.settings["phase"]) for cell in cells),
                    hints=hints,
                ),
                "measured",
                results.ids(cells),
            )
            for index, (hints, cells) in enumerate(told.items(), start=1)
        ]

    def headlines(self, results: Results) -> Sequence[Headline]:
        fed = {cell.settings["phase"]: cell for cell in results.beside("utilisation")}
        headlines = []
        for cell in results.where():
            name = str(cell.settings["phase"])
            headlines.append(Headline(gettext("{phase}: samples", phase=name) if name in fed else name, cell.id))
            if name in fed:
                headlines.append(Headline(gettext("{phase}: accelerator utilisation", phase=name), fed[name].id))
        return headlines


def _operation(phase: WholePhase) -> str:
    steps = {step.op for step in phase.flow} if isinstance(phase, SmallFilesPhase) else set()
    return "file-stat" if steps and steps <= {"open", "stat", "close"} else phase.operation


def _cached(cell: Measured) -> str:
    shares = [
        seen.sample.cache.resident_before_bytes / seen.sample.cache.file_bytes
        for seen in cell.observations
        if seen.sample.cache.file_bytes
    ]
    if not shares:
        return gettext("It is unknown how much of the phase's data was in the page cache.")
    share = median(shares)
    if share <= CACHED_SHARE:
        return ""
    return gettext(
        "{share} % of the data were in the page cache before the phase, so some samples came from memory.",
        share=f"{100 * share:.0f}",
    )


def _metrics(phase: WholePhase) -> tuple[Metric, ...]:
    if isinstance(phase, TrainingPhase) and phase.operation == "train":
        return ("operations_per_s", "utilisation")
    by_operation = isinstance(phase, MetadataPhase | SmallFilesPhase | ProbePhase)
    return ("operations_per_s",) if by_operation else ("bytes_per_s",)
