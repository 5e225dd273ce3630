"""A rule, what it finds, and the list of all rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Literal

from strakes.failover.setup import Setup, views_of_nodes

# A note is good practice that is not followed; a configuration without it is not wrong.
Severity = Literal["error", "warning", "note"]
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
# In place of a source: no public page was found that tells of it.
OWN = "strakes' own reasoning"
# Pages that several rules are about.
PACEMAKER = "https://github.com/ClusterLabs/pacemaker/blob/main/doc/sphinx/Pacemaker_Explained"
COROSYNC_CONF = "https://manpages.debian.org/bookworm/corosync/corosync.conf.5.en.html"
VOTEQUORUM = "https://manpages.debian.org/bookworm/corosync/votequorum.5.en.html"
QDEVICE = "https://manpages.debian.org/bookworm/corosync-qdevice/corosync-qdevice.8.en.html"
DRBD_CONF = "https://manpages.debian.org/bookworm/drbd-utils/drbd.conf-9.0.5.en.html"
SBD = "https://manpages.debian.org/bookworm/sbd/sbd.8.en.html"
AGENTS = "https://github.com/ClusterLabs/resource-agents/blob/main/heartbeat"
PING = "https://github.com/ClusterLabs/pacemaker/blob/main/extra/resources/ping.in"
DRBD_PACEMAKER = "https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc"
MKFS = "https://github.com/lustre/lustre-release/blob/master/lustre/doc/mkfs.lustre.8"
MOUNT_LUSTRE = "https://github.com/lustre/lustre-release/blob/master/lustre/doc/mount.lustre.8"
LUSTRE_MANUAL = "https://doc.lustre.org/lustre_manual.xhtml"
MULTIPATH = "https://manpages.debian.org/bookworm/multipath-tools/multipath.conf.5.en.html"
BOOTH = "https://github.com/ClusterLabs/booth/blob/main/docs/boothd.8.txt"
# One module for each thing that rules are about; findings are told in this order.
_MODULES = (
    "heartbeat",
    "quorum",
    "fencing",
    "fencing_levels",
    "watchdog",
    "timing",
    "time_rows",
    "replication",
    "services",
    "lustre",
    "references",
    "watchers",
    "mounts",
    "layers",
    "sequence",
    "owners",
    "site",
    "described",
    "lnet",
    "described_words",
    "beside",
    "described_both",
    "node_options",
    "values",
    "options",
    "dangers",
    "contradictions",
    "disagreements",
    "node_files",
    "mentions",
    "node_disks",
    "lnet_ways",
    "node_starts",
    "commands_against",
    "claims",
    "cards",
    "firewall",
    "running",
    "identities",
    "behaviour",
    "inventory",
    "promotable",
    "tickets",
    "agreements",
    "answers",
    "state",
)


Find = Callable[[Setup], Iterable[str]]


@dataclass(frozen=True)
class Rule:
    """One kind of mistake.

    ``find`` yields one text for each place where the mistake is made; ``needs`` are the parts of a setup that it looks
    at. ``source`` is a public page that says what ``reason`` says, or where somebody met the mistake.
    """

    name: str
    severity: Severity
    needs: frozenset[str]
    reason: str
    remedy: str
    source: str
    find: Find


@dataclass(frozen=True)
class RuleFinding:
    """A mistake that a rule found: where it is, why it is one, and what to do."""

    rule: str
    severity: Severity
    where: str
    reason: str
    remedy: str
    source: str


_rules: dict[str, Rule] = {}


def enter(new: Rule) -> None:
    """Put a rule into the list."""
    assert new.name not in _rules, new.name
    _rules[new.name] = new


@dataclass(frozen=True)
class _Kinds:
    """The kinds of rules that look at these parts of a setup; each makes a rule of a function, and of its name."""

    needs: frozenset[str]

    def error(self, *, reason: str, remedy: str, source: str) -> Callable[[Find], Find]:
        """Enter a function that finds what is wrong."""
        return self._of("error", reason, remedy, source)

    def warning(self, *, reason: str, remedy: str, source: str) -> Callable[[Find], Find]:
        """Enter a function that finds what is doubtful."""
        return self._of("warning", reason, remedy, source)

    def note(self, *, reason: str, remedy: str, source: str) -> Callable[[Find], Find]:
        """Enter a function that finds what is good practice and not followed."""
        return self._of("note", reason, remedy, source)

    def _of(self, severity: Severity, reason: str, remedy: str, source: str) -> Callable[[Find], Find]:
        def of(find: Find) -> Find:
            enter(Rule(find.__name__.replace("_", "-"), severity, self.needs, reason, remedy, source, find))
            return find

        return of


def rule(*needs: str) -> _Kinds:
    """Return what makes a rule of a function: ``@rule("drbd").error(reason=..., remedy=..., source=...)``.

    The rule is passed over where one of the parts is not there. Its name is that of the function, with hyphens.
    """
    return _Kinds(frozenset(needs))


def all_rules() -> tuple[Rule, ...]:
    """Return all rules, in the order of their modules."""
    for module in _MODULES:
        import_module(f"strakes.failover.rules.{module}")
    return tuple(_rules.values())


def findings(setup: Setup) -> tuple[tuple[RuleFinding, ...], tuple[str, ...]]:
    """Return what is wrong, errors first, and the names of the rules that found no file to look at."""
    passed = [one.name for one in all_rules() if not one.needs <= setup.parts]
    found = list(_findings(setup))
    known = {(one.rule, one.where) for one in found}
    # What several nodes have in files of their own is told once.
    own = dict[RuleFinding, list[str]]()
    for node, view in views_of_nodes(setup).items():
        for finding in dict.fromkeys(_findings(view)):
            if (finding.rule, finding.where) not in known:
                own.setdefault(finding, []).append(node)
    found += [replace(finding, where=f"{', '.join(nodes)}: {finding.where}") for finding, nodes in own.items()]
    # A resource may have one mistake twice, such as in the monitors of both its roles: that is told once.
    found = list(dict.fromkeys(found))
    return tuple(sorted(found, key=lambda finding: _SEVERITIES.index(finding.severity))), tuple(passed)


def _findings(setup: Setup) -> Iterator[RuleFinding]:
    for one in all_rules():
        for where in one.find(setup) if one.needs <= setup.parts else ():
            yield RuleFinding(one.name, one.severity, where, one.reason, one.remedy, one.source)
