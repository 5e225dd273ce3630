"""Cost of the control plane by number of ranks: ``python -m bench.ranks``.

``strakes-engine-emulated`` runs nodes and ranks as threads on this machine, with the real code except for MPI. Rank 0
and the last node are separate processes. The bench measures processor time, memory and descriptors of rank 0 while all
ranks are almost idle, and then stops the last node.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from strakes.base.units import MIB
from strakes.targets.marker import MARKER_NAME

SHAPES = ((2, 8), (8, 8), (8, 32), (32, 32), (128, 32), (500, 20))
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_STRAYS = 2
_LIMIT_S = 600


@dataclass(frozen=True)
class Cost:
    """Cost of one run of the control plane, in seconds and bytes.

    ``processor``: share of one processor that rank 0 used. ``naming_s``: seconds from the stop of the last node to the
    error that names the node, None if no node was stopped.
    """

    nodes: int
    ranks_per_node: int
    startup_s: float
    processor: float
    peak_bytes: int
    descriptors: int
    naming_s: float | None
    sample_bytes: int

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    def missed(self) -> list[str]:
        """Return a message for each missed limit. Above 500 nodes or 10,000 ranks, nothing is checked."""
        naming_s = self.naming_s or 0
        bars = (
            (self.startup_s < 15, f"start-up took {self.startup_s:.1f} s, not less than 15 s"),
            (self.processor < 0.1, f"rank 0 took {100 * self.processor:.1f} % of a processor, not less than 10 %"),
            (self.peak_bytes < 256 * MIB, f"rank 0 took {self.peak_bytes / MIB:.0f} MiB, not less than 256 MiB"),
            (self.descriptors < 700, f"rank 0 had {self.descriptors} descriptors open, not less than 700"),
            (naming_s < 10, f"the stopped node was named after {naming_s:.1f} s, not in less than 10 s"),
        )
        return [words for met, words in bars if not met]


class EngineFailed(Exception):
    """The emulated engine ended, reported an error, or sent nothing for ``_LIMIT_S`` seconds."""


class _Emulated:
    def __init__(self, engine: Path, nodes: int, ranks_per_node: int, errors: IO[bytes]) -> None:
        self.started = time.monotonic()
        self.errors = errors
        self.process = subprocess.Popen(
            [engine, str(nodes), str(ranks_per_node)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            start_new_session=True,
        )
        self._buffer = b""

    def ask(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def messages(self) -> Iterator[tuple[dict[str, Any], int]]:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                line, newline, rest = self._buffer.partition(b"\n")
                if newline:
                    self._buffer = rest
                    yield json.loads(line), len(line)
                    continue
                if not selector.select(_LIMIT_S):
                    raise EngineFailed(f"no message for {_LIMIT_S} s")
                piece = os.read(self.process.stdout.fileno(), 1 << 20)
                if not piece:
                    return
                self._buffer += piece

    def next(self, kind: str) -> dict[str, Any]:
        return self._next(kind)[0]

    def next_of(self, *kinds: str) -> tuple[str, int]:
        message, size = self._next(*kinds)
        return str(message["type"]), size

    def _next(self, *kinds: str) -> tuple[dict[str, Any], int]:
        for message, size in self.messages():
            if message["type"] in kinds:
                return message, size
            if message["type"] == "error":
                raise EngineFailed(f"{message['what']}: {message['why']}")
        self.errors.seek(0)
        raise EngineFailed(self.errors.read().decode(errors="replace").strip() or "the engine ended without a message")

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def measure(
    engine: Path, nodes: int, ranks_per_node: int, *, seconds: float = 20, stops_node: bool = True, strays: bool = True
) -> Cost:
    """Start an engine, measure rank 0 during ``seconds`` of work, stop the last node, and return the cost.

    Raises EngineFailed if the engine ends or reports another error than the stopped node.
    """
    with _directory() as directory, _running(engine, nodes, ranks_per_node) as emulated:
        knocking = threading.Event()
        if strays:
            threading.Thread(target=_knock, args=(emulated.process.pid, knocking), daemon=True).start()
        try:
            hello = emulated.next("hello")
        finally:
            knocking.set()
        startup_s = time.monotonic() - emulated.started
        rank_0 = emulated.process.pid
        emulated.ask(_request("quiet", directory, nodes * ranks_per_node, seconds))
        emulated.next("progress")
        before, since = _processor_s(rank_0), time.monotonic()
        processor, descriptors = 0.0, 0
        kind, size = "progress", 0
        while kind != "sample":
            kind, size = emulated.next_of("progress", "sample")
            if kind == "progress":
                processor = (_processor_s(rank_0) - before) / (time.monotonic() - since)
                descriptors = max(descriptors, len(os.listdir(f"/proc/{rank_0}/fd")))
        emulated.next("done")
        peak_bytes = _peak_bytes(rank_0)
        naming_s = None
        if stops_node:
            emulated.ask(_request("stopped", directory, nodes * ranks_per_node, 60))
            emulated.next("progress")
            os.kill(hello["nodes"][-1]["pids"][0], signal.SIGSTOP)
            since = time.monotonic()
            error = next(message for message, _ in emulated.messages() if message["type"] == "error")
            naming_s = time.monotonic() - since
            last_node = hello["nodes"][-1]["host"]
            if error["where"].get("host") != last_node:
                raise EngineFailed(f"{last_node} was stopped, but the error names {error['where']}: {error['why']}")
    return Cost(nodes, ranks_per_node, startup_s, processor, peak_bytes, descriptors, naming_s, size)


def _request(name: str, directory: Path, ranks: int, seconds: float) -> dict[str, Any]:
    phase = {"kind": "probe", "name": "quiet", "operation": "file-cycle", "rate_per_s": 1 / seconds, "seconds": seconds}
    return {
        "type": "plan",
        "version": 1,
        "id": name,
        "directory": str(directory),
        "limit_s": _LIMIT_S,
        "plan": {"schema": 1, "seed": 1, "team": {"ranks": ranks}, "phases": [phase]},
    }


@contextmanager
def _running(engine: Path, nodes: int, ranks_per_node: int) -> Iterator[_Emulated]:
    with tempfile.TemporaryFile() as errors:
        emulated = _Emulated(engine, nodes, ranks_per_node, errors)
        try:
            yield emulated
        finally:
            emulated.end()


@contextmanager
def _directory() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="strakes-ranks-", dir=memory if memory.is_dir() else None) as directory:
        (Path(directory) / MARKER_NAME).touch()
        yield Path(directory)


def _knock(pid: int, done: threading.Event) -> None:
    """Open two idle connections to the engine's start-up port, to disturb the start-up."""
    connections: list[socket.socket] = []
    while not done.wait(0.02) and len(connections) < _STRAYS:
        with suppress(ConnectionError):  # the engine closes the port when all nodes are connected
            connections.extend(socket.create_connection(("127.0.0.1", port)) for port in _listening_ports(pid))
    done.wait()
    for connection in connections:
        connection.close()


def _listening_ports(pid: int) -> list[int]:
    inodes = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            inodes.add(os.readlink(f"/proc/{pid}/fd/{name}").removeprefix("socket:[").removesuffix("]"))
        lines = Path("/proc/net/tcp6").read_text().splitlines() + Path("/proc/net/tcp").read_text().splitlines()
    except OSError:
        return []
    listening = "0A"
    rows = [line.split() for line in lines]
    return [int(row[1].rsplit(":", 1)[1], 16) for row in rows if row[3] == listening and row[9] in inodes]


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:", 1)[1].split()[0]) * 1024


def table(costs: Sequence[Cost]) -> str:
    heads = (
        "nodes x ranks",
        "ranks",
        "start-up",
        "rank 0's processor",
        "its memory",
        "its descriptors",
        "sample",
        "stopped node named after",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for cost in costs:
        named = "-" if cost.naming_s is None else f"{cost.naming_s:.1f} s"
        lines.append(
            f"| {cost.nodes} x {cost.ranks_per_node} | {cost.ranks:,} | {cost.startup_s:.1f} s "
            f"| {100 * cost.processor:.1f} % | {cost.peak_bytes / MIB:.0f} MiB | {cost.descriptors} "
            f"| {cost.sample_bytes / 1024:.0f} KiB | {named} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Return 1 if an engine failed or a limit was missed, else 0."""
    parser = argparse.ArgumentParser(prog="bench.ranks", description="Cost of the control plane against ranks.")
    parser.add_argument("engine", type=Path, help="strakes-engine-emulated, built with STRAKES_TESTS")
    parser.add_argument(
        "--shape",
        action="append",
        metavar="NODESxRANKS",
        help="such as 500x20; may be repeated (default: a curve from 16 to 10,000 ranks)",
    )
    parser.add_argument("--stop-none", action="store_true", help="do not stop a node (for busy machines)")
    parser.add_argument("--bars", action="store_true", help="fail if a bar of docs/performance.md is missed")
    parser.add_argument("--seconds", type=float, default=20, help="length of the measured work (default: 20)")
    chosen = parser.parse_args(arguments)
    shapes = [tuple(map(int, shape.split("x"))) for shape in chosen.shape] if chosen.shape else SHAPES
    costs = []
    status = 0
    for nodes, ranks_per_node in shapes:
        load = os.getloadavg()[0]
        try:
            costs.append(
                measure(chosen.engine, nodes, ranks_per_node, seconds=chosen.seconds, stops_node=not chosen.stop_none)
            )
        except (EngineFailed, StopIteration) as error:
            print(f"bench.ranks: {nodes} x {ranks_per_node}: {error}", file=sys.stderr)
            status = 1
            continue
        missed = costs[-1].missed() if chosen.bars else []
        for bar in missed:
            print(f"bench.ranks: {nodes} x {ranks_per_node}: {bar}", file=sys.stderr)
            status = 1
        print(f"{costs[-1]} (load before: {load:.1f})", file=sys.stderr, flush=True)
    print(table(costs))
    return status


if __name__ == "__main__":
    sys.exit(main())
