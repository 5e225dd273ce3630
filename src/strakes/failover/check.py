"""A whole check: what the rules find, what the programs say, and what could not be looked at."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from strakes.failover.limits import little_enough
from strakes.failover.rules.rule import RuleFinding, all_rules, findings
from strakes.failover.setup import Setup
from strakes.failover.simulation import behaviour_of
from strakes.failover.validators import ValidatorVerdict, verdicts
from strakes.targets.command import CommandTimeout


@dataclass(frozen=True)
class Check:
    """What came of a check; ``passed_over`` are rules about parts that this setup does not have."""

    where: str
    findings: tuple[RuleFinding, ...]
    verdicts: tuple[ValidatorVerdict, ...]
    passed_over: tuple[str, ...]
    rules: int

    @property
    def failed(self) -> bool:
        """Return whether a rule found an error or a program refused its configuration."""
        return any(one.severity == "error" for one in self.findings) or any(
            one.state == "refuses" for one in self.verdicts
        )


def check(setup: Setup) -> Check:
    """Apply all rules to the setup and to what the policy engine does with it, and ask the programs about their own.

    Raises BadInputError where that takes longer than any cluster needs.
    """
    asked: tuple[ValidatorVerdict, ...] = ()
    with little_enough(setup.where):
        try:
            behaviour = behaviour_of(setup)
            setup = replace(setup, behaviour=behaviour)
            if behaviour is not None and behaviour.unanswered:
                late = f"{behaviour.unanswered} of its questions were not answered in time"
                asked = (ValidatorVerdict("crm_simulate", "unable", late),)
        except CommandTimeout as error:
            asked = (ValidatorVerdict("crm_simulate", "unable", error.what),)
        found, passed_over = findings(setup)
        return Check(setup.where, found, (*verdicts(setup), *asked), passed_over, len(all_rules()))


def document(result: Check) -> str:
    """Return the check as JSON."""
    return json.dumps({"schema": 1, "ok": not result.failed, **asdict(result)}, indent=2)
