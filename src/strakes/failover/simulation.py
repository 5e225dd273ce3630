"""Simulate a cluster with Pacemaker's policy engine: its first start, and failures."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.failover.behaviour import Behaviour, Snapshot
from strakes.failover.limits import too_much_to_ask
from strakes.failover.policy_engine import PolicyEngine, failed_monitor
from strakes.failover.setup import Setup
from strakes.targets.command import CommandTimeout

# Time limit in seconds for all simulations of a cluster.
_LIMIT_S = 20.0
_AT_ONCE = min(8, os.cpu_count() or 1)
# Maximum number of services whose failure is simulated.
_MOST_FAILURES = 40


def behaviour_of(setup: Setup) -> Behaviour | None:
    """Return simulated states, or None if the CIB cannot be simulated. Raises CommandTimeout for a slow first start."""
    if setup.cib is None or too_much_to_ask(setup.cib.root):
        return None
    with tempfile.TemporaryDirectory(prefix="strakes-") as name:
        try:
            return _behaviour(setup, PolicyEngine(setup, Path(name), _LIMIT_S))
        except (BadInputError, EnvironmentLacksError):
            return None


def _behaviour(setup: Setup, engine: PolicyEngine) -> Behaviour:
    cib, steady = setup.pacemaker, started(setup, engine)
    running = [one for one in cib.services if steady.nodes_of(one.id)]
    services = [one for one in running if any(operation.repeats for operation in one.operations)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        nodes = cib.members_of_corosync
        lost = {node: pool.submit(engine.settled, steady.file, ["--node-fail", node]) for node in nodes}
        failed: dict[str, Future[Snapshot]] = {}
        for one in services[:_MOST_FAILURES]:
            role = "Promoted" if steady.nodes_of(one.id, "Promoted") else ""
            failure = failed_monitor(one, min(steady.nodes_of(one.id, role)), role)
            failed[one.id] = pool.submit(engine.settled, steady.file, ["--op-inject", failure], 1)
    return Behaviour(
        steady,
        _answered(lost),
        _answered(failed),
        sum(isinstance(one.exception(), CommandTimeout) for one in (*lost.values(), *failed.values())),
    )


def started(setup: Setup, engine: PolicyEngine) -> Snapshot:
    """Return the state with all nodes up."""
    cib, steady = setup.pacemaker, engine.steady()
    roles = {one.id: "Promoted" if cib.promotable(one.clone) else "" for one in cib.primitives}
    idle = idle_resources(engine, steady, roles)
    known = {name for name, role in roles.items() if steady.nodes_of(name, role)} | idle
    return replace(steady, places={name: on for name, on in steady.places.items() if name in known})


def idle_resources(engine: PolicyEngine, steady: Snapshot, roles: Mapping[str, str]) -> frozenset[str]:
    """Return the managed resources that run neither after a fresh start nor with the status in the CIB."""
    idle = {name for name in roles if not steady.nodes_of(name, roles[name]) and name not in steady.unmanaged}
    present = engine.present() if idle else None
    return frozenset(name for name in idle if present is None or not present.nodes_of(name, roles[name]))


def _answered(trials: Mapping[str, Future[Snapshot]]) -> dict[str, Snapshot]:
    return {name: one.result() for name, one in trials.items() if not isinstance(one.exception(), CommandTimeout)}
