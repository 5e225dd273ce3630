"""Lost connections in the state history of a real client: a forced and a plain unmount of targets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from strakes.studies.measure_watch import TargetWatch
from strakes.targets.answers import NotUnderstoodError
from strakes.targets.command import Completed
from strakes.targets.description import Interruption
from strakes.targets.lustre_parameters import parse_states
from strakes.targets.lustre_target import LustreTarget
from targets.lustre.recorded import PLACE
from targets.lustre.test_target import mount

WAVE2 = PLACE / "wave2"
UNMOUNTS = (WAVE2 / "client_state_history_after_umount_f.txt").read_text()


def client(states: str, where: str = "192.168.77.1@tcp", active: str = "") -> LustreTarget:
    """Return a client with these connection states; it fails on commands other than lctl, which could block."""

    def lctl(argv: Sequence[str], timeout_s: float = 10) -> Completed:
        assert argv[0] == "lctl", argv
        if "conn_uuid" in argv[-1]:
            names = re.findall(r"^((?:mdc|osc)\S+)\.state=", states, re.MULTILINE)
            kind = {"mdc": "mds", "osc": "ost"}
            return Completed(tuple(argv), 0, "".join(f"{one}.{kind[one[:3]]}_conn_uuid={where}\n" for one in names), "")
        if any(word.endswith((".active", ".import")) for word in argv):
            found = re.findall(r"^((?:mdc|osc)\S+)\.state=\ncurrent_state: (\w+)", states, re.MULTILINE)
            imports = (
                f"{one}.import=\nimport:\n    state: {state}\n    failover_nids: [ {where} ]\n"
                f"    current_connection: {where}\n"
                for one, state in found
            )
            return Completed(tuple(argv), 0, active or "".join(imports), "")
        return Completed(tuple(argv), 0, states, "")

    place = Path("/mnt/labfs")
    return LustreTarget(place, mount(place), runner=lctl)


def test_both_unmounts_are_found_with_their_times_and_evictions() -> None:
    # The history has sixteen changes, so earlier ones may be missing.
    assert set(client(UNMOUNTS).interruptions()) == {
        Interruption("labfs-MDT0001", 1795324554, 1795324559, evicted=True, or_earlier=True),
        Interruption("labfs-MDT0001", 1795324596, 1795324612, evicted=False),
        Interruption("labfs-OST0001", 1795324538, 1795324559, evicted=True, or_earlier=True),
    }


def test_a_run_is_marked_by_the_interruptions_of_its_time() -> None:
    watch = TargetWatch(client(UNMOUNTS))
    assert {lost.target for lost in watch.interruptions(1795324555, 1795324557)} == {"labfs-MDT0001", "labfs-OST0001"}
    assert watch.interruptions(1795324562, 1795324595) == ()
    assert {lost.target for lost in watch.interruptions(1795324500, 1795324510)} == {"labfs-MDT0001", "labfs-OST0001"}


def test_noise_of_lctl_is_reported_because_dead_servers_cannot_be_noticed() -> None:
    def noise(argv: Sequence[str], timeout_s: float = 10) -> Completed:
        return Completed(tuple(argv), 0, "\0\x01\udc80" * 2000, "")

    place = Path("/mnt/labfs")
    (sentence,) = LustreTarget(place, mount(place), runner=noise).trouble()
    assert sentence.startswith("strakes cannot detect dead servers") and len(sentence) < 500


@pytest.mark.parametrize("text", ["", "FULL", "current_state: FULL", "current_state: FULL\nstate_history:\n - [ x ]"])
def test_states_of_another_form_are_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstoodError):
        parse_states(text)


def history(*changes: tuple[int, str], target: str = "OST0003", kind: str = "osc") -> str:
    lines = [f"{kind}.labfs-{target}-{kind}-ffff8880083a1800.state=", f"current_state: {changes[-1][1]}"]
    return "\n".join([*lines, "state_history:", *(f" - [ {when}, {state} ]" for when, state in changes)]) + "\n"


CONNECTED = [(1000, "CONNECTING"), (1000, "FULL")]
DEVICE = "osc.labfs-OST0003-osc-ffff8880083a1800"


@pytest.mark.parametrize(
    "active",
    [
        f"{DEVICE}.active=0\n",
        f"{DEVICE}.import=\nimport:\n    state: DISCONN\n    import_flags: [ IMPF_DEACTIVE, x ]\n",
    ],
)
def test_a_target_deactivated_by_an_administrator_is_not_an_interruption(active: str) -> None:
    states = history(*CONNECTED, (1100, "DISCONN"), (1110, "FULL"), (2000, "DISCONN"))
    assert len(client(states).trouble()) == 1
    assert [lost.ended_unix_s for lost in client(states).interruptions()] == [1110, None]
    taken_out = client(states, active=active)
    assert not taken_out.trouble() and [lost.ended_unix_s for lost in taken_out.interruptions()] == [1110]
    assert not TargetWatch(taken_out).interruptions(5000, 5100)


def test_a_deactivated_target_hides_no_other_lost_target() -> None:
    both = history(*CONNECTED, (2000, "DISCONN")) + history(*CONNECTED, (2000, "DISCONN"), target="MDT000a", kind="mdc")
    answers = f"{DEVICE}.active=0\nmdc.labfs-MDT000a-mdc-ffff8880083a1800.active=1\n"
    lame = client(both, active=answers)
    assert [lost.target for lost in lame.interruptions()] == ["labfs-MDT000a"]
    assert [line.split()[0] for line in lame.trouble()] == ["labfs-MDT000a"]


def endless(began: int, now: int) -> list[tuple[int, str]]:
    changes = [*CONNECTED, (began, "DISCONN")]
    for when in range(began + 25, now + 1, 25):
        changes += [(when, "CONNECTING"), (when, "DISCONN")]
    return changes


def test_a_long_outage_whose_beginning_is_forgotten_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.targets.lustre_target.time.time", lambda: 10600.0)
    changes = endless(10_000, 10_600)
    lost = client(history(*changes[-16:]))
    (line,) = lost.trouble()
    assert line.endswith("DISCONN, for at least 175 s.")
    (outage,) = lost.interruptions()
    assert outage.or_earlier and "or earlier until now" in str(outage)
    assert TargetWatch(lost).interruptions(10_100, 10_200) == (outage,)
    over = [*changes, (10_610, "CONNECTING"), (10_610, "RECOVER"), (10_610, "FULL")]
    (outage,) = client(history(*over[-16:])).interruptions()
    assert outage.or_earlier and "or earlier for at least" in str(outage)
    # A short outage is in the history completely.
    (outage,) = client(history(*endless(10_000, 10_100))).interruptions()
    assert not outage.or_earlier and outage.began_unix_s == 10_000


def test_an_interruption_seen_before_is_not_forgotten() -> None:
    place, shown = Path("/mnt/labfs"), [""]

    def lctl(argv: Sequence[str], timeout_s: float = 10) -> Completed:
        return Completed(tuple(argv), 0, shown[0] if argv[-1].endswith(".state") else "", "")

    lustre = LustreTarget(place, mount(place), runner=lctl)
    for now in range(10_000, 10_601, 100):
        shown[0] = history(*endless(10_000, now)[-16:])
        assert lustre.interruptions() == (Interruption("labfs-OST0003", 10_000, None),)
    idle = [(10_610, "CONNECTING"), (10_610, "FULL")]
    for now in range(10_700, 11_500, 100):
        idle += [(now, "CONNECTING"), (now, "IDLE")]
        shown[0] = history(*[*endless(10_000, 10_600), *idle][-16:])
        assert lustre.interruptions() == (Interruption("labfs-OST0003", 10_000, 10_610),)


def test_an_idle_connection_was_not_lost_even_with_a_truncated_history() -> None:
    resting = [(1000 + 40 * number, state) for number in range(20) for state in ("CONNECTING", "IDLE")]
    for cut in (16, 15):
        assert not client(history(*resting[:31][-cut:])).interruptions()


def test_an_idle_connection_is_not_lost_while_it_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    states = history(*CONNECTED, (1040, "CONNECTING"), (1040, "IDLE"), (2000, "CONNECTING"))
    for now, lost in ((2000.4, False), (2005.9, False), (2030.0, True)):
        monkeypatch.setattr("strakes.targets.lustre_target.time.time", lambda now=now: now)
        lines = client(states).trouble()
        assert bool(lines) == lost
    assert lines == ("labfs-OST0003 on 192.168.77.1 does not answer: CONNECTING, for 30.0 s.",)


def test_an_outage_has_an_unknown_time_where_the_clock_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.targets.lustre_target.time.time", lambda: 2000.0)
    (line,) = client(history(*CONNECTED, (5600, "DISCONN"))).trouble()
    assert line.endswith("DISCONN, for an unknown time (the clock was set back).")
    assert "for an unknown time" in str(Interruption("t", 5600, 2000))
