"""Cluster configurations that are crafted to stall or crash their check."""

from __future__ import annotations

import os
import pwd
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml
from xml.sax.saxutils import quoteattr

import pytest

from failover.clusters import need
from strakes.base.errors import BadInputError
from strakes.failover import check as checking
from strakes.failover import known_options, limits, policy_engine, rehearse
from strakes.failover.blocks import Block, read_corosync, read_drbd, rewritten_drbd
from strakes.failover.check import findings
from strakes.failover.cib import Cib
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.policy_engine import behaviour_of
from strakes.failover.rules_nodes import multipath_disk_missing
from strakes.failover.setup import LIVE, Setup, read_plan, setup_of
from strakes.failover.validators import confined, verdicts, without_files
from strakes.targets.command import Completed, run

# The work takes milliseconds; the limit allows for a loaded machine.
_MOMENT_S = 5.0
_CIB = (
    '<cib><configuration><crm_config/><nodes><node id="1" uname="{long}"/></nodes>'
    '<resources><primitive id="{long}" class="stonith" type="fence_ipmilan"/></resources>'
    "<constraints>{constraints}</constraints><fencing-topology>{levels}</fencing-topology></configuration></cib>"
)


@contextmanager
def moment() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < _MOMENT_S


_SERVICE = '<primitive id="p" class="ocf" type="Dummy"/></resources>'


def cib(constraints: str = "", levels: str = "") -> str:
    return _CIB.format(long="a" * 40, constraints=constraints, levels=levels)


@pytest.mark.parametrize("pattern", ["(a+)+$b", "(a|a)*b", "(", "*", "a{99999999999}", "(" * 5000])
def test_a_pathological_or_invalid_pattern_is_refused_in_a_moment(pattern: str) -> None:
    level = f'<fencing-level id="l" target-pattern="{pattern}" index="1" devices="x"/>'
    with moment(), pytest.raises(BadInputError, match="pattern") as refused:
        Cib(cib(levels=level), "cib.xml").levels_of("a" * 40)
    assert refused.value.where == pattern[:80]


def test_a_pattern_of_resources_is_refused_like_one_of_nodes(tmp_path: Path) -> None:
    constraint = '<rsc_location id="x" rsc-pattern="(a|a)*b" node="b" score="1"/>'
    with pytest.raises(BadInputError, match="pattern"):
        list(findings(plan(tmp_path, cib(constraint))))


def plan(place: Path, configuration: str, corosync: str = "totem {\n version: 2\n}\n") -> Setup:
    for name, text in (("etc/corosync/corosync.conf", corosync), ("pacemaker/cib.xml", configuration)):
        (place / name).parent.mkdir(parents=True)
        (place / name).write_text(text)
    return read_plan(place)


def test_numbers_that_are_too_large_are_refused(tmp_path: Path) -> None:
    level = f'<fencing-level id="l" target="b" index="{"9" * 5000}" devices="x"/>'
    with pytest.raises(BadInputError, match="not a configuration") as refused:
        plan(tmp_path, cib(levels=level))
    assert "digits" in refused.value.why
    (tmp_path / "pacemaker/cib.xml").write_text(cib().replace("<cib", "<?x?><cib"), encoding="utf-16")
    with pytest.raises(BadInputError, match="zero bytes"):
        read_plan(tmp_path)


def test_an_end_before_the_first_year_is_read(tmp_path: Path) -> None:
    rule = '<rule id="u" score="1"><date_expression id="e" operation="lt" end="0001-01-01T00:00:00+14:00"/></rule>'
    assert plan(tmp_path, cib(f'<rsc_location id="l" rsc="a">{rule}</rsc_location>')).pacemaker.locations


def test_digits_of_other_scripts_are_not_a_number_of_milliseconds(tmp_path: Path) -> None:
    list(findings(plan(tmp_path, cib(), "totem {\n token: ²\n consensus: ²\n}\n")))


@pytest.mark.parametrize("read", [read_corosync, read_drbd])
def test_deeply_nested_sections_are_refused(read: Callable[[str, str], Block]) -> None:
    assert read("a {\n" * 100 + "}\n" * 100, "file").blocks
    with pytest.raises(BadInputError, match="not a configuration") as refused:
        read("a {\n" * 101 + "}\n" * 101, "file")
    assert "more than 100 deep" in refused.value.why and refused.value.where.startswith("file")


def test_open_quotes_take_linear_time() -> None:
    with moment():
        assert read_corosync('"\\' * 500_000, "corosync.conf").blocks == []


@pytest.mark.parametrize(
    ("constraints", "resources"),
    [
        ("", "<primitive/>" * 5000),
        ("<rsc_order/>" * 50_000, ""),
        (f"<rsc_order><resource_set>{'<resource_ref/>' * 3000}</resource_set></rsc_order>", ""),
        ("</constraints><nodes>" + "<node/>" * 1001 + "</nodes><constraints>", ""),
        ("", "<group>" * 2000 + "</group>" * 2000),
        (f"<rsc_location>{'<rule>' * 1500}{'</rule>' * 1500}</rsc_location>", ""),
        ("<rsc_order " + " ".join(f"a{number}='1'" for number in range(20_000)) + "/>", ""),
        ("", f"<primitive id='{'a' * 300}'/>"),
    ],
    ids=["resources", "constraints", "members", "nodes", "groups in groups", "rules in rules", "attributes", "name"],
)
def test_more_elements_than_any_cluster_has_are_refused_in_a_moment(constraints: str, resources: str) -> None:
    with moment(), pytest.raises(BadInputError, match="this CIB cannot be checked") as refused:
        Cib(cib(constraints).replace("</resources>", f"{resources}</resources>"), "cib.xml")
    assert "more than" in refused.value.why


def test_cluster_programs_are_not_run_on_configurations_that_take_them_minutes(tmp_path: Path) -> None:
    many = "".join(f'<primitive id="p{number}" class="ocf" type="Dummy"/>' for number in range(500))
    setup = plan(tmp_path, cib().replace("</resources>", f"{many}</resources>"))
    assert behaviour_of(setup) is None
    told = {verdict.program: verdict for verdict in verdicts(setup)}["crm_verify"]
    assert told.state == "absent" or (told.state == "unable" and "more than" in told.text)
    assert limits.too_much_to_ask(Cib(cib("<rsc_location/>" + "<!-- x -->"), "cib.xml").root) == ""
    assert "elements" in limits.too_much_to_ask(
        Cib(cib("<rsc_location>" + "<x/>" * 20_000 + "</rsc_location>"), "cib.xml").root
    )


@pytest.mark.parametrize(
    "copies",
    [
        '<clone id="c"><meta_attributes id="m"><nvpair id="n" name="clone-max" value="999999"/></meta_attributes>{}</clone>',
        '<bundle id="b"><docker image="x" replicas="100000000"/>{}</bundle>',
    ],
    ids=["clone", "bundle"],
)
def test_more_copies_than_any_cluster_has_are_not_simulated(tmp_path: Path, copies: str) -> None:
    need("crm_simulate")
    many = copies.format('<primitive id="q" class="ocf" type="Dummy"/>')
    setup = plan(tmp_path, cib().replace("</resources>", f"{many}{_SERVICE}"))
    assert behaviour_of(setup) is None and "copies" in limits.too_much_to_ask(setup.pacemaker.root)
    with pytest.raises(BadInputError, match="this CIB cannot be simulated"):
        rehearse.rehearse(setup)


def test_a_cib_without_some_of_its_sections_is_rehearsed_or_refused(tmp_path: Path) -> None:
    need("crm_simulate")
    assert rehearse.rehearse(plan(tmp_path / "empty", "<cib/>")).nothing
    text = cib().replace("<constraints></constraints>", "").replace("</resources>", _SERVICE)
    setup = plan(tmp_path / "other", text.replace("<nodes>", "<x>").replace("</nodes>", "</x>"))
    with pytest.raises(BadInputError, match="no service runs"):
        rehearse.rehearse(setup)


def test_a_rehearsal_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("crm_simulate")
    monkeypatch.setattr(rehearse, "_MOST_OF_PAIRS_S", 0.01)
    setup = plan(tmp_path, cib().replace("</resources>", _SERVICE))
    with pytest.raises(BadInputError, match="did not end within"):
        rehearse.rehearse(setup)


def tagged(*tags: tuple[str, ...]) -> Cib:
    """Return a CIB with two services and with tags; each tag is a name and the ids that it refers to."""
    text = "".join(
        f'<tag id="{name}">{"".join(f"<obj_ref id={quoteattr(one)}/>" for one in names)}</tag>' for name, *names in tags
    )
    services = '<primitive id="p0" class="ocf" type="Dummy"/><primitive id="p1" class="ocf" type="Dummy"/>'
    whole = cib().replace("</resources>", f"{services}</resources>").replace("</cib>", f"<tags>{text}</tags></cib>")
    return Cib(whole, "cib.xml")


def test_members_of_recursive_tags_are_found() -> None:
    for tags in (
        [("t0", "t0", "p1", "p0")],
        [("t0", "t1", "p1"), ("t1", "t0", "p0")],
        [*((f"t{number}", *[f"t{number + 1}"] * 2) for number in range(60)), ("t60", "p1", "p0")],
        [*((f"t{number}", f"t{number + 1}") for number in range(5000)), ("t5000", "p1", "p0")],
    ):
        assert sorted(one.id for one in tagged(*tags).ties.members("t0")) == ["p0", "p1"]


def test_a_resource_that_a_set_names_keeps_its_template() -> None:
    orders = '<rsc_order id="o"><resource_set id="s"><resource_ref id="p0"/></resource_set></rsc_order>'
    services = '<template id="T" class="ocf" type="Dummy"/><primitive id="p0" template="T"/>'
    one = Cib(cib(orders).replace("</resources>", f"{services}</resources>"), "cib.xml")
    assert [each.id for each in one.ties.members("T")] == ["p0"]


@pytest.mark.parametrize("times", [1, 2], ids=["ended at once", "ended although an error was kept"])
def test_rules_that_do_not_end_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    def never(_: Setup) -> None:
        for last in range(1, times + 1):
            with suppress(*[BadInputError] * (last < times)):
                while True:
                    pass

    monkeypatch.setattr(limits, "_MOST_S", 0.1)
    monkeypatch.setattr(checking, "findings", never)
    with pytest.raises(BadInputError, match="this configuration cannot be checked") as refused:
        checking.check(plan(tmp_path, cib()))
    assert "processor time" in refused.value.why and signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


@pytest.mark.parametrize(
    "text", ["multipath { " * 300_000, f"multipath {{{' '.join(f'alias a wwid b{n}' for n in range(200_000))}}}"]
)
def test_disks_of_multipath_are_compared_in_linear_time(tmp_path: Path, text: str) -> None:
    setup = replace(plan(tmp_path, cib()), texts={"etc/multipath.conf": text})
    with moment():
        assert len(list(multipath_disk_missing(setup))) == ("alias" in text)


def test_an_order_over_a_long_chain_is_found() -> None:
    many = [f'<primitive id="p{at}" class="ocf" provider="heartbeat" type="Dummy"/>' for at in range(900)]
    orders = "".join(f'<rsc_order id="o{at}" first="p{at}" then="p{at + 1}"/>' for at in range(899))
    one = Cib(cib(orders).replace("</resources>", f"{''.join(many)}</resources>"), "cib.xml")
    named = {each.id: each for each in one.primitives}
    assert one.ties.starts_after(named["p899"], named["p0"]) and not one.ties.starts_after(named["p0"], named["p899"])


@pytest.mark.parametrize("place", ["nodes/n{}/etc/hosts", "etc/systemd/system/a.wants/u{}.service"])
def test_too_many_nodes_or_files_are_refused_in_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr("strakes.failover.setup._MOST_PATHS", 150)
    for number in range(200):
        file = tmp_path / place.format(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    with moment(), pytest.raises(BadInputError, match="not a configuration") as refused:
        read_plan(tmp_path)
    assert "100 nodes" in refused.value.why


def test_files_that_are_too_large_together_are_refused(tmp_path: Path) -> None:
    setup = plan(tmp_path, cib())
    (tmp_path / "etc/drbd.d").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / f"etc/drbd.d/{name}.res").write_text(" " * (2 << 20))
    with pytest.raises(BadInputError, match="not a configuration") as refused:
        read_plan(tmp_path)
    assert refused.value.where.endswith("b.res") and "larger than 4 MiB" in refused.value.why
    assert setup.cib is not None


def test_a_policy_engine_that_answers_too_late_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = plan(tmp_path, cib())
    monkeypatch.setattr(policy_engine, "installed", lambda program: True)
    monkeypatch.setattr(policy_engine, "_LIMIT_S", 0.0)
    monkeypatch.setattr(checking, "verdicts", lambda setup: ())
    (told,) = checking.check(setup).verdicts
    assert (told.program, told.state) == ("crm_simulate", "unable") and "within 0 s" in told.text
    monkeypatch.setattr(policy_engine, "_LIMIT_S", 20.0)
    monkeypatch.setattr(policy_engine, "run", lambda argv, limit_s: Completed(tuple(argv), -11, "", ""))
    assert "crashes" in checking.check(setup).verdicts[0].text
    os.mkfifo(tmp_path / "1.xml")
    with pytest.raises(BadInputError, match="not a regular file"):
        policy_engine._read(tmp_path / "1.xml")


def test_a_thousand_copies_in_one_file_are_looked_at_in_a_moment_and_more_are_refused(tmp_path: Path) -> None:
    setup = plan(tmp_path, cib())
    one = "resource r{} {{ on a {{ device /dev/drbd{} minor {}; address 10.0.0.1:7789; }} }}\n"
    text = "".join(one.format(number, number, max(number, 1)) for number in range(1000))
    began = time.monotonic()
    found = findings(setup_of("", tmp_path, {"etc/drbd.d/r.res": text}, setup.cluster))[0]
    assert any(one.rule == "devices-collide" for one in found) and time.monotonic() - began < 2 * _MOMENT_S
    with pytest.raises(BadInputError, match="this configuration cannot be checked"):
        setup_of("", tmp_path, {"etc/drbd.d/r.res": text + one.format(1000, 0, 0)}, setup.cluster)


@pytest.mark.parametrize("blanks", [" ", "\n", "\t", " \n"])
def test_long_blanks_and_words_take_linear_time(tmp_path: Path, blanks: str) -> None:
    setup = plan(tmp_path, cib())
    setup.texts.update({"etc/drbd.conf": f"include{blanks * 100_000}x", "etc/default/grub": f"a=x{blanks * 100_000}y"})
    setup.texts["etc/modprobe.d/a.conf"] = f"options zfs {'x' * 100_000}"
    with moment():
        list(findings(setup))


@pytest.mark.parametrize("target", ["/victim", "../victim", "../../../../victim", "/proc/self/../../victim"])
def test_a_link_out_of_the_checked_directory_leads_nowhere(tmp_path: Path, target: str) -> None:
    (tmp_path / "victim").write_text("resource s3cr3t {\n")
    plan(tmp_path / "plan", cib())
    (tmp_path / "plan" / "etc" / "drbd.conf").symlink_to(target.replace("/victim", f"{tmp_path}/victim"))
    assert "etc/drbd.conf" not in read_plan(tmp_path / "plan").texts
    (tmp_path / "plan/nodes/a").mkdir(parents=True)
    (tmp_path / "plan/nodes/a/etc").symlink_to("/")
    with pytest.raises(BadInputError, match=r"leads out of the checked directory; where: .*nodes/a/etc"):
        read_plan(tmp_path / "plan")


def test_a_link_within_the_checked_directory_is_followed_as_on_its_node(tmp_path: Path) -> None:
    plan(tmp_path, cib())
    (tmp_path / "etc" / "drbd.conf").symlink_to("/real/drbd.conf")
    (tmp_path / "real").symlink_to("../../etc/../kept")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "drbd.conf").write_text("global { usage-count no; }\n")
    assert read_plan(tmp_path).texts["etc/drbd.conf"].startswith("global")


@pytest.mark.parametrize(
    "text",
    [
        "include" + " " * 100_000 + "x;",
        "\n" * 1_000_000 + "x",
        "pcs resource create " + "a" * 1_000_000,
        "primitive a ocf:x:y " + "op monitor " * 100_000,
        "crm " + "-a " * 100_000,
        "property a" + " \n" * 100_000,
        "crm(\n" * 100_000,
        "primitive a ocf:x:y\n" + "\n " * 100_000,
    ],
    ids=["blanks", "lines", "word", "operations", "options", "property", "prompts", "blank lines"],
)
def test_a_source_of_any_form_is_read_in_a_moment(tmp_path: Path, text: str) -> None:
    (tmp_path / "source").write_text(text)
    with moment(), suppress(BadInputError):
        read_plan(tmp_path / "source")


_CLUSTER = """totem {{
  version: 2
  cluster_name: x
  transport: knet
  {0}
}}
nodelist {{
  node {{
    ring0_addr: 127.0.0.1
    nodeid: 1
    name: a
    {0}
  }}
}}
quorum {{
  provider: corosync_votequorum
}}
logging {{
  to_logfile: yes
  {0}
  logger_subsys {{
    subsys: QUORUM
    to_logfile: yes
    {0}
  }}
}}
{0}
"""


@pytest.mark.parametrize(
    "form", ["logfile: {}", "logfile : {}", "logfile\t: {}", "\x0blogfile: {}", "xyz: y\n logfile:{}"]
)
def test_corosync_writes_no_file_that_a_configuration_names(tmp_path: Path, form: str) -> None:
    need("corosync")
    setup = plan(tmp_path, cib(), _CLUSTER.format(form.format(tmp_path / "victim")))
    said = {verdict.program: verdict for verdict in verdicts(setup)}["corosync"]
    assert not (tmp_path / "victim").exists()
    assert said.state == "accepts" or "not permitted" in said.text


@pytest.mark.parametrize(
    "line",
    [
        "keyfile: /victim",
        "logging.logfile: /victim",
        "token: 1" + "0" * 600 + "logfile: /victim",
        "logging {\n logfile: victim\n }",
        "system {\n state_dir: victim\n }",
        "uidgid {\n uid: victim\n }",
        "name: $(cat /victim) {",
    ],
)
def test_corosync_gets_no_setting_that_can_name_a_file(line: str) -> None:
    text = _CLUSTER.format(line if line[-1] != "{" else f"{line}\n }}")
    given = without_files(read_corosync(text, "corosync.conf"))
    assert "victim" not in given.replace("?victim", "") and "/" not in given and "logg" not in given
    assert max(map(len, given.splitlines())) < 400 and given.count("cluster_name: x\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
def test_a_reader_of_a_configuration_has_no_rights_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    (tmp_path / "victim").write_text("s3cr3t")
    (tmp_path / "victim").chmod(0o600)
    with confined({"a/b": "text"}) as (place, words):
        done = run([*words, "sh", "-c", f"pwd; id -u; cat {place}/a/b {tmp_path}/victim; env; echo >{place}/a/c"])
        assert os.listdir(place / "a") == ["b"]
    user = int(done.stdout.split()[1])
    assert done.stdout.startswith(f"/\n{user}\ntext") and "s3cr3t" not in done.stdout
    assert done.stderr.count("denied") == 2 and user not in {each.pw_uid for each in pwd.getpwall()}


@pytest.mark.parametrize(
    "text",
    [
        'global {{ usage-count no; }} include "{}";',
        'include\n"{}";',
        'include "{}"\n;',
        'include "drbd.d/*.res"; include "{}";',
        "# x\ninclude {} ;",
        '"#" include "{}";',
        '" include {};',
        'a,include "{}";',
        'resource r {{ disk include "{}"; }}',
        'include include "{}";',
        'template-file "{}";',
    ],
)
@pytest.mark.parametrize("name", ["/root-only", "../../root-only", "drbd.d/../../../root-only"])
def test_drbdadm_never_gets_an_include_of_a_file_outside_the_directory(tmp_path: Path, text: str, name: str) -> None:
    with pytest.raises(BadInputError, match="does not pass this file to drbdadm"):
        rewritten_drbd(text.format(name))
    need("drbdadm", "/lib/drbd/drbdadm-84")
    plan(tmp_path, cib())
    (tmp_path / "etc/drbd.d").mkdir()
    (tmp_path / "etc/drbd.d/a.res").write_text("resource r { device minor 1; disk /dev/x; meta-disk internal; }\n")
    setup = read_plan(tmp_path)
    setup.texts["etc/drbd.conf"] = text.format(name)
    assert [one.state for one in verdicts(setup) if "drbdadm" in one.program] == ["unable"]


@pytest.mark.parametrize(
    "agent", ["ocf:../../../..{}:x", "ocf:heartbeat:../../../../..{}/x", "stonith:../..{}/x", "-x:{}", "nagios:..{}/x"]
)
def test_no_program_that_a_configuration_names_by_a_path_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    monkeypatch.setattr(known_options, "run", lambda argv, timeout_s: pytest.fail(f"{argv} is run"))
    standard, *names = agent.format(tmp_path).split(":")
    one = Primitive("p", standard, names[0] if len(names) > 1 else "", names[-1], {}, {}, ())
    assert known_options.installed_options(one) == frozenset()


def test_drbdadm_gets_the_same_words_in_the_same_lines() -> None:
    text = '# a "comment\nglobal {\n  usage-count\n  yes; }\ninclude\n"drbd.d/*.res" ; common { h "x # include;y"; }\n'
    given = rewritten_drbd(text).splitlines()
    assert given == [
        "",
        "global {",
        "usage-count",
        "no ; }",
        "include",
        '"drbd.d/*.res" ; common { h "x # include;y" ; }',
    ]
    assert rewritten_drbd('a$(b) "c\\"d" /* "e') == 'a??b? "c??d" /? ?e\n'
    assert rewritten_drbd('"b\\" include "/x"; "') == '"b?? include " /x "; "\n'


def test_directories_nested_too_deep_are_refused(tmp_path: Path) -> None:
    plan(tmp_path, cib())
    (tmp_path / "nodes/a/etc").mkdir(parents=True)
    (tmp_path / "nodes/a/etc/hosts").write_text("10.0.0.1 a\n")
    assert read_plan(tmp_path).texts["nodes/a/etc/hosts"]
    directory = os.open(tmp_path / "nodes/a/etc", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=directory)
        below = os.open("d", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    try:
        with pytest.raises(BadInputError, match="nested more than 100 deep"):
            read_plan(tmp_path)
    finally:
        run(["rm", "-r", str(tmp_path / "nodes")])


def test_a_description_outside_of_the_checked_directory_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text('[cluster]\ns3cr3t = "s3cr3t"\n')
    plan(tmp_path / "plan", cib())
    (tmp_path / "plan/cluster.toml").symlink_to("../victim")
    with pytest.raises(BadInputError, match="cannot be read") as refused:
        read_plan(tmp_path / "plan")
    assert "s3cr3t" not in str(refused.value)


def test_a_directory_cannot_pass_for_the_running_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan(tmp_path / LIVE, cib())
    monkeypatch.chdir(tmp_path)
    assert read_plan(Path(LIVE)).where == f"./{LIVE}"


def test_no_finding_and_no_file_for_another_program_has_a_secret(tmp_path: Path) -> None:
    values = {
        "password": "hunt-a",
        "passwd": "hunt-b",
        "options": "ro,password=hunt-c",
        "cmd": "--token hunt-d",
    }
    pairs = "".join(f'<nvpair id="{name}" name="{name}" value="{value}"/>' for name, value in values.items())
    device = f'<primitive id="f" class="stonith" type="fence_ipmilan"><instance_attributes id="a">{pairs}'
    text = _CIB.format(long="n", constraints="", levels="")
    plan(tmp_path, text.replace("<resources>", f"<resources>{device}</instance_attributes></primitive>"))
    setup = read_plan(tmp_path)
    found = [one for one in findings(setup)[0] if one.rule == "setting-given-twice"]
    assert "password=... and ..." in str(found) and "hunt-" not in str(findings(setup))
    written = Xml.tostring(setup.pacemaker.readable(), "unicode")
    assert 'name="passwd"' in written and 'value="ro,password=..."' in written and "hunt-" not in written
    assert rewritten_drbd('net { shared-secret "hunt-a"; }') == 'net { shared-secret "xxxxxx" ; }\n'
    assert "hunt" not in rewritten_drbd('fence-peer "curl -u me:hunt-a https://x";')
