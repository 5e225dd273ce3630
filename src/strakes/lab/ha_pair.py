"""Control the two servers of a running lab "ha": inject faults, switch power, query the state."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from strakes.base.errors import MeasurementError
from strakes.failover.timeline import JournalRecord
from strakes.lab.process import complaint, run
from strakes.targets.command import Completed

_ASK_S = 30.0
_COMMAND_S = 60.0
_TICK_S = 0.2
# Time limit of a fencing in seconds: two attempts, each with Pacemaker's time-out.
_FENCING_S = 240.0
_ROLES = ("Started", "Promoted", "Unpromoted")


@dataclass(frozen=True)
class Button:
    """A command that the BMC of a node received. ``what``: text of the command, such as ``set power 0``."""

    at_s: float
    node: str
    what: str


@dataclass(frozen=True)
class Alert:
    """An alert from Pacemaker. ``by``: how it was sent, "mail" or "webhook"."""

    at_s: float
    by: str
    text: str


class Pair:
    """The two servers of a lab "ha". ``facts``: commands for the servers, and addresses."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts
        self.nodes: tuple[str, ...] = tuple(facts["nodes"])
        self._look_every_s = float(facts["look_every_s"])

    def on(self, node: str, *words: str, limit_s: float = _COMMAND_S) -> Completed:
        return run([*self._facts["commands"][node], *words], limit_s=limit_s)

    def power(self, node: str, command: str) -> str:
        """Send "on", "off" or "status" to the BMC of a node, and return its answer."""
        return self._do([*self._facts["power"][node], command])

    def has_power(self, node: str) -> bool:
        return self.power(node, "status").rstrip().endswith("is on")

    def set_links(self, state: str, *links: str) -> None:
        """Set the heartbeat links ("0", "1"), or all of them, to the state "up" or "down"."""
        for link in links or self._facts["links"]:
            self._do([*self._facts["links"][link], state])

    def signal_service(self, node: str, name: str) -> None:
        """Send a signal to the process of the journal service on a node. STOP leaves its connections open."""
        # /proc/PID/cmdline has NULs between words, which grep cannot match. [n] keeps the search from finding itself.
        words = "tr '\\0' ' ' <\"$place/cmdline\" 2>/dev/null"
        finds = f"{words} | grep -q '[n]ode.py journal'"
        script = f'for place in /proc/[0-9]*; do {finds} && kill -{name} "${{place#/proc/}}"; done; true'
        self.on(node, "sh", "-c", script)

    def restore(self, limit_s: float = _FENCING_S + _COMMAND_S) -> None:
        """Repair links, service and power, and wait until both nodes are online.

        If a node is being fenced, switch it on after the fencing, which may also begin after the repair.
        """
        self.set_links("up")
        for node in self.nodes:
            if self.has_power(node):
                self.signal_service(node, "CONT")
        deadline = time.monotonic() + _FENCING_S

        def is_online() -> bool:
            all_on = self._switch_on(late=time.monotonic() > deadline)
            return all_on and not any(_absent(self._status(node)) for node in self.nodes)

        self.wait_until("both nodes", is_online, limit_s, self._look_every_s)

    def _switch_on(self, *, late: bool = False) -> bool:
        # Do not switch on a node during its fencing, because this would delay the take-over.
        all_on = True
        for node in self.nodes:
            if self.has_power(node):
                continue
            statuses = [status for name in self.nodes if (status := self._status(name)) is not None]
            if not late and any(is_being_fenced(status, node) for status in statuses):
                all_on = False
            else:
                # A second command would start the node twice, so wait until the power is on.
                self.power(node, "on")
                self.wait_until(f"the power of {node}", partial(self.has_power, node), _COMMAND_S)
        return all_on

    def active(self) -> str:
        for node in self.nodes:
            status = self._status(node)
            if status is None:
                continue
            for resource in status.iter("resource"):
                places = [place.get("name", "") for place in resource.iterfind("./node")]
                if resource.get("id") == "journal" and resource.get("role") == "Started" and places:
                    return places[0]
        return ""

    def make_whole(self, limit_s: float) -> None:
        """Undo all faults, and wait until both servers work."""
        self.restore(limit_s)
        # Pacemaker moves the service after three failures, so reset the fail count.
        self._do([*self._facts["commands"][self.nodes[0]], "crm_resource", "--cleanup"])

        def is_whole() -> bool:
            whole = not any(map(self.lacking, self.nodes))
            if not whole:
                self._switch_on()
            return whole

        self.wait_until("the service on the whole pair", is_whole, limit_s, self._look_every_s)

    def lacking(self, node: str) -> str:
        """Return a problem that a node reports, such as an outdated DRBD copy, or "" if there is none."""
        why = lacking(self._facts["commands"][node])
        if why or "replicated" not in self._facts:
            return why
        asked = self.on(node, "cat", "/proc/drbd")
        return "" if " ds:UpToDate/UpToDate " in asked.stdout else "the copies are not in sync yet"

    def wait_until(self, what: str, condition: Callable[[], object], limit_s: float, tick_s: float = _TICK_S) -> None:
        """Wait until a condition is true. Raises MeasurementError after ``limit_s`` seconds."""
        deadline = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > deadline:
                what = f"time limit of {limit_s:.0f} s exceeded while waiting for {what}"
                remedy = "Wait, or start a new lab. strakes lab status shows the state of the lab."
                raise MeasurementError(what, where="the pair", remedy=remedy)
            time.sleep(tick_s)

    def buttons(self, since_s: float) -> tuple[Button, ...]:
        lines = [line.split(" ", 2) for line in Path(self._facts["bmc_log"]).read_text().splitlines()]
        buttons = [Button(float(at), node, what) for at, node, what in lines]
        return tuple(button for button in buttons if button.at_s >= since_s)

    def alerts(self, since_s: float) -> tuple[Alert, ...]:
        alerts = [Alert(**json.loads(line)) for line in Path(self._facts["alerts"]).read_text().splitlines()]
        return tuple(alert for alert in alerts if alert.at_s >= since_s)

    def journal(self, node: str) -> tuple[JournalRecord, ...]:
        """Return the records in a node's copy of the journal, which is readable here even if the node is off."""
        return read_journal(self._do(self._facts["journals"][node]))

    def clients(self, name: str, count: int, rate_per_s: float) -> list[str]:
        return [*self._facts["clients"], name, str(count), f"{rate_per_s:g}", *self._facts["addresses"]]

    def _status(self, node: str) -> Xml.Element | None:
        return _status(self._facts["commands"][node])

    def _do(self, argv: Sequence[str]) -> str:
        done = run(argv, limit_s=_COMMAND_S)
        if done.status != 0:
            raise MeasurementError("a command to the pair of nodes failed", where=" ".join(argv), why=complaint(done))
        return done.stdout


def read_journal(text: str) -> tuple[JournalRecord, ...]:
    """Return the complete records in a journal. A power cut may have truncated the last one."""
    complete = [words for line in text.split("\n")[:-1] if len(words := line.split()) == 5]
    return tuple(JournalRecord(int(term), node, client, int(number)) for term, node, client, number, _ in complete)


def is_being_fenced(status: Xml.Element, node: str) -> bool:
    """Return whether Pacemaker is fencing a node or is about to. ``status``: output of ``crm_mon``."""
    coordinator = status.find("./summary/current_dc")
    # A node that has just started reports other nodes as unclean, but only a coordinator with quorum fences them.
    decides = coordinator is not None and coordinator.get("with_quorum") == "true"
    unclean = any(
        seen.get("name") == node and seen.get("unclean") == "true" for seen in status.iterfind("./nodes/node")
    )
    return node in _fencing_under_way(status) or (decides and unclean)


def _fencing_under_way(status: Xml.Element) -> list[str]:
    events = status.iterfind("./fence_history/fence_event")
    return [str(event.get("target")) for event in events if event.get("status") == "pending"]


def lacking(command: Sequence[str], lab_id: str = "") -> str:
    """Return why a cluster is not in service, or "". ``command``: prefix that runs a command on one of the nodes."""
    status = _status(command, lab_id)
    if why := _absent(status):
        return why
    assert status is not None
    idle = [
        str(resource.get("id"))
        for resource in status.iter("resource")
        if resource.get("role") not in _ROLES or resource.get("pending")
    ]
    roles = (str(resource.get("role")) for resource in status.iter("resource"))
    copies = sorted(role for role in roles if role in ("Promoted", "Unpromoted"))
    if idle:
        return f"not started: {', '.join(idle)}"
    return "" if copies == ["Promoted", "Unpromoted"] else f"the copies are: {', '.join(copies) or 'none'}"


def _absent(status: Xml.Element | None) -> str:
    if status is None:
        return "the cluster does not answer yet"
    offline = [
        str(node.get("name"))
        for node in status.iterfind("./nodes/node")
        if node.get("online") != "true" or node.get("pending") == "true" or node.get("unclean") == "true"
    ]
    if offline or len(status.findall("./nodes/node")) < 2:
        return f"not online: {', '.join(offline) or 'both'}"
    # Wait for the end of a fencing: until then, Pacemaker may show the resources of the lost node as running.
    if fenced := _fencing_under_way(status):
        return f"the fencing of {', '.join(fenced)} is not over"
    history = status.find("./fence_history")
    if history is not None and history.get("status", "0") != "0":
        return "the fencer does not answer yet"
    return ""


def _status(command: Sequence[str], lab_id: str = "") -> Xml.Element | None:
    asked = run(
        [*command, "crm_mon", "--one-shot", "--output-as=xml", "--fence-history=3"], limit_s=_ASK_S, lab_id=lab_id
    )
    try:
        return Xml.fromstring(asked.stdout) if asked.status == 0 else None
    except Xml.ParseError:
        return None
