"""The subjects of rules: each value of ``about``, with the function that yields its things and facts."""

from __future__ import annotations

from collections.abc import Mapping

from strakes.failover.rules import (
    behaviour_facts,
    cluster_facts,
    constraint_facts,
    lustre_facts,
    replication_facts,
    resource_facts,
    state_facts,
)
from strakes.failover.rules.facts import Subject, subject

SUBJECTS: Mapping[str, Subject] = {
    "cluster": subject(cluster_facts.cluster, "pacemaker"),
    "node": subject(cluster_facts.nodes, "pacemaker"),
    "membership": subject(cluster_facts.membership, "corosync"),
    "sbd": subject(cluster_facts.sbd, "sbd"),
    "node setting": subject(cluster_facts.settings),
    "resource": subject(resource_facts.resources, "pacemaker"),
    "service": subject(resource_facts.services, "pacemaker"),
    "fencing device": subject(resource_facts.fencing_devices, "pacemaker"),
    "operation": subject(resource_facts.operations, "pacemaker"),
    "clone": subject(resource_facts.clones, "pacemaker"),
    "group": subject(resource_facts.groups, "pacemaker"),
    "home": subject(constraint_facts.homes, "pacemaker"),
    "location": subject(constraint_facts.locations, "pacemaker"),
    "colocation": subject(constraint_facts.colocations, "pacemaker"),
    "order": subject(constraint_facts.orders, "pacemaker"),
    "ticket": subject(constraint_facts.tickets, "pacemaker"),
    "replicated resource": subject(replication_facts.replicated_resources, "drbd"),
    "Lustre target": subject(lustre_facts.targets, "lustre"),
    "simulated service": subject(behaviour_facts.simulated_services, "pacemaker", "behaviour"),
    "simulated need": subject(behaviour_facts.needs, "pacemaker", "behaviour"),
    "dead node": subject(behaviour_facts.dead_nodes, "pacemaker", "behaviour"),
    "trial": subject(behaviour_facts.trials, "pacemaker", "behaviour"),
    "node state": subject(state_facts.node_states, "state"),
    "resource state": subject(state_facts.resource_states, "state"),
    "failure": subject(state_facts.failures, "state"),
    "link state": subject(state_facts.link_states, "link state"),
    "copy state": subject(state_facts.copy_states, "replication state"),
}
