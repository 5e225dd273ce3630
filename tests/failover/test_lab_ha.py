"""A real pair on this machine: Corosync, Pacemaker, and fencing that really cuts the power."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from lab.running import SOURCES, Labs, need, own_labs

pytestmark = pytest.mark.lab

A, B = "mds-a", "mds-b"


class Pair:
    """The lab that is up."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    def journal(self) -> list[tuple[float, str]]:
        """Complete lines only."""
        lines = Path(self._facts["journal"]).read_text().split("\n")[:-1]
        return [(float(at), node) for at, _, node in (line.partition(" ") for line in lines)]

    def buttons(self, node: str, what: str) -> list[float]:
        """When the BMC of a node was asked for something."""
        lines = Path(self._facts["bmc_log"]).read_text().splitlines()
        return [float(words[0]) for words in map(str.split, lines) if words[1] == node and " ".join(words[2:]).startswith(what)]

    def online(self, node: str) -> set[str]:
        """Who is online, as a node sees it."""
        asked = subprocess.run(
            [*self._facts["commands"][node], "crm_mon", "--one-shot", "--output-as=xml"], capture_output=True, text=True, timeout=30
        )
        if asked.returncode:
            return set()
        status = Xml.fromstring(asked.stdout)
        return {one.get("name", "") for one in status.iterfind("./nodes/node") if one.get("online") == "true"}

    def on(self, node: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A command on a node, with our sources."""
        environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
        return subprocess.run([*self._facts["commands"][node], *words], capture_output=True, text=True, timeout=60, env=environment)

    def link(self, number: int, state: str) -> None:
        subprocess.run([*self._facts["links"][str(number)], state], check=True, timeout=30)

    def power_on(self, node: str) -> None:
        subprocess.run([*self._facts["power"][node], "on"], check=True, timeout=30, stdout=subprocess.DEVNULL)

    def kill(self, node: str) -> None:
        os.kill(int(Path(self._facts["process_of"][node]).read_text()), signal.SIGKILL)


@pytest.fixture
def labs() -> Iterator[Labs]:
    need("ha")
    with own_labs() as found:
        yield found


def wait_for(condition: Callable[[], object], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_links_are_cut_and_nodes_die_and_never_do_two_of_them_serve(labs: Labs) -> None:
    labs.up("ha")
    status = labs.status("ha")
    assert status["condition"] == "up" and status["ready_after_s"] < 60
    pair = Pair(status["facts"])

    # The running cluster is checked by its own files: what the lab does for the sake of speed, and that nobody is told.
    checked = pair.on(A, sys.executable, "-m", "strakes", "failover", "check", "--live", "--json", "-")
    found = {one["rule"] for one in json.loads(checked.stdout)["findings"]}
    assert checked.returncode == 1 and found == {"token-too-short", "nobody-is-told"}, checked.stderr

    # One link less: nobody is powered off, nothing is interrupted.
    pair.link(0, "down")
    time.sleep(5)
    assert {node for _, node in pair.journal()} == {A} and time.time() - pair.journal()[-1][0] < 2
    assert not pair.buttons(A, "set") and not pair.buttons(B, "set") and pair.online(A) == {A, B}

    # Both cut: the side that serves powers the other off, which never wrote a line.
    pair.link(1, "down")
    wait_for(lambda: pair.buttons(B, "set power 0"))
    wait_for(lambda: pair.online(A) == {A})
    cut_off = pair.buttons(B, "set power 0")[0]
    wait_for(lambda: pair.journal()[-1][0] > cut_off + 1)
    assert {node for _, node in pair.journal()} == {A} and not pair.buttons(A, "set") and not pair.online(B)

    # Repaired and powered on, it is a member again, and the service stays where it is.
    for number in range(2):
        pair.link(number, "up")
    pair.power_on(B)
    wait_for(lambda: pair.online(A) == {A, B})
    wait_for(lambda: pair.online(B) == {A, B})
    assert {node for _, node in pair.journal()} == {A}

    # The node that serves dies: its BMC confirms that it is off, and only then the other one serves.
    wait_for(lambda: "Unpromoted" in _roles(status["facts"], B))
    killed = time.time()
    pair.kill(A)
    wait_for(lambda: pair.journal()[-1][1] == B)
    lines = pair.journal()
    first = next(at for at, node in lines if node == B)
    assert all(node == B for at, node in lines if at >= first)
    asked = [at for at in pair.buttons(A, "get power") if at > killed]
    assert asked and asked[0] < first
    assert labs.status("ha")["detail"].startswith("ended: node.")
    used = labs.footprint()
    labs.down("ha")
    assert not labs.remains(used)


def _roles(facts: dict[str, Any], node: str) -> list[str]:
    """Of the resources on a node."""
    asked = subprocess.run(
        [*facts["commands"][node], "crm_mon", "--one-shot", "--output-as=xml"], capture_output=True, text=True, timeout=30
    )
    found = Xml.fromstring(asked.stdout).iter("resource") if asked.returncode == 0 else iter(())
    return [one.get("role", "") for one in found if any(place.get("name") == node for place in one.iterfind("./node"))]
