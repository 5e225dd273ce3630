"""client-scaling: how the rate grows with the number of clients, by the universal scalability law. S3."""

from __future__ import annotations

import math
from collections.abc import Sequence

from strakes.findings.answers import Question
from strakes.findings.cell import Cell, Measure
from strakes.findings.portrait import Figure, Finding, Headline, Reference, SkippedCell
from strakes.findings.results import Measured, Results
from strakes.plan import Plan
from strakes.statistics.usl import FEWEST_LEVELS, Scalability, fit
from strakes.studies.compose import ask_level, interval_of, series
from strakes.studies.pools import HOUR_S, files_that_fit, pool_phase
from strakes.studies.study import Context, Study
from strakes.units import counted

_LEVELS = (1, 2, 4, 8, 16)
_FULL_LEVELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
# S3 needed 20,000 files an hour from each of 100 to 1,000 clients; this is its lower end.
_NEEDED_CLIENTS, _NEEDED_EACH_PER_HOUR = 100, 20_000
# Largest acceptable relative deviation of a measured median from the fitted law.
_WORST_RESIDUAL = 0.25
# Extrapolate to at most this multiple of the measured number of clients.
_FURTHEST = 8


class ClientScaling(Study):
    """Rate of small files written by a growing number of clients, each into its own pool.

    A client is a rank of one node.
    """

    name = "client-scaling"
    title = "Clients"
    question = "How does the rate grow with the number of clients, and where does it stop growing?"
    source = "S3"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell for each number of clients; skip a cell if fewer than 8 files per client may be created."""
        cells: list[Cell | SkippedCell] = []
        for ranks in _FULL_LEVELS if context.full else _LEVELS:
            files = files_that_fit(context.max_bytes, context.max_items, ranks, context.items(ranks))
            if files < 8:
                cells.append(self.skipped(f"only {context.max_items} files may be created here", clients=ranks))
                continue
            phases = (pool_phase("fill", "accumulate", files=files, stop=context.stonewall()),)
            measures = (Measure("fill", "operations_per_s", {"operation": "create and write"}),)
            settings = {"clients": ranks, "ranks": ranks}
            cells.append(Cell(self.name, f"{self.name}/{ranks}", settings, Plan(ranks, phases, context.seed), measures))
        return cells

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return files per second by number of clients, with the fitted law and the rate that S3 needed."""
        cells = results.where()
        references = [
            Reference(
                "S3",
                f"S3 needed {_NEEDED_EACH_PER_HOUR:,} files an hour from each of {_NEEDED_CLIENTS} clients: the dotted "
                "line through the origin; at 1 client 5.6 a second",
                label="S3, published: what its clients needed",
                points=tuple(
                    (float(cell.settings["clients"]), float(cell.settings["clients"]) * _NEEDED_EACH_PER_HOUR / HOUR_S)
                    for cell in cells
                ),
            )
        ]
        law = scalability(cells, results.confidence)
        if law is not None and law.worst_residual <= _WORST_RESIDUAL:
            points = tuple(
                (float(cell.settings["clients"]), law.law.rate(float(cell.settings["clients"]))) for cell in cells
            )
            references.append(
                Reference(
                    "law",
                    "The universal scalability law fitted to the medians.",
                    label="scalability law, fitted",
                    points=points,
                )
            )
        lines = tuple(series("files created and written", cells, "clients"))
        title, label = "Clients against rate", "files a second, all clients"
        return [self.figure(lines, ("clients", "", "log"), (label, "op/s"), *references, title=title)]

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return the parameters and the peak of the fitted law, and whether it predicts the rate that S3 needed."""
        cells = results.where()
        if len(cells) < 2:
            return []
        law = scalability(cells, results.confidence)
        evidence = results.ids(cells)
        if law is None:
            needs = f"at least {FEWEST_LEVELS} numbers of clients, each with enough runs"
            return [self.finding("law", "No scalability law was fitted.", "inconclusive", evidence, needs=needs)]
        return [*self._law(law, evidence), self._need(law, evidence)]

    def _law(self, law: Scalability, evidence: tuple[str, ...]) -> list[Finding]:
        if law.worst_residual > _WORST_RESIDUAL:
            statement = (
                "The universal scalability law does not fit this system: it misses a median by "
                f"{law.worst_residual:.0%}."
            )
            needs = "more runs, or a system that nobody else uses meanwhile"
            return [self.finding("law", statement, "inconclusive", evidence, needs=needs)]
        findings = []
        for name, value, interval, what in (
            ("contention", law.law.contention, law.contention, "the share of the work that has to queue"),
            ("coherency", law.law.coherency, law.coherency, "the cost of agreement between two clients"),
        ):
            statement = f"Scalability law, {name} ({what}): {value:.3g}."
            of = f"{name}, bootstrap over runs"
            findings.append(self.finding(name, statement, "measured", evidence, interval_of(interval, of, "")))
        peak = law.peak
        if math.isfinite(peak.high):
            statement = f"By the law, the rate is highest at {law.law.peak:,.0f} clients and falls beyond."
            shown = interval_of(peak, "clients at the peak", "clients")
            findings.append(self.finding("peak", statement, "measured", evidence, shown))
        else:
            statement = "By the law, the rate is not shown to fall at any number of clients."
            needs = f"more clients than {law.measured_up_to}"
            findings.append(self.finding("peak", statement, "unknown", evidence, needs=needs))
        return findings

    def _need(self, law: Scalability, evidence: tuple[str, ...]) -> Finding:
        """Return whether the law predicts the rate that S3 needed; unknown with a poor fit or a far extrapolation."""
        needed = _NEEDED_CLIENTS * _NEEDED_EACH_PER_HOUR / HOUR_S
        identifier = "need"
        what = (
            f"{_NEEDED_CLIENTS} clients with {_NEEDED_EACH_PER_HOUR:,} files an hour each ({needed:,.0f} a "
            "second; S3's need)"
        )
        beyond = _NEEDED_CLIENTS / law.measured_up_to
        if law.worst_residual > _WORST_RESIDUAL or beyond > _FURTHEST:
            needs = f"rates of at least {math.ceil(_NEEDED_CLIENTS / _FURTHEST)} clients, and a law that fits them"
            return self.finding(
                identifier, f"It is unknown whether the system can serve {what}.", "unknown", evidence, needs=needs
            )
        rate = law.rate(_NEEDED_CLIENTS)
        interval = interval_of(rate, f"rate of {_NEEDED_CLIENTS} clients, extrapolated", "files/s")
        holds = rate.low >= needed
        verdict = "served" if holds else "not served" if rate.high < needed else "perhaps served"
        statement = (
            f"By the law, {what} would be {verdict}; this extrapolates to {beyond:.0f} times the clients measured."
        )
        return self.finding(
            identifier, statement, "inconclusive", evidence, interval, "rates of that many clients on separate nodes"
        )

    def questions(self, results: Results) -> Sequence[Question]:
        """Return how many clients are enough."""
        return ask_level(self.name, "saturation", "clients that write small files", results.where(), "clients")

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rate at the largest number of clients."""
        return [
            Headline(f"small files by {counted(float(cell.settings['clients']), 'client')}", cell.id)
            for cell in results.where()[-1:]
        ]


def scalability(cells: Sequence[Measured], confidence: float) -> Scalability | None:
    """Return the fitted law, or None with too few levels, with under three runs of a level, or with a rate of zero."""
    rates = {int(cell.settings["clients"]): list(cell.by_block().values()) for cell in cells}
    enough = len(rates) >= FEWEST_LEVELS and all(len(values) >= 3 and min(values) > 0 for values in rates.values())
    return fit(rates, confidence) if enough else None
