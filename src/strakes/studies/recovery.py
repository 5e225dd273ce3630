"""recovery: how long clients wait when the metadata service fails over, against their number.

S2 section 3.4.2, table 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from strakes.drill.clients import WATCH, Timing, watch_phase
from strakes.findings.answers import Question
from strakes.findings.cell import Cell, Measure, Metric
from strakes.findings.portrait import Figure, Finding, Headline, Reference, SkippedCell
from strakes.findings.results import Results
from strakes.plan import MetadataPhase, Phase, Plan
from strakes.statistics.interval import smallest_runs
from strakes.studies.compose import ask, series
from strakes.studies.study import Context, Study
from strakes.units import counted

# A client here is a session of libcephfs; one takes 12 threads and 1.6 MB of the machine.
_LEVELS = (1, 10, 50, 200)
_RATE_PER_S = 1.0
# Long enough that there is a rate to fall from; what is due after a stall is done late, so the end need not be waited
# for.
TIMING = Timing(before_s=3.0, after_s=4.0)
_WHO: tuple[tuple[str, Metric], ...] = (
    ("first client", "recovery_first_s"),
    ("median client", "recovery_median_s"),
    ("last client", "recovery_last_s"),
)
# S2, table 2: clients and seconds until the file system had recovered.
_S2 = ((50.0, 10.0), (100.0, 23.0), (200.0, 41.0), (500.0, 108.0), (1000.0, 211.0), (2000.0, 420.0))
_CEPH = ("ceph", "fuse.ceph-fuse", "fuse.ceph")


class RecoveryStudy(Study):
    """Every visit is a drill.

    Clients create files on a fixed schedule, the fault comes, and is undone before the next one.
    """

    name = "recovery"
    title = "Recovery after a metadata fail-over against clients"
    question = "How long do clients wait when the metadata service fails over, and does it depend on their number?"
    source = "S2"
    needs_pilot = False
    interrupts_service = True

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell per number of clients, that of --ranks too; several need sessions of libcephfs."""
        if context.file_system not in _CEPH:
            why = (
                f"on {context.file_system} a client is a mount, and this machine has only one; on CephFS a client "
                "can be a session of libcephfs"
            )
            return [
                self._cell(context, 1, sessions=False),
                *(self.skipped(why, clients=clients) for clients in _LEVELS[1:]),
            ]
        levels = sorted({*_LEVELS, context.most_ranks or 1})
        return [self._cell(context, clients, sessions=True) for clients in levels]

    def _cell(self, context: Context, clients: int, *, sessions: bool) -> Cell:
        phases: list[Phase] = []
        if context.files:
            # What the server that takes over has to read first.
            per_client = math.ceil(context.files / clients)
            phases.append(
                MetadataPhase("journal", "file-create", "unique", per_client, backend="cephfs" if sessions else "posix")
            )
        phases.append(watch_phase(_RATE_PER_S, TIMING, sessions=sessions))
        return Cell(
            self.name,
            f"{self.name}/{clients}",
            {"clients": clients},
            Plan(clients, tuple(phases), context.seed),
            tuple(Measure(WATCH, metric, {"who": who}) for who, metric in _WHO),
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the wait after a fault in seconds, by clients, with what S2 published."""
        lines = [line for who, _ in _WHO for line in series(who, results.where(who=who), "clients")]
        theirs = Reference(
            "S2",
            "S2 (Lustre on Tianhe-2): in proportion to the clients, 10 s for 50 and 420 s for 2,000",
            label="S2",
            points=_S2,
        )
        axis = "from the fault to the end of the wait"
        return [self.figure(lines, ("clients", "", "log"), (axis, "s"), theirs)]

    def questions(self, results: Results) -> Sequence[Question]:
        """Return how the wait grows with the clients."""
        last = results.where(who="last client")
        options = [(counted(float(cell.settings["clients"]), "client"), [cell]) for cell in (*last[:1], *last[1:][-1:])]
        return ask(self.name, "growth", "wait of the last client", options, advises=False)

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return whether every acknowledged operation survived."""
        return [self._nothing_lost(results)] if results.where(who="last client") else []

    def _nothing_lost(self, results: Results) -> Finding:
        """Count over all drills: what was acknowledged must be there."""
        cells = results.where(who="last client")
        drills = [seen.sample for cell in cells for seen in cell.observations]
        total = {
            key: sum(int(getattr(drill, key)) for drill in drills)
            for key in ("acknowledged", "lost", "failed", "repeated")
        }
        text = (
            f"No acknowledged file is missing after a fail-over: {total['lost']:,} of {total['acknowledged']:,} are, "
            f"in {counted(len(drills), 'drill')} ({total['failed']:,} creations failed, {total['repeated']:,} "
            "were repeated)."
        )
        identifier, evidence = "nothing-lost", results.ids(cells)
        if total["lost"]:
            return self.finding(identifier, text, "does-not", evidence, tone="bad")
        least = smallest_runs(results.confidence)
        if any(len(cell.observations) < least for cell in cells):
            needs = f"at least {least} drills with each number of clients: give a larger --budget"
            return self.finding(identifier, text, "inconclusive", evidence, needs=needs)
        return self.finding(identifier, text, "holds", evidence, tone="good")

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the wait of the last client, with most clients."""
        return [
            Headline(f"fail-over until the last of {cell.settings['clients']} clients is back", cell.id)
            for cell in results.where(who="last client")[-1:]
        ]
