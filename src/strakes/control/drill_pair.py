"""Cause faults on the two servers of a lab while clients send records, measure the outages and repair the servers."""

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

from strakes.base.interrupts import last_words
from strakes.control.drill_guard import Promise
from strakes.control.drill_undo import RepairLab
from strakes.failover.timeline import (
    Acknowledgement,
    ClientOperation,
    JournalRecord,
    Moment,
    SplitBrainJudgement,
    Timeline,
    judge,
    outage_of,
    timeline,
)
from strakes.lab.ha_pair import Alert, Button, Pair
from strakes.lab.ha_programs import ONLY, START

POWER_OFF, CUT_ONE, CUT_ALL, HANG = "power-off", "cut-one", "cut-all", "service-hung"
_CLIENTS, _RATE_PER_S = 4, 10.0
_WORK_S, _WATCH_S = 2.0, 5.0
_CLIENTS_END_S, _ANSWER_S = 30.0, 600.0

# Fault -> (description, function that causes it). The function gets the servers and the name of the serving node.
PAIR_FAULTS: Mapping[str, tuple[str, Callable[[Pair, str], object]]] = {
    POWER_OFF: ("the BMC cuts the power of the node that serves", lambda pair, node: pair.power(node, "off")),
    CUT_ONE: ("the first heartbeat link is cut", lambda pair, _node: pair.set_links("down", "0")),
    CUT_ALL: ("both heartbeat links are cut", lambda pair, _node: pair.set_links("down")),
    HANG: ("the process of the service is stopped (SIGSTOP)", lambda pair, node: pair.signal_service(node, "STOP")),
}


@dataclass(frozen=True)
class FaultTrial:
    """The outcome of one fault on the two servers. ``switched_off``: see :func:`switched_off`.

    ``outage_s``: longest wait of a client, or None if a client got no more answers. ``told``: number of alerts.
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
        """Return whether the right server took over or stayed, without split brain or lost writes."""
        moved = self.served_after != self.served_before
        fenced = set(self.switched_off)
        expected = {
            POWER_OFF: moved and fenced == {self.served_before},
            CUT_ONE: not moved and not fenced,
            CUT_ALL: len(fenced) == 1,
            HANG: not fenced,
        }
        return self.judgement.good and self.outage_s is not None and expected[self.fault]


def _observe(pair: Pair, name: str, before: str, answers: int, begin: Callable[[], None]) -> FaultTrial:
    with _Clients(pair, answers) as clients:
        time.sleep(_WORK_S)
        begin()
        fault_s = time.time()
        PAIR_FAULTS[name][1](pair, before)
        done_s = time.time()
        _wait_for_answer(pair, name, before, clients, done_s)
        time.sleep(_WORK_S)
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


class _Clients:
    def __init__(self, pair: Pair, answers: int) -> None:
        self._run = secrets.token_hex(3)
        self._command = pair.clients(self._run, _CLIENTS, _RATE_PER_S)
        self._out = answers

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=self._out, start_new_session=True)
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self._process.communicate(timeout=_CLIENTS_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _answers(self) -> Sequence[Mapping[str, Any]]:
        return [json.loads(line) for line in os.pread(self._out, os.fstat(self._out).st_size, 0).split(b"\n")[:-1]]

    def acknowledged(self) -> list[Acknowledgement]:
        records = []
        for given in self._answers():
            if "error" not in given:
                record = JournalRecord(given["term"], given["node"], given["client"], given["number"])
                records.append(Acknowledgement(record, given["sent_s"], given["ended_s"]))
        return records

    def operations(self) -> dict[str, list[ClientOperation]]:
        operations: dict[str, list[ClientOperation]] = defaultdict(list)
        for given in self._answers():
            if not given["client"].startswith(ONLY):
                done = ClientOperation(given["due_s"], given["ended_s"], given.get("error", ""))
                operations[given["client"]].append(done)
        return operations

    def own(self, records: Sequence[JournalRecord]) -> list[JournalRecord]:
        return [record for record in records if record.client == START or record.client.endswith(self._run)]


def _wait_for_answer(pair: Pair, fault: str, before: str, clients: _Clients, done_s: float) -> None:
    def answered(since_s: float, *, elsewhere: bool = False) -> bool:
        answers = [answer for answer in clients.acknowledged() if answer.sent_s > since_s]
        return any(not elsewhere or answer.record.node != before for answer in answers)

    if fault == POWER_OFF:
        pair.wait_until("the other node to answer", lambda: answered(done_s, elsewhere=True), _ANSWER_S)
    elif fault == CUT_ONE:
        time.sleep(_WATCH_S)
    elif fault == HANG:
        pair.wait_until("the service to answer again", lambda: answered(done_s), _ANSWER_S)
    else:
        pair.wait_until("one node to power off the other", lambda: _powered_off(pair.buttons(done_s)), _ANSWER_S)
        cut_s = _powered_off(pair.buttons(done_s))[0].at_s
        pair.wait_until("the surviving node to answer", lambda: answered(cut_s + 1.0), _ANSWER_S)


def _powered_off(buttons: Sequence[Button]) -> list[Button]:
    return [button for button in buttons if button.what.startswith("set power 0")]


def switched_off(
    buttons: Sequence[Button], alerts: Sequence[Alert], fault: str, before: str, fault_s: float
) -> dict[str, float]:
    """Return fenced node -> seconds from the fault until the node's BMC was first asked to cut the power."""
    if fault != POWER_OFF:
        return {button.node: button.at_s - fault_s for button in reversed(_powered_off(buttons))}
    # The fault is itself such a request, so the last request before the cluster reports success counts.
    off = (alert.at_s for alert in alerts if f"Operation off of {before} " in alert.text and ": OK" in alert.text)
    said_s = min(off, default=0.0)
    asked = [button.at_s for button in buttons if button.node == before and button.at_s < said_s]
    return {before: max(asked) - fault_s} if asked else {}


def run_trials(
    lab: str, pair: Pair, faults: Sequence[str], repeat: int, root: Path, say: Callable[[str], None]
) -> tuple[FaultTrial, ...]:
    """Cause each fault (default: all) ``repeat`` times. Repair the servers each time, even if strakes is killed.

    ``root``: directory of the store. Raises MeasurementError if the servers do not answer in time.
    """
    done = []
    for round_number in range(1, repeat + 1):
        for fault in faults or PAIR_FAULTS:
            say(f"{round_number} of {repeat}: {PAIR_FAULTS[fault][0]}")
            pair.make_whole(_ANSWER_S)
            before = pair.active()
            promise = Promise(root, PAIR_FAULTS[fault][0], RepairLab(lab), 2 * _ANSWER_S)
            last_words.append(promise.leave)
            try:
                with tempfile.TemporaryFile() as answers:
                    done.append(_observe(pair, fault, before, answers.fileno(), promise.begin))
            finally:
                try:
                    promise.keep(say)
                finally:
                    promise.close(say)
                    last_words.remove(promise.leave)
    pair.make_whole(_ANSWER_S)
    return tuple(done)


def document(trials: Sequence[FaultTrial]) -> str:
    """Return all trials as JSON."""
    return json.dumps({"schema": 1, "trials": [asdict(trial) for trial in trials]}, indent=1)
