"""The model of a cluster: services follow from resources, and property names of all releases are equivalent."""

from __future__ import annotations

from pathlib import Path

from failover.clusters import planned
from strakes.failover.cib import Cib
from strakes.failover.model import model_of
from strakes.failover.setup import read_plan


def test_services_are_found_by_structure_and_not_by_name(tmp_path: Path) -> None:
    plan = planned("nfs", tmp_path / "plan")
    cib = plan / "pacemaker/cib.xml"
    cib.write_text(cib.read_text().replace("serve-home", "g"))
    (plan / "cluster.toml").unlink()
    model = model_of(read_plan(plan))
    (service,) = [one for one in model.services if one.name == "g"]
    assert service.replicated == ("home",) and service.nodes == ("nfs1", "nfs2") and service.addresses
    assert all(node.bmc.address for node in model.cluster.nodes)
    assert any("cluster.toml" in text for text in model.assumed)


def test_properties_of_pacemaker_3_are_mapped_to_their_older_names() -> None:
    text = (
        '<cib><configuration><crm_config><cluster_property_set id="p">'
        '<nvpair id="e" name="fencing-enabled" value="false"/></cluster_property_set></crm_config></configuration></cib>'
    )
    assert Cib(text, "cib.xml").properties == {"stonith-enabled": "false"}
