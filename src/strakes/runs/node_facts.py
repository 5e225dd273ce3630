"""Compare the nodes of a launch. The launcher runs this module on each node to print facts about the node.

``python -m strakes.runs.node_facts DIRECTORY FILE [HOST]`` prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.finite import parse_json
from strakes.base.processes import mark_of, private_mpi_directory, process_start, python_module
from strakes.base.units import counted, format_bytes
from strakes.model.record import from_record
from strakes.runs.launch import Launch
from strakes.targets.command import MOST_OUTPUT_BYTES, OUTPUT_BYTES, kill_running, run

# Maximum seconds for Python to start. All nodes may load it from a shared file system at the same time.
_START_S = 60.0
# Seconds that srun waits for the other nodes after the first node has ended.
_LATE_S = 10
_VERSION_S = 10.0
_OVERLAP = {"SLURM_OVERLAP": "1"}  # In a Slurm job, mpiexec calls srun, which otherwise waits until the engine ends.
# Maximum number of concurrent mpiexec commands. Each host gets its own command.
_CONCURRENT_RUNS = 64
# Nodes with less than this share of the median free memory are reported.
_SHARE = 0.7
_MOST_TOKEN_BYTES = 256
# Maximum output for each node, with other lines, and maximum number of values of a node. A node has 400 bytes.
_MOST_NODE_BYTES, _MOST_NODE_VALUES = 1 << 20, 1000
_UPDATE = "Install the same version of strakes on all nodes."


@dataclass(frozen=True)
class CheckedNode:
    """Facts about one node. ``seen``: mount of the directory, and content of the test file, as read on this node."""

    host: str
    strakes: str
    engine: str
    kernel: str
    cpus: int
    memory_available_bytes: int
    seen: Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """A difference between one node and the other nodes. ``wrong``: the nodes cannot be measured together."""

    host: str
    what: str
    wrong: bool
    remedy: str = ""


def examine(launch: Launch, directory: str, file: str, content: str) -> tuple[list[CheckedNode], list[Difference]]:
    """Return the facts about all nodes, and the differences between nodes.

    ``content``: expected content of ``directory``/``file`` on every node. Raises EnvironmentLacksError unless each node
    answers exactly once.
    """
    commands = starts(launch, directory, file)
    most_bytes = min(MOST_OUTPUT_BYTES, _MOST_NODE_BYTES * max(len(hosts) for _, hosts in commands))
    with ThreadPoolExecutor(_CONCURRENT_RUNS, initializer=OUTPUT_BYTES.set, initargs=(most_bytes,)) as pool:
        try:
            answers = list(pool.map(lambda command: _ask(command[0]), commands))
        except BaseException:
            kill_running()
            raise
    nodes = [node for found, _ in answers for node in found]
    names = [host for _, hosts in commands for host in hosts]
    known = {node.host for node in nodes}
    if len(nodes) < len(names):
        absent = [name for name in names if name and name not in known]
        words = [why for _, why in answers if why]
        where = ", ".join(absent) or f"{len(nodes)} of {counted(len(names), 'node')}"
        why = " | ".join(words[-4:]) or "they printed nothing"
        remedy = "Check that the launcher reaches the nodes and that strakes is installed on them."
        raise EnvironmentLacksError("not all nodes answer", where=where, why=why, remedy=remedy)
    if len(known) < len(nodes):
        what, hosts = "the launcher started several processes on one node", sorted(node.host for node in nodes)
        remedy = "Spread the processes with {nodes} and {ranks_per_node}, or {hosts}, in the launcher's command."
        raise EnvironmentLacksError(what, where=", ".join(hosts), remedy=remedy)
    order = {name: place for place, name in enumerate(names)}
    nodes.sort(key=lambda node: (order.get(node.host, len(names)), node.host))
    return nodes, differences(nodes, content)


def starts(launch: Launch, directory: str, file: str) -> list[tuple[list[str], list[str]]]:
    """Return commands that run this module on the nodes, each with the names of its nodes. An unknown name is ""."""
    module = python_module("strakes.runs.node_facts", directory, file)
    if launch.launcher == "mpi":
        from strakes.runs.mpi import find_mpiexec, placed

        mpiexec = find_mpiexec(launch.mpiexec)
        each = [(placed(mpiexec, Launch("mpi", 1, (host,), 1)), [host]) for host in launch.hosts]
        # Without --hosts, mpiexec gets the hosts from a batch system or from its options.
        all_at_once = [(placed(mpiexec, launch), [""] * (launch.ranks or 1))]
        return [([*words, *launch.options, *module, hosts[0]], hosts) for words, hosts in each or all_at_once]
    if launch.launcher == "slurm":
        from strakes.runs import slurm

        nodes = len(launch.hosts) or slurm.allocation().nodes
        spread = slurm.placed(slurm.find_srun(), replace(launch, ranks=nodes, ranks_per_node=1))
        once = [*spread, f"--nodes={nodes}", *launch.options]
        command = [*once, "--mpi=none", "--overlap", f"--wait={_LATE_S}", *module]
    else:
        from strakes.runs.template import filled

        nodes = len(launch.hosts) or -(-(launch.ranks or 1) // (launch.ranks_per_node or 1))
        command = filled(replace(launch, ranks=nodes, ranks_per_node=1), module)
    return [(command, list(launch.hosts) or [""] * nodes)]


def _ask(command: Sequence[str]) -> tuple[list[CheckedNode], str]:
    try:
        with private_mpi_directory() as variables:
            mark = mark_of(os.getpid(), process_start(os.getpid()) or 0) | _OVERLAP | variables
            done = run(command, _START_S, mark=mark)
    except StrakesError as error:
        return [], f"{error.what}: {error.why}"
    nodes = []
    for line in done.stdout.splitlines():
        # Ignore other lines. The launcher may print some, even JSON.
        with suppress(ValueError):
            nodes.append(from_record(CheckedNode, parse_json(line, _MOST_NODE_VALUES)))
    return nodes, next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")


def differences(nodes: Sequence[CheckedNode], content: str) -> list[Difference]:
    """Return the differences between nodes in versions, directories, processors and free memory."""
    differing = [
        *_unlike(nodes, "strakes", lambda node: node.strakes, _UPDATE),
        *_unlike(nodes, "engine", lambda node: node.engine or "none", _UPDATE),
        *_directories(nodes, content),
        *_unlike(nodes, "kernel", lambda node: node.kernel),
        *_unlike(nodes, "processors", lambda node: str(node.cpus)),
    ]
    usual = median(node.memory_available_bytes for node in nodes)
    for node in nodes:
        if node.memory_available_bytes < _SHARE * usual:
            own, others = format_bytes(node.memory_available_bytes), format_bytes(usual)
            differing.append(Difference(node.host, f"free memory {own}, the others' median {others}", wrong=False))
    return differing


def _unlike(
    nodes: Sequence[CheckedNode], what: str, value: Callable[[CheckedNode], str], remedy: str = ""
) -> list[Difference]:
    values = {node.host: value(node) for node in nodes}
    ((usual, _),) = Counter(values.values()).most_common(1)
    return [
        Difference(host, f"{what} {own}, the others {usual}", bool(remedy), remedy)
        for host, own in values.items()
        if own != usual
    ]


def _directories(nodes: Sequence[CheckedNode], content: str) -> list[Difference]:
    remedy = "Mount the file system on that node, or leave the node out."
    differing = []
    for node in nodes:
        seen = node.seen
        if "why" in seen:
            what = f"the directory cannot be reached on this node: {seen['why']}"
        elif seen.get("content") != content:
            what = f"this node sees another directory of that name ({seen.get('file_system')} of {seen.get('source')})"
        elif seen.get("read_only"):
            what = "the directory is mounted read-only on this node"
        else:
            continue
        differing.append(Difference(node.host, what, wrong=True, remedy=remedy))
    return differing


def main(directory: str, file: str, host: str = "") -> None:
    """Print the facts of this node as one line of JSON."""
    from strakes.base.machine import memory_sizes
    from strakes.base.version import __version__
    from strakes.runs.mpi_family import IN_ROOT, find_mpi_engine

    engine = ""
    with suppress(StrakesError, OSError, subprocess.SubprocessError):
        engine = run([*IN_ROOT, str(find_mpi_engine()), "--version"], _VERSION_S).stdout.strip()
    node = CheckedNode(
        host=host or os.environ.get("SLURMD_NODENAME", platform.node()),
        strakes=__version__,
        engine=engine,
        kernel=platform.release(),
        cpus=len(os.sched_getaffinity(0)),
        memory_available_bytes=memory_sizes().get("MemAvailable", 0),
        seen=_look(Path(directory), file),
    )
    sys.stdout.write(json.dumps(asdict(node)) + "\n")


def _look(directory: Path, file: str) -> dict[str, Any]:
    from strakes.base.files import read_regular
    from strakes.targets.calls import mount_of

    content = ""
    try:
        mount = mount_of(directory)
        with suppress(BadInputError):
            content = read_regular(directory / file, _MOST_TOKEN_BYTES).decode(errors="replace").strip()
    except StrakesError as error:
        return {"why": f"{error.what}: {error.why}"}
    except OSError as error:
        return {"why": error.strerror or str(error)}
    found = {"file_system": mount.file_system, "source": mount.source, "read_only": "ro" in mount.options}
    return {**found, "content": content}


if __name__ == "__main__":
    main(*sys.argv[1:4])
