"""The commands of the run-book set up the planned cluster, tested on fresh nodes of the lab."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from failover.clusters import EXAMPLES, planned
from failover.runbook_lab import FreshNodes, steps
from integration.conftest import labs
from lab.running import Labs
from strakes.failover.description import read_description

__all__ = ["labs"]

# Commands expected in the logs of the stubs: the disks are made as planned.
_NOTED = {
    "tianhe2": ["drbdadm create-md mdt0", "mkfs.lustre --backfstype=ldiskfs --mgs --mdt --fsname=th2 --index=0"],
    "oss-pair-zfs": ["zpool create -o multihost=on", "mkfs.lustre --backfstype=zfs --ost --fsname=scratch --index=0"],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_command_of_the_run_book_names_its_nodes(name: str, tmp_path: Path) -> None:
    text = (planned(name, tmp_path) / "RUNBOOK.md").read_text()
    nodes = {node.name for node in read_description(EXAMPLES[name])[0].nodes}
    book = steps(text)
    assert len(book) == len(re.findall(r"^```sh", text, re.M)) >= 8
    for step in book:
        assert (
            set(step.nodes) <= nodes and step.marks <= {"hardware", "site", "debian", "rhel"} and step.commands.strip()
        )
    assert {node for step in book for node in step.nodes} == nodes
    assert not re.search(r"\bNone\b|\{\{|\}\}|\{%|^ +$", text, re.M)


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_family_of_distributions_has_separate_package_and_firewall_commands(name: str, tmp_path: Path) -> None:
    book = steps((planned(name, tmp_path) / "RUNBOOK.md").read_text())
    debian, rhel = ("".join(step.commands for step in book if family in step.marks) for family in ("debian", "rhel"))
    assert "apt-get install" in debian and "firewall-cmd" not in debian and "dnf" not in debian
    assert "dnf install" in rhel and "firewall-cmd --reload" in rhel and "apt-get" not in rhel
    both = "".join(step.commands for step in book if not step.marks & {"debian", "rhel"})
    assert not re.search(r"apt-get|dnf|firewall-cmd", both)


@pytest.mark.lab
@pytest.mark.long
@pytest.mark.parametrize("name", _NOTED)
def test_the_steps_of_a_run_book_set_up_a_cluster_that_serves_and_fences(name: str, labs: Labs, tmp_path: Path) -> None:
    plan = planned(name, tmp_path / "plan")
    cluster = read_description(EXAMPLES[name])[0]
    labs.up("ha")
    nodes = FreshNodes(labs.status("ha")["facts"], [node.name for node in cluster.nodes], plan)
    served = {f"mount-{target.name}": target.prefers for target in cluster.targets}

    def serves(asked: str, home: str = "") -> bool:
        places = nodes.places(asked)
        return all(places.get(mount) == (home or prefers) for mount, prefers in served.items())

    first, second = (node.name for node in cluster.nodes)
    fenced = []
    for step in steps((plan / "RUNBOOK.md").read_text()):
        if "site" in step.marks:
            continue
        nodes.follow(step)
        if "crm_resource --wait" in step.commands:
            nodes.wait("everything where it was planned", lambda: serves(first))
        powered_off = re.search(r"stonith_admin --fence (\S+)", step.commands)
        if powered_off:
            # As the run-book instructs: check that the node is off, power it on, and wait until it is back.
            assert not nodes.has_power(powered_off[1])
            fenced.append(powered_off[1])
            nodes.power_on(powered_off[1])
            other = second if powered_off[1] == first else first
            nodes.wait("the node that was powered off to be back", lambda at=other: len(nodes.places(at)) >= 2)
    assert fenced == [first, second]
    for text in _NOTED[name]:
        assert text in nodes.noted(first), nodes.noted(first)
    nodes.wait("everything to be served in the end", lambda: set(served) <= set(nodes.places(first)))
    labs.down("ha")
