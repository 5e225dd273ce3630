"""Readers of cluster configurations: CIB, crm text, pcs commands, pcs config and haresources give one model."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import StrakesRunner
from failover.clusters import need, planned
from strakes.base.errors import BadInputError
from strakes.failover.blocks import read_drbd
from strakes.failover.check import findings
from strakes.failover.cib import Cib
from strakes.failover.crm_text import read_crm
from strakes.failover.model import ClusterModel, model_of
from strakes.failover.pcs_commands import read_pcs_commands, read_pcs_config
from strakes.failover.rehearse import rehearse
from strakes.failover.setup import read_plan

_PAIR = Path(__file__).parent / "cases" / "one-pair-in-three-forms"
FORMS = {path.name: (path.name, path.read_text()) for path in sorted(_PAIR.iterdir())}
CRM, PCS = FORMS["a.crm"][1], FORMS["setup.sh"][1]
DANGLING = "clone c missing\ngroup h gone\norder o2 inf: c g\n"
_AT = "pcs constraint location g rule score=1 date"
DATES = f"{_AT} in_range 2024-01-01 to 2030-01-01\n{_AT}-spec hours=9-16 weekdays=1-5\n{_AT} gt 2024-01-01 and '#uname' eq na\n"


def _model(directory: Path, name: str, text: str) -> ClusterModel:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(text)
    return model_of(read_plan(directory))


def _require_the_pair(model: ClusterModel) -> None:
    (service,) = model.services
    assert (service.name, [one.id for one in service.members]) == ("g", ["fs", "ip"])
    assert ([one.id for one in service.copies], service.replicated) == (["dr"], ("r0",))
    assert service.nodes == ("na", "nb") and service.addresses == ("10.3.0.10",)
    assert [(node.name, node.bmc.address) for node in model.cluster.nodes] == [("na", "10.9.0.1"), ("nb", "10.9.0.2")]
    expected = {"Promoted", "Unpromoted"}
    assert {operation.role for operation in service.copies[0].operations if operation.repeats} == expected
    assert service.members[0].timeout_s("stop") == 60 and service.members[0].meta["resource-stickiness"] == "200"


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_same_model_and_properties(form: str, tmp_path: Path) -> None:
    _require_the_pair(_model(tmp_path / "site", *FORMS[form]))
    properties = read_plan(tmp_path / "site").pacemaker.properties
    assert properties["stonith-enabled"] == "true" and properties["no-quorum-policy"] == "stop"


def test_the_output_of_the_installed_pcs_gives_the_model_of_its_cib(tmp_path: Path) -> None:
    need("pcs")
    setup_text = _cib_of(tmp_path, CRM)
    cib = tmp_path / "cib.xml"
    cib.write_text(setup_text)
    shown = subprocess.run(["pcs", "-f", str(cib), "config"], capture_output=True, text=True, timeout=60)
    _require_the_pair(_model(tmp_path / "site", "pcs.txt", shown.stdout))


def test_the_built_cib_is_valid_for_pacemaker(tmp_path: Path) -> None:
    need("crm_verify")
    for number, text in enumerate((*(text for _, text in FORMS.values()), CRM + DANGLING, PCS + DATES)):
        file = tmp_path / f"{number}.xml"
        file.write_text(_cib_of(tmp_path / str(number), text))
        done = subprocess.run(["crm_verify", "--xml-file", str(file)], capture_output=True, text=True, timeout=60)
        assert "Errors" not in done.stderr, done.stderr


def _cib_of(directory: Path, text: str) -> str:
    directory.mkdir(exist_ok=True)
    (directory / "source.txt").write_text(text)
    return read_plan(directory).texts["pacemaker/cib.xml"]


def test_haresources_start_a_group_on_the_promoted_copy(tmp_path: Path) -> None:
    (tmp_path / "haresources").write_text("na 10.3.0.10/24 drbddisk::r0 Filesystem::/dev/drbd0::/srv/a::ext3 nfs\n")
    (tmp_path / "ha.cf").write_text("node na nb # two\nstonith_host na external/ipmi nb 10.3.1.2 admin secret lan\n")
    setup = read_plan(tmp_path)
    (service,) = model_of(setup).services
    assert [one.agent for one in service.members] == ["IPaddr2", "Filesystem", "nfs"] and service.replicated == ("r0",)
    assert [node.name for node in model_of(setup).cluster.nodes] == ["na", "nb"]
    assert [one.then for one in setup.pacemaker.orders] == ["Filesystem-1-3"], "started from left to right"
    assert setup.devices[0].values["hostlist"] == "nb" and setup.devices[0].values["ipaddr"] == "10.3.1.2"
    need("crm_simulate")
    scenes = {scene.failures[0].text: scene for scene in rehearse(setup, doubles=False).singles}
    assert scenes["nfs-1-4 fails"].ending == "outage" and "does not monitor" in scenes["nfs-1-4 fails"].said[0]
    assert [scene.ending for scene in scenes.values() if scene.failures[0].kind == "cold"] == ["nothing", "take-over"]
    (tmp_path / "haresources").write_text("lisa 10.3.0.10 nfs\n")
    assert "constraint-wrong" in {one.rule for one in findings(read_plan(tmp_path))[0]}, "lisa is no node"


def test_variables_and_loops_of_a_script_are_expanded(tmp_path: Path) -> None:
    (tmp_path / "make.pcs.sh").write_text(
        'N1=na; N2=nb\nVIP="10.3.0.10"\npcs cluster setup c $N1 $N2\n'
        "for n in $N1 ${N2}; do pcs stonith create f_$n fence_ipmilan ip=10.9.0.${n#n} pcmk_host_list=$n; done  # all\n"
        "for a in {1..2}; do\n  for b in x; do\n    pcs property set p_$a=$b\n  done\ndone\n"
        "[root@na ~]# pcs resource create ip IPaddr2 ip=$VIP group g --future\n"
        "pcs constraint location add l regexp%^i.* nb -- -INFINITY resource-discovery=never\n"
        "pcs constraint ticket add T promoted ip loss-policy=fence\n"
        "na:~ # pcs stonith sbd enable device=/dev/a device=/dev/b SBD_WATCHDOG_TIMEOUT=7\n"
    )
    setup = read_plan(tmp_path)
    assert setup.services[0].group == "g" and setup.sbd["SBD_DEVICE"] == "/dev/a;/dev/b"
    assert [(one.resources, one.score) for one in setup.pacemaker.locations] == [(("ip",), -float("inf"))]
    assert setup.node_names == ("na", "nb") and [one.values.get("ip") for one in setup.services] == ["10.3.0.10"]
    (ticket,) = setup.pacemaker.constraints("rsc_ticket")
    assert ticket["rsc-role"] == "Promoted" and ticket["loss-policy"] == "fence"
    assert [(one.values["pcmk_host_list"], one.values["ip"][-1]) for one in setup.devices] == [("na", "a"), ("nb", "b")]
    assert setup.pacemaker.properties == {"have-watchdog": "true", "p_1": "x", "p_2": "x"}
    (tmp_path / "make.pcs.sh").write_text("# pcs cluster setup c nx ny\n\n# pcs property set x=1\n")
    assert read_plan(tmp_path).node_names == ("nx", "ny")


def test_pcs_commands_may_add_a_quorum_device_watchdogs_and_agents_that_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text(
        "pcs cluster setup c na nb\npcs stonith sbd enable\npcs quorum device add model net host=q algorithm=ffsplit\n"
        "pcs property set stonith-watchdog-timeout=10\n"
        "pcs resource create ag ocf:mssql:ag ag_name=a promotable meta notify=true\n"
        "pcs resource disable ag ag-clone\npcs resource enable ag-clone\n"
    )
    setup = read_plan(tmp_path)
    assert setup.pacemaker.clones["ag-clone"].items() >= {"promotable": "true", "notify": "true"}.items()
    assert setup.services[0].meta["target-role"] == "Started", "pcs enables a clone together with its copies"
    assert {one.role for one in setup.services[0].operations} == {"", "Promoted"}
    assert not [one for one in findings(setup)[0] if one.severity == "error"]


def test_commands_of_guides_give_no_false_error(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text(
        "pcs cluster setup c na nb nc\npcs stonith sbd enable \\\n  device=/dev/x \\\n  SBD_STARTMODE=always\n"
        'pcs stonith create f fence_sbd devices=/dev/x\npcs resource create db pgsql rep_mode=sync node_list="na nb nc" '
        "op methods interval=0s timeout=5 promotable notify=true\npcs resource create vip IPaddr2 ip=10.0.0.5\n"
        "pcs constraint colocation add vip with master db-clone\npcs constraint order promote db-clone then vip\n"
        "pcs cluster node add nd\npcs cluster node add-remote nr 10.0.0.8\npcs constraint location vip prefers nr=9 ng=9\n"
        "pcs resource create vm VirtualDomain config=/etc/vm.xml\npcs cluster node add-guest ng vm\n"
        "pcs resource create my mysql\npcs resource bundle create gb container podman promoted-max=4 replicas=4\n"
        "pcs resource create ga galera wsrep_cluster_address=gcomm://na,nb,nc,nd bundle gb\n"
    )
    setup = read_plan(tmp_path)
    assert setup.node_names[3:] == ("nd",) and setup.pacemaker.remote_nodes == ("nr", "ng")
    assert setup.sbd["SBD_DEVICE"] == "/dev/x" and setup.pacemaker.orders[0].then_action == "start"
    assert not [one for one in findings(setup)[0] if one.severity == "error"]


def test_statements_about_undefined_resources_are_named_and_the_rest_is_judged(tmp_path: Path) -> None:
    _model(tmp_path / "site", "a.crm", CRM)
    _require_the_pair(_model(tmp_path / "site", "b.crm", DANGLING))
    setup = read_plan(tmp_path / "site")
    assert setup.undefined == ("h names gone", "c names missing", "o2 names c")
    assert "named-but-not-defined" in {one.rule for one in findings(setup)[0]}
    (tmp_path / "site/c.sh").write_text(PCS)
    assert read_plan(tmp_path / "site").undefined[3:] == ("c.sh is not read",), "its statements are of another kind"
    (tmp_path / "d.crm").write_text("primitive a Dummy params\ncolocaton c inf: a b\ngroup g a\ncolocation d g g\n")
    assert read_plan(tmp_path / "d.crm").undefined == ("colocaton begins no statement", "d has no score")
    (tmp_path / "e.sh").write_text(
        "pcs cluster setup c na nb\npcs resource create a Dummy params x=1\npcs resource create a Dummy\npcs resource creat b Dummy\n"
        "pcs resource create w Dummy\npcs constraint order a then w\npcs resource clone w\n"
    )
    setup = read_plan(tmp_path / "e.sh")
    others = ("a has params without a value", "a is created twice", "pcs resource creat may mean resource create")
    assert setup.undefined == others and [one.then for one in setup.pacemaker.orders] == ["w-clone"]


def test_unknown_nodes_are_assumed_and_fragments_have_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(
        'NODES=( "$@" )\npcs cluster setup c "${NODES[@]}"\nfor n in "${NODES[@]}"; do\n'
        "pcs stonith create f_$n fence_virsh pcmk_host_list=$n plug=$n ip=10.0.0.1 username=u password_script=/p\ndone\n"
    )
    assert len(read_plan(tmp_path / "a.sh").devices) == 2 and read_plan(tmp_path / "a.sh").nodes_assumed
    sections = "<crm_config/><nodes/><resources><primitive id='d' class='ocf' provider='x' type='x'/></resources>"
    (tmp_path / "cib.xml").write_text(f"<cib><configuration>{sections}<constraints/></configuration><status/></cib>")
    setup = read_plan(tmp_path / "cib.xml")
    assert setup.node_names == ("assumed-1", "assumed-2") and setup.is_fragment
    assert not [one for one in findings(setup)[0] if one.severity == "error"]


def test_a_report_of_sos_is_read_and_a_directory_of_reports_names_them(tmp_path: Path) -> None:
    cib = tmp_path / "host1/var/lib/pacemaker/cib/cib.xml"
    cib.parent.mkdir(parents=True)
    cib.write_text(_cib_of(tmp_path / "host2", CRM))
    assert read_plan(tmp_path / "host1").node_names == ("na", "nb")
    with pytest.raises(BadInputError, match="no cluster configuration") as error:
        read_plan(tmp_path)
    assert "host1, host2" in str(error.value.remedy)
    for number in "12":
        own = tmp_path / f"own/nodes/n{number}/etc/corosync/corosync.conf"
        own.parent.mkdir(parents=True)
        own.write_text(f"totem {{\ntoken: {number}000\n}}\n")
    assert "files-of-nodes-differ" in {one.rule for one in findings(read_plan(tmp_path / "own"))[0]}


def test_a_file_is_known_by_its_content_and_newer_crmsh_may_add_its_monitors(tmp_path: Path) -> None:
    (tmp_path / "etc/corosync").mkdir(parents=True)
    for name in ("etc/corosync/crm.config", "notes.md"):
        (tmp_path / name).write_text(
            "primitive fs Filesystem params device=/dev/vg/x directory=/x fstype=xfs op monitor\n"
        )
    for given in (tmp_path, tmp_path / "notes.md"):
        assert [one.severity for one in findings(read_plan(given))[0] if one.rule == "no-monitor"] == ["warning"]
    (tmp_path / "show.txt").write_text(" Resource: f (class=stonith type=fence_apc)\n  Attributes: pcmk_host_list=a\n")
    assert read_plan(tmp_path / "show.txt").devices[0].agent == "fence_apc", "as pcs stonith show --full prints it"


def test_a_string_of_drbd_without_an_end_leaves_the_next_lines_readable() -> None:
    (handlers,) = read_drbd('handlers {\nlocal-io-error "halt;\nfence-peer "a; b";\n}', "r.res").blocks
    assert handlers.settings == [("local-io-error", "halt"), ("fence-peer", "a; b")]


def test_a_rule_of_crm_may_compare_with_a_number(tmp_path: Path) -> None:
    (tmp_path / "c.crm").write_text(
        "node 7: na\nnode $id=1 nb\nprimitive a ocf:pacemaker:controld op monitor interval=9 op_params depth=0\n"
        "location l /^a$/ rule 2000: pingd number:lt 1000 rule -inf: not_defined pingd rule p: defined p\n"
        "location m { a } resource-discovery=never -inf: na\ncrm resource meta a set priority 7\n"
    )
    cib = read_plan(tmp_path).pacemaker
    rule, ban, last = cib.root.iter("rule")
    assert last.get("score-attribute") == "p" and last[0].get("attribute") == "p", "an attribute has its score"
    assert ban.get("score") == "-INFINITY" and len(ban) == 1 and cib.primitives[0].meta["priority"] == "7"
    assert rule.get("score") == "2000" and rule[0].get("operation") == "lt" and rule[0].get("value") == "1000"
    assert [cib.primitives[0].timeout_s(name) for name in ("monitor", "stop")] == [20, 100], "as its agent advises"
    assert [one.get("id") for one in cib.root.iter("node")] == ["7", "1"]
    assert {one.resources for one in cib.locations} == {("a",)}


def test_a_cluster_file_system_is_a_service_of_its_clone(tmp_path: Path) -> None:
    (tmp_path / "c.crm").write_text(
        "node 1: na\nnode 2: nb\nprimitive dlm ocf:pacemaker:controld\n"
        "primitive fs Filesystem params device=/dev/v/l directory=/srv fstype=gfs2\ngroup g dlm fs\nclone c g\n"
    )
    (service,) = model_of(read_plan(tmp_path)).services
    assert [one.id for one in service.members] == ["fs"] and service.nodes == ("na", "nb")


def test_drbd_files_alone_are_a_configuration(tmp_path: Path, strakes: StrakesRunner) -> None:
    (tmp_path / "drbd.d").mkdir()
    (tmp_path / "drbd.d/r0.res").write_text(
        "resource r0 { protocol A; device /dev/drbd0; disk /dev/vg/a; meta-disk internal;"
        " on na { address 10.1.0.1:7788; } on nb { address 10.1.0.2:7788; } }"
    )
    model = model_of(read_plan(tmp_path))
    assert [node.name for node in model.cluster.nodes] == ["na", "nb"]
    done = strakes("failover", "check", tmp_path)
    assert done.returncode in (0, 1) and "drbd" in done.stdout, done.stderr
    hosts = "floating 10.1.0.1:7706 { node-id 1; } floating 10.1.0.2:7706 { node-id 2; }"
    (tmp_path / "r1.res").write_text(f"resource r1 {{ volume 0 {{ device minor 1; disk /dev/vg/b; }} {hosts} }}")
    assert {one.name: one.dialect9 for one in read_plan(tmp_path).drbd} == {"r0": False, "r1": True}


def test_a_script_without_a_node_list_gets_the_nodes_of_its_devices_and_drbd(tmp_path: Path) -> None:
    lines = [line for line in CRM.splitlines(keepends=True) if not line.startswith("node ")]
    model = _model(tmp_path / "site", "a.crm", "".join(lines))
    assert [node.name for node in model.cluster.nodes] == ["na", "nb"] and "no file lists the nodes" in model.assumed[0]
    script = "sudo crm configure primitive a IPaddr2 params ip=10.0.0.1\ncrm configure group g a\n"
    script += "crm configure primitive b ocf:heartbeat:Dummy\ncrm configure modgroup g add b before a\n"
    (tmp_path / "other").mkdir()
    nodes = "".join(f"node {{\nring0_addr: 10.0.0.{number}\n}}\n" for number in (1, 2, 3))
    service = "service {\nname: pacemaker\nver: 0\n}\n"
    (tmp_path / "other/corosync.conf").write_text(f"totem {{\n}}\nnodelist {{\n{nodes}}}\n{service}")
    model = _model(tmp_path / "other", "a.sh", script)
    assert [node.name for node in model.cluster.nodes] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert [one.id for one in next(one for one in model.services if one.name == "g").members] == ["b", "a"]


def test_a_directory_that_denies_access_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (planned("nfs", tmp_path) / "etc/netplan").mkdir()
    denied = {tmp_path / "etc/netplan"}

    def listed(path: Path, real: Callable[[Path], Iterator[Path]] = Path.iterdir) -> Iterator[Path]:
        if path in denied:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(Path, "iterdir", listed)
    assert read_plan(tmp_path).undefined == ("etc/netplan is not read (permission denied)",)
    denied.add(tmp_path / "etc/drbd.d")
    with pytest.raises(BadInputError, match=r"etc/drbd\.d"):
        read_plan(tmp_path)


def test_truncated_text_is_read_without_an_error() -> None:
    for read in (read_crm, read_pcs_commands, read_pcs_config):
        for _, text in FORMS.values():
            for cut in range(0, len(text), 17):
                Cib(read(text[:cut]).text, "")
                Cib(read(text[cut:]).text, "")


BUNDLES = """\
Pacemaker Nodes:
 na nb nc
Resources:
 Bundle: galera-bundle
  Docker: image=mariadb replicas=3 masters=3 network=host
  Resource: galera (class=ocf provider=heartbeat type=galera)
   Operations: monitor interval=20 (a)
               monitor interval=10 role=Master (b)
 Bundle: proxy-bundle
  Docker: image=haproxy replicas=3
 Resource: ip (class=ocf provider=heartbeat type=IPaddr2)
  Attributes: ip=10.0.0.5
Stonith Devices:
 Resource: f (class=stonith type=fence_apc)
  Attributes: ip="10.0.0.6" pcmk_host_map="na:1;nb:2"
Colocation Constraints:
 ip with proxy-bundle (score:INFINITY)
"""


def test_bundles_of_pcs_config_are_clones_of_their_resource_or_containers(tmp_path: Path) -> None:
    (tmp_path / "pcs.txt").write_text(BUNDLES)
    setup = read_plan(tmp_path)
    assert not setup.undefined and setup.pacemaker.promotable("galera-bundle")
    assert [one.id for one in setup.services if one.clone] == ["galera", "proxy-bundle-container"]
    assert setup.devices[0].values == {"ip": "10.0.0.6", "pcmk_host_map": '"na:1;nb:2"'}, "pcs adds no such quotes"
    rules = {one.rule for one in findings(setup)[0]}
    assert not rules & {"operation-wrong", "number-of-promoted-copies-wrong", "address-not-tied-to-a-service"}


DEFAULTS = """\
pcs stonith create apc fence_apc ip=10.9.0.1 pcmk_host_map="na:1;nb:2"
pcs resource create fs Filesystem device=/dev/sdb directory=/srv/a fstype=xfs {flag}
pcs resource create nb systemd:nginx op monitor interval=30s timeout=40s
pcs resource update fs op monitor interval=15s timeout=45s
"""


@pytest.mark.parametrize(
    ("flag", "fs"), [("", {"monitor": 45, "start": 60, "stop": 60}), ("--no-default-ops", {"monitor": 45})]
)
def test_pcs_adds_the_operations_that_its_commands_do_not_give(tmp_path: Path, flag: str, fs: dict[str, int]) -> None:
    (tmp_path / "setup.sh").write_text(DEFAULTS.format(flag=flag), encoding="utf-8")
    cib = read_plan(tmp_path / "setup.sh").pacemaker
    times = {one.id: {op.name: op.timeout_s for op in one.operations} for one in cib.primitives}
    assert times["fs"] == fs and times["nb"] == {"monitor": 40, "start": 100, "stop": 100}
    assert set(times["apc"]) == {"monitor"}
    assert cib.nodes == ("na", "nb"), "the fencing device names the nodes"


def test_services_are_found_by_structure_and_not_by_name(tmp_path: Path) -> None:
    plan = planned("nfs", tmp_path / "plan")
    cib = plan / "pacemaker/cib.xml"
    cib.write_text(cib.read_text().replace("serve-home", "g"))
    (plan / "cluster.toml").unlink()
    model = model_of(read_plan(plan))
    service = next(one for one in model.services if one.name == "g")
    assert service.replicated == ("home",) and service.nodes == ("nfs1", "nfs2") and service.addresses
    assert all(node.bmc.address for node in model.cluster.nodes)
    assert any("cluster.toml" in text for text in model.assumed)


def test_parameters_that_a_rule_chooses_are_read() -> None:
    text = "primitive ip ocf:heartbeat:IPaddr2 params nic=eth1 params rule #cluster-name eq a ip=10.0.0.1 op monitor\n"
    (address,) = Cib(read_crm(text).text, "cib.xml").primitives
    assert address.values == {"nic": "eth1", "ip": "10.0.0.1"}


def test_a_resource_stacked_on_another_one_may_be_promoted_on_its_nodes(tmp_path: Path) -> None:
    need("crm_simulate")
    (tmp_path / "drbd.conf").write_text(
        "resource r { disk { fencing resource-and-stonith; } on a { address 10.0.0.1:1; } on b { address 10.0.0.2:1; } }\n"
        "resource u { stacked-on-top-of r { address 10.0.1.1:1; } stacked-on-top-of w { address 10.0.1.2:1; } }\n"
        "resource w { disk { fencing resource-and-stonith; } on c { address 10.1.0.1:1; } on d { address 10.1.0.2:1; } }\n"
    )
    (tmp_path / "crm.txt").write_text(
        "node a\nnode b\nprimitive low ocf:linbit:drbd params drbd_resource=r\nprimitive up ocf:linbit:drbd params"
        " drbd_resource=u\nms low-m low meta clone-max=2 promoted-max=1\nms up-m up meta clone-max=1 clone-node-max=1\n"
        "colocation c inf: up-m low-m:Promoted\norder o inf: low-m:promote up-m:start\n"
    )
    wrong = {"runs-nowhere", "no-replication-fencing", "nodes-differ-from-corosync", "clone-waits-for-all-nodes"}
    assert not wrong & {one.rule for one in findings(read_plan(tmp_path))[0]}
