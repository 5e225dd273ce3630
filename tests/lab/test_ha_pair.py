"""The status of the lab's HA pair: resources do not count as running while a node joins or is being fenced."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

from strakes.lab.ha_pair import Pair, is_being_fenced, lacking

# Output of crm_mon of Pacemaker 2.1.5: mds-a was lost and came back while its fencing by mds-b was pending.
_STATUS = """\
<pacemaker-result api-version="2.25">
  <summary><current_dc present="true" name="mds-b" id="2" with_quorum="true"/></summary>
  <nodes>
    <node name="mds-a" id="1" online="true" pending="false" unclean="false"/>
    <node name="mds-b" id="2" online="true" pending="false" unclean="false"/>
  </nodes>
  <resources>
    <resource id="drbd-journal" role="Promoted"><node name="mds-a"/></resource>
    <resource id="drbd-journal" role="Unpromoted"><node name="mds-b"/></resource>
    <resource id="journal" role="Started"><node name="mds-a"/></resource>
  </resources>
  <fence_history>
    <fence_event action="off" target="mds-a" client="pacemaker-controld.31" origin="mds-b" status="pending"/>
    <fence_event action="off" target="mds-b" client="pacemaker-controld.33" origin="mds-a" status="success"/>
  </fence_history>
</pacemaker-result>
"""
_WHOLE = _STATUS.replace('"pending"/>', '"success"/>')


def lacking_of(tmp_path: Path, status: str) -> str:
    path = tmp_path / "status.xml"
    path.write_text(status)
    return lacking(["sh", "-c", f"cat {path}", "crm_mon"])


def test_a_pair_is_not_complete_while_a_node_is_being_fenced(tmp_path: Path) -> None:
    assert lacking_of(tmp_path, _STATUS) == "the fencing of mds-a is not over" and lacking_of(tmp_path, _WHOLE) == ""
    status, power = tmp_path / "status.xml", tmp_path / "power"
    power.touch()
    (tmp_path / "next").write_text(_WHOLE)
    # The fencing that a fault has caused cuts the power at the third look, after the undoing has begun.
    ends = "cat status.xml; echo >>looks; [ $(wc -l <looks) = 3 ] && mv next status.xml && rm power; true"
    look = ["sh", "-c", f"cd {tmp_path}; {ends}", "crm_mon"]
    switch = ["sh", "-c", f'[ $0 = on ] && touch {power}; [ -e {power} ] && echo "Chassis Power is on"; true']
    status.write_text(_STATUS)
    nodes = ("mds-a", "mds-b")
    facts = {"nodes": nodes, "look_every_s": 0.01, "links": {}, "commands": dict.fromkeys(nodes, look)}
    Pair({**facts, "power": dict.fromkeys(nodes, switch)}).restore(9.0)
    assert power.exists() and status.read_text() == _WHOLE
    silent = _WHOLE.replace("<fence_history>", '<fence_history status="102">')
    assert "fencer does not answer" in lacking_of(tmp_path, silent)


def test_a_node_that_is_joining_or_unclean_is_not_online(tmp_path: Path) -> None:
    for word in ("pending", "unclean"):
        assert lacking_of(tmp_path, _WHOLE.replace(f'{word}="false"', f'{word}="true"', 1)) == "not online: mds-a"


def test_a_node_counts_as_being_fenced_while_its_peer_fences_it_or_must_do_so() -> None:
    def fenced(status: str) -> list[str]:
        return [node for node in ("mds-a", "mds-b") if is_being_fenced(Xml.fromstring(status), node)]

    assert fenced(_STATUS) == ["mds-a"] and fenced(_WHOLE) == []
    unclean = _WHOLE.replace('unclean="false"', 'unclean="true"', 1)
    assert fenced(unclean) == ["mds-a"]
    # A node that has just started alone has no quorum and fences nobody. Waiting for its fencing would never end.
    assert fenced(unclean.replace('with_quorum="true"', 'with_quorum="false"')) == []
    assert fenced(unclean.replace('present="true" name="mds-b" id="2" with_quorum="true"', 'present="false"')) == []
