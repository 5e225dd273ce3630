"""Check the configuration of a cluster with the rules and with the cluster's own programs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from strakes.failover.limits import little_enough
from strakes.failover.policy_engine import behaviour_of
from strakes.failover.rule import RuleFinding, all_rules, findings
from strakes.failover.setup import Setup
from strakes.failover.validators import ValidatorVerdict, verdicts
from strakes.targets.command import CommandTimeout


@dataclass(frozen=True)
class Check:
    """The result of a check. ``passed_over``: names of the rules that were not applied because a file is missing."""

    where: str
    findings: tuple[RuleFinding, ...]
    verdicts: tuple[ValidatorVerdict, ...]
    passed_over: tuple[str, ...]
    rules: int

    @property
    def failed(self) -> bool:
        """Return whether a rule found an error or a program refused its configuration."""
        refused = any(one.state == "refuses" for one in self.verdicts)
        return refused or any(one.severity == "error" for one in self.findings)


def check(setup: Setup) -> Check:
    """Return the result of a check. Raises BadInputError if reading and rules exceed their time limit."""
    late = ""
    with little_enough(setup.where):
        try:
            behaviour = behaviour_of(setup)
            setup = replace(setup, behaviour=behaviour)
            if behaviour is not None and behaviour.unanswered:
                late = f"simulations that did not end in time: {behaviour.unanswered}"
        except CommandTimeout as error:
            late = error.what
        found, passed_over = findings(setup)
        simulated = [ValidatorVerdict("crm_simulate", "unable", late)] if late else []
        return Check(setup.where, found, (*verdicts(setup), *simulated), passed_over, len(all_rules()))


def document(result: Check) -> str:
    """Return the results of a check as JSON."""
    return json.dumps({"schema": 1, "ok": not result.failed, **asdict(result)}, indent=2)
