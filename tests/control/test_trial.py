"""Trials of the pair: when a node counts as powered off."""

from __future__ import annotations

from strakes.control.drill_pair import CUT_ALL, POWER_OFF, switched_off
from strakes.lab.ha_pair import Alert, Button

OFF = "[mds-b] fencing: Operation off of mds-a by mds-b for pacemaker-controld.31@mds-b: "


def button(at_s: float, what: str, node: str = "mds-a") -> Button:
    return Button(at_s, node, what)


def test_a_routine_query_of_a_bmc_does_not_confirm_a_power_off() -> None:
    asked = [button(101.9, "get power"), button(114.0, "get power"), button(118.2, "get power")]
    alerts = [Alert(114.2, "webhook", f"{OFF}OK (ref=1)"), Alert(114.1, "mail", f"{OFF}OK (ref=1)")]
    assert switched_off(asked, alerts, POWER_OFF, "mds-a", 100.0) == {"mds-a": 14.0}
    assert switched_off(asked[:1], [], POWER_OFF, "mds-a", 100.0) == {}
    assert (
        switched_off(asked, [Alert(114.2, "webhook", f"{OFF}Timer expired (ref=1)")], POWER_OFF, "mds-a", 100.0) == {}
    )


def test_with_all_links_cut_the_first_power_off_command_counts() -> None:
    pressed = [
        button(103.1, "get power", "mds-b"),
        button(103.4, "set power 0", "mds-b"),
        button(104.9, "set power 0", "mds-b"),
    ]
    assert [round(one, 1) for one in switched_off(pressed, [], CUT_ALL, "mds-a", 100.0).values()] == [3.4]
