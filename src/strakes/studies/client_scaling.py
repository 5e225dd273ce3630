"""client-scaling: rate by number of clients, fitted with the universal scalability law. Source: StorNext (2011)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from strakes.base.language import gettext
from strakes.model.answers import Question
from strakes.model.cell import Measure
from strakes.model.portrait import Figure, Finding, Reference
from strakes.model.results import Measured, Results
from strakes.stats.usl import FEWEST_LEVELS, Scalability, fit
from strakes.studies.compose import ask_level, interval_of, lines
from strakes.studies.small_files import HOUR_S, files_that_fit, pool_phase
from strakes.studies.study import Cells, Context, Study

_LEVELS = (1, 2, 4, 8, 16)
_FULL_LEVELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
# StorNext (2011) required 20,000 files an hour for each of 100 to 1,000 clients. strakes assumes 100 clients.
_NEEDED_CLIENTS, _NEEDED_EACH_PER_HOUR = 100, 20_000
# Maximum deviation of a median from the fitted law, as a share. Beyond this limit, strakes predicts no rates. Of 90
# simulated systems, it predicts 86. Half the limit would allow 74, and twice the limit all (median error factor 1.5).
_WORST_RESIDUAL = 0.25
# Maximum number of clients for which the law predicts a rate, as a multiple of the largest measured number.
_FURTHEST = 8
_PARAMETERS = {
    "contention": "Scalability law, contention (the share of the work that has to queue): {value}.",
    "coherency": "Scalability law, coherency (the cost of agreement between two clients): {value}.",
}
_BOOTSTRAP = {"contention": "contention, bootstrap over runs", "coherency": "coherency, bootstrap over runs"}
_SERVED = {
    "yes": "By the fitted law, {need} would be served; this extrapolates to {times} times the clients measured.",
    "no": "By the fitted law, {need} would not be served; this extrapolates to {times} times the clients measured.",
    "perhaps": "By the fitted law, {need} might be served; this extrapolates to {times} times the clients measured.",
}


class ClientScaling(Study):
    """Rate of creating small files by number of clients. Each client has a separate set of directories.

    All clients are ranks on one node. The time includes syncfs(2), so a cache in memory does not hide a slow device.
    """

    name = "client-scaling"
    title = "Clients"
    question = "How does the rate grow with the number of clients, and where does it stop growing?"
    source = "S3"

    def cells(self, context: Context) -> Cells:
        measures = (Measure("fill", "operations_per_s", {"operation": "create and write"}),)
        for ranks in _FULL_LEVELS if context.full else _LEVELS:
            files = files_that_fit(context.max_bytes, context.max_items, ranks, context.items(ranks))
            if files < 8:
                yield self.too_few_files(context, clients=ranks)
                continue
            phases = (pool_phase("fill", "accumulate", files=files, stop=context.stonewall(), syncfs=True),)
            yield self.cell(context, f"{ranks}", {"clients": ranks, "ranks": ranks}, phases, measures)

    def figures(self, results: Results) -> Sequence[Figure]:
        cells = results.where()
        clients = [float(cell.settings["clients"]) for cell in cells]
        references = [
            self.published(
                gettext(
                    "Dotted line: the rate that StorNext (2011) required, {files} files an hour from each of "
                    "{clients} clients (5.6 files a second per client)",
                    files=f"{_NEEDED_EACH_PER_HOUR:,}",
                    clients=_NEEDED_CLIENTS,
                ),
                what=gettext("the required rate"),
                points=[(number, number * _NEEDED_EACH_PER_HOUR / HOUR_S) for number in clients],
            )
        ]
        law = scalability(cells, results.confidence)
        if law is not None and law.worst_residual <= _WORST_RESIDUAL:
            text = gettext("The universal scalability law fitted to the medians.")
            points = tuple((number, law.law.rate(number)) for number in clients)
            references.append(Reference("law", text, label=gettext("scalability law, fitted"), points=points))
        line = lines("clients", [(gettext("files created and written"), cells)])
        title, x, y = gettext("Clients against rate"), gettext("clients"), gettext("files a second, all clients")
        return [self.figure(line, (x, "", "log"), (y, "op/s"), *references, title=title)]

    def findings(self, results: Results) -> Sequence[Finding]:
        cells = results.where()
        if len(cells) < 2:
            return []
        law = scalability(cells, results.confidence)
        evidence = results.ids(cells)
        if law is None:
            needs = gettext("enough runs with at least {levels} different numbers of clients", levels=FEWEST_LEVELS)
            statement = gettext("No scalability law was fitted.")
            return [self.finding("law", statement, "inconclusive", evidence, needs=needs)]
        return [*self._law(law, evidence), self._need(law, evidence)]

    def _law(self, law: Scalability, evidence: tuple[str, ...]) -> list[Finding]:
        if law.worst_residual > _WORST_RESIDUAL:
            statement = gettext(
                "The universal scalability law does not fit: a median deviates from the fitted curve by {share}.",
                share=f"{law.worst_residual:.0%}",
            )
            needs = gettext("more runs, or a system without the load of other users")
            return [self.finding("law", statement, "inconclusive", evidence, needs=needs)]
        findings = []
        for name, statement in _PARAMETERS.items():
            value, interval = getattr(law.law, name), interval_of(getattr(law, name), gettext(_BOOTSTRAP[name]), "")
            text = gettext(statement, value=f"{value:.3g}")
            findings.append(self.finding(name, text, "measured", evidence, interval))
        peak = law.peak
        if math.isfinite(peak.high):
            statement = gettext(
                "According to the fitted law, the rate peaks at {clients} clients and falls beyond.",
                clients=f"{law.law.peak:,.0f}",
            )
            shown = interval_of(peak, gettext("clients at the peak"), "clients")
            findings.append(self.finding("peak", statement, "measured", evidence, shown))
        else:
            statement = gettext("It is unknown whether the rate falls beyond some number of clients.")
            needs = gettext("measurements with more than {clients} clients", clients=law.measured_up_to)
            findings.append(self.finding("peak", statement, "unknown", evidence, needs=needs))
        return findings

    def _need(self, law: Scalability, evidence: tuple[str, ...]) -> Finding:
        needed = _NEEDED_CLIENTS * _NEEDED_EACH_PER_HOUR / HOUR_S
        need = gettext(
            "{clients} clients with {files} files an hour each, {rate} a second in all (required by StorNext in 2011)",
            clients=_NEEDED_CLIENTS,
            files=f"{_NEEDED_EACH_PER_HOUR:,}",
            rate=f"{needed:,.0f}",
        )
        beyond = _NEEDED_CLIENTS / law.measured_up_to
        if law.worst_residual > _WORST_RESIDUAL or beyond > _FURTHEST:
            needs = gettext(
                "rates measured with {clients} or more clients, and a scalability law that fits these rates",
                clients=math.ceil(_NEEDED_CLIENTS / _FURTHEST),
            )
            statement = gettext("It is unknown whether the system can serve {need}.", need=need)
            return self.finding("need", statement, "unknown", evidence, needs=needs)
        rate = law.rate(_NEEDED_CLIENTS)
        of = gettext("rate of {clients} clients, extrapolated", clients=_NEEDED_CLIENTS)
        interval = interval_of(rate, of, "files/s")
        served = "yes" if rate.low >= needed else "no" if rate.high < needed else "perhaps"
        statement = gettext(_SERVED[served], need=need, times=f"{beyond:.0f}")
        needs = gettext("rates measured with {clients} clients on separate nodes", clients=_NEEDED_CLIENTS)
        return self.finding("need", statement, "inconclusive", evidence, interval, needs)

    def questions(self, results: Results) -> Sequence[Question]:
        return ask_level(self.name, "saturation", gettext("clients that write small files"), results.where(), "clients")


def scalability(cells: Sequence[Measured], confidence: float) -> Scalability | None:
    """Fit the scalability law. Return None with too few client counts or runs, or with a rate of zero."""
    rates = {int(cell.settings["clients"]): list(cell.by_block().values()) for cell in cells}
    enough = len(rates) >= FEWEST_LEVELS and all(len(values) >= 3 and min(values) > 0 for values in rates.values())
    return fit(rates, confidence) if enough else None
