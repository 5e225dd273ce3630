"""Behaviour that users rely on changes only where a commit says so: ``./dev freeze`` accepts a difference."""

from __future__ import annotations

import difflib

import pytest

from failover.clusters import need
from frozen.snapshots import SNAPSHOTS, path_of


@pytest.mark.parametrize("name", [name for name in SNAPSHOTS if name != "decisions"])
def test_behaviour_is_as_frozen(name: str) -> None:
    if name == "checks":
        need("/lib/drbd/drbdadm-84", "corosync", "crm_verify")
    before, after = path_of(name).read_text(), SNAPSHOTS[name]()
    changed = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "frozen", "now", lineterm="", n=0))
    assert not changed, "\n".join(changed[:40])


def test_no_decision_about_a_stored_run_is_reversed() -> None:
    before, after = (
        dict(line.rsplit(" ", 1) for line in text.splitlines())
        for text in (path_of("decisions").read_text(), SNAPSHOTS["decisions"]())
    )
    assert {key: way for key, way in after.items() if before.get(key, way) != way} == {}
