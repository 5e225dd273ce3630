"""Connections that were lost, as a real client remembers them: a forced and a plain unmount of targets, and a day of one."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from strakes.errors import EnvironmentLacksError
from strakes.measure.watch import Watch
from strakes.targets.command import Completed
from strakes.targets.description import Interruption
from strakes.targets.lustre.output import NotUnderstoodError
from strakes.targets.lustre.state_history import interruptions, parse_states
from strakes.targets.lustre.target import LustreTarget
from targets.lustre.recorded import PLACE
from targets.lustre.test_target import mount

WAVE2 = PLACE / "wave2"
UNMOUNTS = (WAVE2 / "client_state_history_after_umount_f.txt").read_text()
DAY = gzip.decompress((WAVE2 / "client_states_of_a_day.gz").read_bytes()).decode()
SAMPLES = {
    float(moment): text for moment, text in re.findall(r"^### (\S+)\n(.*?)(?=^### |\Z)", DAY, re.DOTALL | re.MULTILINE)
}
EVENTS = {words: float(when) for when, words in re.findall(r"^(\S+) (.*)$", (WAVE2 / "day.events").read_text(), re.M)}


def client(states: str, where: str = "192.168.77.1@tcp") -> LustreTarget:
    """A client whose connections are in these states, and which may call nothing that waits for a server."""

    def lctl(argv: Sequence[str], timeout_s: float = 10) -> Completed:
        assert argv[0] == "lctl", argv
        if "conn_uuid" in argv[-1]:
            names = re.findall(r"^((?:mdc|osc)\S+)\.state=", states, re.MULTILINE)
            kind = {"mdc": "mds", "osc": "ost"}
            return Completed(tuple(argv), 0, "".join(f"{one}.{kind[one[:3]]}_conn_uuid={where}\n" for one in names), "")
        return Completed(tuple(argv), 0, states, "")

    place = Path("/mnt/labfs")
    return LustreTarget(place, mount(place), runner=lctl)


def test_both_unmounts_are_remembered_with_their_times_and_who_was_evicted() -> None:
    assert set(client(UNMOUNTS).interruptions()) == {
        Interruption("labfs-MDT0001", 1795324554, 1795324559, evicted=True),
        Interruption("labfs-MDT0001", 1795324596, 1795324612, evicted=False),
        Interruption("labfs-OST0001", 1795324538, 1795324559, evicted=True),
    }


def test_a_run_is_marked_by_the_interruptions_of_its_time() -> None:
    watch = Watch(client(UNMOUNTS))
    assert {lost.target for lost in watch.interruptions(1795324555, 1795324557)} == {"labfs-MDT0001", "labfs-OST0001"}
    assert watch.interruptions(1795324562, 1795324595) == ()


def test_a_target_that_merely_rested_was_not_interrupted() -> None:
    assert not [one for one in client(UNMOUNTS).interruptions() if one.target in ("labfs-MDT0000", "labfs-OST0000")]


def test_the_one_outage_of_a_day_is_found_at_its_time() -> None:
    began, ended = EVENTS["MDT0001 umount"], EVENTS["MDT0001 mounted"]
    last = client(SAMPLES[max(SAMPLES)])
    (outage,) = [one for one in last.interruptions() if one.began_unix_s > EVENTS["begin"]]
    assert outage.target == "labfs-MDT0001" and not outage.evicted
    assert outage.ended_unix_s is not None
    # A client notices when a request has waited too long, here after the server was back; recovery takes its time, too.
    assert began <= outage.began_unix_s <= outage.ended_unix_s <= ended + 30


def cut_after(moment: int, states: str) -> str:
    """The states as they were then."""
    cut = []
    for target in re.split(r"^(?=mdc|osc)", states, flags=re.MULTILINE)[1:]:
        name, *_ = target.splitlines()
        entries = [entry for entry in re.findall(r" - \[ (\d+), (\w+) \]", target) if int(entry[0]) <= moment]
        lines = [name, f"current_state: {entries[-1][1]}", "state_history:"]
        cut.append("\n".join([*lines, *(f" - [ {when}, {state} ]" for when, state in entries)]))
    return "\n".join(cut) + "\n"


def test_whoever_does_not_answer_is_named_with_its_server_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.targets.lustre.target.time.time", lambda: 1795324610.0)
    (line,) = client(cut_after(1795324607, UNMOUNTS)).trouble()
    assert line == "labfs-MDT0001 on 192.168.77.1 does not answer: DISCONN, for 14.0 s."
    recovered = client(cut_after(1795324612, UNMOUNTS))
    assert not recovered.trouble()


def test_an_outage_that_lasts_has_no_end() -> None:
    (lasting,) = interruptions("t", parse_states("current_state: DISCONN\nstate_history:\n - [ 5, DISCONN ]").changes)
    assert lasting == Interruption("t", 5, None)


def test_a_machine_without_lctl_knows_of_no_interruption() -> None:
    def no_lctl(argv: Sequence[str], timeout_s: float = 10) -> Completed:
        raise EnvironmentLacksError("lctl does not start")

    place = Path("/mnt/labfs")
    lustre = LustreTarget(place, mount(place), runner=no_lctl)
    assert not lustre.interruptions() and not lustre.trouble()


@pytest.mark.parametrize("text", ["", "FULL", "current_state: FULL", "current_state: FULL\nstate_history:\n - [ x ]"])
def test_states_of_another_form_are_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstoodError):
        parse_states(text)
