"""Simulations by the policy engine; simulations beyond the time limit are left out and reported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from failover.clusters import need, planned
from strakes.failover import policy_engine, simulation
from strakes.failover.check import check
from strakes.failover.setup import read_plan
from strakes.targets.command import CommandTimeout, Completed, run


def test_simulations_that_time_out_are_counted_and_the_others_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    need("crm_simulate")

    def slow(argv: Sequence[str], timeout_s: float = 10.0) -> Completed:
        if argv[-2:] == ["--node-fail", "nfs1"]:
            raise CommandTimeout("no answer")
        return run(argv, timeout_s)

    monkeypatch.setattr(policy_engine, "run", slow)
    monkeypatch.setattr(simulation, "_LIMIT_S", 300.0)
    setup = read_plan(planned("nfs", tmp_path))
    behaviour = simulation.behaviour_of(setup)
    assert behaviour is not None and behaviour.unanswered == 1
    assert set(behaviour.without) == {"nfs2"} and set(behaviour.emptied) == {"nfs1", "nfs2"}
    said = [one for one in check(setup).verdicts if one.program == "crm_simulate"]
    assert [(one.state, one.text) for one in said] == [("unable", "simulations that did not end in time: 1")]
