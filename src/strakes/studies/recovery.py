"""recovery: waiting time of clients in a metadata fail-over, by number of clients. Source: Zeng et al. (2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from strakes.base.language import gettext, ngettext
from strakes.model.answers import Question
from strakes.model.cell import Cell, Measure, Metric
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Phase
from strakes.model.portrait import Figure, Finding, Headline, IntervalOf
from strakes.model.recovery_clients import WATCH, Timing, watch_phase
from strakes.model.results import Measured, Results
from strakes.stats.interval import smallest_runs
from strakes.studies.compose import ask, lines
from strakes.studies.straight_line import FEWEST, forecast
from strakes.studies.study import Cells, Context, Study

# Number of clients -> priority (1: measured first). A client is a libcephfs session: 12 threads, 1.6 MB of memory.
_PRIORITIES = {1: 1, 10: 3, 50: 2, 200: 1}
# Numbers of files created just before the fault, and of their creators. Replay at least doubled recovery times.
_IN_FLIGHT, _CREATORS = 50_000, 50
# Largest number of clients with a published recovery time (420 seconds).
_FORECAST_CLIENTS = 2000
_RATE_PER_S = 1.0
TIMING = Timing(before_s=3.0, after_s=4.0)
_LAST = "last client"
_WHO: tuple[tuple[str, Metric], ...] = (
    ("first client", "recovery_first_s"),
    ("median client", "recovery_median_s"),
    (_LAST, "recovery_last_s"),
)
# Table 2 of Zeng et al. (2021): number of clients, and seconds until the file system had recovered.
_S2 = ((50.0, 10.0), (100.0, 23.0), (200.0, 41.0), (500.0, 108.0), (1000.0, 211.0), (2000.0, 420.0))
_CEPH = ("ceph", "fuse.ceph-fuse", "fuse.ceph")


class RecoveryStudy(Study):
    """Waiting times of clients in fail-over drills, by number of clients.

    A trial is a drill: strakes injects a fault while clients create files at a fixed rate, and undoes the fault later.
    """

    name = "recovery"
    title = "Recovery after a metadata fail-over by number of clients"
    question = "How long do clients wait when the metadata service fails over, and does it depend on their number?"
    source = "S2"
    needs_pilot = False
    interrupts_service = True

    def cells(self, context: Context) -> Cells:
        if context.file_system not in _CEPH:
            why = (
                f"on {context.file_system} a client is a mount, and this machine has only one; on CephFS a client "
                "can be a session of libcephfs"
            )
            yield self._cell(context, 1, context.files or 0, sessions=False)
            for clients in list(_PRIORITIES)[1:]:
                yield self.skipped(why, clients=clients)
            return
        for clients in sorted({*_PRIORITIES, context.most_ranks or 1}):
            yield self._cell(context, clients, context.files or 0, sessions=True)
        if not context.files:
            yield self._cell(context, _CREATORS, _IN_FLIGHT, sessions=True)

    def _cell(self, context: Context, clients: int, files: int, *, sessions: bool) -> Cell:
        phases: list[Phase] = []
        if files:
            per_client = math.ceil(files / clients)
            phases.append(
                MetadataPhase("journal", "file-create", "unique", per_client, backend="cephfs" if sessions else "posix")
            )
        phases.append(watch_phase(_RATE_PER_S, TIMING, sessions=sessions))
        varied = files and not context.files
        key, settings = f"{clients}/{files}" if varied else f"{clients}", {"clients": clients, "files": files}
        measures = [Measure(WATCH, metric, {"who": who}) for who, metric in _WHO]
        priority = 4 if varied else _PRIORITIES.get(clients, 1)
        return self.cell(context, key, settings, phases, measures, ranks=clients, priority=priority)

    def figures(self, results: Results) -> Sequence[Figure]:
        drawn = lines("clients", ((gettext(who), _by_clients(results, who)) for who, _ in _WHO))
        theirs = gettext("Zeng et al. (2021): the wait grows with the number of clients: 10 s for 50, 420 s for 2,000")
        reference = replace(self.published(theirs, points=_S2), label="S2")
        y = gettext("time from the fault to the end of the wait"), "s"
        return [self.figure(drawn, (gettext("clients"), "", "log"), y, reference)]

    def questions(self, results: Results) -> Sequence[Question]:
        last = _by_clients(results, _LAST)
        ends = [
            (ngettext("{count} client", "{count} clients", int(cell.settings["clients"])), [cell])
            for cell in (*last[:1], *last[1:][-1:])
        ]
        in_flight = [
            (ngettext("{count} file just created", "{count} files just created", int(cell.settings["files"])), [cell])
            for cell in results.where(who=_LAST, clients=_CREATORS)
        ]
        of_several = gettext("longest wait among {clients} clients", clients=_CREATORS)
        return [
            *ask(self.name, "growth", gettext("longest wait"), ends, advises=False),
            *ask(self.name, "in-flight", of_several, in_flight, advises=False),
        ]

    def findings(self, results: Results) -> Sequence[Finding]:
        if not results.where(who=_LAST):
            return []
        return [*self._forecast(results), self._nothing_lost(results)]

    def _forecast(self, results: Results) -> list[Finding]:
        cells = _by_clients(results, _LAST)
        if len(cells) < 2:
            return []
        evidence = results.ids(cells)
        drills = [(float(cell.settings["clients"]), seen.value) for cell in cells for seen in cell.observations]
        found = forecast(drills, _FORECAST_CLIENTS, results.confidence)
        clients = f"{_FORECAST_CLIENTS:,}"
        if found is None:
            text = gettext("It is unknown when the last of {clients} clients is served again.", clients=clients)
            message = "{drills} drills with the fewest and with the most clients: give a larger --budget"
            needs = gettext(message, drills=FEWEST)
            return [self.finding("forecast", text, "inconclusive", evidence, needs=needs)]
        text = gettext(
            "Extrapolated from {drills} drills with up to {most} clients, the last of {clients} clients is served "
            "again {time} s after the fault (Zeng et al. published {published} s).",
            clients=clients,
            time=f"{found.value:.1f}",
            drills=f"{len(drills):,}",
            most=cells[-1].settings["clients"],
            published=f"{dict(_S2)[_FORECAST_CLIENTS]:.0f}",
        )
        of = gettext("longest wait among {clients} clients", clients=clients)
        interval = IntervalOf(max(0.0, found.low), found.high, found.confidence, of, "s")
        return [self.finding("forecast", text, "forecast", evidence, interval)]

    def _nothing_lost(self, results: Results) -> Finding:
        cells = results.where(who=_LAST)
        drills = [seen.sample for cell in cells for seen in cell.observations]
        total = {
            key: sum(int(getattr(drill, key)) for drill in drills)
            for key in ("acknowledged", "lost", "failed", "repeated")
        }
        text = ngettext(
            "{lost} of {acknowledged} acknowledged files are missing or damaged after fail-overs, in {count} drill "
            "({failed} creations failed, {repeated} were repeated).",
            "{lost} of {acknowledged} acknowledged files are missing or damaged after fail-overs, in {count} drills "
            "({failed} creations failed, {repeated} were repeated).",
            len(drills),
            **{key: f"{number:,}" for key, number in total.items()},
        )
        evidence = results.ids(cells)
        if total["lost"]:
            return self.finding("nothing-lost", text, "does-not", evidence, tone="bad")
        least = smallest_runs(results.confidence)
        if any(len(cell.observations) < least for cell in cells):
            message = "at least {drills} drills with each number of clients: give a larger --budget"
            needs = gettext(message, drills=least)
            return self.finding("nothing-lost", text, "inconclusive", evidence, needs=needs)
        return self.finding("nothing-lost", text, "holds", evidence, tone="good")

    def headlines(self, results: Results) -> Sequence[Headline]:
        message = "fail-over until the last of {clients} clients is back"
        return [
            Headline(gettext(message, clients=cell.settings["clients"]), cell.id)
            for cell in _by_clients(results, _LAST)[-1:]
        ]


def _by_clients(results: Results, who: str) -> list[Measured]:
    files = results.levels("files")
    return results.where(who=who, files=files[0]) if files else []
