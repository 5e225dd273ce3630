"""Rules about watchers of networks and the location rules that use what they found."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.cib_values import score
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules.rule import PACEMAKER, PING, rule
from strakes.failover.rules.services import homes_of
from strakes.failover.setup import Setup


def _weight(watcher: Primitive) -> float:
    """Return what a watcher counts at most: for each host that answers, or for the card, its multiplier."""
    hosts = watcher.values.get("host_list", "").split()
    return score(watcher.values.get("multiplier") or "1") * max(1, len(hosts))


@rule("pacemaker").warning(
    reason="A service leaves its node only if another node is better by more than the stickiness (for a group, the sum "
    "over its members). The watcher's score is smaller, so the service stays where the network is dead.",
    remedy="Set the watcher's multiplier far above the stickiness, for example 20000; or use a rule with -INFINITY for "
    "lt 1.",
    source=PING,
)
def ping_score_below_stickiness(setup: Setup) -> Iterator[str]:
    """Find watchers that count less, with all their hosts, than the stickiness of what shall move."""
    cib = setup.pacemaker
    weights = {one.watched_attribute: (one.id, _weight(one)) for one in cib.services if one.watched_attribute}
    stickiness = {name: stick for name, stick, _ in homes_of(setup)}
    constraints = cib.root.findall("./configuration/constraints/rsc_location")
    banned = {
        (constraint.get("rsc"), test.get("attribute"))
        for constraint in constraints
        for part in constraint.iter("rule")
        if part.get("score", "").upper() == "-INFINITY"
        for test in part.iter("expression")
    }
    for constraint in constraints:
        name = constraint.get("rsc", "")
        for part in constraint.iter("rule"):
            attribute = part.get("score-attribute", "")
            watcher, weight = weights.get(attribute, ("", 0.0))
            stick = stickiness.get(name, 0.0)
            if watcher and weight <= stick and (name, attribute) not in banned:
                yield f"cib: {watcher} counts {weight:g} at most, the stickiness of {name} is {stick:g}"


@rule("pacemaker").error(
    reason="The rule applies to nodes that do not have the attribute, and takes its score from that attribute: it "
    "never has an effect, and the watcher moves nothing.",
    remedy="operation=defined; or score=-INFINITY with not_defined.",
    source=f"{PACEMAKER}/rules.rst",
)
def rule_scores_by_undefined_attribute(setup: Setup) -> Iterator[str]:
    """Find rules that take their score from an attribute where it is not defined."""
    for constraint in setup.pacemaker.root.iterfind("./configuration/constraints/rsc_location"):
        for part in constraint.iter("rule"):
            attribute = part.get("score-attribute")
            for test in part.iterfind("./expression") if attribute else ():
                # One of several that need not all be true does no harm.
                needed = part.get("boolean-op", "and") == "and" or len(part) == 1
                if needed and test.get("attribute") == attribute and test.get("operation") == "not_defined":
                    yield f"cib: {constraint.get('id')} takes its score from {attribute}, where that is not_defined"
