"""nodes: rate by number of nodes, and slow nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from strakes.base.language import gettext
from strakes.base.units import MIB
from strakes.model.answers import Question
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase
from strakes.model.portrait import Figure, Finding, IntervalOf
from strakes.model.results import Measured, Results
from strakes.model.sample import Sample
from strakes.stats.interval import median_interval, smallest_runs
from strakes.stats.ratios import bonferroni
from strakes.studies.compose import WRITE_AND_READ, ask_level, lines, rates
from strakes.studies.study import Cells, Context, Study

_DATA = ("write", "read")
_TITLES = {"write": "nodes, writes", "read": "nodes, reads", "create": "nodes, creates"}
# A node is slow below this share of the median rate. At 1.0, one of several equal nodes would count as slow.
_SLOW_SHARE = 0.9


class NodesStudy(Study):
    """Rates by number of nodes, with equal numbers of ranks on each node. Each node reads the files of another node."""

    name = "nodes"
    title = "Nodes"
    question = "How does the rate grow with the number of nodes, and is one of them slow?"
    source = "S1"
    in_survey = True
    elsewhere = "Start ranks on several nodes: --launcher mpi with --hosts A,B, or --launcher slurm in a job."

    def cells(self, context: Context) -> Cells:
        if len(context.nodes) < 2:
            reason = "needs --hosts and --launcher: only one node takes part (strakes doctor lists launchers)"
            return [self.skipped(reason, nodes="several nodes")]
        each = min(context.nodes.values())
        return [self._cell(context, number, each) for number in levels(len(context.nodes))]

    def _cell(self, context: Context, nodes: int, each: int) -> Cell:
        ranks, most = nodes * each, len(context.nodes) * each
        amount = context.amount_bytes(most)
        transfer, stop = min(MIB, amount), context.stonewall()
        phases = (
            *context.write_and_read(transfer, amount, rank_shift=each % ranks),
            MetadataPhase("create", "file-create", "unique", context.items(most), stop=stop),
        )
        measures = (*WRITE_AND_READ, *rates("create"))
        settings = {"nodes": nodes, "ranks": ranks, "ranks_per_node": each}
        return self.cell(context, f"{nodes}", settings, phases, measures, ranks_per_node=each)

    def figures(self, results: Results) -> Sequence[Figure]:
        data = lines("nodes", ((gettext(operation), results.where(operation=operation)) for operation in _DATA))
        creates = lines("nodes", [(gettext("files created"), results.where(operation="create"))])
        y, by_nodes = (gettext("bandwidth of all nodes"), "B/s"), gettext("nodes")
        of_creates, title = (gettext("files created by all nodes"), "op/s"), gettext("Nodes against creations")
        return [
            self.figure(data, (by_nodes, "", "log"), y, title=gettext("Nodes against rate")),
            self.figure(creates, (by_nodes, "", "log"), of_creates, title=title),
        ]

    def findings(self, results: Results) -> Sequence[Finding]:
        return [
            self._slowest(operation, cells[-1], results)
            for operation in _TITLES
            if len(cells := results.where(operation=operation)) > 1
        ]

    def _slowest(self, operation: str, cell: Measured, results: Results) -> Finding:
        identifier, evidence = f"slowest-{operation}", (cell.id,)
        shares = shares_of_nodes([seen.sample for seen in cell.observations if seen.purpose == "measure"])
        confidence = bonferroni(results.confidence, max(1, len(shares)))
        intervals = {host: median_interval(values, confidence) for host, values in shares.items()}
        if not shares or any(interval is None for interval in intervals.values()):
            text = gettext("It is unknown whether a node is slow ({operation}).", operation=gettext(operation))
            needs = gettext("at least {runs} runs with all nodes", runs=smallest_runs(confidence))
            return self.finding(identifier, text, "inconclusive", evidence, needs=needs)
        host = min(shares, key=lambda name: median(shares[name]))
        interval = intervals[host]
        assert interval is not None
        of = gettext("slowest of {nodes} nodes, relative to the median node ({nodes} comparisons)", nodes=len(shares))
        shown = IntervalOf(interval.low, interval.high, confidence, of, "share")
        share = f"{median(shares[host]):.0%}"
        message = "No node is shown to be slow ({operation}); the slowest, {host}, is at {share} of the usual rate."
        if slow := interval.high < _SLOW_SHARE:
            message = "{host} is slow: its rate ({operation}) is {share} of the usual rate of the nodes."
        text = gettext(message, host=host, operation=gettext(operation), share=share)
        return self.finding(identifier, text, "measured", evidence, shown, tone="bad" if slow else "neutral")

    def questions(self, results: Results) -> Sequence[Question]:
        return [
            question
            for operation, title in _TITLES.items()
            for question in ask_level(self.name, operation, gettext(title), results.where(operation=operation), "nodes")
        ]


def levels(nodes: int) -> list[int]:
    """Return the numbers of nodes to measure: the powers of two below ``nodes``, and ``nodes``.

    >>> levels(6), levels(4)
    ([1, 2, 4, 6], [1, 2, 4])
    """
    return sorted({nodes, *(1 << power for power in range(nodes.bit_length()) if 1 << power < nodes)})


def shares_of_nodes(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Return node -> its rate in each sample, divided by the median rate of all nodes.

    >>> from strakes.model.sample import NodeOfPhase
    >>> columns, nodes = ["rank", "start_s", "end_s", "operations"], tuple(NodeOfPhase(host) for host in "abc")
    >>> rows = [[0, 0.0, 1.0, 8], [1, 0.0, 2.0, 8], [2, 0.0, 1.0, 8]]
    >>> shares_of_nodes([Sample("write", columns=columns, ranks=rows, nodes=nodes)])
    {'a': [1.0], 'b': [0.5], 'c': [1.0]}
    """
    shares: dict[str, list[float]] = {}
    for sample in samples:
        hosts = [node.host for node in sample.nodes]
        if not hosts or len(sample.ranks) % len(hosts):
            continue
        each = len(sample.ranks) // len(hosts)
        rows = [dict(zip(sample.columns, row, strict=True)) for row in sample.ranks]
        rates = {host: _rate(rows[number * each : (number + 1) * each]) for number, host in enumerate(hosts)}
        usual = median(rates.values())
        for host, rate in rates.items():
            shares.setdefault(host, []).append(rate / usual if usual > 0 else 0.0)
    return shares


def _rate(rows: Sequence[Mapping[str, float]]) -> float:
    took = max(row["end_s"] for row in rows) - min(row["start_s"] for row in rows)
    return sum(row["operations"] for row in rows) / took if took > 0 else 0.0
