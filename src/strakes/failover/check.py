"""Check the configuration of a cluster with the rules and with the cluster's own programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib import import_module
from typing import Any, Literal

from strakes.base.errors import StrakesError
from strakes.base.foreign_text import is_secret, without_secrets
from strakes.failover import cluster_facts, resource_facts
from strakes.failover import rules_constraints as constraints
from strakes.failover import rules_lustre as lustre
from strakes.failover import rules_nodes as nodes
from strakes.failover.facts import Certain, Doubtful, Thing, holds, read_table
from strakes.failover.limits import little_enough
from strakes.failover.policy_engine import behaviour_of
from strakes.failover.setup import Setup, views_of_nodes
from strakes.failover.times import broken, read_limit
from strakes.failover.validators import ValidatorVerdict, verdicts

Severity = Literal["error", "warning", "note"]
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
# Files with rules. Findings of equal severity are printed in the order of these files.
_FILES = (
    *("membership", "cluster", "fencing", "times", "replication", "services", "constraints", "storage", "lustre"),
    *("nodes", "options", "behaviour", "state"),
)
# Kind of checked object -> function that yields all such objects, and the parts of a setup that it needs.
_SUBJECTS: Mapping[str, tuple[Callable[[Setup], Iterator[Thing]], *tuple[str, ...]]] = {
    "cluster": (cluster_facts.cluster, "pacemaker"),
    "node": (cluster_facts.nodes, "pacemaker"),
    "membership": (cluster_facts.membership, "corosync"),
    "sbd": (cluster_facts.sbd, "sbd"),
    "node setting": (cluster_facts.settings,),
    "volume group": (nodes.volume_groups, "pacemaker"),
    "resource": (resource_facts.resources, "pacemaker"),
    "service": (partial(resource_facts.resources, devices=False), "pacemaker"),
    "fencing device": (resource_facts.fencing_devices, "pacemaker"),
    "operation": (resource_facts.operations, "pacemaker"),
    "clone": (resource_facts.clones, "pacemaker"),
    "group": (resource_facts.groups, "pacemaker"),
    "home": (constraints.homes, "pacemaker"),
    "location": (constraints.locations, "pacemaker"),
    "colocation": (constraints.colocations, "pacemaker"),
    "order": (constraints.orders, "pacemaker"),
    "ticket": (constraints.tickets, "pacemaker"),
    "replicated resource": (cluster_facts.replicated_resources, "drbd"),
    "Lustre target": (lustre.targets, "lustre"),
    "simulated service": (cluster_facts.simulated_services, "pacemaker", "behaviour"),
    "dead node": (cluster_facts.dead_nodes, "pacemaker", "behaviour"),
    "state": (cluster_facts.states, "state"),
}
# Severity in a rule -> class that marks the text of a finding. Without one (""), the rule sets the severity.
_GRADES: Mapping[str, type[str]] = {"error": Certain, "warning": Doubtful, "": str}
_DEDUCED = re.compile(r"id|agent|name|standard|provider|[^ ]* .*")  # Computed properties, which are not settings.
_NO_FACTS = ("about", "severity")
_TOKEN_TIMEOUT = re.compile(r"(\btoken\w*[=:] ?[\d.]+(?![\w.]))")  # Corosync's time-out "token" is no secret.

Find = Callable[[Setup], Iterable[str]]


@dataclass(frozen=True)
class Rule:
    """A rule that finds one kind of mistake. ``find`` yields a text per mistake. ``source``: web page."""

    name: str
    severity: Severity
    needs: frozenset[str]
    reason: str
    remedy: str
    source: str
    find: Find
    bad: tuple[str, ...]  # for tests: mistakes put into a correct cluster, which the rule must report
    good: tuple[str, ...]


@dataclass(frozen=True)
class RuleFinding:
    """All mistakes of one severity that a rule found. ``places``: a text for each mistake."""

    rule: str
    severity: Severity
    places: tuple[str, ...]
    reason: str
    remedy: str
    source: str


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return all rules, in the order of their files."""
    found: list[Rule] = []
    for stem in _FILES:
        read = read_table(f"rules/{stem}")
        found += [_rule(stem, row, read.get("sources", {})) for row in read["rule"]]
    return tuple(found)


def _rule(stem: str, row: Mapping[str, Any], sources: Mapping[str, str]) -> Rule:
    name, needs = row["name"], set(row.get("needs", ()))
    find: Find
    if "when" in row:
        choices = row["when"] if isinstance(row["when"], list) else [row["when"]]
        find = partial(_cases_met, [{"about": row["about"], **each} for each in choices], row.get("say", ""))
        needs |= set.intersection(*(set(_SUBJECTS[each.get("about", row["about"])][1:]) for each in choices))
    elif "limits" in row:
        find = partial(broken, tuple(map(read_limit, row["limits"])))
    else:
        find = getattr(import_module(f"{__package__}.rules_{stem}"), name.replace("-", "_"))
    bad, good = ((row[key],) if isinstance(row[key], str) else tuple(row[key]) for key in ("bad", "good"))
    texts = (row["why"], row["remedy"], row["source"].format(**sources))
    return Rule(name, row["severity"], frozenset(needs), *texts, find, bad, good)


def _cases_met(cases: Sequence[Mapping[str, str]], say: str, setup: Setup) -> Iterator[str]:
    for about in dict.fromkeys(case["about"] for case in cases):
        own = [
            (_GRADES[case.get("severity", "")], {key: one for key, one in case.items() if key not in _NO_FACTS})
            for case in cases
            if case["about"] == about
        ]
        things, *needs = _SUBJECTS[about]
        for thing in things(setup) if setup.parts.issuperset(needs) else ():
            if found := [(grade, case) for grade, case in own if holds(case, thing.fact)]:
                grade = found[0][0]
                met = dict(pair for other, case in found if other is grade for pair in case.items())
                yield grade(f"{thing.where} {_filled(say or 'has {met}', thing, met)}")


def _filled(say: str, thing: Thing, met: Mapping[str, str]) -> str:
    shown = {name: ", ".join(_shown(thing, name)) for name in re.findall(r"\{([^{}]+)\}", say)}
    shown["met"] = _described(met, thing)
    for part in re.findall(r"\[([^\[\]]+)\]", say):
        known = all(shown[name] for name in re.findall(r"\{([^{}]+)\}", part))
        say = say.replace(f"[{part}]", part if known else "")
    return re.sub(r"\{([^{}]+)\}", lambda name: shown[name[1]], say)


def _shown(thing: Thing, name: str) -> list[str]:
    return ["..." if is_secret(name, value) else value for value in thing.fact(name)]


def _described(conditions: Mapping[str, str], thing: Thing) -> str:
    names = [name for name in conditions if not _DEDUCED.fullmatch(name)] or list(conditions)
    texts = [f"{name}={', '.join(_shown(thing, name))}" if thing.fact(name) else f"no {name}" for name in names]
    return " and ".join(texts)


def findings(setup: Setup) -> tuple[tuple[RuleFinding, ...], tuple[str, ...]]:
    """Return the findings, errors first, and the names of the rules that were skipped because a file is missing."""
    views = views_of_nodes(setup)
    found = list[RuleFinding]()
    for one in all_rules():
        graded: dict[Severity, list[str]] = {}
        for place in places_of(one, setup, views):
            graded.setdefault(getattr(place, "severity", one.severity), []).append(str(place))
        texts = (one.reason, one.remedy, one.source)
        found += [RuleFinding(one.name, severity, tuple(places), *texts) for severity, places in graded.items()]
    found.sort(key=lambda finding: _SEVERITIES.index(finding.severity))
    return tuple(found), tuple(one.name for one in all_rules() if not one.needs <= setup.parts)


def places_of(rule: Rule, setup: Setup, views: Mapping[str, Setup]) -> Iterator[str]:
    """Yield the text of each mistake once. If only some nodes have the mistake, the text begins with their names."""
    common = dict.fromkeys(map(_without_secrets, rule.find(setup) if rule.needs <= setup.parts else ()))
    yield from common
    own: dict[str, list[str]] = {}
    for node, view in views.items():
        for place in dict.fromkeys(map(_without_secrets, rule.find(view) if rule.needs <= view.parts else ())):
            if place not in common:
                own.setdefault(place, []).append(node)
    yield from (type(place)(f"{', '.join(nodes)}: {place}") for place, nodes in own.items())


def _without_secrets(place: str) -> str:
    parts = _TOKEN_TIMEOUT.split(place)
    return type(place)("".join(part if number % 2 else without_secrets(part) for number, part in enumerate(parts)))


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
        """Return whether a rule found an error or a program of the cluster rejected its own configuration."""
        refused = any(one.state == "refuses" for one in self.verdicts)
        return refused or any(one.severity == "error" for one in self.findings)


def check(setup: Setup) -> Check:
    """Return the result of a check. Raises BadInputError if it takes longer than the time limit."""
    late = ""
    with little_enough(setup.where):
        try:
            behaviour = behaviour_of(setup)
            setup = replace(setup, behaviour=behaviour)
            if behaviour is not None and behaviour.unanswered:
                late = f"simulations that did not end in time: {behaviour.unanswered}"
        except StrakesError as error:
            late = "" if setup.is_fragment else error.what
        found, passed_over = findings(setup)
        simulated = [ValidatorVerdict("crm_simulate", "unable", late)] if late else []
        return Check(setup.where, found, (*verdicts(setup), *simulated), passed_over, len(all_rules()))


def document(result: Check) -> str:
    """Return the results of a check as JSON."""
    return json.dumps({"schema": 1, "ok": not result.failed, **asdict(result)}, indent=2)
