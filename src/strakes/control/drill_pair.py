"""Faults on the pair of the lab: cause one while clients work, measure the outage, repair the pair, and repeat."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from strakes.base.files import open_kept
from strakes.control.drill_guard import Promise
from strakes.control.drill_undo import RestorePair
from strakes.failover.split_brain import Acknowledgement, JournalRecord, SplitBrainJudgement, judge
from strakes.failover.timeline import ClientOperation, Moment, Timeline, outage_of, timeline
from strakes.lab.ha_journal import ONLY, START
from strakes.lab.ha_pair import Alert, Button, Pair
from strakes.stats.interval import Interval, median, median_interval

POWER_OFF, CUT_ONE, CUT_ALL, HANG = "power-off", "cut-one", "cut-all", "service-hung"
# Time for the clients to end in seconds; each waits for at most one answer.
_CLIENTS_END_S = 30.0


# Fault -> summary, and what causes it, given the pair and the node that serves.
PAIR_FAULTS: Mapping[str, tuple[str, Callable[[Pair, str], None]]] = {
    POWER_OFF: ("the BMC cuts the power of the node that serves", lambda pair, node: pair.power_off(node)),
    CUT_ONE: ("the first heartbeat link is cut", lambda pair, _node: pair.cut(0)),
    CUT_ALL: ("both heartbeat links are cut", lambda pair, _node: pair.cut_all()),
    HANG: (
        "the service is stopped (SIGSTOP): its process exists and does not answer",
        lambda pair, node: pair.hang_service(node),
    ),
}


@dataclass(frozen=True)
class Pace:
    """The clients of a trial, and its times in seconds.

    ``watch_s`` is how long it waits to see that nothing happens; ``answer_s`` is the longest that the pair may take for
    an answer.
    """

    clients: int = 4
    rate_per_s: float = 10.0
    before_s: float = 2.0
    watch_s: float = 5.0
    after_s: float = 2.0
    answer_s: float = 600.0


@dataclass(frozen=True)
class FaultTrial:
    """The outcome of one fault on the pair.

    ``switched_off``: the nodes that the pair fenced, with the seconds until the request to their BMC. ``outage_s``: the
    longest wait of any client, None if a client was never answered again. ``told``: number of alerts.
    """

    fault: str
    served_before: str
    served_after: str
    switched_off: dict[str, float]
    outage_s: float | None
    judgement: SplitBrainJudgement
    line: Timeline
    told: int

    @property
    def good(self) -> bool:
        """Return whether the pair survived the fault as required."""
        moved = self.served_after != self.served_before
        fenced = set(self.switched_off)
        expected = {
            POWER_OFF: moved and fenced == {self.served_before},
            CUT_ONE: not moved and not fenced,
            CUT_ALL: len(fenced) == 1,
            HANG: not fenced,
        }
        return self.judgement.good and self.outage_s is not None and expected[self.fault]


def run_trial(lab: str, pair: Pair, name: str, pace: Pace, root: Path) -> FaultTrial:
    """Cause one fault on the lab's pair and undo it. ``root`` is the store, which has the journal of faults.

    Raises MeasurementError if the pair does not answer in time.
    """
    pair.make_whole(pace.answer_s)
    before = pair.active()
    promise = Promise(root, PAIR_FAULTS[name][0], RestorePair(lab))
    try:
        return _observe(pair, name, before, pace)
    finally:
        try:
            promise.keep()
        finally:
            promise.close()


def _observe(pair: Pair, name: str, before: str, pace: Pace) -> FaultTrial:
    with RunningClients(pair, pace) as clients:
        time.sleep(pace.before_s)
        fault_s = time.time()
        PAIR_FAULTS[name][1](pair, before)
        done_s = time.time()
        _wait_for_answer(pair, name, before, clients, done_s, pace)
        time.sleep(pace.after_s)
    after = pair.active()
    copies = {node: clients.own(pair.journal(node)) for node in pair.nodes if node == after or not pair.has_power(node)}
    buttons = pair.buttons(done_s)
    outages = [outage_of(name, done, fault_s) for name, done in clients.operations().items()]
    alerts = pair.alerts(fault_s)
    moments = [
        Moment(fault_s, "drill", PAIR_FAULTS[name][0]),
        *(Moment(button.at_s, f"BMC of {button.node}", button.what) for button in buttons),
        *(Moment(alert.at_s, f"alert by {alert.by}", alert.text) for alert in alerts),
    ]
    line = timeline(name, fault_s, moments, outages)
    return FaultTrial(
        fault=name,
        served_before=before,
        served_after=after,
        switched_off=switched_off(buttons, alerts, name, before, fault_s),
        outage_s=None if not outages or line.gone else max(outage.stall_s for outage in outages),
        judgement=judge(copies, clients.acknowledged(), after),
        line=line,
        told=len(alerts),
    )


class RunningClients:
    """Clients that work while this is open; their answers go to a file, so that no full pipe stops them."""

    def __init__(self, pair: Pair, pace: Pace) -> None:
        self._run = secrets.token_hex(3)
        self._command = pair.clients(self._run, pace.clients, pace.rate_per_s)
        # The mapping of each record sent, once the clients have ended.
        self._all: Sequence[Mapping[str, Any]] | None = None

    def __enter__(self) -> Self:
        self._directory = tempfile.TemporaryDirectory(prefix="strakes-clients-")
        self._path = Path(self._directory.name, "answers")
        with os.fdopen(open_kept(self._path, os.O_WRONLY | os.O_CREAT), "wb") as output:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=output, start_new_session=True
            )
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self._process.communicate(timeout=_CLIENTS_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._all = self._answers()
        self._directory.cleanup()

    def _answers(self) -> Sequence[Mapping[str, Any]]:
        """Return the answers received until now."""
        if self._all is not None:
            return self._all
        return [json.loads(line) for line in self._path.read_text().split("\n")[:-1]]

    def acknowledged(self) -> list[Acknowledgement]:
        """Return the writes that were answered without an error."""
        return [
            Acknowledgement(
                JournalRecord(given["term"], given["node"], given["client"], given["number"]),
                given["sent_s"],
                given["ended_s"],
            )
            for given in self._answers()
            if "error" not in given
        ]

    def operations(self) -> dict[str, list[ClientOperation]]:
        """Return the operations, as they were due, of every client that may ask any node."""
        operations: dict[str, list[ClientOperation]] = defaultdict(list)
        for given in self._answers():
            if not given["client"].startswith(ONLY):
                done = ClientOperation(given["due_s"], given["ended_s"], given.get("error", ""))
                operations[given["client"]].append(done)
        return operations

    def own(self, records: Sequence[JournalRecord]) -> list[JournalRecord]:
        """Return the records of this run's clients."""
        return [record for record in records if record.client == START or record.client.endswith(self._run)]


def _wait_for_answer(pair: Pair, fault: str, before: str, clients: RunningClients, done_s: float, pace: Pace) -> None:
    def answered(since_s: float, *, elsewhere: bool = False) -> bool:
        answers = [answer for answer in clients.acknowledged() if answer.sent_s > since_s]
        return any(not elsewhere or answer.record.node != before for answer in answers)

    if fault == POWER_OFF:
        pair.wait_until("the other node to answer", lambda: answered(done_s, elsewhere=True), pace.answer_s)
    elif fault == CUT_ONE:
        time.sleep(pace.watch_s)
    elif fault == HANG:
        pair.wait_until("the service to answer again", lambda: answered(done_s), pace.answer_s)
    else:
        pair.wait_until("one node to power off the other", lambda: _powered_off(pair.buttons(done_s)), pace.answer_s)
        cut_s = _powered_off(pair.buttons(done_s))[0].at_s
        pair.wait_until("the node that is left to answer", lambda: answered(cut_s + 1.0), pace.answer_s)


def _powered_off(buttons: Sequence[Button]) -> list[Button]:
    return [button for button in buttons if button.what.startswith("set power 0")]


def switched_off(
    buttons: Sequence[Button], alerts: Sequence[Alert], fault: str, before: str, fault_s: float
) -> dict[str, float]:
    """Return for each node how many seconds passed until the pair asked its BMC to cut its power.

    For a node without a BMC the value says whether it is off. A BMC is also asked at other times: only the last
    question before the word that the node is off counts.
    """
    if fault != POWER_OFF:
        # The first request counts.
        return {button.node: button.at_s - fault_s for button in reversed(_powered_off(buttons))}
    off = (alert.at_s for alert in alerts if f"Operation off of {before} " in alert.text and ": OK" in alert.text)
    said_s = min(off, default=0.0)
    asked = [button.at_s for button in buttons if button.node == before and button.at_s < said_s]
    return {before: max(asked) - fault_s} if asked else {}


@dataclass(frozen=True)
class Spread:
    """The median of several times; ``interval`` is None if there are too few."""

    median_s: float
    interval: Interval | None


@dataclass(frozen=True)
class TrialRow:
    """All trials of one fault. A time is None if no node was powered off, or no client was answered again."""

    fault: str
    runs: int
    good: int
    took_over: int
    powered_off: Spread | None
    outage: Spread | None
    acknowledged: int
    lost: int
    split_brain: tuple[str, ...]
    told: int


def run_trials(
    lab: str, pair: Pair, faults: Sequence[str], repeat: int, pace: Pace, root: Path, say: Callable[[str], None]
) -> tuple[FaultTrial, ...]:
    """Do every fault in every round; after each the pair is made whole again, also when strakes is killed."""
    done = []
    for round_number in range(1, repeat + 1):
        for fault in faults:
            say(f"{round_number} of {repeat}: {PAIR_FAULTS[fault][0]}")
            done.append(run_trial(lab, pair, fault, pace, root))
    pair.wait_whole(pace.answer_s)
    return tuple(done)


def rows(trials: Sequence[FaultTrial]) -> tuple[TrialRow, ...]:
    """Return one row for each fault, in the order of their first trials."""
    return tuple(
        _row([trial for trial in trials if trial.fault == fault])
        for fault in dict.fromkeys(trial.fault for trial in trials)
    )


def _row(trials: Sequence[FaultTrial]) -> TrialRow:
    outages = [trial.outage_s for trial in trials if trial.outage_s is not None]
    return TrialRow(
        fault=trials[0].fault,
        runs=len(trials),
        good=sum(trial.good for trial in trials),
        took_over=sum(trial.served_after != trial.served_before for trial in trials),
        powered_off=_spread([after for trial in trials for after in trial.switched_off.values()]),
        outage=_spread(outages) if len(outages) == len(trials) else None,
        acknowledged=sum(trial.judgement.acknowledged for trial in trials),
        lost=sum(len(trial.judgement.lost) for trial in trials),
        split_brain=tuple(text for trial in trials for text in trial.judgement.split_brain),
        told=sum(trial.told for trial in trials),
    )


def _spread(times_s: Sequence[float]) -> Spread | None:
    return Spread(median(times_s), median_interval(times_s, 0.9)) if times_s else None


def document(trials: Sequence[FaultTrial]) -> str:
    """Return all trials, and one row for each fault, as JSON."""
    listed = {"rows": [asdict(row) for row in rows(trials)], "trials": [asdict(trial) for trial in trials]}
    return json.dumps({"schema": 1, **listed}, indent=1)
