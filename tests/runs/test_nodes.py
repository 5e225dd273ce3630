"""Facts about the nodes of a launch, and how nodes may differ: in version, directory and memory."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.base.units import GIB
from strakes.runs import mpi, slurm
from strakes.runs.launch import Launch
from strakes.runs.node_facts import CheckedNode, differences, examine, starts

SEEN = {"file_system": "lustre", "source": "mgs:/work", "read_only": False, "content": "token"}
# A directory, the name of a file in it, and the content of the file.
AT = "/none", "token", "token"
USUAL = CheckedNode("n1", "0.1.0", "0.1.0", "6.1", 8, 20 * GIB, SEEN)
NODES = [replace(USUAL, host=f"n{number}") for number in range(1, 5)]


def found(*changed: CheckedNode) -> list[tuple[str, str, bool]]:
    nodes = [next((one for one in changed if one.host == node.host), node) for node in NODES]
    return [(one.host, one.what, one.wrong) for one in differences(nodes, "token")]


def test_equal_nodes_show_no_difference() -> None:
    assert found() == []


def test_a_node_with_another_version_is_named_as_wrong() -> None:
    assert found(replace(NODES[2], strakes="0.0.9")) == [("n3", "strakes 0.0.9, the others 0.1.0", True)]
    assert found(replace(NODES[1], engine="")) == [("n2", "engine none, the others 0.1.0", True)]


def test_a_node_whose_directory_is_missing_or_different_is_named_as_wrong() -> None:
    other = replace(NODES[1], seen={**SEEN, "file_system": "tmpfs", "source": "none", "content": ""})
    absent = replace(NODES[3], seen={"why": "No such file or directory"})
    said = found(other, absent)
    assert [(host, wrong) for host, _, wrong in said] == [("n2", True), ("n4", True)]
    assert "another directory of that name (tmpfs of none)" in said[0][1] and "No such file" in said[1][1]


def test_little_memory_is_reported_but_not_wrong() -> None:
    poor = replace(NODES[0], memory_available_bytes=2 * GIB)
    assert found(poor) == [("n1", "free memory 2 GiB, the others' median 20 GiB", False)]


def launcher(tmp_path: Path, body: str, hosts: tuple[str, ...] = ()) -> Launch:
    script = tmp_path / "launcher"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    if hosts:
        return Launch("command", hosts=hosts, command=f"{script} {{hosts}} {{engine}}")
    return Launch("command", ranks=1, ranks_per_node=1, command=f"{script} {{engine}}")


def test_a_node_prints_its_facts_and_what_it_sees_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("here")
    launch = launcher(tmp_path, 'echo a banner; [ "$STRAKES_SHARED_NAMES" ] && exec "$@" n1')
    (node,), differing = examine(launch, str(tmp_path), "token", "here")
    assert (node.host, differing) == ("n1", []) and node.cpus >= 1
    assert node.seen["content"] == "here"
    _, (other,) = examine(launch, str(tmp_path), "token", "elsewhere")
    assert other.wrong and "another directory" in other.what
    _, (absent,) = examine(launch, str(tmp_path / "none"), "token", "here")
    assert absent.wrong and "cannot be reached" in absent.what


def test_lines_of_the_launcher_itself_are_left_out(tmp_path: Path) -> None:
    foreign = json.dumps({**asdict(USUAL), "memory_available_bytes": "x"})
    launch = launcher(tmp_path, f"""echo 1; echo '["n9"]'; echo '{{}}'; echo null; echo '{foreign}'; exec "$@" n1""")
    nodes, _ = examine(launch, *AT)
    assert [node.host for node in nodes] == ["n1"]


def test_nodes_are_in_the_order_of_the_hosts(tmp_path: Path) -> None:
    nodes, _ = examine(launcher(tmp_path, 'shift; "$@" b; "$@" a', ("a", "b")), *AT)
    assert [node.host for node in nodes] == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "what", "where", "why"),
    [
        ('shift; "$@" a; echo no route >&2; exit 1', "not all nodes answer", "b", "no route"),
        ("exit 0", "not all nodes answer", "a, b", "they printed nothing"),
        ('shift; "$@" a; "$@" a', "several processes on one node", "a, a", ""),
    ],
)
def test_nodes_that_do_not_answer_are_named(tmp_path: Path, body: str, what: str, where: str, why: str) -> None:
    launch = launcher(tmp_path, body, ("a", "b"))
    with pytest.raises(EnvironmentLacksError, match=what) as refused:
        examine(launch, *AT)
    assert (refused.value.where, refused.value.why) == (where, why)


def test_a_launcher_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacksError, match="not all nodes answer") as refused:
        examine(Launch("command", ranks=1, command=f"{tmp_path / 'none'} {{engine}}"), *AT)
    assert "No such file" in refused.value.why and refused.value.where == "0 of 1 node"


def test_mpi_starts_the_nodes_one_by_one_and_slurm_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi, "find_mpiexec", lambda given: Path("/mpiexec"))
    monkeypatch.setattr(
        mpi, "placed", lambda mpiexec, one: [str(mpiexec), str(one.ranks), *one.hosts, str(one.ranks_per_node)]
    )
    commands = starts(Launch("mpi", hosts=("a", "b"), options=("-x",)), "/d", "f")
    assert [hosts for _, hosts in commands] == [["a"], ["b"]]
    assert all(words[:5] == ["/mpiexec", "1", host, "1", "-x"] and words[-1] == host for words, (host,) in commands)
    ((words, hosts),) = starts(Launch("mpi", 3, ranks_per_node=1), "/d", "f")
    assert words[:3] == ["/mpiexec", "3", "1"] and words[-2:] == ["f", ""] and hosts == ["", "", ""]
    monkeypatch.setattr(slurm, "find_srun", lambda: Path("/srun"))
    monkeypatch.setattr(
        slurm, "placed", lambda srun, all_: [str(srun), str(all_.ranks), *all_.hosts, str(all_.ranks_per_node)]
    )
    ((words, hosts),) = starts(Launch("slurm", hosts=("a", "b")), "/d", "f")
    assert words[:6] == ["/srun", "2", "a", "b", "1", "--nodes=2"] and hosts == ["a", "b"]
    assert "--wait=10" in words and words[-2:] == ["/d", "f"]
    monkeypatch.setattr(slurm, "allocation", lambda: SimpleNamespace(nodes=3))
    assert starts(Launch("slurm"), "", "")[0][1] == ["", "", ""]


@pytest.mark.parametrize(
    ("ranks", "per_node", "hosts", "nodes", "names"),
    [(5, 2, (), "3", ["", "", ""]), (None, None, (), "1", [""]), (8, 2, ("a", "b"), "2", ["a", "b"])],
)
def test_another_launcher_starts_one_process_on_each_node(
    ranks: int | None, per_node: int | None, hosts: tuple[str, ...], nodes: str, names: list[str]
) -> None:
    command = "x {nodes} {ranks_per_node} {hosts} {engine}" if hosts else "x {nodes} {ranks_per_node} {engine}"
    ((words, found_names),) = starts(Launch("command", ranks, hosts, per_node, command=command), "/d", "f")
    assert words[:3] == ["x", nodes, "1"] and words[-2:] == ["/d", "f"] and found_names == names
