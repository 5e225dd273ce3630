"""Differences between nodes: versions, directories, memory, links and clocks."""

from __future__ import annotations

from dataclasses import replace

from strakes.base.units import GIB
from strakes.runs.nodes_check import CheckedNode, differences

USUAL = CheckedNode("n1", "0.1.0", "0.1.0", "6.1", 8, 20 * GIB, 0.001, 0.0001, None, (1e9, 1.1e9, 1e9))
NODES = [replace(USUAL, host=f"n{number}") for number in range(1, 5)]
SEEN = {
    "file_system": "lustre",
    "source": "mgs:/work",
    "mount_point": "/work",
    "read_only": False,
    "total_bytes": 1,
    "content": "token",
}


def found(*changed: CheckedNode, content: str = "") -> list[tuple[str, str, bool]]:
    nodes = [next((one for one in changed if one.host == node.host), node) for node in NODES]
    return [(one.host, one.what, one.wrong) for one in differences(nodes, content)]


def test_nodes_that_are_alike_differ_in_nothing() -> None:
    assert found() == []


def test_another_version_is_wrong_and_names_the_host() -> None:
    assert found(replace(NODES[2], strakes="0.0.9")) == [("n3", "strakes 0.0.9, the others 0.1.0", True)]
    assert found(replace(NODES[1], engine="")) == [("n2", "engine none, the others 0.1.0", True)]


def test_a_directory_that_is_absent_or_another_one_is_wrong() -> None:
    alike = [replace(node, seen=SEEN) for node in NODES]
    other = replace(NODES[1], seen={**SEEN, "file_system": "tmpfs", "source": "none", "content": ""})
    absent = replace(NODES[3], seen={"why": "No such file or directory"})
    said = found(alike[0], other, alike[2], absent, content="token")
    assert [(host, wrong) for host, _, wrong in said] == [("n2", True), ("n4", True)]
    assert "another directory of that name (tmpfs of none)" in said[0][1] and "No such file" in said[1][1]


def test_little_memory_and_a_slow_link_are_reported_but_not_wrong() -> None:
    poor = replace(NODES[0], memory_available_bytes=2 * GIB, link_bytes_per_s=(1e8, 1e8, 1e8))
    assert found(poor) == [
        ("n1", "free memory 2 GiB, usual among them is 20 GiB", False),
        ("n1", "link 95.4 MiB/s, usual among them is 954 MiB/s", False),
    ]


def test_a_clock_offset_is_reported_with_its_size() -> None:
    assert found(replace(NODES[3], clock_ahead_s=-2.5)) == [
        ("n4", "its wall clock is 2.501 s behind the others", False)
    ]
